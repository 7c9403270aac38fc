"""Messages and their translations: nothing missing, nothing unused, and every place filled."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import pytest
from babel.messages.catalog import Catalog, Message
from babel.messages.pofile import write_po

import core.messages
from core.errors import ConfigError
from core.messages import (
    ENGLISH,
    LANGUAGES,
    _,
    called,
    catalogue_path,
    clauses,
    in_language,
    language,
    listed,
    ngettext,
    read_catalogue,
    reread,
    script_messages,
    sentences,
    with_more,
)
from core.quantities import counted
from tests.cases import each
from tests.catalogues import KEYWORDS, ROOT, TRANSLATED, code_messages, updated, written

FUNCTIONS = {"_", "N_", "ngettext", "pgettext", "counted"}
# What a call in a script is given first, with the sign behind it where that goes on with the text.
SCRIPT_CALL = re.compile(r"""(?<![\w.])(?:_|N_)\(\s*("(?:[^"\\]|\\.)*"(?:\s*\+)?|[`'])""")


@each("code", TRANSLATED)
def test_the_catalogue_has_exactly_what_the_code_says(code: str) -> None:
    """Otherwise: python -m tests.catalogues, and translate what is new."""
    assert written(updated(code)) == catalogue_path(code).read_text(encoding="utf-8")


@each("code", TRANSLATED)
def test_everything_is_translated(code: str) -> None:
    assert [m.id for m in read_catalogue(code) if m.id and not all(texts(m))] == []
    assert [m.id for m in read_catalogue(code) if m.id and m.fuzzy] == []


@each("code", TRANSLATED)
def test_a_translation_fills_the_places_of_its_message(code: str) -> None:
    nouns = singulars("counted")
    wrong = []
    for message in read_catalogue(code):
        one = message.id if isinstance(message.id, str) else message.id[-1]
        singular = message.id if isinstance(message.id, str) else message.id[0]
        if not one or not all(texts(message)):
            continue
        expected = {"count"} if singular in nouns and not message.context else places(one)
        wrong += [(one, text) for text in texts(message) if places(text) != expected]
    assert wrong == []


def test_a_noun_that_is_counted_is_no_message_of_its_own() -> None:
    """Its translation holds the number, which nobody else would fill in."""
    assert singulars("counted") & singulars(*KEYWORDS.keys() - {"counted"}) == set()


def test_a_message_is_a_constant_and_its_places_have_names() -> None:
    """What is put together before it is translated is in no catalogue."""
    assert [f"{path}:{call.lineno}" for path, call in calls() if not is_translatable(call)] == []


def test_what_scripts_say_is_a_constant_that_is_found() -> None:
    """Or else a constant that was marked elsewhere, by its name: `_(label)`."""
    scripts = [*(ROOT / "assets").rglob("*.js"), *(ROOT / "pages").rglob("*.js")]
    said = [
        (path, given) for path in scripts for given in SCRIPT_CALL.findall(path.read_text(encoding="utf-8")) if given
    ]
    assert [given for path, given in said if given[0] in "`'" or given[-1] == "+"] == []
    found = {(path, str(m.id)) for m in code_messages() if m.id for path, _line in m.locations if path.endswith(".js")}
    constants = {(str(path.relative_to(ROOT)), ast.literal_eval(given)) for path, given in said if given[0] == '"'}
    assert constants == found


def test_a_language_is_spoken_for_a_while() -> None:
    assert language() == ENGLISH
    with in_language("zh"):
        assert language() == "zh"
        with in_language("ko"):
            assert language() == "ko"
        assert language() == "zh"
    assert language() == ENGLISH


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
        assert counted(1080, "wug") == "1,080 wugs"
        assert counted(2, "wug", "wuggen") == "2 wuggen"


@each("code", TRANSLATED)
def test_a_translation_is_found(code: str) -> None:
    with in_language(code):
        assert _("Home") != "Home"
        assert "1,080" in counted(1080, "row")
        assert "row" not in counted(1080, "row")
        assert script_messages("assets/map/")


def test_what_stands_between_things_belongs_to_the_language() -> None:
    assert (listed([]), listed(["a"]), listed(n for n in "abc")) == ("", "a", "a, b, c")
    assert clauses(["a, b", "c"]) == "a, b; c"
    assert (sentences([]), sentences(["", "One.", "", "Two!", "Three."])) == ("", "One. Two! Three.")
    assert (called("Batch", "16"), with_more("SCL", "L_in")) == ("Batch: 16", "SCL (L_in)")
    assert listed(["{a}", "{b}"]) == "{a}, {b}"
    with in_language("zh"):
        assert listed(["甲", "乙", "丙"]) == "甲、乙、丙"
        assert clauses(["甲、乙", "丙"]) == "甲、乙；丙"
        assert sentences(["一。", "", "二。", "三。"]) == "一。二。三。"
        assert (called("批次", "16"), with_more("SCL", "L_in")) == ("批次：16", "SCL（L_in）")
    with in_language("ko"):
        assert listed(["가", "나"]) == "가, 나"
        assert sentences(["하나입니다.", "둘입니다."]) == "하나입니다. 둘입니다."
        assert (called("배치", "16"), with_more("SCL", "L_in")) == ("배치: 16", "SCL(L_in)")


def test_a_sentence_that_ends_as_english_does_keeps_its_space() -> None:
    """Another process's error runs into no other sentence, and bold text ends where Markdown would not see it."""
    with in_language("zh"):
        assert sentences(["No room.", "请重试。"]) == "No room. 请重试。"
        assert sentences(["**粗体。**", "后文。"]) == "**粗体。** 后文。"


def test_a_sentence_of_another_process_is_recognised_by_its_form(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    catalogue = Catalog(locale="zh", fuzzy=False)
    catalogue.add("Step {step} failed: {why}.", "第 {step} 步失败：{why}")
    catalogue.add("Step {step} failed: {why}. Twice: {step}.", "两次 {step}，{why}")
    catalogue.add(
        ("{count} batch of {task} was left", "{count} batches of {task} were left"), ("{task}：剩下 {count} 批",)
    )
    catalogue.add("Loss {loss:.3f} is not a number", "损失 {loss:.3f} 不是数")
    catalogue.add("no memory", "内存不足")
    catalogue.add("Nothing to do", "无事可做")
    with (tmp_path / "zh.po").open("wb") as file:
        write_po(file, catalogue)
    monkeypatch.setattr("core.messages.FOLDER", tmp_path)
    forget_catalogues()
    try:
        assert reread("Step 3 failed: no memory.") == "Step 3 failed: no memory."
        with in_language("zh"):
            assert reread("Step 3 failed: no memory.") == "第 3 步失败：内存不足"
            assert reread("Step 3 failed: {x}\n%s. Twice: 3.") == "两次 3，{x}\n%s"
            assert reread("1,080 batches of A was were left") == "A was：剩下 1,080 批"
            assert reread("Loss 0.250 is not a number") == "损失 0.250 不是数"
            assert reread("Nothing to do") == "无事可做"
            assert reread("Something else") == "Something else"
    finally:
        monkeypatch.undo()
        forget_catalogues()


@each("code", TRANSLATED)
def test_a_sentence_that_was_written_down_is_read_in_every_language(code: str) -> None:
    """Also the remedy within an error, and two sentences in one text."""

    def written(language: str) -> tuple[str, str]:
        with in_language(language):
            error = str(ConfigError("batch_size", 1, _("a contrastive loss compares texts; give at least 2.")))
            starving = (
                "{loss} is 0 and moves nothing: in the last {batches} batches no text had a positive to separate "
            )
            said = [_(f"{starving}from other texts.", loss="L_out", batches=20)]
            said.append(_("Start a run with class-balanced batches, or a batch larger than {size}.", size=16))
            return error, sentences(said)

    with in_language(code):
        assert tuple(map(reread, written("en"))) == written(code) != written("en")


def forget_catalogues() -> None:
    for kept in (read_catalogue, core.messages._catalogue, core.messages._forms, core.messages._reread):
        kept.cache_clear()


def singulars(*functions: str) -> set[str]:
    """What these functions are called with in the code, in the singular where there is a plural."""
    return {m.id if isinstance(m.id, str) else m.id[0] for m in code_messages(*functions) if m.id and not m.context}


def texts(message: Message) -> tuple[str, ...]:
    return (message.string,) if isinstance(message.string, str) else tuple(message.string)


def places(text: str) -> set[str]:
    """The places of a message; one without places is not formatted, so braces in it are braces."""
    try:
        return {name for _text, name, _format, _conversion in Formatter().parse(text) if name is not None}
    except ValueError:
        return {text}


def calls() -> Iterator[tuple[str, ast.Call]]:
    """Every call that translates, with its file."""
    paths = [ROOT / "app.py", *(path for folder in ("core", "pages") for path in (ROOT / folder).rglob("*.py"))]
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS:
                yield str(path.relative_to(ROOT)), node


def is_translatable(call: ast.Call) -> bool:
    """A marked message is a constant; one that is shown may have been marked elsewhere, but is never put together."""
    assert isinstance(call.func, ast.Name)
    given = call.args[1:] if call.func.id == "counted" else call.args
    if any(isinstance(one, ast.JoinedStr | ast.BinOp) for one in given):
        return False
    # One of two texts, or a text that is filled first, is in no catalogue.
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
        ('counted(n - 1, "text")', True),
        ('_(f"{n} texts")', False),
        ('_("some " + text)', False),
        ('_("some" if one else "others")', False),
        ('_("{} texts".format(3))', False),
        ('_("{0} texts", count=3)', False),
        ('counted(n, f"{kind} text")', False),
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
    assert Path(ROOT / "assets" / "languages").is_dir()
    assert sorted(path.stem for path in (ROOT / "assets" / "languages").glob("*.po")) == sorted(TRANSLATED)
