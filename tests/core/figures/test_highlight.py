"""Highlighted texts: text from outside is never markup, text is complete, and colour is never the only cue."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

import pytest

from core.events import TokenText, Word
from core.figures.highlight import (
    ENTERED,
    LEFT,
    NEGATIVE_RGB,
    OPACITY_MAX,
    POSITIVE_RGB,
    SPOKEN_WORDS,
    UNREAD_CHARS_MAX,
    Weights,
    background,
    before_and_after_html,
    highlighted_html,
)
from core.quantities import signed
from tests.cases import each

HOSTILE = [
    '<img src=x onerror="alert(1)">',
    "<script>alert(1)</script>",
    "\"'><b onmouseover='x()'>",
    "&amp; &lt; &#60;script&#62; &",
    "</p></div><style>*{display:none}</style>",
    "javascript:alert(1) style=x; title=\"y\" 'z'",
    "<!-- --><![CDATA[x]]>",
]
PLAIN = [
    "two  spaces,\ttabs\nand\r\nlines \n \n",
    "  indented\n  text ",
    "👩‍👩‍👧 and 👍🏽!",
    "هذا فيلم رائع، 100%!",
    "דג \u202eabc\u202c!",
    "这部电影很好看。",
    "w" * 2000,
    "word " * 400,
    "é e\u0301 ﬁ ½",
]
TAGS = {"div", "p", "span", "sup", "ol", "li", "bdi"}
ATTRIBUTES = {"class", "role", "aria-label", "aria-hidden", "style", "dir", "data-side", "title"}
# Text and background colour of each theme, from the app's settings.
THEMES = [((0x1F, 0x29, 0x33), (0xFF, 0xFF, 0xFF)), ((0xE4, 0xE9, 0xEE), (0x11, 0x16, 0x1B))]


@dataclass
class Drawn:
    """A span of a text: its attributes, its content and the sign before it."""

    attributes: dict[str, str]
    text: str = ""
    sign: str = ""


@dataclass
class Block:
    """One `token-text`: the content of each text of a pair, and its spans."""

    label: str
    sides: dict[int, str] = field(default_factory=dict)
    spans: list[Drawn] = field(default_factory=list)
    items: list[str] = field(default_factory=list)


class Reader(HTMLParser):
    """A parser that reads the markup as a browser would. It fails on unexpected tags and attributes."""

    def __init__(self, markup: str) -> None:
        super().__init__(convert_charrefs=True)
        self.blocks: list[Block] = []
        self.notes: list[str] = []
        self._open: list[tuple[str, dict[str, str]]] = []
        self.feed(markup)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        assert tag in TAGS
        assert found.keys() <= ATTRIBUTES
        self._open.append((tag, found))
        if found.get("class") == "token-text":
            self.blocks.append(Block(found["aria-label"]))
        elif "data-side" in found:
            assert found["dir"] == "auto"
            self.blocks[-1].sides[int(found["data-side"])] = ""
        elif tag == "p":
            self.notes.append("")
        elif tag == "span":
            self.blocks[-1].spans.append(Drawn(found))
        elif tag == "li":
            self.blocks[-1].items.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        tags = [tag for tag, _ in self._open]
        side = next((found["data-side"] for _, found in self._open if "data-side" in found), None)
        if "sup" in tags:
            self.blocks[-1].spans[-1].sign += data
        elif side is not None:
            self.blocks[-1].sides[int(side)] += data
            if "span" in tags:
                self.blocks[-1].spans[-1].text += data
        elif "p" in tags:
            self.notes[-1] += data
        elif "li" in tags:
            self.blocks[-1].items[-1] += data

    def handle_comment(self, data: str) -> None:
        pytest.fail(f"a comment: {data}")

    def handle_decl(self, decl: str) -> None:
        pytest.fail(f"a declaration: {decl}")


def made_text(*sides: str, read: int | None = None) -> TokenText:
    """Return a text with one token per word. As for BERT's tokenizer, a word is a run of letters or one character."""
    words: list[Word] = []
    for number, side in enumerate(sides):
        for found in re.finditer(r"\w+|[^\w\s]", side[:read]):
            words.append(Word(number, found.start(), found.end(), (len(words) + 1,)))
    return TokenText(sides, tuple(words), len(words) + 2)


def made_weights(text: TokenText) -> list[float]:
    return [(place * 37 % 11 - 3) / 20 for place in range(len(text.words))]


def highlighted(text: TokenText, weights: Weights, title: str = "t", measure: str = "attention", **more: Any) -> str:
    return highlighted_html(text, weights, title=title, measure=measure, **more)


def before_and_after(
    text: TokenText, before: Weights, after: Weights, k: int, titles: tuple[str, str] = ("Before", "After")
) -> str:
    return before_and_after_html(text, before, after, k, titles=titles)


def only(markup: str) -> Block:
    (block,) = Reader(markup).blocks
    return block


@each("side", [*HOSTILE, *PLAIN, ""])
@each("read", [None, 7])
def test_any_text_is_reproduced_exactly_and_every_word_says_its_value(side: str, read: int | None) -> None:
    text = made_text(side, "the other side", read=read)
    weights = made_weights(text)
    markup = highlighted(text, weights, title=side, measure=side)
    block = only(markup)
    assert (block.label, block.sides) == (side, {0: side, 1: "the other side"})
    spans = [span for span in block.spans if "background" in span.attributes["style"]]
    assert [span.text for span in spans] == [text.surface(word) for word in text.words]
    assert [span.attributes["title"] for span in spans] == [f"{side} {signed(weight, 4)}" for weight in weights]
    assert not set("\r\n") & set(markup)
    reader = Reader(before_and_after(text, weights, weights[::-1], 3, titles=(side, "after")))
    assert [other.sides for other in reader.blocks] == [block.sides] * 2
    assert [other.label for other in reader.blocks] == [side, "after"]


def test_what_a_page_cannot_hold_stands_as_a_sign_for_it() -> None:
    text = made_text("a\0b \ud800 c")
    markup = highlighted(text, made_weights(text), title="\0")
    assert markup.encode("utf-8")
    assert only(markup).sides == {0: "a\ufffdb \ufffd c"}


class TestStrength:
    def test_it_follows_the_weight(self) -> None:
        assert "0.000)" in highlighted(made_text("a"), [0.0])
        spans = only(highlighted(made_text("a b c d"), [0.0, 0.1, 0.2, 0.4])).spans
        found = [re.search(r"rgba\((\d+),(\d+),(\d+),([\d.]+)\)", span.attributes["style"]) for span in spans]
        assert [float(hit[4]) for hit in found if hit] == pytest.approx([x * OPACITY_MAX for x in (0, 0.25, 0.5, 1)])
        assert {tuple(int(hit[i]) for i in (1, 2, 3)) for hit in found if hit} == {POSITIVE_RGB}

    def test_a_negative_weight_has_another_hue_and_a_line(self) -> None:
        down, up = only(highlighted(made_text("a b"), [-0.2, 0.2])).spans
        assert f"rgba({','.join(map(str, NEGATIVE_RGB))},{OPACITY_MAX:.3f})" in down.attributes["style"]
        assert "text-decoration:underline" in down.attributes["style"]
        assert "underline" not in up.attributes["style"]
        assert down.attributes["title"] == "attention −0.2000"

    def test_what_was_not_measured_says_so_and_has_no_background(self) -> None:
        block = only(highlighted(made_text("a b"), [math.nan, 0.2]))
        assert block.spans[0].attributes == {"title": "attention not measured", "style": ""}
        assert block.items == ["b 0.2000"]

    def test_the_chosen_have_a_frame_and_say_so(self) -> None:
        first, second = only(highlighted(made_text("a b"), [0.1, 0.2], chosen={1})).spans
        assert "outline" in second.attributes["style"]
        assert "outline" not in first.attributes["style"]
        assert second.attributes["title"] == "attention 0.2000, in the top k"

    @each("weight", [1.0, -1.0])
    @each(("letters", "page"), THEMES)
    def test_letters_stand_out_against_the_strongest_background(
        self, weight: float, letters: tuple[int, int, int], page: tuple[int, int, int]
    ) -> None:
        red, green, blue, alpha = map(float, re.findall(r"[\d.]+", background(weight, 1.0)))
        behind = [alpha * over + (1 - alpha) * under for over, under in zip((red, green, blue), page, strict=True)]
        bright, dark = sorted((luminance(letters), luminance(behind)), reverse=True)
        assert (bright + 0.05) / (dark + 0.05) >= 4.5  # WCAG 2.2, level AA


def luminance(colour: object) -> float:
    parts = [value / 255 for value in colour]
    red, green, blue = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


class TestForThoseWhoHearIt:
    def test_the_strongest_words_are_listed_with_their_values(self) -> None:
        block = only(highlighted(made_text("a <b> c"), [0.1, 0.0, -0.5, 0.0, 0.3], title="Layer 6"))
        assert block.label == "Layer 6"
        assert block.items[:3] == ["b −0.5000", "c 0.3000", "a 0.1000"]

    def test_a_long_text_does_not_go_on_for_ever(self) -> None:
        text = made_text("w" * 2000 + " word" * 400)
        items = only(highlighted(text, made_weights(text))).items
        assert len(items) == SPOKEN_WORDS
        assert max(map(len, items)) < 60


class TestWhatIsNotRead:
    def test_the_end_that_was_cut_off_is_pale_and_a_note_says_why(self) -> None:
        text = made_text("one two three four", read=7)
        reader = Reader(highlighted(text, [0.1, 0.2]))
        pale = reader.blocks[0].spans[-1]
        assert pale.text == " three four"
        assert pale.attributes["title"] == "not read by the encoder"
        (note,) = reader.notes
        assert "reads 4 tokens" in note

    def test_a_text_that_is_read_whole_has_no_note(self) -> None:
        for side in ("one two ", "thumb 👍\ufe0f", "ends in a lone accent \u0301"):
            text = made_text(side)
            assert Reader(highlighted(text, made_weights(text))).notes == []

    def test_of_a_book_the_beginning_is_shown(self) -> None:
        side = "one " + "x" * (UNREAD_CHARS_MAX + 1233)
        text = made_text(side, read=4)
        reader = Reader(highlighted(text, [0.1]))
        assert reader.blocks[0].sides[0] == side[: 3 + UNREAD_CHARS_MAX] + "…"
        assert "1,234 more characters" in reader.notes[0]

    def test_signs_that_a_tokenizer_drops_are_pale_and_no_reason_for_a_note(self) -> None:
        text = TokenText(("a § b",), (Word(0, 0, 1, (1,)), Word(0, 4, 5, (2,))), 4)
        reader = Reader(highlighted(text, [0.1, 0.2]))
        assert reader.blocks[0].sides == {0: "a § b"}
        assert [span.text for span in reader.blocks[0].spans] == ["a", " § ", "b"]
        assert reader.notes == []


def test_words_that_share_a_character_show_it_once() -> None:
    words = (Word(0, 0, 1, (1,)), Word(0, 0, 1, (2,)), Word(0, 0, 2, (3,)), Word(0, 3, 4, (4,)))
    block = only(highlighted(TokenText(("½x y",), words, 6), [0.1, 0.2, 0.3, 0.4]))
    assert block.sides == {0: "½x y"}
    assert [(span.text, span.attributes["title"]) for span in block.spans] == [
        ("½", "attention 0.1000"),
        ("x", "attention 0.3000"),
        ("y", "attention 0.4000"),
    ]


def test_words_that_came_and_went_have_a_sign_and_say_so_and_both_rows_share_one_scale() -> None:
    text, weights = made_text("good bad ugly film"), ([0.4, 0.3, 0.2, 0.1], [0.1, 0.3, 0.2, 0.8])
    reader = Reader(before_and_after(text, *weights, 2))
    before, after = reader.blocks
    assert [span.text for span in before.spans] == ["good", "bad", "ugly", "film"]
    assert [[span.sign for span in row.spans] for row in (before, after)] == [[LEFT, "", "", ""], ["", "", "", ENTERED]]
    framed = [[span.text for span in row.spans if "outline" in span.attributes["style"]] for row in (before, after)]
    assert framed == [["good", "bad"], ["bad", "film"]]
    assert before.spans[0].attributes["title"] == "attention 0.4000, in the top k, left the top k"
    assert after.spans[3].attributes["title"] == "attention 0.8000, in the top k, entered the top k"
    for block, of_block in zip(reader.blocks, weights, strict=True):
        shades = [span.attributes["style"].split(";")[0] for span in block.spans]
        assert shades == [f"background:{background(weight, 0.8)}" for weight in of_block]
    assert reader.notes == ["Changes in the top 2 · new (+): film · gone (−): good · in both: bad"]
    same = Reader(before_and_after(text, weights[0], weights[0], 1))
    assert same.notes == ["Changes in the top 1 · new (+): none · gone (−): none · in both: good"]


def test_screen_readers_hear_the_strongest_words_without_those_that_are_skipped() -> None:
    text, weights = made_text("good, bad"), [0.4, 0.5, 0.1]
    drawn = before_and_after_html(text, weights, weights, 2, titles=("Before", "After"), skip={1})
    assert [block.items for block in Reader(drawn).blocks] == [["good 0.4000", "bad 0.1000"]] * 2
    assert "at most k = 2 words (2)" in drawn
