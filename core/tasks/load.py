"""Loading of a task: from a TaskConfig to three splits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Literal

from core.config import FILE_TASK, ReadingConfig, TaskConfig
from core.errors import ConfigError, TaskError, quote_value
from core.messages import N_, Message
from core.tasks.dataset import LEVELS, ScoredPair, Split, TaskData, split_of_pairs
from core.tasks.files.problems import PROBLEMS
from core.tasks.files.reading import CombinedFiles, Source, combine_readings, read_file
from core.tasks.noise import flipped_labels, long_tail, noisy_text
from core.tasks.registry import task_entry
from core.tasks.rows import SPLIT_NAMES, Rows, SplitName, file_stamp, is_own
from core.tasks.splits import held_out, held_out_test_rows, stratified_order, text_groups, validation_rows
from core.tasks.survey import folded

# Validation and test rows do not depend on a run's seed, so that runs can be compared.
SPLIT_SEED = 20210111
# EDA changes a few thousand texts per second.
MAX_NOISY_TEXTS = 20_000
# Fewer scored pairs leave too few for validation and test.
LEAST_PAIRS = 10
# Errors for a class that is too small to be split.
TOO_FEW = {
    "test": N_(
        "{name} has too few rows with the label {label} for a test split: give every class at least three rows, or "
        "drop it."
    ),
    "validation": N_(
        "{name} has too few rows with the label {label} for a validation split: give every class at least three rows, "
        "or drop it."
    ),
}

# The rows of each file, and the source and number of used rows of each file that is used only in part.
FileRows = tuple[Rows, tuple[tuple[Source, int], ...]]
ReadFiles = Callable[[tuple[Path, ...], ReadingConfig, tuple[str, ...]], FileRows]
# The rows and the name of an added task, by its id.
ReadOwn = Callable[[str], tuple[Rows, str]]


def load_task(config: TaskConfig, seed: int, own: ReadOwn | None = None, read: ReadFiles | None = None) -> TaskData:
    """Read, check and split a task. `seed` affects the few-shot sample and the noise only.

    The validation split is in stratified order, so that its first rows serve as the probe set. Files are cached in
    memory and read again after a change.

    Args:
        own: reads added tasks (`core.store.TaskLibrary.named_rows`); not needed for bundled tasks and files.
        read: reads files; the default, `read_rows_of`, reads them in this process.
    Raises: TaskError or ConfigError naming file, line or field, value and remedy.
    """
    if is_own(config.id):
        if own is None:
            raise TaskError(
                "Task {id} is in the library of a runs folder, but no runs folder is open.", id=quote_value(config.id)
            )
        if config.test_path:
            raise ConfigError("test_path", config.test_path, "a task of the library has its own rows; leave it out.")
        return _load(*own(config.id), config, seed)
    name, files = _files(config)
    rows, used = _read(read or read_rows_of, files, tuple(map(file_stamp, files)), config.reading, config.drop)
    data = _load(rows, name, config, seed)
    notes = [
        Message("{source}, {used:,} of them used.", source=source.sentence, used=count)
        if count < source.rows
        else Message("{clause}.", clause=source.sentence)
        for source, count in used
    ]
    return replace(data, notes=(*notes, *data.notes)) if notes else data


def _files(config: TaskConfig) -> tuple[str, tuple[Path, ...]]:
    """Return the name of a task, and its training file, followed by its test file if there is one."""
    if config.id == FILE_TASK:
        if not config.path:
            raise ConfigError("task", config.path, "give the path of a CSV, TSV, JSONL or Parquet file.")
        path, test_path = Path(config.path), config.test_path
        name = config.name or path.name
    else:
        entry = task_entry(config.id)
        name, path = entry.label, entry.folder / "train.csv"
        test_path = config.test_path or str(entry.folder / "test.csv")
    files = (path, Path(test_path)) if test_path else (path,)
    for file in files:
        # A visitor's path must not reach into the working directory of the server.
        if not file.is_absolute():
            raise TaskError(
                "File {name} is not a full path: give one, such as /data/reviews.csv.", name=quote_value(str(file))
            )
    return name, files


@lru_cache(maxsize=4)
def _read(
    read: ReadFiles,
    files: tuple[Path, ...],
    stamps: tuple[tuple[int, int], ...],
    options: ReadingConfig,
    drop: tuple[str, ...],
) -> FileRows:
    return read(files, options, drop)


def read_rows_of(files: tuple[Path, ...], options: ReadingConfig, drop: tuple[str, ...]) -> FileRows:
    """Return the rows of a training file and perhaps a test file. Raises: see `read_rows` and `usable_rows`."""
    together = read_files(files, options)
    parts = usable_rows(together, drop)
    used = tuple(
        (reading.source, len(part))
        for reading, part in zip(together.readings, parts, strict=True)
        if len(part) < reading.source.total
    )
    return join_rows(parts, [path.name for path in files]), used


def read_files(paths: Sequence[Path], options: ReadingConfig) -> CombinedFiles:
    """Read a training file and, if there is a second path, a test file.

    All rows of the test file belong to the test split, even if the file has a split column.

    Raises: TaskError or ConfigError.
    """
    of_test = options.model_copy(update={"split": ""})
    return combine_readings([read_file(path, of_test if place else options) for place, path in enumerate(paths)])


def usable_rows(together: CombinedFiles, drop: Sequence[str]) -> list[Rows]:
    """Return the rows of each file, without rows that have a problem to drop.

    Args:
        drop: kinds of problems whose rows may be dropped.
    Raises: TaskError for rows that cannot be used and may not be dropped; ConfigError for a kind that does not exist.
    """
    for kind in drop:
        if kind not in PROBLEMS:
            raise ConfigError("drop", kind, "choose from {names}.", names=tuple(PROBLEMS))
    kinds = [kind for kind in together.counts if PROBLEMS[kind].must_drop and kind not in drop]
    if kinds:
        count = sum(together.counts[kind] for kind in kinds)
        first = next(problem for problem in together.problems if problem.kind in kinds)
        words = {
            "file": first.file,
            "problem": first.message.values["clause"],
            "options": " ".join(f"--drop {kind}" for kind in kinds),
        }
        if count == 1:
            raise TaskError("{file}: {problem}: fix the file, or drop such rows ({options}).", **words)
        raise TaskError(
            "{file}: {problem}, and {count} more row has problems: fix the file, or drop such rows ({options}).",
            "{file}: {problem}, and {count} more rows have problems: fix the file, or drop such rows ({options}).",
            count=count - 1,
            **words,
        )
    return together.dropping([kind for kind in drop if not PROBLEMS[kind].must_drop])


def join_rows(parts: Sequence[Rows], names: Sequence[str]) -> Rows:
    """Join the rows of a training file and of a test file, whose rows become the test split.

    Raises: TaskError if the two files do not match.
    """
    if len(parts) == 1:
        return parts[0]
    train, test = parts
    name = quote_value(names[1])
    if (train.seconds is None) != (test.seconds is None):
        more = N_("{file} has a second text, but the training file has none: give both the same columns.")
        fewer = N_("{file} has no second text, but the training file has one: give both the same columns.")
        raise TaskError(more if train.seconds is None else fewer, file=name)
    if train.kind != test.kind:
        raise TaskError(
            "{file} has another kind of label than the training file: give both the same columns.", file=name
        )
    unknown = sorted(set(test.labels) - set(train.labels)) if train.kind == "classes" else []
    if unknown:
        raise TaskError(
            "{file} has the label {label}, which the training file does not have: its labels are {labels}.",
            file=name,
            label=quote_value(unknown[0]),
            labels=quote_value(", ".join(sorted(set(train.labels)))),
        )
    if train.splits is not None and "test" in train.splits:
        raise TaskError(
            "{file} has its own test split: leave out the test file {other}, or name no split column.",
            file=quote_value(names[0]),
            other=name,
        )
    learned: list[SplitName] = list(train.splits or ["train"] * len(train))
    held: list[SplitName] = ["test"] * len(test)
    seconds = None if train.seconds is None else train.seconds + (test.seconds or ())
    return Rows(train.texts + test.texts, train.labels + test.labels, seconds, (*learned, *held), train.kind)


def split_rows(rows: Rows, name: str, config: TaskConfig | None = None, seed: int = 0) -> TaskData:
    """Split rows into three splits, with the config's sample and noise. Raises: see `load_task`."""
    config = config or TaskConfig()
    data = _sampled(config, seed, _split_whole(rows, name, config.validation_size))
    if config.content_hash not in (None, data.content_hash):
        raise TaskError(
            "{name} has changed since this run was made: restore the old rows, or start a new run.",
            name=quote_value(name),
        )
    return data


_load = lru_cache(maxsize=8)(split_rows)


@lru_cache(maxsize=4)
def _split_whole(rows: Rows, name: str, validation_size: int | None) -> TaskData:
    """Split all rows, without sample and noise."""
    named = quote_value(name)
    splits = rows.splits or ("train",) * len(rows)
    given = {split: [row for row, name in enumerate(splits) if name == split] for split in SPLIT_NAMES}
    if not given["train"]:
        raise TaskError("{name} has no row in the split train: name the training rows train.", name=named)
    if rows.kind == "similarity":
        return _split_scored(rows, given, name, validation_size)
    classes = tuple(sorted({rows.labels[row] for row in given["train"]}, key=_label_order))
    if len(classes) < 2:
        raise TaskError(
            "{name} has only the label {label}: training needs rows of at least two classes.",
            name=named,
            label=quote_value(classes[0]),
        )
    rest = _split(rows, given["train"], classes, named)
    if given["test"]:
        test = _split(rows, given["test"], classes, named)
    else:
        test, rest = _divide(named, rest, classes, held_out_test_rows(len(rest)), "test")
    if given["validation"]:
        validation, pool = _split(rows, given["validation"], classes, named), rest
        validation = validation.take(stratified_order(validation.labels, SPLIT_SEED)[:validation_size])
    else:
        wanted = validation_size or validation_rows(len(rest))
        validation, pool = _divide(named, rest, classes, wanted, "validation")
    learned = {folded(text) for text in pool.inputs}
    crossing = sum(folded(text) in learned for split in (validation, test) for text in split.inputs)
    note = Message(
        "{count} validation or test row repeats a training text, which makes scores too high.",
        "{count} validation or test rows repeat a training text, which makes scores too high.",
        count=crossing,
    )
    return TaskData(name, classes, pool, validation, test, notes=(note,) if crossing else ())


def _split_scored(
    rows: Rows, given: Mapping[SplitName, Sequence[int]], name: str, validation_size: int | None
) -> TaskData:
    """Split scored pairs; their scores are scaled so that 0 and 1 are the lowest and the highest of all rows."""
    values = [float(label) for label in rows.labels]
    low, high = min(values), max(values)
    if len(given["train"]) < LEAST_PAIRS:
        raise TaskError(
            "{name} has too few scored pairs to learn from: give it at least {least} training rows.",
            name=quote_value(name),
            least=LEAST_PAIRS,
        )
    if low == high:
        raise TaskError(
            "{name} has only the score {score:g}: training needs pairs of different similarity.",
            name=quote_value(name),
            score=low,
        )
    scaled = [(value - low) / (high - low) for value in values]
    pairs = list(map(ScoredPair, rows.texts, rows.seconds or (), scaled))
    parts = {split: split_of_pairs([pairs[row] for row in chosen]) for split, chosen in given.items()}
    edges = [low + (high - low) * level / LEVELS for level in range(LEVELS + 1)]
    classes = tuple(f"{start:g}–{end:g}" for start, end in pairwise(edges))
    train, test, validation = parts["train"], parts["test"], parts["validation"]
    if not len(test):
        test, train = _divide_pairs(train, held_out_test_rows(len(train) // 2))
    if not len(validation):
        count = validation_rows(len(train) // 2) if validation_size is None else validation_size // 2
        if not 2 <= count <= len(train) // 2 - 2:
            raise ConfigError(
                "validation_size",
                2 * count,
                "{name} has {rows:,} rows; leave at least {least} to train on.",
                name=quote_value(name),
                rows=len(train),
                least=4,
            )
        validation, train = _divide_pairs(train, count)
    elif validation_size is not None:
        validation = _take_pairs(validation, _order(validation, SPLIT_SEED)[: validation_size // 2])
    return TaskData(name, classes, train, validation, test)


def _take_pairs(split: Split, pairs: Sequence[int]) -> Split:
    return split.take([row for pair in pairs for row in (2 * pair, 2 * pair + 1)])


def _divide_pairs(split: Split, count: int) -> tuple[Split, Split]:
    """Divide a split into about `count` pairs, and the others. Pairs with the same first text stay together."""
    taken = held_out(split.labels[::2], count, SPLIT_SEED, text_groups(split.texts[::2]))
    rest = sorted(set(range(len(split) // 2)) - set(taken))
    return _take_pairs(split, taken), _take_pairs(split, rest)


def _label_order(label: str) -> tuple[int, float, str]:
    """Return a sort key: whole numbers by value, then words."""
    try:
        return (0, int(label), label)
    except ValueError:
        return (1, 0.0, label)


def _split(rows: Rows, chosen: Sequence[int], classes: Sequence[str], named: str) -> Split:
    number = {label: i for i, label in enumerate(classes)}
    part = rows if len(chosen) == len(rows) else rows.take(chosen)
    unknown = sorted(set(part.labels) - set(classes))
    if unknown:
        raise TaskError(
            "{name} has the label {label} only outside the training rows, whose labels are {labels}: add training "
            "rows with it, or drop it.",
            name=named,
            label=quote_value(unknown[0]),
            labels=quote_value(", ".join(classes)),
        )
    return Split(part.texts, tuple(number[label] for label in part.labels), part.seconds)


def _divide(
    named: str, split: Split, classes: Sequence[str], size: int, purpose: Literal["test", "validation"]
) -> tuple[Split, Split]:
    """Divide a split into about the first `size` rows of the stratified order, and the others in their original order.

    Every class keeps at least one row in each of the two. Rows with the same (first) text stay together if the classes
    allow it.
    """
    rarest, count = min(Counter(split.labels).items(), key=lambda item: item[1])
    if count < 2 or len(set(split.labels)) < len(classes):
        label = quote_value(classes[rarest])
        if count == 1:
            label += f" ({quote_value(split.texts[split.labels.index(rarest)])})"
        raise TaskError(TOO_FEW[purpose], name=named, label=label)
    size = max(size, len(classes))
    if size > len(split) - len(classes):
        raise ConfigError(
            f"{purpose}_size",
            size,
            "{name} has {rows:,} rows; leave at least {least} to train on.",
            name=named,
            rows=len(split),
            least=len(classes),
        )
    taken = held_out(split.labels, size, SPLIT_SEED, text_groups(split.texts))
    if len({split.labels[row] for row in taken}) < len(classes):
        taken = held_out(split.labels, size, SPLIT_SEED)
    chosen = set(taken)
    return split.take(taken), split.take([row for row in range(len(split)) if row not in chosen])


def _sampled(config: TaskConfig, seed: int, data: TaskData) -> TaskData:
    """Make classes imbalanced, take a few-shot sample, and add noise to labels and texts, as the config says."""
    pool, classes = data.train, len(data.classes)
    if pool.scores is not None:
        return _sampled_pairs(config, seed, data)
    rows = list(range(len(pool)))
    if config.imbalance > 1.0:
        rows = long_tail(pool.labels, classes, config.imbalance, _order(pool, seed))
    thinned = pool.take(rows) if len(rows) < len(pool) else pool
    if config.train_size is None and not config.label_noise and not config.text_noise:
        return replace(data, train=thinned)
    order = _order(thinned, seed)
    noisy = flipped_labels(thinned.labels, classes, config.label_noise, seed, order)
    if config.train_size is not None:
        if config.train_size < classes:
            raise ConfigError(
                "train_size", config.train_size, "there are {count} classes; give at least {count}.", count=classes
            )
        if config.train_size > len(thinned):
            raise ConfigError(
                "train_size",
                config.train_size,
                "{left:,} rows are left after {validation:,} for validation; give at most {left:,}.",
                left=len(thinned),
                validation=len(data.validation),
            )
        chosen = order[: config.train_size]
    else:
        chosen = list(range(len(thinned)))
    if config.text_noise and len(chosen) > MAX_NOISY_TEXTS:
        raise ConfigError(
            "text_noise",
            config.text_noise,
            "{count:,} texts would take minutes; give train_size of at most {most:,}.",
            count=len(chosen),
            most=MAX_NOISY_TEXTS,
        )
    train = thinned.take(chosen)
    if not config.label_noise and not config.text_noise:
        return replace(data, train=train)
    labels = tuple(noisy[place] for place in chosen)
    texts = [
        noisy_text(text, config.text_noise, seed, rows[place]) for text, place in zip(train.inputs, chosen, strict=True)
    ]
    firsts = tuple(text if isinstance(text, str) else text[0] for text in texts)
    seconds = None if train.seconds is None else tuple(text[1] for text in texts if not isinstance(text, str))
    return replace(data, train=Split(firsts, labels, seconds), clean=train)


def _sampled_pairs(config: TaskConfig, seed: int, data: TaskData) -> TaskData:
    """Take a few-shot sample of scored pairs. Raises: ConfigError for noise and imbalance, which need classes."""
    for name in ("imbalance", "label_noise", "text_noise", "back_translation"):
        if (value := getattr(config, name)) != (plain := getattr(TaskConfig(), name)):
            raise ConfigError(
                name,
                value,
                "{task} has similarity scores, and its pairs stay unchanged; set it to {default}.",
                task=data.name,
                default=Message("none") if plain is None else f"{plain:g}",
            )
    if config.train_size is None:
        return data
    if not 4 <= config.train_size <= len(data.train):
        raise ConfigError(
            "train_size",
            config.train_size,
            "{rows:,} training texts are left, two for each pair; give 4 to {rows:,}.",
            rows=len(data.train),
        )
    return replace(data, train=_take_pairs(data.train, _order(data.train, seed)[: config.train_size // 2]))


def _order(split: Split, seed: int) -> list[int]:
    """Return the stratified order of a split's rows, or of its pairs if they have scores."""
    step = 1 if split.scores is None else 2
    return stratified_order(split.labels[::step], seed, text_groups(split.texts[::step]))
