"""The rows of a task in one list to browse, and as files to download."""

from __future__ import annotations

import csv
import io
import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from core.messages import Text
from core.tasks.dataset import Input, TaskData, Triplet
from core.tasks.files.columns import NUMBER
from core.tasks.files.problems import FORMULA_MARKS
from core.tasks.rows import Rows


@dataclass(frozen=True)
class Listing:
    """The rows of all splits in one list.

    Attributes:
        texts: the encoder's input for each row, one text or a pair.
        labels: class names, or similarity scores as in the source.
        splits: split of each row; "all" if the task has no splits.
        classes: in the order of their numbers; empty for similarity scores.
    """

    texts: tuple[Input, ...]
    labels: tuple[str, ...]
    splits: tuple[str, ...]
    classes: tuple[str, ...] = ()
    triplets: tuple[Triplet, ...] = ()
    notes: tuple[Text, ...] = ()

    @property
    def pairs(self) -> bool:
        return bool(self.texts) and not isinstance(self.texts[0], str)

    @property
    def split_names(self) -> list[str]:
        return list(dict.fromkeys(self.splits))

    def counts(self, split: str) -> list[int]:
        """Count the rows of every class in a split."""
        counts = Counter(zip(self.labels, self.splits, strict=True))
        return [counts[name, split] for name in self.classes]

    def records(self, rows: Sequence[int]) -> list[dict[str, str]]:
        """Return rows as dictionaries, with column names that are detected when the file is read again."""
        found = []
        for row in rows:
            text = self.texts[row]
            texts = {"text": text} if isinstance(text, str) else {"text": text[0], "text_b": text[1]}
            split = {} if self.splits[row] == "all" else {"split": self.splits[row]}
            found.append(texts | {"label" if self.classes else "score": self.labels[row]} | split)
        return found


def listing_of(data: TaskData) -> Listing:
    """Return the rows of a task with classes."""
    found = listing_of_scores(data.rows())
    return replace(found, classes=data.classes, triplets=data.triplets, notes=data.notes)


def listing_of_scores(rows: Rows) -> Listing:
    """Return the rows of a similarity task."""
    texts = rows.texts if rows.seconds is None else tuple(zip(rows.texts, rows.seconds, strict=True))
    return Listing(texts, rows.labels, tuple(rows.splits or ("all",) * len(rows)))


def csv_text(header: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """Return CSV. Text that a spreadsheet might run as a formula is prefixed with an apostrophe, in the header too.

    None and NaN are empty cells.
    """
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\r\n")  # cells with either character are quoted
    writer.writerows([_csv_cell(cell) for cell in row] for row in (header, *rows))
    return out.getvalue()


def runs_in_a_spreadsheet(cell: str) -> bool:
    """Return whether a spreadsheet may take a cell for a formula: also "- well", but not -5."""
    cell = cell.strip()
    return cell.startswith(FORMULA_MARKS) and NUMBER.fullmatch(cell) is None


def _csv_cell(cell: object) -> object:
    if isinstance(cell, str) and runs_in_a_spreadsheet(cell):
        return f"'{cell}"
    return "" if isinstance(cell, float) and math.isnan(cell) else cell


def csv_file(records: Sequence[dict[str, str]]) -> bytes:
    """Return records as a CSV file that spreadsheets read as UTF-8. See `csv_text`."""
    text = csv_text(list(records[0]), (record.values() for record in records)) if records else ""
    return text.encode("utf-8-sig", "replace")


def jsonl_file(records: Sequence[dict[str, str]]) -> bytes:
    """Return a file with one JSON object per line. Texts are unchanged."""
    return "".join(json.dumps(record, ensure_ascii=True) + "\n" for record in records).encode()
