"""The interface of an export format, and the functions that write one."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from core.errors import StoreError
from core.messages import ENGLISH, Message, in_language, language
from core.store import RunRecord, RunSummary, Store

ROOT = Path(__file__).resolve().parents[2]
STEM_WORDS = 8
# Prefix of the command line's errors.
ERROR = "error: "
# Environment variable for the command line's language, a key of LANGUAGES; English if unset.
SPOKEN = "SCL_LANGUAGE"

# A run, or a pair of runs.
Exported = TypeVar("Exported")


@dataclass(frozen=True, slots=True)
class Export:
    """An export format.

    Attributes:
        label, about: marked for translation; `about` is one sentence on its purpose.
        suffix: suffix of the file or folder name.
        write: writes a run to a new path, as a file, or as a folder if `folder` is set.
            Raises: PlaygroundError for a run that cannot be exported, OSError for a path that cannot be written.
        refusal: returns the reason why a run cannot be exported now, or None. It must be fast.
        text: True for a few lines of text that can be printed.
        write_pair: writes two runs side by side; None if the format does not support it.
        heavy: True if the export loads torch; pages then run it in a separate process.
        translated: True if the export is in the user's language; all others are in English.
    """

    name: str
    label: str
    place: int
    about: str
    suffix: str
    mime: str
    write: Callable[[Store, RunRecord, Path], None]
    refusal: Callable[[Store, RunRecord], Message | None] = lambda store, run: None
    text: bool = False
    folder: bool = False
    heavy: bool = False
    translated: bool = False
    write_pair: Callable[[Store, tuple[RunRecord, RunRecord], Path], None] | None = None

    def file_name(self, run: RunSummary) -> str:
        return f"{file_stem(run)}{self.suffix}"


def text_writer(compose: Callable[[Store, Exported], str]) -> Callable[[Store, Exported, Path], None]:
    """Return a `write` or `write_pair` function that stores the text returned by `compose`."""

    def write(store: Store, exported: Exported, path: Path) -> None:
        path.write_text(compose(store, exported), encoding="utf-8", newline="")

    return write


def file_stem(run: RunSummary) -> str:
    """Return the stem of a run's file names in every language: the words of its title, and its id."""
    title = run.name or f"run {run.number}"
    plain = "".join(sign if sign.isalnum() else " " for sign in title.casefold())
    return "-".join([*plain.split()[:STEM_WORDS], run.id])


def write_export(export: Export, store: Store, run_id: str, path: Path, beside: str | None = None) -> None:
    """Write a run in one format, atomically.

    Args:
        beside: id of a second run, exported side by side with the first.
    Raises: StoreError for a run that cannot be exported, or a path that cannot be written.
    """
    runs = [store.run(one) for one in (run_id, beside) if one is not None]
    for run in runs:
        if (why := export.refusal(store, run)) is not None:
            raise StoreError(why)
    if len(runs) > 1 and export.write_pair is None:
        raise StoreError("{form} exports one run: name one.", form=Message(export.label))
    if export.folder and path.exists():
        raise StoreError("{folder} exists already: give the name of a new folder.", folder=path.name)
    try:
        # Use the target's folder, so that the finished file only needs a rename.
        with (
            tempfile.TemporaryDirectory(prefix=".export-", dir=path.parent) as made,
            in_language(language() if export.translated else ENGLISH),
        ):
            if len(runs) > 1 and export.write_pair is not None:
                export.write_pair(store, (runs[0], runs[1]), Path(made) / "made")
            else:
                export.write(store, runs[0], Path(made) / "made")
            (Path(made) / "made").replace(path)
    except OSError as error:
        raise StoreError(
            "{file} could not be written ({error}): choose another location.", file=path.name, error=error.strerror
        ) from error


def export_bytes(export: Export, store: Store, run_id: str, beside: str | None = None) -> bytes:
    """Return an export as bytes for download; a folder is zipped. Raises: StoreError."""
    with tempfile.TemporaryDirectory(prefix="scl-export-") as folder:
        run = store.run(run_id)
        path = Path(folder) / export.file_name(run)
        if export.heavy:
            # The command line would also refuse, but only after it has loaded torch.
            if (why := export.refusal(store, run)) is not None:
                raise StoreError(why)
            _write_apart(export, store, run_id, path)
        else:
            write_export(export, store, run_id, path, beside)
        if not export.folder:
            return path.read_bytes()
        packed = Path(folder) / "packed.zip"
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1, strict_timestamps=False) as out:
            for member in sorted(path.rglob("*")):
                if member.is_file():
                    os.utime(member, (0, 0))  # becomes 1980 in a zip file, so that the bytes are reproducible
                    out.write(member, member.relative_to(path.parent))
        return packed.read_bytes()


def _write_apart(export: Export, store: Store, run_id: str, path: Path) -> None:
    """Write an export through the command line, so that the server does not import torch."""
    command = [sys.executable, "-m", "core", "export", run_id, "--format", export.name, "--output", str(path)]
    done = subprocess.run(
        [*command, "--runs", str(store.folder)],
        cwd=ROOT,
        env={**os.environ, SPOKEN: language()},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        said = (done.stderr.strip().splitlines() or [""])[-1]
        if said.startswith(ERROR):
            raise StoreError(said.removeprefix(ERROR))
        # The process was killed, or failed before it could report an error.
        why = said or Message("it ended without a message")
        raise StoreError(
            "{form} could not be written ({why}): try again, or use the command line.",
            form=Message(export.label),
            why=why,
        )


def refuse_unended(store: Store, run: RunRecord) -> Message | None:
    """Refuse a run that has not ended."""
    if run.status.ended:
        return None
    return Message(
        "{title} is {status}: wait for its end, or stop it.", title=run.title, status=Message(str(run.status))
    )
