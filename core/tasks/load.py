"""From a TaskConfig to three splits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from core.config import TaskConfig
from core.errors import ConfigError, TaskError, shown
from core.tasks.csv_file import Rows, read_csv
from core.tasks.dataset import Split, TaskData
from core.tasks.registry import CSV_TASK, task_entry
from core.tasks.splits import held_out_test_rows, stratified_order, validation_rows

# One split for everybody: validation and test rows do not depend on a run's seed, so that runs can be compared.
SPLIT_SEED = 20210111


def load_task(config: TaskConfig, seed: int) -> TaskData:
    """A task's three splits; read again only when a file changed. See `_load`."""
    _, train_path, test_path = _paths(config)
    return _load(config, seed, tuple(_stamp(path) for path in (train_path, test_path)))


def _stamp(path: Path | None) -> tuple[int, int]:
    """What changes when a file does."""
    try:
        status = path.stat() if path else None
    except (OSError, ValueError):
        status = None  # reading it says what is wrong
    return (status.st_mtime_ns, status.st_size) if status else (0, 0)


@lru_cache(maxsize=8)
def _load(config: TaskConfig, seed: int, stamps: tuple[tuple[int, int], ...]) -> TaskData:
    """Read, check and split a task; `seed` chooses the few-shot sample only.

    The validation split comes in a stratified order, so its first rows serve as the probe set.

    Raises: TaskError or ConfigError naming file, line or field, value and remedy.
    """
    name, train_path, test_path = _paths(config)
    rows = read_csv(train_path)
    classes = tuple(sorted(set(rows.labels), key=_label_order))
    if len(classes) < 2:
        raise TaskError(f"{name} has the one label {shown(classes[0])}: learning needs rows of at least two classes.")
    rest = _split(rows, classes)
    if test_path is not None:
        test = _test_split(test_path, classes, pairs=rest.seconds is not None)
    else:
        test, rest = _divide(name, rest, classes, held_out_test_rows(len(rest)), "test")
    wanted = config.validation_size or validation_rows(len(rest))
    validation, pool = _divide(name, rest, classes, wanted, "validation")
    train = pool if config.train_size is None else _sample(config.train_size, pool, len(validation), classes, seed)
    data = TaskData(name, classes, train, validation, test)
    if config.content_hash not in (None, data.content_hash):
        raise TaskError(f"{name} has changed since this run was made: put the old rows back, or start a new run.")
    return data


def _paths(config: TaskConfig) -> tuple[str, Path, Path | None]:
    if config.id == CSV_TASK:
        if not config.path:
            raise ConfigError("task", config.path, "give the path of a CSV file with the columns text,label.")
        path = Path(config.path)
        return path.name, path, Path(config.test_path) if config.test_path else None
    folder = task_entry(config.id).folder
    return config.id, folder / "train.csv", Path(config.test_path) if config.test_path else folder / "test.csv"


def _label_order(label: str) -> tuple[int, float, str]:
    """Whole numbers in their own order, then words."""
    try:
        return (0, int(label), label)
    except ValueError:
        return (1, 0.0, label)


def _split(rows: Rows, classes: Sequence[str]) -> Split:
    number = {label: i for i, label in enumerate(classes)}
    seconds = None if rows.seconds is None else tuple(rows.seconds)
    return Split(tuple(rows.texts), tuple(number[label] for label in rows.labels), seconds)


def _test_split(path: Path, classes: Sequence[str], *, pairs: bool) -> Split:
    rows = read_csv(path)
    name = shown(path.name)
    if (rows.seconds is not None) != pairs:
        has, lacks = ("lacks", "has") if pairs else ("has", "lacks")
        raise TaskError(f"{name} {has} the column text_b, which the training file {lacks}: give both the same columns.")
    unknown = sorted(set(rows.labels) - set(classes))
    if unknown:
        raise TaskError(
            f"{name} has the label {shown(unknown[0])}, which the training file lacks: "
            f"its labels are {shown(', '.join(classes))}."
        )
    return _split(rows, classes)


def _divide(name: str, split: Split, classes: Sequence[str], size: int, purpose: str) -> tuple[Split, Split]:
    """The first `size` rows of the stratified order, and the others in their own order.

    Every class keeps at least one row on each side.
    """
    rarest, count = min(Counter(split.labels).items(), key=lambda item: item[1])
    if count < 2 or len(set(split.labels)) < len(classes):
        raise TaskError(
            f"{name} has too few rows with the label {shown(classes[rarest])} for a {purpose} split: "
            "give every class at least three rows, or drop it."
        )
    size = max(size, len(classes))
    if size > len(split) - len(classes):
        raise ConfigError(
            f"{purpose}_size", size, f"{name} has {len(split):,} rows; leave at least {len(classes)} to train on."
        )
    left = Counter(split.labels)
    taken: list[int] = []
    for row in stratified_order(split.labels, SPLIT_SEED):
        if len(taken) < size and left[split.labels[row]] > 1:  # the last row of a class stays on the other side
            taken.append(row)
            left[split.labels[row]] -= 1
    chosen = set(taken)
    return split.take(taken), split.take([row for row in range(len(split)) if row not in chosen])


def _sample(size: int, pool: Split, held_out: int, classes: Sequence[str], seed: int) -> Split:
    if size < len(classes):
        raise ConfigError("train_size", size, f"there are {len(classes)} classes; give at least {len(classes)}.")
    if size > len(pool):
        raise ConfigError(
            "train_size",
            size,
            f"{len(pool):,} rows are left after {held_out:,} for validation; give at most {len(pool):,}.",
        )
    return pool.take(stratified_order(pool.labels, seed)[:size])
