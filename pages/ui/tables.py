"""Tables of texts, tables with clickable cells, and the buttons that save a table as a file or select its examples."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import streamlit as st

from core.events import Probe
from core.figures.map_script import NODES
from core.figures.template import class_colour
from core.messages import N_, _
from core.quantities import percent, signed
from core.representation.examples import ExampleScores
from pages.ui.parts import UI, component

Cell = str | float | bool | None

MAX_ROWS = 200
# Width of a number column, and padding of every column; name columns share the rest.
NUMBER_REM, PADDING_REM = 3.4, 1.4
TEXT_CHARS, NAME_CHARS = 600, 80
EXAMPLES = N_("Examples")
# Number formats of columns, by default three decimals.
FORMS: Mapping[str, Callable[[float], str]] = {
    # Translators: columns of texts: shares of neighbours that two lists have in common, and that stayed.
    **dict.fromkeys((N_("Confidence"), N_("Overlap"), N_("Kept")), percent),
    **dict.fromkeys((N_("Validation"), N_("Test")), percent),
    **dict.fromkeys((EXAMPLES, N_("Training rows")), "{:,.0f}".format),
}
WIDE = N_("Text")
# With more or longer column names than this, the names are vertical.
LEVEL_NAMES, LEVEL_CHARS = 4, 16

_mount = component(
    "cell_table",
    '<div class="cell-table" role="region" tabindex="-1"></div>',
    [*NODES, UI / "cell_table.js"],
    [UI / "cell_table.css"],
)


def text_table(
    columns: Mapping[str, Sequence[Cell]], *, height: int = 460, classes: Sequence[str] = (), label: str = EXAMPLES
) -> None:
    """Draw columns of equal length; each text spans the full width below its other cells.

    Args:
        columns: cells by English name, which is marked and translated here; True is a dot, False and None are empty.
        height: maximum height in pixels, above which the table scrolls.
        classes: names that get a dot of their colour in front, as on the map.
        label: description of the table for screen readers; marked in the same way.
    """
    names = [name for name in columns if name != WIDE]
    worded = max(1, sum(_kind(columns[name]) == "words" for name in names))
    rest = NUMBER_REM * (len(names) - worded) + PADDING_REM * (len(names) + 1)
    count = len(next(iter(columns.values()), ()))
    head = "".join(f'<th class="{_kind(columns[name])}" scope="col">{html.escape(_(name))}</th>' for name in names)
    colours = {name: class_colour(label) for label, name in enumerate(classes)}
    rows = ""
    for row in range(min(count, MAX_ROWS)):
        rows += "<tbody><tr>"
        for name in names:
            value = columns[name][row]
            if isinstance(value, bool) or value is None:
                rows += f'<td class="mark">{"●" if value else ""}</td>'
            elif isinstance(value, str):
                dot = f'<i style="background:{colours[value]}"></i>' if value in colours else ""
                word = " ".join(value[: 2 * TEXT_CHARS].split())
                whole = f' title="{html.escape(word)}"' if len(word) > NAME_CHARS else ""
                # A name may break after a separator, but not within a word or a number.
                breakable = re.sub(r"([_/.:-])(?=[^\W\d])", r"\1<wbr>", html.escape(truncate(word, NAME_CHARS)))
                rows += f'<td class="words" dir="auto"{whole}><div>{dot}{breakable}</div></td>'
            else:
                number = "" if math.isnan(value) else FORMS.get(name, partial(signed, decimals=3))(value)
                rows += f'<td class="number">{number}</td>'
        rows += "<td></td></tr>"
        if WIDE in columns:
            text = truncate(" ".join(str(columns[WIDE][row])[: 2 * TEXT_CHARS].split()), TEXT_CHARS)
            rows += f'<tr><td class="wide" colspan="{len(names) + 1}" dir="auto">{html.escape(text)}</td></tr>'
        rows += "</tbody>"
    st.html(
        f'<div class="text-table" style="max-height:{height}px;--word-room:calc((100cqw - {rest:.1f}rem) / {worded})" '
        f'tabindex="0" role="region" aria-label="{html.escape(_(label))}">'
        f'<table><thead><tr>{head}<td class="rest"></td></tr></thead>{rows}</table></div>'
    )
    if count > MAX_ROWS:
        shown, every = f"{MAX_ROWS:,}", f"{count:,}"
        st.caption(_("The first {shown} of {every} are shown.", shown=shown, every=every))


def _kind(values: Sequence[Cell]) -> str:
    if any(isinstance(value, bool) for value in values):
        return "mark"
    return "number" if any(isinstance(value, float) for value in values) else "words"


def truncate(text: str, most: int) -> str:
    """Truncate a text to `most` characters, with an ellipsis if it is longer."""
    return text if len(text) <= most else f"{text[:most]} …"


def example_columns(probe: Probe, scores: ExampleScores, rows: Sequence[int]) -> dict[str, list[Cell]]:
    """Return label, prediction, confidence and text of some examples; training examples are marked."""
    columns: dict[str, list[Cell]] = {
        N_("Label"): [probe.classes[probe.labels[row]] for row in rows],
        N_("Prediction"): [probe.classes[scores.predicted[row]] for row in rows],
        N_("Confidence"): [float(scores.confidence[row]) for row in rows],
        N_("Text"): [probe.texts[row] for row in rows],
    }
    if any(row >= probe.held_out for row in rows):
        columns[N_("Trained on")] = [row >= probe.held_out for row in rows]
    return columns


def select_button(panel: str, rows: Sequence[int]) -> tuple[int, ...] | None:
    """Draw the button that selects these rows of the probe; return them once it was pressed."""
    pressed = st.button(_("Select these"), key=f"explore.{panel}.select", icon=":material/select_all:")
    return tuple(rows) if pressed else None


def csv_button(label: str, make: Callable[[], bytes | str], file_name: str, *, key: str, **look: Any) -> None:
    """Draw the button that saves a table as a file.

    Args:
        make: the file's content, called when the button is pressed.
        look: further arguments of `st.download_button`.
    """
    st.download_button(label, make, file_name, "text/csv", key=key, icon=":material/download:", **look)


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
        cells: [rows][columns]; None for an empty cell. The last cell of a shorter row spans the remaining columns.
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
    )
    clicked = checked_cell(result.cell, len(rows), len(columns))
    return clicked if clicked and clicked[1] < len(cells[clicked[0]]) else None


def checked_cell(value: Any, rows: int, columns: int) -> tuple[int, int] | None:
    """Validate the cell that the browser reports, which can be anything; return None if it is absent or invalid."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        return None
    row, column = value
    fits = type(row) is int and type(column) is int and row in range(rows) and column in range(columns)
    return (row, column) if fits else None


def _plain(head: Head) -> dict[str, str]:
    return {"name": " ".join(head.name.split()), "colour": head.colour}
