"""What a form of export states and does."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from core.errors import StoreError
from core.messages import ENGLISH, Message, in_language, language
from core.store import RunRecord, RunSummary, Store

ROOT = Path(__file__).resolve().parents[2]
STEM_WORDS = 8
# What the command line puts before an error.
ERROR = "error: "
# The language of its messages, a key of LANGUAGES; English where it is not set.
SPOKEN = "SCL_LANGUAGE"
# A zip file knows no earlier date; with a fixed one the same run gives the same file.
ZIP_DATE = (1980, 1, 1, 0, 0, 0)


def always(store: Store, run: RunRecord) -> Message | None:
    """Every run can be written so."""
    return None


@dataclass(frozen=True, slots=True)
class Export:
    """A form in which a run can be written.

    Attributes:
        label, about: marked to be translated; `about` says what it is good for, in a sentence.
        suffix: behind the run's name; of a folder the end of its name.
        write: to a path where nothing is yet: a file, or a folder where `folder` is set.
            Raises: PlaygroundError for a run that cannot be written so, OSError for a place that cannot.
        refusal: a sentence why a run cannot be written so now, None where it can. It costs little to ask.
        text: a few lines that can be printed.
        write_pair: two runs side by side, where the form has that.
        heavy: it loads torch: for a page it is written by a process of its own.
        translated: it is written in the reader's language; all others are English.
    """

    name: str
    label: str
    place: int
    about: str
    suffix: str
    mime: str
    write: Callable[[Store, RunRecord, Path], None]
    refusal: Callable[[Store, RunRecord], Message | None] = always
    text: bool = False
    folder: bool = False
    heavy: bool = False
    translated: bool = False
    write_pair: Callable[[Store, tuple[RunRecord, RunRecord], Path], None] | None = None

    def file_name(self, run: RunSummary) -> str:
        return f"{file_stem(run)}{self.suffix}"


def file_stem(run: RunSummary) -> str:
    """Name the files of a run, in every language alike: its title in plain letters, and its unique id."""
    title = run.name or f"run {run.number}"
    plain = "".join(sign if sign.isalnum() else " " for sign in title.casefold())
    return "-".join([*plain.split()[:STEM_WORDS], run.id])


def write_export(export: Export, store: Store, run_id: str, path: Path, beside: str | None = None) -> None:
    """Write a run in one form, whole or not at all.

    Args:
        beside: a second run, side by side with the first.
    Raises: StoreError for a run that cannot be written so, and for a place that cannot be written.
    """
    run = store.run(run_id)
    other = None if beside is None else store.run(beside)
    for one in (run, *([] if other is None else [other])):
        if (why := export.refusal(store, one)) is not None:
            raise StoreError(why)
    if other is not None and export.write_pair is None:
        raise StoreError("{form} takes one run: name one.", form=Message(export.label))
    if export.folder and path.exists():
        raise StoreError("{folder} is there already: give the name of a new folder.", folder=path.name)
    try:
        # Beside the target, so that the finished file only has to be renamed.
        with (
            tempfile.TemporaryDirectory(prefix=".export-", dir=path.parent) as made,
            in_language(language() if export.translated else ENGLISH),
        ):
            if other is not None and export.write_pair is not None:
                export.write_pair(store, (run, other), Path(made) / "made")
            else:
                export.write(store, run, Path(made) / "made")
            (Path(made) / "made").replace(path)
    except OSError as error:
        raise StoreError(
            "{file} could not be written ({error}): give another place.", file=path.name, error=error.strerror
        ) from error


def export_bytes(export: Export, store: Store, run_id: str, beside: str | None = None) -> bytes:
    """A run in one form as a browser takes it: a folder is packed. Raises: StoreError."""
    with tempfile.TemporaryDirectory(prefix="scl-export-") as folder:
        run = store.run(run_id)
        path = Path(folder) / export.file_name(run)
        if export.heavy:
            # The command line would refuse it too, after a while.
            if (why := export.refusal(store, run)) is not None:
                raise StoreError(why)
            _write_apart(export, store, run_id, path)
        else:
            write_export(export, store, run_id, path, beside)
        if not export.folder:
            return path.read_bytes()
        packed = Path(folder) / "packed.zip"
        _pack(path, packed)
        return packed.read_bytes()


def _write_apart(export: Export, store: Store, run_id: str, path: Path) -> None:
    """Let the command line write it: a server keeps torch out of its own process."""
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
        # No error of ours: the process was killed, or failed before it could report one.
        why = said or Message("it ended without a message")
        raise StoreError(
            "{form} could not be written ({why}): try again, or use the command line.",
            form=Message(export.label),
            why=why,
        )


def _pack(folder: Path, target: Path) -> None:
    """Everything in a folder, under its name."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as out:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                info = zipfile.ZipInfo(str(path.relative_to(folder.parent)), ZIP_DATE)
                info.compress_type = zipfile.ZIP_DEFLATED
                with path.open("rb") as source, out.open(info, "w", force_zip64=True) as packed:
                    shutil.copyfileobj(source, packed)


def going_on(store: Store, run: RunRecord) -> Message | None:
    """Why a run that has not ended cannot be written."""
    if run.status.ended:
        return None
    return Message(
        "{title} is {status}: wait for its end, or stop it.", title=run.title, status=Message(str(run.status))
    )
