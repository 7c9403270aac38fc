"""The rows of a task: three splits of texts with labels, in memory and in a run's file."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from core.errors import TaskError, quote_value
from core.messages import Message
from core.tasks.rows import SPLIT_NAMES, Rows, read_rows_file, write_rows
from core.texts.paraphrases import paraphrase

ENTAILMENT, CONTRADICTION = "entailment", "contradiction"


# One text, or a pair.
Input = str | tuple[str, str]


@dataclass(frozen=True)
class Split:
    """Texts and their labels. A label is an index into the task's classes.

    A task on pairs has a second text for each row. In a task with similarity scores, each row is one text: rows 2i and
    2i + 1 are a pair.

    Attributes:
        scores: score of each row's pair, scaled to 0–1; None for a task with classes.
    """

    texts: tuple[str, ...]
    labels: tuple[int, ...]
    seconds: tuple[str, ...] | None = None
    scores: tuple[float, ...] | None = None

    def __len__(self) -> int:
        return len(self.texts)

    def take(self, rows: Sequence[int]) -> Split:
        seconds = None if self.seconds is None else tuple(self.seconds[i] for i in rows)
        scores = None if self.scores is None else tuple(self.scores[i] for i in rows)
        return Split(tuple(self.texts[i] for i in rows), tuple(self.labels[i] for i in rows), seconds, scores)

    @property
    def inputs(self) -> tuple[Input, ...]:
        """Return the encoder's input for each row."""
        return self.texts if self.seconds is None else tuple(zip(self.texts, self.seconds, strict=True))

    @property
    def display_texts(self) -> tuple[str, ...]:
        """Return each row as one line of text for display."""
        if self.seconds is None:
            return self.texts
        return tuple(f"{text} ↔ {second}" for text, second in zip(self.texts, self.seconds, strict=True))


class ScoredPair(NamedTuple):
    """Two texts and their similarity score, scaled to 0–1."""

    first: str
    second: str
    score: float


# Rows of a task with scores are labelled with one of this many equal intervals of the scale.
LEVELS = 5


def split_of_pairs(pairs: Sequence[ScoredPair]) -> Split:
    """Return scored pairs as a split, with two rows for each."""
    rows = [(text, pair.score) for pair in pairs for text in (pair.first, pair.second)]
    scores = tuple(score for _, score in rows)
    labels = tuple(min(int(score * LEVELS), LEVELS - 1) for score in scores)
    return Split(tuple(text for text, _ in rows), labels, scores=scores)


def pairs_of(split: Split) -> tuple[ScoredPair, ...]:
    """Return the scored pairs of a split; empty for a task with classes."""
    if split.scores is None:
        return ()
    return tuple(map(ScoredPair, split.texts[::2], split.texts[1::2], split.scores[::2]))


class Triplet(NamedTuple):
    """A premise, a sentence that it entails and one that it contradicts."""

    premise: str
    entailment: str
    contradiction: str


@dataclass(frozen=True)
class TaskData:
    """Class names and the three splits of a task.

    Attributes:
        clean: the training split, row by row, before noise was added to labels or texts; None without noise.
        notes: sentences on rows of the source that are left out or repeated.

    `content_hash` covers the classes and every row, in order, so that it identifies the data of a run.
    """

    name: str
    classes: tuple[str, ...]
    train: Split
    validation: Split
    test: Split
    clean: Split | None = field(default=None, compare=False)
    notes: tuple[Message, ...] = field(default=(), compare=False)

    @cached_property
    def content_hash(self) -> str:
        splits: list[list[object]] = [
            [one for one in (s.texts, s.seconds, s.labels, s.scores) if one is not None]
            for s in (self.train, self.validation, self.test)
        ]
        rows = json.dumps([self.classes, splits], ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(rows.encode("utf-8", "surrogatepass")).hexdigest()

    @cached_property
    def triplets(self) -> tuple[Triplet, ...]:
        """Return the triplets of the training split; empty if it has none.

        A premise with several entailed and contradicted sentences gives several triplets. Each sentence is used at most
        once.
        """
        names = [name.strip().lower() for name in self.classes]
        if self.train.seconds is None or not {ENTAILMENT, CONTRADICTION} <= set(names):
            return ()
        found: dict[str, tuple[list[str], list[str]]] = {}
        for premise, second, label in zip(self.train.texts, self.train.seconds, self.train.labels, strict=True):
            follows, contradicts = found.setdefault(premise, ([], []))
            if names[label] == ENTAILMENT:
                follows.append(second)
            elif names[label] == CONTRADICTION:
                contradicts.append(second)
        return tuple(
            Triplet(premise, entailed, contradicted)
            for premise, (follows, contradicts) in found.items()
            for entailed, contradicted in zip(follows, contradicts, strict=False)
        )

    @cached_property
    def pairs(self) -> tuple[ScoredPair, ...]:
        """Return the scored pairs of the training split; empty for a task with classes."""
        return pairs_of(self.train)

    def with_more(self, texts: Sequence[str], seconds: Sequence[str] | None) -> TaskData:
        """Return the task with additional training rows: one text per training row, with the same label."""
        train = self.train
        more = None if train.seconds is None or seconds is None else (*train.seconds, *seconds)
        return replace(self, train=Split((*train.texts, *texts), train.labels * 2, more))

    def with_paraphrases(self, strength: str) -> TaskData:
        """Return the task with a paraphrase of every training row, with the same label; unchanged for "none".

        A pair's two texts are both paraphrased.

        Args:
            strength: "none", "weak" or "strong".
        """
        if strength == "none":
            return self
        texts, seconds = (
            side if side is None else [paraphrase(text, strength) for text in side]
            for side in (self.train.texts, self.train.seconds)
        )
        return self.with_more(texts or (), seconds)

    def majority_rate(self, split: Split) -> float:
        """Return the fraction of a split's rows in the most common training class."""
        commonest = Counter(self.train.labels).most_common(1)[0][0]
        return split.labels.count(commonest) / len(split)

    def rows(self) -> Rows:
        """Return the rows of the three splits in one list. Those of a task with scores are pairs."""
        splits = (self.train, self.validation, self.test)
        if self.train.scores is not None:
            named = [(pair, name) for name, split in zip(SPLIT_NAMES, splits, strict=True) for pair in pairs_of(split)]
            return Rows(
                texts=tuple(pair.first for pair, _ in named),
                labels=tuple(repr(pair.score) for pair, _ in named),
                seconds=tuple(pair.second for pair, _ in named),
                splits=tuple(name for _, name in named),
                kind="similarity",
            )
        return Rows(
            texts=tuple(chain(*(split.texts for split in splits))),
            labels=tuple(self.classes[label] for split in splits for label in split.labels),
            seconds=None if self.train.seconds is None else tuple(chain(*(split.seconds or () for split in splits))),
            splits=tuple(name for name, split in zip(SPLIT_NAMES, splits, strict=True) for _ in split.labels),
        )


def write_data(path: Path, data: TaskData) -> None:
    """Save the exact rows of a run, so that it can be resumed and read even if their source changes.

    Raises: TaskError if the file cannot be written.
    """
    write_rows(path, data.rows(), {"name": data.name, "classes": json.dumps(data.classes, ensure_ascii=False)})


def read_data(path: Path, content_hash: str) -> TaskData:
    """Read the three splits from a file. Raises: TaskError if it is damaged or holds other rows."""
    rows, about = read_rows_file(path)
    try:
        classes = tuple(json.loads(about["classes"]))
        number = {label: i for i, label in enumerate(classes)}
        parts = [rows.take([i for i, split in enumerate(rows.splits or ()) if split == name]) for name in SPLIT_NAMES]
        train, validation, test = (
            split_of_pairs(list(map(ScoredPair, part.texts, part.seconds or (), map(float, part.labels))))
            if part.kind == "similarity"
            else Split(part.texts, tuple(number[label] for label in part.labels), part.seconds)
            for part in parts
        )
        data = TaskData(about["name"], classes, train, validation, test)
    except (KeyError, ValueError) as error:
        raise TaskError(
            "{file} has no rows of a run ({reason}): start the run again.",
            file=path.name,
            reason=quote_value(str(error)),
        ) from None
    if data.content_hash != content_hash:
        raise TaskError("{file} does not hold the rows of this run: start the run again.", file=path.name)
    return data
