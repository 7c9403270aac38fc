"""The exact rows of a run, kept by their hash: a run can be resumed and read whatever becomes of its source."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path

from core.errors import TaskError, shown
from core.tasks.dataset import Split, TaskData
from core.tasks.rows import SPLIT_NAMES, Rows, read_rows_file, write_rows


def write_data(path: Path, data: TaskData) -> None:
    """Keep the three splits in one file. Raises: TaskError when it cannot be written."""
    splits = [data.train, data.validation, data.test]
    seconds = None if data.train.seconds is None else tuple(chain(*(split.seconds or () for split in splits)))
    rows = Rows(
        texts=tuple(chain(*(split.texts for split in splits))),
        labels=tuple(data.classes[label] for split in splits for label in split.labels),
        seconds=seconds,
        splits=tuple(name for name, split in zip(SPLIT_NAMES, splits, strict=True) for _label in split.labels),
    )
    write_rows(path, rows, {"name": data.name, "classes": json.dumps(data.classes, ensure_ascii=False)})


def read_data(path: Path, content_hash: str) -> TaskData:
    """The three splits of a file. Raises: TaskError when it is damaged or holds other rows."""
    rows, about = read_rows_file(path)
    try:
        classes = tuple(json.loads(about["classes"]))
        train, validation, test = (_split(rows, name, classes) for name in SPLIT_NAMES)
        data = TaskData(about["name"], classes, train, validation, test)
    except (KeyError, ValueError) as error:
        raise TaskError(
            "{file} holds no run's rows ({reason}): start the run again.", file=path.name, reason=shown(str(error))
        ) from None
    if data.content_hash != content_hash:
        raise TaskError("{file} holds other rows than the run was made with: start the run again.", file=path.name)
    return data


def _split(rows: Rows, name: str, classes: tuple[str, ...]) -> Split:
    number = {label: i for i, label in enumerate(classes)}
    part = rows.take([i for i, split in enumerate(rows.splits or ()) if split == name])
    return Split(part.texts, tuple(number[label] for label in part.labels), part.seconds)
