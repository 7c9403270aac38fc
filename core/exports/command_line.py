"""A run as the command that repeats it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path

from core.config import FILE_TASK, RunConfig
from core.config.edit import NAMED_PRESET, settings_text
from core.exports.entry import Export
from core.messages import N_
from core.store import RunRecord, Store

COMMAND = "python -m core fit"


def command_line(config: RunConfig) -> str:
    """Write the command, an option on each line: every setting that is not its default.

    What was found out before launch is among them, so that nothing is left to another machine's defaults.
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


def _write(store: Store, run: RunRecord, path: Path) -> None:
    path.write_text(command_line(run.effective), encoding="utf-8")


ENTRIES = (
    Export(
        name="command",
        label=N_("Command line"),
        place=20,
        about=N_("The command that repeats the run without a browser, every setting named."),
        suffix=".sh",
        mime="text/x-shellscript",
        write=_write,
        text=True,
    ),
)
