"""Exports from which a run can be repeated: settings as JSON, a command, or a Python script."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator

from core.config import FILE_TASK, RunConfig
from core.config.edit import NAMED_PRESET, settings_text
from core.exports.entry import Export, refuse_unended, text_writer
from core.messages import N_, Message
from core.store import RunRecord, Store

COMMAND = "python -m core fit"


def config_json(config: RunConfig) -> str:
    """Return all settings as JSON, for `fit --config` and the Fine-tune page."""
    return json.dumps(config.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"


def command_line(config: RunConfig) -> str:
    """Return a command with one option per line for every setting that is not at its default.

    Settings resolved at launch are included, so that the result does not depend on the defaults of a machine.
    """
    return " \\\n  ".join([COMMAND, *(f"{flag} {shlex.quote(value)}" for flag, value in _options(config))]) + "\n"


def _options(config: RunConfig) -> Iterator[tuple[str, str]]:
    task = config.task
    yield "--task", (task.path or "") if task.id == FILE_TASK else task.id
    if task.test_path is not None:
        yield "--test", task.test_path
    reading = {name: value for name, value in task.reading.model_dump(mode="json").items() if value is not None}
    for name, value in reading.items():
        yield "--set", f"task.reading.{name}={json.dumps(value, ensure_ascii=False)}"
    if task.drop:
        yield "--set", f"task.drop={json.dumps(list(task.drop))}"
    for text in settings_text(config):
        if text.startswith(NAMED_PRESET):
            yield "--preset", text.removeprefix(NAMED_PRESET)
        else:
            yield "--set", text


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
)
