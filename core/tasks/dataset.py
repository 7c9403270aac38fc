"""A task's rows in memory: three splits of texts with labels."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Split:
    """Texts and their labels; a label is an index into the task's classes."""

    texts: tuple[str, ...]
    labels: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.texts)

    def take(self, rows: Sequence[int]) -> Split:
        return Split(tuple(self.texts[i] for i in rows), tuple(self.labels[i] for i in rows))


@dataclass(frozen=True)
class TaskData:
    """What a run reads: class names and the three splits.

    `content_hash` is over classes and every row, in order, so that a run can say exactly what it was trained on.
    """

    name: str
    classes: tuple[str, ...]
    train: Split
    validation: Split
    test: Split

    @cached_property
    def content_hash(self) -> str:
        splits = [[s.texts, s.labels] for s in (self.train, self.validation, self.test)]
        rows = json.dumps([self.classes, splits], ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(rows.encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def majority_rate(self) -> float:
        """Share of the validation rows that the commonest training class gets right."""
        commonest = Counter(self.train.labels).most_common(1)[0][0]
        return self.validation.labels.count(commonest) / len(self.validation)
