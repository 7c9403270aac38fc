"""A run as one Python script, with torch and transformers alone where its losses and views allow that."""

from __future__ import annotations

from pathlib import Path

from core.exports.entry import Export, going_on
from core.messages import N_, Message
from core.store import RunRecord, Store


def _refusal(store: Store, run: RunRecord) -> Message | None:
    config = run.effective
    if (why := going_on(store, run)) is not None:
        return why
    if config.start is not None:
        return Message(
            "{title} starts from the weights of another run, which no script holds: export its config.", title=run.title
        )
    if config.processes > 1:
        return Message(
            "{title} was trained by {count} processes together, and a script is one: export its config.",
            title=run.title,
            count=config.processes,
        )
    return None


def _write(store: Store, run: RunRecord, path: Path) -> None:
    from core.exports.script.writing import run_script  # it loads torch

    path.write_text(run_script(store, run), encoding="utf-8", newline="\n")


ENTRIES = (
    Export(
        name="script",
        label=N_("Python script"),
        place=25,
        about=N_(
            "One file that repeats the run: CE, contrast of sentences and R-Drop with torch and transformers alone, "
            "others by this project as a library."
        ),
        suffix=".py",
        mime="text/x-python",
        write=_write,
        refusal=_refusal,
        text=True,
        heavy=True,
    ),
)
