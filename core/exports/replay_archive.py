"""A run without its weights, to be opened in this app elsewhere."""

from __future__ import annotations

from pathlib import Path

from core.artifacts.replay import write_replay
from core.exports.entry import Export, going_on
from core.messages import N_, Message
from core.store import RunRecord, Store


def _refusal(store: Store, run: RunRecord) -> Message | None:
    if (why := going_on(store, run)) is not None:
        return why
    return None if run.probe is not None else Message("{title} has no frames: a replay shows them.", title=run.title)


def _write(store: Store, run: RunRecord, path: Path) -> None:
    write_replay(store, run.id, path)


ENTRIES = (
    Export(
        name="replay",
        label=N_("Replay"),
        place=40,
        about=N_("Frames, curves and tokens without the weights: import it on Runs, here or on another machine."),
        suffix=".zip",
        mime="application/zip",
        write=_write,
        refusal=_refusal,
    ),
)
