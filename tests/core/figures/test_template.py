"""Text from outside, thinning and rounding."""

from __future__ import annotations

import itertools
import math

from core.figures.template import (
    HOVER_LINES,
    HOVER_WIDTH,
    MAX_CURVE_POINTS,
    class_colour,
    class_symbol,
    plain_text,
    rounded,
    short_text,
    thin_indices,
)
from tests.cases import each

HOSTILE = "<img src=x onerror=alert(1)> & \"quotes\" 'single' </b><script>"


@each("clean", [plain_text, short_text])
def test_markup_is_escaped(clean: object) -> None:
    assert callable(clean)
    text = clean(HOSTILE).replace("<br>", "")
    assert "<" not in text
    assert ">" not in text
    assert '"' not in text
    assert "&lt;img src=x" in text
    assert clean("  two\n\twords ") == "two words"


@each("text", ["word " * 400, "x" * 2000, "猫" * 2000])
def test_a_long_text_is_wrapped_and_cut(text: str) -> None:
    lines = plain_text(text).split("<br>")
    assert len(lines) == HOVER_LINES
    assert all(len(line) <= HOVER_WIDTH for line in lines)
    assert lines[-1].endswith("…")


def test_a_line_break_never_falls_into_an_escape() -> None:
    assert all(set(line.split("&amp;")) <= {""} for line in plain_text("&" * 300).split("<br>")[:-1])


@each("text", ["word " * 20, "x" * 100])
def test_a_long_name_is_cut_and_stays_recognisable(text: str) -> None:
    short = short_text(text)
    assert len(short) <= 24
    assert short.startswith(text[:8])


def test_classes_differ_in_colour_or_symbol_and_the_first_in_both() -> None:
    assert len({(class_colour(label), class_symbol(label)) for label in range(56)}) == 56
    assert len(set(map(class_colour, range(7)))) == len(set(map(class_symbol, range(7)))) == 7


@each("count", [0, 1, 2, 800, 801, 10_000, 1_000_000])
def test_thinning_keeps_the_ends_and_the_order_and_spreads_evenly(count: int) -> None:
    kept = thin_indices(count)
    assert len(kept) == min(count, MAX_CURVE_POINTS)
    assert len({after - before for before, after in itertools.pairwise(kept)}) <= 2
    assert kept == sorted(set(kept))
    assert kept[:1] == [0][:count]
    assert kept[-1:] == [count - 1][:count]


def test_rounding_keeps_five_digits_and_drops_what_json_lacks() -> None:
    values = rounded([1.23456789, 123456.789, 0.0, None, math.nan, math.inf, -math.inf])
    assert values == [1.2346, 123460.0, 0.0, None, None, None, None]
