"""Messages and their translations: all present, all used, and every placeholder filled."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import numpy as np
from babel.messages.catalog import Message as CatalogueMessage

from core.errors import ConfigError, StoreError, TaskError
from core.messages import (
    ENGLISH,
    FOLDER,
    LANGUAGES,
    Message,
    Text,
    _,
    clauses,
    dump_text,
    in_language,
    join_label,
    join_list,
    language,
    load_text,
    ngettext,
    read_catalogue,
    script_messages,
    sentences,
    with_more,
)
from tests.cases import each
from tests.catalogues import ROOT, TRANSLATED, code_messages, updated, written

FUNCTIONS = {"_", "N_", "ngettext", "pgettext", "Message"}
# First argument of a call in a script, with a plus sign if the text continues.
SCRIPT_CALL = re.compile(r"""(?<![\w.])(?:_|N_)\(\s*("(?:[^"\\]|\\.)*"(?:\s*\+)?|[`'])""")


@each("code", TRANSLATED)
def test_the_catalogue_has_exactly_what_the_code_says(code: str) -> None:
    """On failure: python -m tests.catalogues, then translate the new messages."""
    assert written(updated(code)) == (FOLDER / f"{code}.po").read_text(encoding="utf-8")


@each("code", TRANSLATED)
def test_everything_is_translated(code: str) -> None:
    assert [m.id for m in read_catalogue(code) if m.id and not all(texts(m))] == []
    assert [m.id for m in read_catalogue(code) if m.id and m.fuzzy] == []


@each("code, foreign", [("ko", "[一-鿿]"), ("zh", "[가-힣]")])
def test_a_translation_is_in_its_language(code: str, foreign: str) -> None:
    assert [text for m in read_catalogue(code) if m.id for text in texts(m) if re.search(foreign, text)] == []


@each("code", TRANSLATED)
def test_a_translation_fills_the_places_of_its_message(code: str) -> None:
    wrong = []
    for message in read_catalogue(code):
        one = message.id if isinstance(message.id, str) else message.id[-1]
        if not one or not all(texts(message)):
            continue
        wrong += [(one, text) for text in texts(message) if places(text) != places(one)]
    assert wrong == []


def test_a_message_is_a_constant_and_its_places_have_names() -> None:
    """Text that is combined before translation is in no catalogue."""
    assert [f"{path}:{call.lineno}" for path, call in calls() if not is_translatable(call)] == []


def test_what_scripts_say_is_a_constant_that_is_found() -> None:
    """A constant that was marked elsewhere may be given by its name: `_(label)`."""
    scripts = [*(ROOT / "assets").rglob("*.js"), *(ROOT / "pages").rglob("*.js")]
    said = [
        (path, given) for path in scripts for given in SCRIPT_CALL.findall(path.read_text(encoding="utf-8")) if given
    ]
    assert [given for path, given in said if given[0] in "`'" or given[-1] == "+"] == []
    found = {(path, str(m.id)) for m in code_messages() if m.id for path, _line in m.locations if path.endswith(".js")}
    constants = {(str(path.relative_to(ROOT)), ast.literal_eval(given)) for path, given in said if given[0] == '"'}
    assert constants == found


def test_in_language_restores_the_previous_language() -> None:
    found = [language()]
    with in_language("zh"):
        found.append(language())
        with in_language("ko"):
            found.append(language())
        found.append(language())
    assert [*found, language()] == [ENGLISH, "zh", "ko", "zh", ENGLISH]


def test_english_is_what_the_code_says() -> None:
    assert _("{title} is there", title="{x}") == "{x} is there"
    assert _("") == ""
    assert _("50% {not a place}") == "50% {not a place}"
    assert ngettext("{count} row", "{count} rows", 1080) == "1,080 rows"
    assert script_messages("assets/") == {}


@each("code", TRANSLATED)
def test_what_is_not_translated_is_english(code: str) -> None:
    with in_language(code):
        assert _("nobody translates {this}", this=1) == "nobody translates 1"
        assert ngettext("{count} wug", "{count} wugs", 1080) == "1,080 wugs"


@each("code", TRANSLATED)
def test_a_translation_is_found(code: str) -> None:
    with in_language(code):
        assert _("Home") != "Home"
        rows = ngettext("{count} row", "{count} rows", 1080)
        assert "1,080" in rows
        assert "row" not in rows
        assert script_messages("assets/map/")


def test_separators_belong_to_the_language() -> None:
    assert (join_list([]), join_list(["a"]), join_list(n for n in "abc")) == ("", "a", "a, b, c")
    assert clauses(["a, b", "c"]) == "a, b; c"
    assert (sentences([]), sentences(["", "One.", "", "Two!", "Three."])) == ("", "One. Two! Three.")
    assert (join_label("Batch", "16"), with_more("SCL", "L_in")) == ("Batch: 16", "SCL (L_in)")
    assert join_list(["{a}", "{b}"]) == "{a}, {b}"
    with in_language("zh"):
        assert join_list(["甲", "乙", "丙"]) == "甲、乙、丙"
        assert clauses(["甲、乙", "丙"]) == "甲、乙；丙"
        assert sentences(["一。", "", "二。", "三。"]) == "一。二。三。"
        assert (join_label("批次", "16"), with_more("SCL", "L_in")) == ("批次：16", "SCL（L_in）")
    with in_language("ko"):
        assert join_list(["가", "나"]) == "가, 나"
        assert sentences(["하나입니다.", "둘입니다."]) == "하나입니다. 둘입니다."
        assert (join_label("배치", "16"), with_more("SCL", "L_in")) == ("배치: 16", "SCL(L_in)")


def test_a_sentence_that_ends_as_english_does_keeps_its_space() -> None:
    """An error from another process is followed by a space, and bold text ends where Markdown allows it."""
    with in_language("zh"):
        assert sentences(["No room.", "请重试。"]) == "No room. 请重试。"
        assert sentences(["**粗体。**", "后文。"]) == "**粗体。** 后文。"


class TestMessage:
    """A message raised or stored in one process and shown in another."""

    STARVES = Message(
        "{loss} is 0 and has no gradient: in the last {batches} batches no text had both a positive and other "
        "texts to separate it from.",
        loss="L_out",
        batches=20,
    )

    def test_it_is_read_in_the_language_of_whoever_reads(self) -> None:
        english = str(self.STARVES)
        assert english.startswith("L_out is 0 and has no gradient: in the last 20 batches")
        with in_language("zh"):
            assert english != str(self.STARVES) == f"{self.STARVES}" == self.STARVES.render("zh")
            assert self.STARVES.render(ENGLISH) == english

    @each("code", [ENGLISH, *TRANSLATED])
    def test_an_error_is_read_with_its_remedy(self, code: str) -> None:
        error = ConfigError("batch_size", 1, "a contrastive loss compares texts; give at least 2.")
        with in_language(code):
            remedy = _("a contrastive loss compares texts; give at least 2.")
            assert str(error) == _(
                "{field} = {value} cannot be used: {remedy}", field="batch_size", value=1, remedy=remedy
            )
            assert (remedy == error.remedy.template) == (code == ENGLISH)

    def test_a_number_decides_the_form_and_several_values_are_listed(self) -> None:
        rows = [str(Message("{count} row", "{count} rows", count=count)) for count in (0, 1, 1080)]
        assert rows == ["0 rows", "1 row", "1,080 rows"]
        message = Message("choose one of {names}.", names=("a", "b"))
        assert str(message) == "choose one of a, b."
        assert "a、b" in message.render("zh")

    @each(
        "text",
        [
            STARVES,
            Message("{count} row", "{count} rows", count=2),
            Message("{problem}: {size:.1f} MB", problem=STARVES, size=0.1234),
            Message("choose one of {names}.", names=("a", STARVES)),
            Message('Braces {and} "quotes"'),
            "A sentence of an older run.",
            '{"template": a text from outside',
        ],
    )
    def test_what_is_stored_is_read_back(self, text: Text) -> None:
        stored = dump_text(text)
        assert isinstance(stored, str | bytes)
        assert load_text(stored) == text
        assert str(load_text(stored)) == str(text)

    def test_a_value_of_any_kind_is_stored(self) -> None:
        message = Message("{a}, {b:.2f}", a=Path("x"), b=np.float32(0.5))
        assert str(load_text(dump_text(message))) == str(message) == "x, 0.50"

    def test_another_error_is_a_value(self) -> None:
        inner = TaskError("{name} is empty.", name="x")
        assert str(TaskError("{file}: {problem}", file="f", problem=inner)) == "f: x is empty."
        assert str(TaskError("{file}: {problem}", file="f", problem=OSError("no"))) == "f: no"

    def test_a_text_without_values_is_taken_as_it_is(self) -> None:
        assert str(StoreError("{x} of 50%")) == "{x} of 50%"


def texts(message: CatalogueMessage) -> tuple[str, ...]:
    return (message.string,) if isinstance(message.string, str) else tuple(message.string)


def places(text: str) -> set[str]:
    """Return the placeholders of a message. Without any it is not formatted, so braces are literal."""
    try:
        return {name for _text, name, _format, _conversion in Formatter().parse(text) if name is not None}
    except ValueError:
        return {text}


def calls() -> Iterator[tuple[str, ast.Call]]:
    """Return all translating calls, each with its file."""
    paths = [ROOT / "app.py", *(path for folder in ("core", "pages") for path in (ROOT / folder).rglob("*.py"))]
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS:
                yield str(path.relative_to(ROOT)), node


def is_translatable(call: ast.Call) -> bool:
    """Test a call: a marked message is a constant. A shown one may be marked elsewhere, but is never combined."""
    assert isinstance(call.func, ast.Name)
    given = call.args[:2]
    if any(isinstance(one, ast.JoinedStr | ast.BinOp) for one in given):
        return False
    # A choice between two texts, or a text formatted too early, is in no catalogue.
    either = [part for one in given if isinstance(one, ast.IfExp) for part in (one.body, one.orelse)]
    filled = [one.func.value for one in given if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute)]
    if any(isinstance(part, ast.Constant) and isinstance(part.value, str) for part in (*either, *filled)):
        return False
    constants = [one.value for one in call.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    if call.func.id == "N_" and not constants:
        return False
    return all(name and not name.isdecimal() for text in constants for name in places(text) if call.keywords)


@each(
    ("call", "translatable"),
    [
        ('_("some text")', True),
        ("_(label)", True),
        ('_(LABELS.get(name, name.replace("_", " ")))', True),
        ('_("{count} texts", count=3)', True),
        ('ngettext("{count} text", "{count} texts", n - 1)', True),
        ('Message("{count} text", "{count} texts", count=n)', True),
        ('_(f"{n} texts")', False),
        ('_("some " + text)', False),
        ('_("some" if one else "others")', False),
        ('_("{} texts".format(3))', False),
        ('_("{0} texts", count=3)', False),
        ('Message(f"{n} texts")', False),
        ("N_(label)", False),
    ],
)
def test_the_check_sees_what_is_in_no_catalogue(call: str, translatable: bool) -> None:
    (expression,) = ast.parse(call).body
    assert isinstance(expression, ast.Expr)
    assert isinstance(expression.value, ast.Call)
    assert is_translatable(expression.value) is translatable


def test_every_language_has_a_catalogue() -> None:
    assert next(iter(LANGUAGES)) == ENGLISH
    assert sorted(path.stem for path in FOLDER.glob("*.po")) == sorted(TRANSLATED)
