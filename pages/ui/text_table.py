"""A table of texts that can be read: they wrap, numbers line up, and everything from outside is escaped."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Mapping, Sequence

import streamlit as st

from core.figures.template import class_colour
from core.messages import N_, _
from core.quantities import percent

Cell = str | float | bool | None

MAX_ROWS = 200
# What a column of numbers takes, and the space around any; names share the rest.
NUMBER_REM, PADDING_REM = 3.4, 1.4
TEXT_CHARS, NAME_CHARS = 600, 80
EXAMPLES = N_("Examples")
# How numbers of a column are written, where it is not three decimals.
FORMS: Mapping[str, Callable[[float], str]] = {
    # Translators: columns of texts: shares of neighbours that two lists have in common, and that stayed.
    **dict.fromkeys((N_("Confidence"), N_("Overlap"), N_("Kept"), N_("Accuracy")), percent),
    EXAMPLES: "{:,.0f}".format,
}
WIDE = N_("Text")


def text_table(
    columns: Mapping[str, Sequence[Cell]], *, height: int = 460, classes: Sequence[str] = (), label: str = EXAMPLES
) -> None:
    """Draw columns of equal length; each text is below its other cells, over the whole width.

    Args:
        columns: by name, in English and marked, as it is translated here; True is a dot, False and None are empty.
        height: pixels, above which the table scrolls.
        classes: names that get their colour in front, as on the map.
        label: what the table is, for those who cannot see it; marked in the same way.
    """
    names = [name for name in columns if name != WIDE]
    worded = max(1, sum(_kind(columns[name]) == "words" for name in names))
    rest = NUMBER_REM * (len(names) - worded) + PADDING_REM * (len(names) + 1)
    count = len(next(iter(columns.values()), ()))
    head = "".join(f'<th class="{_kind(columns[name])}" scope="col">{html.escape(_(name))}</th>' for name in names)
    colours = {name: class_colour(label) for label, name in enumerate(classes)}
    rows = "".join(
        f"<tbody><tr>{''.join(_cell(name, columns[name][row], colours) for name in names)}<td></td></tr>"
        f"{_text(columns[WIDE][row], len(names) + 1) if WIDE in columns else ''}</tbody>"
        for row in range(min(count, MAX_ROWS))
    )
    st.html(
        f'<div class="text-table" style="max-height:{height}px;--word-room:calc((100cqw - {rest:.1f}rem) / {worded})" '
        f'tabindex="0" role="region" aria-label="{html.escape(_(label))}">'
        f'<table><thead><tr>{head}<td class="rest"></td></tr></thead>{rows}</table></div>'
    )
    if count > MAX_ROWS:
        shown, every = f"{MAX_ROWS:,}", f"{count:,}"
        st.caption(_("The first {shown} of {every} are shown; the file has them all.", shown=shown, every=every))


def _kind(values: Sequence[Cell]) -> str:
    if any(isinstance(value, bool) for value in values):
        return "mark"
    return "number" if any(isinstance(value, float) for value in values) else "words"


def _text(value: Cell, width: int) -> str:
    text = " ".join(str(value)[: 2 * TEXT_CHARS].split())
    text = text if len(text) <= TEXT_CHARS else f"{text[:TEXT_CHARS]} …"
    return f'<tr><td class="wide" colspan="{width}" dir="auto">{html.escape(text)}</td></tr>'


def _breakable(name: str) -> str:
    """A name that is broken behind its joints rather than within a word."""
    return re.sub(r"([_/.:-])(?=\w)", r"\1<wbr>", html.escape(name))


def _cell(column: str, value: Cell, colours: Mapping[str, str]) -> str:
    if isinstance(value, bool) or value is None:
        return f'<td class="mark">{"●" if value else ""}</td>'
    if isinstance(value, str):
        dot = f'<i style="background:{colours[value]}"></i>' if value in colours else ""
        name = " ".join(value[: 2 * TEXT_CHARS].split())
        whole = f' title="{html.escape(name)}"' if len(name) > NAME_CHARS else ""
        cut = f"{name[:NAME_CHARS]} …" if whole else name
        return f'<td class="words" dir="auto"{whole}><div>{dot}{_breakable(cut)}</div></td>'
    return f'<td class="number">{"" if math.isnan(value) else FORMS.get(column, "{:.3f}".format)(value)}</td>'
