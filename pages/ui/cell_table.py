"""A table with clickable cells, whose row and column names wrap at any length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pages.ui.parts import UI, component

# With more or longer column names than this, the names are vertical.
LEVEL_NAMES, LEVEL_CHARS = 4, 16

_mount = component(
    "cell_table",
    '<div class="cell-table" role="region" tabindex="-1"></div>',
    [UI / "cell_table.js"],
    [UI / "cell_table.css"],
)


@dataclass(frozen=True, slots=True)
class Head:
    """Heading of a row or a column: its untrusted name, and the colour of its mark, "" for none."""

    name: str
    colour: str = ""


@dataclass(frozen=True, slots=True)
class TableCell:
    """A clickable cell.

    Attributes:
        text, note: content of the cell, and a smaller line below it.
        about: sentence for the tooltip and for screen readers.
        strength: strength of its colour, 0 to 1.
        kind: CSS classes.
        chosen: whether this cell was clicked last.
    """

    text: str
    about: str
    strength: float = 0.0
    note: str = ""
    kind: str = ""
    chosen: bool = False


def cell_table(
    rows: Sequence[Head],
    columns: Sequence[Head],
    cells: Sequence[Sequence[TableCell | None]],
    *,
    label: str,
    corner: str,
    key: str,
    upright: bool | None = None,
) -> tuple[int, int] | None:
    """Draw the table and return the cell that was just clicked.

    Args:
        cells: [rows][columns]; None for an empty cell.
        label: description of the table for screen readers; corner: heading that names rows and columns.
        upright: whether column names are vertical; None decides by their number and length.
    Returns: row and column, None when no cell was clicked.
    """
    if upright is None:
        upright = len(columns) > LEVEL_NAMES or max((len(one.name) for one in columns), default=0) > LEVEL_CHARS
    result = _mount(
        key=key,
        data={
            "label": label,
            "corner": corner,
            "rows": [_plain(head) for head in rows],
            "columns": [_plain(head) for head in columns],
            "cells": [[None if cell is None else asdict(cell) for cell in line] for line in cells],
            "upright": upright,
        },
        on_cell_change=lambda: None,
        height="content",
    )
    return checked_cell(result.cell, len(rows), len(columns))


def checked_cell(value: Any, rows: int, columns: int) -> tuple[int, int] | None:
    """Validate the cell that the browser reports, which can be anything; return None if it is absent or invalid."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        return None
    row, column = value
    fits = type(row) is int and type(column) is int and row in range(rows) and column in range(columns)
    return (row, column) if fits else None


def _plain(head: Head) -> dict[str, str]:
    return {"name": " ".join(head.name.split()), "colour": head.colour}
