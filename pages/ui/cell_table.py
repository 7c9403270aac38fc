"""A table whose cells can be pressed; names of rows and columns wrap, however long they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import streamlit as st

SCRIPT = Path(__file__).with_name("cell_table.js")
STYLE = Path(__file__).with_name("cell_table.css")
# More names than this, or longer ones, have no room side by side.
LEVEL_NAMES, LEVEL_CHARS = 4, 16

_mount = st.components.v2.component(
    "cell_table",
    html='<div class="cell-table" role="region" tabindex="-1"></div>',
    css=STYLE.read_text(encoding="utf-8"),
    js=SCRIPT.read_text(encoding="utf-8"),
    isolate_styles=False,
)


@dataclass(frozen=True, slots=True)
class Head:
    """A row or a column: its name, from outside, and the colour of its mark, "" for none."""

    name: str
    colour: str = ""


@dataclass(frozen=True, slots=True)
class TableCell:
    """A cell that can be pressed.

    Attributes:
        text, note: what is written, the note smaller below.
        about: what the cell says, in a sentence, for the pointer and for screen readers.
        strength: of its colour, 0 to 1.
        kind: classes of the style.
        chosen: whether it was pressed last.
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
    """Draw it; the cell that was just pressed.

    Args:
        cells: [rows][columns]; None for one that holds nothing.
        label: what the table is, for those who cannot see it; corner: what rows and columns are.
        upright: whether names of columns stand upright; by themselves where there are many, or long ones.
    Returns: row and column, None when no cell was pressed.
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
    """A cell as the browser reports it, None for none and for nonsense: a browser can send anything."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        return None
    row, column = value
    fits = type(row) is int and type(column) is int and row in range(rows) and column in range(columns)
    return (row, column) if fits else None


def _plain(head: Head) -> dict[str, str]:
    return {"name": " ".join(head.name.split()), "colour": head.colour}
