"""Changes to a piece of Python that leave the rest of it as it is written, comments included."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Edit(NamedTuple):
    """The replacement for the bytes start … end − 1."""

    start: int
    end: int
    text: str


class Offsets:
    """Where nodes are in a text, in bytes of UTF-8, as `ast` counts columns."""

    def __init__(self, text: str) -> None:
        self._lines = [0]
        for line in text.encode().splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))
        self._text = text.encode()

    def span(self, node: ast.expr | ast.stmt | ast.arg | ast.keyword) -> tuple[int, int]:
        """First byte of a node, and the one behind its last."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._lines[node.lineno - 1] + node.col_offset, self._lines[node.end_lineno - 1] + node.end_col_offset

    def text(self, node: ast.expr | ast.stmt) -> str:
        start, end = self.span(node)
        return self._text[start:end].decode()


def edited(text: str, edits: Iterable[Edit]) -> str:
    """The text with its edits; of two that overlap the one that begins first holds."""
    given = text.encode()
    pieces, place = [], 0
    for edit in sorted(edits, key=lambda edit: (edit.start, -edit.end)):
        if edit.start < place:
            continue
        pieces += [given[place : edit.start], edit.text.encode()]
        place = edit.end
    return b"".join([*pieces, given[place:]]).decode()


def first_line(node: ast.stmt) -> int:
    """Its number, from 1, decorators included."""
    return min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", []))])


def last_line(node: ast.stmt) -> int:
    return int(node.end_lineno or 0)


def with_remarks(first: int, lines: Sequence[str]) -> int:
    """The first of the comment lines right above a line; that line itself where there are none."""
    while first > 1 and lines[first - 2].lstrip().startswith("#"):
        first -= 1
    return first


def without_lines(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """The text without these lines, first and last numbered from 1."""
    gone = {number for first, last in spans for number in range(first, last + 1)}
    return "\n".join(line for number, line in enumerate(text.split("\n"), 1) if number not in gone)
