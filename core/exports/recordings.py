"""Exports of a run's records: a CSV table, TensorBoard logs and a replay."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from core.artifacts.replay import write_replay
from core.config.run import without_folders
from core.events import Evaluation, Step
from core.exports.entry import Export, refuse_unended, text_writer
from core.exports.recipes import config_json
from core.messages import N_, Message
from core.store import RunRecord, Store
from core.tasks.listing import csv_text

# TensorBoard recognises event files by this name.
EVENTS = "events.out.tfevents"


def curves_csv(steps: Sequence[Step], evaluations: Sequence[Evaluation]) -> str:
    """Return CSV with one row per step: its measures and, if it was scored, its scores by split."""
    rows: dict[int, dict[str, float]] = {}
    for step in steps:
        rows.setdefault(step.step, {}).update(step.values)
    for scores in evaluations:
        rows.setdefault(scores.step, {}).update({f"{scores.split}.{name}": v for name, v in scores.values.items()})
    names = sorted({name for values in rows.values() for name in values})
    return csv_text(["step", *names], ([step, *(rows[step].get(name) for name in names)] for step in sorted(rows)))


def _write_logs(store: Store, run: RunRecord, path: Path) -> None:
    from tensorboardX import SummaryWriter

    times = store.newest_times(run.id, -1)
    with SummaryWriter(str(path)) as writer:
        writer.add_text("config", f"```json\n{config_json(without_folders(run.effective))}```", 0, run.created_at)
        for step in store.steps(run.id):
            for name, value in step.values.items():
                writer.add_scalar(f"train/{name}", value, step.step, times.get(step.step, run.created_at))
        for scores in store.evaluations(run.id):
            for name, value in scores.values.items():
                tag = f"{scores.split}/{name}"
                writer.add_scalar(tag, value, scores.step, times.get(scores.step, run.created_at))
    (written,) = path.glob(f"{EVENTS}.*")
    # Replace the file name, because the library includes the host name in it.
    written.rename(path / f"{EVENTS}.{int(run.created_at)}.{run.id}")


ENTRIES = (
    Export(
        name="curves",
        label=N_("Curves"),
        place=30,
        about=N_("A CSV table of every step: loss and its terms, gradient norms, rates and scores."),
        suffix=".csv",
        mime="text/csv",
        write=text_writer(lambda store, run: curves_csv(store.steps(run.id), store.evaluations(run.id))),
        text=True,
    ),
    Export(
        name="replay",
        label=N_("Replay"),
        place=40,
        about=N_("Frames, curves and tokens without weights. Import it on Runs, here or on another machine."),
        suffix=".zip",
        mime="application/zip",
        write=lambda store, run, path: write_replay(store, run.id, path),
        refusal=lambda store, run: (
            refuse_unended(store, run)
            or (None if run.probe else Message("{title} has no frames, which a replay needs.", title=run.title))
        ),
    ),
    Export(
        name="tensorboard",
        label=N_("TensorBoard logs"),
        place=60,
        about=N_("A folder for tensorboard --logdir: curves and settings."),
        suffix="-tensorboard",
        mime="application/zip",
        write=_write_logs,
        folder=True,
    ),
)
