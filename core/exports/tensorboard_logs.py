"""A run as a folder for TensorBoard: its curves and its settings."""

from __future__ import annotations

from pathlib import Path

from core.config.folders import without_folders
from core.exports.config_file import config_json
from core.exports.entry import Export
from core.messages import N_
from core.store import RunRecord, Store

# TensorBoard finds event files by this word in their names.
EVENTS = "events.out.tfevents"


def _write(store: Store, run: RunRecord, path: Path) -> None:
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
    # The library puts the machine's name into the file's.
    written.rename(path / f"{EVENTS}.{int(run.created_at)}.{run.id}")


ENTRIES = (
    Export(
        name="tensorboard",
        label=N_("TensorBoard logs"),
        place=60,
        about=N_("A folder for tensorboard --logdir: curves and settings."),
        suffix="-tensorboard",
        mime="application/zip",
        write=_write,
        folder=True,
    ),
)
