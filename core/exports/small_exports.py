"""Small exports: settings as JSON, a command or a script that repeat the run, and its records."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path

from core.artifacts.replay import write_replay
from core.config import FILE_TASK, RunConfig
from core.config.edit import NAMED_PRESET, settings_text
from core.config.run import without_folders
from core.events import Evaluation, Step
from core.exports.entry import Export, refuse_unended, text_writer
from core.messages import N_, Message
from core.store import RunRecord, Store
from core.tasks.listing import csv_text

COMMAND = "python -m core fit"
# TensorBoard recognises event files by this name.
EVENTS = "events.out.tfevents"


def config_json(config: RunConfig) -> str:
    """Return all settings as JSON, for `fit --config` and the Fine-tune page."""
    return json.dumps(config.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"


def command_line(config: RunConfig) -> str:
    """Return a command with one option per line for every setting that is not at its default.

    Settings resolved at launch are included, so that the result does not depend on the defaults of a machine.
    """
    task = config.task
    options = [("--task", (task.path or "") if task.id == FILE_TASK else task.id)]
    if task.test_path is not None:
        options.append(("--test", task.test_path))
    for name, value in task.reading.model_dump(mode="json", exclude_none=True).items():
        options.append(("--set", f"task.reading.{name}={json.dumps(value, ensure_ascii=False)}"))
    if task.drop:
        options.append(("--set", f"task.drop={json.dumps(list(task.drop))}"))
    for text in settings_text(config):
        preset = text.startswith(NAMED_PRESET)
        options.append(("--preset", text.removeprefix(NAMED_PRESET)) if preset else ("--set", text))
    return " \\\n  ".join([COMMAND, *(f"{flag} {shlex.quote(value)}" for flag, value in options)]) + "\n"


def _script_refusal(store: Store, run: RunRecord) -> Message | None:
    config = run.effective
    if (why := refuse_unended(store, run)) is not None:
        return why
    if config.start is not None:
        return Message(
            "{title} starts from the weights of another run, which a script cannot contain: export its config.",
            title=run.title,
        )
    if config.processes > 1:
        return Message(
            "{title} was trained by {count} processes, but a script is a single process: export its config.",
            title=run.title,
            count=config.processes,
        )
    return None


def _script(store: Store, run: RunRecord) -> str:
    from core.exports.script.writing import run_script  # loads torch

    return run_script(store, run)


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
        name="config",
        label=N_("Config"),
        place=10,
        about=N_("All settings as JSON, including changes made during the run; Fine-tune and fit --config read it."),
        suffix=".json",
        mime="application/json",
        write=text_writer(lambda store, run: config_json(run.effective)),
        text=True,
    ),
    Export(
        name="command",
        label=N_("Command line"),
        place=20,
        about=N_("The command that repeats the run without a browser, with every setting."),
        suffix=".sh",
        mime="text/x-shellscript",
        write=text_writer(lambda store, run: command_line(run.effective)),
        text=True,
    ),
    Export(
        name="script",
        label=N_("Python script"),
        place=25,
        about=N_(
            "One file that repeats the run: with torch and transformers alone for CE, sentence contrast and "
            "R-Drop, otherwise with this project as a library."
        ),
        suffix=".py",
        mime="text/x-python",
        write=text_writer(_script),
        refusal=_script_refusal,
        text=True,
        heavy=True,
    ),
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
