"""Conversion of a row of the Hub into a row of a task, or the reason why it is left out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from core.errors import TaskError, quote_value
from core.messages import N_, Message, Text
from core.settings import settings
from core.tasks.hub.registry import HubRequest

NO_SCORES = N_("Column {column} of {repository} holds {values}: choose the column with the scores.")
NO_LABELS = N_("Column {column} of {repository} holds {values}: choose the column with the labels.")
# Contents of a column, by the type name of its values.
VALUES = {
    "list": N_("lists"),
    "dict": N_("records"),
    "int": N_("whole numbers"),
    "float": N_("numbers"),
    "bytes": N_("bytes"),
}
# Reasons to leave out a row, as part of a sentence.
TOO_LONG = N_("more than {most:,} characters")
NO_LABEL, EMPTY = Message("no label"), Message("an empty text")


class Row(NamedTuple):
    """A row of a data set; `second` is None for a single text."""

    text: str
    second: str | None
    label: str


class RowReader:
    """A converter from rows of the Hub to rows of a task."""

    def __init__(self, request: HubRequest, names: Sequence[str] | None) -> None:
        self._request = request
        self._names = names
        self._limits = settings()
        self._seen: set[str] = set()

    def read(self, row: Mapping[str, Any]) -> Row | Message:
        """Convert a row, or return the reason why it is left out.

        Raises: TaskError if the values of a column do not fit its role.
        """
        asked = self._request
        label = self._label(row[asked.label])
        if label is None:
            return NO_LABEL
        texts = [self._text(row[column], column) for column in (asked.text, asked.text_b) if column is not None]
        if not all(texts):
            return EMPTY
        if any(len(text) > self._limits.max_text_chars for text in texts):
            return Message(TOO_LONG, most=self._limits.max_text_chars)
        return Row(texts[0], texts[1] if asked.text_b is not None else None, label)

    def _text(self, value: Any, column: str) -> str:
        if value is None:
            return ""
        if not isinstance(value, str):
            raise TaskError(
                "Column {column} of {repository} holds {values}, not text: choose another column.",
                column=quote_value(column),
                repository=quote_value(self._request.repository),
                values=_kind_of(value),
            )
        return value.strip()

    def _label(self, value: Any) -> str | None:
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # whole numbers become 3.0 if other rows of the column are empty
        # On the Hub, -1 marks a label that is kept secret.
        if value is None or (not isinstance(value, str) and value == -1) or value != value:  # noqa: PLR0124
            return None
        if self._request.kind == "similarity":
            if isinstance(value, str) and not value.strip():
                return None
            try:
                score = float(value)
            except (TypeError, ValueError):
                raise self._no_label_column(quote_value(value)) from None
            # Six digits, so that a score stored in single precision reads as in its source.
            return f"{score:.6g}" if math.isfinite(score) else None
        if not isinstance(value, str | int | float):
            raise self._no_label_column(_kind_of(value))
        if self._names is not None and isinstance(value, int):
            if not 0 <= value < len(self._names):
                return None  # not a class number; some data sets use negative numbers other than -1
            value = self._names[value]
        label = " ".join(str(value).split())
        label = self._request.label_names.get(label, label)
        if len(label) > self._limits.max_label_chars:
            raise self._no_label_column(Message("texts such as {text}", text=quote_value(label)))
        self._seen.add(label)
        if len(self._seen) > self._limits.max_classes:
            holds = Message("more than {most} different labels", most=self._limits.max_classes)
            raise self._no_label_column(holds)
        return label or None

    def _no_label_column(self, holds: Text) -> TaskError:
        message = NO_SCORES if self._request.kind == "similarity" else NO_LABELS
        column, repository = quote_value(self._request.label), quote_value(self._request.repository)
        return TaskError(message, column=column, repository=repository, values=holds)


def _kind_of(value: Any) -> Message:
    name = type(value).__name__
    return Message(VALUES[name]) if name in VALUES else Message("values of the type {name}", name=name)
