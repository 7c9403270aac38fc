"""Uploaded files as a table and its rows, and the job that reads large ones outside the server's process."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import TypeAdapter

from core.atomic import atomic_write
from core.config import ReadingConfig
from core.config.fields import build
from core.errors import PlaygroundError, StoreError, quote_value
from core.messages import Text
from core.tasks.files.problems import StoredMessage
from core.tasks.files.reading import CombinedFiles, combine_readings, read_rows
from core.tasks.files.tables import Table, open_table

FOLDER = "uploads"
# Age at which uploads and answers that were left are deleted, when the next file is read.
KEPT_S = 1800.0


@dataclass(frozen=True)
class Upload:
    """A training file as a table, and its rows with those of its test file.

    Attributes:
        together: None if the rows cannot be read.
        problem: the reason why not.
    """

    table: Table
    together: CombinedFiles | None
    problem: StoredMessage | None


def read_upload(files: Sequence[tuple[Path | BinaryIO, str]], options: ReadingConfig) -> Upload:
    """Open a training file, and read its rows and those of a test file, if there is one.

    Args:
        files: each with its name.
        options: those of the training file; None is guessed.
    Raises: TaskError if the training file is not a table.
    """
    table = open_table(*files[0], options)
    of_test = options.model_copy(update={"split": ""})  # every row of a test file is a test row
    try:
        readings = [read_rows(table, options), *(read_rows(open_table(*file, of_test), of_test) for file in files[1:])]
        return Upload(table, combine_readings(readings), None)
    except PlaygroundError as error:
        return Upload(table, None, error.message)


def upload_request(files: Sequence[tuple[str, str]], options: ReadingConfig) -> dict[str, Any]:
    """Return the request of the job. Args: files: identifier and name of each upload, the training file first."""
    keys = [(hashlib.sha256(identifier.encode()).hexdigest(), name) for identifier, name in files]
    return {"files": [list(one) for one in keys], "options": options.model_dump(mode="json")}


def store_uploads(folder: Path, request: Mapping[str, Any], contents: Iterable[bytes]) -> None:
    """Store the content of each upload for the job, in a store's folder. Raises: StoreError if the disk is full."""
    for (key, name), content in zip(request["files"], contents, strict=True):
        try:
            (folder / FOLDER).mkdir(exist_ok=True)
            with atomic_write(folder / FOLDER / key) as partial:
                partial.write_bytes(content)
        except OSError as error:
            raise StoreError(
                "{what} could not be written ({reason}): free some disk space.",
                what=quote_value(name),
                reason=error.strerror,
            ) from error


def job(request: dict[str, Any], folder: Path, progress: Callable[[int, int | None, Text], None]) -> dict[str, Any]:
    """Read stored uploads, write the answer for `take_upload`, and delete the uploads.

    Raises: TaskError for a training file that is not a table; OSError if the disk is full.
    """
    place = folder / FOLDER
    files = [(place / key, name) for key, name in request["files"]]
    try:
        found = read_upload(files, build(ReadingConfig, request["options"]))
        with atomic_write(_answer_path(folder, request)) as partial:
            partial.write_bytes(_form().dump_json(found))
    finally:
        for path, _name in files:
            path.unlink(missing_ok=True)
        for path in place.iterdir():
            with suppress(OSError):  # another job has deleted it
                if path.stat().st_mtime < time.time() - KEPT_S:
                    path.unlink()
    return {}


def take_upload(folder: Path, request: Mapping[str, Any]) -> Upload | None:
    """Return the job's answer and delete it; None if there is none."""
    path = _answer_path(folder, request)
    try:
        found = _form().validate_json(path.read_bytes())
    except (OSError, ValueError):
        return None
    path.unlink(missing_ok=True)
    return found


def _answer_path(folder: Path, request: Mapping[str, Any]) -> Path:
    return folder / FOLDER / hashlib.sha256(json.dumps(request).encode()).hexdigest()


@cache
def _form() -> TypeAdapter[Upload]:
    return TypeAdapter(Upload)
