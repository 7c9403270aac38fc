"""Translations of lessons: each differs from its lesson only in words, and visitors of its language read it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from core.lessons.lesson import FOLDER, Check, Lesson, Prediction, TryButtons, lessons, placeholders, read_lesson
from core.messages import ENGLISH, in_language
from tests.cases import each
from tests.catalogues import TRANSLATED
from tests.core.lessons.test_lesson import WHOLE

FORMULA = re.compile(r"\$\$.+?\$\$|\$[^$]+\$", re.DOTALL)
NUMBER = "  one: {run: ce, score: accuracy, form: percent}\n"
ENGLISH_TEXT = (
    WHOLE.replace("Before {{ one }}.", "Before {{ one }}, $x$ and\n\n$$y = 1$$")
    .replace("choices: {A: {panel: moved}}", "choices: {A: {panel: moved}, B: {panel: texts}}")
    .replace(NUMBER, f"{NUMBER}  two: {{run: ce-scl, score: accuracy}}\n")
    + """
```check
question: Which?
choices: {Ours: one, Theirs: two}
right: highest
hint: Look again.
```
"""
)
# Translations of all text in the lesson, and of nothing else.
WORDS = {
    "A title": "标题",
    "A question?": "问题？",
    "First": "第一",
    "Second": "第二",
    "Before {{ one }}, $x$ and": "$x$ 之前是 {{ one }}，还有",
    "Turn it": "转动",
    "{A: {": "{甲: {",
    ", B: {": ", 乙: {",
    "What?": "什么？",
    "[This, That]": "[这个, 那个]",
    "After.": "之后。",
    "How many?": "多少？",
    "hint: Look.": "hint: 看一看。",
    "Which?": "哪一个？",
    "Ours": "我们的",
    "Theirs": "他们的",
    "Look again.": "再看一看。",
}


def chinese(text: str) -> str:
    for english, word in WORDS.items():
        assert english in text
        text = text.replace(english, word)
    return text


def skeleton(lesson: Lesson) -> dict[str, object]:
    """Return the structure that a translation shares with its lesson."""
    parts = [(part.shown, [built(block) for block in part.blocks]) for part in lesson.parts]
    return {name: getattr(lesson, name) for name in ("place", "minutes", "hides", "numbers")} | {"parts": parts}


def built(block: str | TryButtons | Prediction | Check) -> tuple[object, ...]:
    """Return the structure of a block. Answers are identified by their position."""
    words: tuple[str, ...] = ()
    beside: tuple[object, ...] = ()
    match block:
        case str():
            words = (block,)
        case TryButtons():
            words, beside = (block.label, *block.choices), (*block.choices.values(),)
        case Prediction():
            words, beside = (block.question, *block.choices), (len(block.choices),)
        case Check():
            words = (block.question, block.hint, *block.choices)
            beside = (block.number, block.within, block.right, *block.choices.values())
    formulas = {formula for text in words for formula in FORMULA.findall(text)}
    return type(block), set().union(*map(placeholders, words)), formulas, beside


@each("code", TRANSLATED)
def test_every_translation_is_built_as_its_lesson(code: str) -> None:
    for path in (FOLDER / code).iterdir():
        assert skeleton(read_lesson(path)) == skeleton(read_lesson(FOLDER / path.name)), path


def test_every_folder_is_of_a_language() -> None:
    assert {path.name for path in FOLDER.iterdir() if path.is_dir()} == set(TRANSLATED)


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], Path]:
    """Return a function that writes a folder with the lesson in English and a given translation."""

    def written(text: str) -> Path:
        (tmp_path / "made.md").write_text(ENGLISH_TEXT, encoding="utf-8")
        (tmp_path / "zh").mkdir(exist_ok=True)
        (tmp_path / "zh" / "made.md").write_text(text, encoding="utf-8")
        return tmp_path

    return written


def is_alike(folder: Path) -> bool:
    return skeleton(read_lesson(folder / "zh" / "made.md")) == skeleton(read_lesson(folder / "made.md"))


def test_other_words_are_no_difference(write: Callable[[str], Path]) -> None:
    assert is_alike(write(chinese(ENGLISH_TEXT)))


@each(
    ("old", "new"),
    [
        ("minutes: 3", "minutes: 4"),
        ("minutes: 3", "minutes: 3\nhides: [find]"),
        ("score: accuracy, form: percent", "score: macro_f1, form: percent"),
        ("## 第二\n", "## 第二\n\n句子。\n"),
        ("## 第二\n", "## 第二\n\n句子。\n\n## 第三\n"),
        ("panel: texts}\n", "panel: moved}\n"),
        ("{{ one }}", "{{ two }}"),
        ("$x$", "$x_1$"),
        ("$$y = 1$$", ""),
        ("{甲: {panel: moved}, 乙: {panel: texts}}", "{乙: {panel: texts}, 甲: {panel: moved}}"),
        ("[这个, 那个]", "[这个, 那个, 都不是]"),
        ("number: one", "number: two"),
        ("within: 0.01", "within: 0.02"),
        ("right: highest", "right: lowest"),
        ("我们的: one, 他们的: two", "他们的: two, 我们的: one"),
    ],
)
def test_what_is_built_otherwise_is_seen(write: Callable[[str], Path], old: str, new: str) -> None:
    text = chinese(ENGLISH_TEXT)
    assert old in text
    assert not is_alike(write(text.replace(old, new, 1)))


def test_visitors_get_the_lessons_of_their_language_and_english_ones_beside_them(write: Callable[..., Path]) -> None:
    folder = write(chinese(ENGLISH_TEXT))
    (folder / "another.md").write_text(ENGLISH_TEXT.replace("place: 1", "place: 2"), encoding="utf-8")
    for _again in range(2):
        for code, title in ((ENGLISH, "A title"), ("zh", "标题"), ("ko", "A title")):
            with in_language(code):
                assert [one.title for one in lessons(folder).values()] == [title, "A title"]


@each("code", TRANSLATED)
def test_every_language_has_the_same_lessons_in_the_same_order(code: str) -> None:
    with in_language(code):
        translated = lessons()
    assert [(name, one.place) for name, one in translated.items()] == [
        (name, one.place) for name, one in lessons().items()
    ]
    # Visitors would read a missing lesson in English.
    assert {path.name for path in (FOLDER / code).glob("*.md")} == {path.name for path in FOLDER.glob("*.md")}
    for name, one in lessons().items():
        assert translated[name].title != one.title
        for part, spoken in zip(one.parts, translated[name].parts, strict=True):
            assert spoken.title != part.title
            for block, said in zip(part.blocks, spoken.blocks, strict=True):
                assert block != said, (name, part.title)
