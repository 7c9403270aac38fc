"""Translations of lessons: each is its lesson in other words, and is what visitors of its language get."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from core.lessons.lesson import FOLDER, lessons
from core.messages import ENGLISH, in_language
from tests.cases import each
from tests.catalogues import TRANSLATED
from tests.core.lessons.test_lesson import WHOLE
from tests.core.lessons.translated import problems

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
# Every word of it, and nothing else.
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


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], Path]:
    """A folder with the lesson in English and what is given as its translation."""

    def written(text: str, name: str = "zh/made.md") -> Path:
        (tmp_path / "made.md").write_text(ENGLISH_TEXT, encoding="utf-8")
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path

    return written


def test_every_translation_is_built_as_its_lesson() -> None:
    assert problems(FOLDER) == []


def test_other_words_are_no_problem(write: Callable[[str], Path]) -> None:
    assert problems(write(chinese(ENGLISH_TEXT))) == []


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("place: 1", "place: 2", "zh/made.md: place: 2, but in English 1"),
        ("minutes: 3", "minutes: 4", "zh/made.md: minutes: 4, but in English 3"),
        ("minutes: 3", "minutes: 3\nhides: [find]", "zh/made.md: hides"),
        ("score: accuracy, form: percent", "score: macro_f1, form: percent", "zh/made.md: numbers"),
        ("## 第二\n", "## 第二\n\n句子。\n", "part 2: blocks: ['text', 'check', 'check'], but in English ['check', "),
        ("## 第二\n", "## 第二\n\n句子。\n\n## 第三\n", "zh/made.md: parts: 3, but in English 2"),
        ("```\n\n之后。", "```", "part 1: blocks: ['text', 'try', 'predict'], but in English ['text', "),
        ("panel: texts}\n", "panel: moved}\n", "zh/made.md, part 1: page"),
        ("page: explore", "page: tokens", "zh/made.md, part 1: page"),
        ("{{ one }}", "{{ two }}", "part 1, block 1 (text): placeholders: ['two'], but in English ['one']"),
        ("之后。", "之后 {{ one }}。", "part 1, block 4 (text): placeholders: ['one'], but in English []"),
        ("$x$", "$x_1$", "part 1, block 1 (text): formulas"),
        ("$$y = 1$$", "", "part 1, block 1 (text): formulas: ['$x$'], but in English ['$$y = 1$$', '$x$']"),
        ("{甲: {panel: moved}, 乙: {panel: texts}}", "{乙: {panel: texts}, 甲: {panel: moved}}", "what its choices do"),
        ("[这个, 那个]", "[这个, 那个, 都不是]", "part 1, block 3 (predict): number of choices: 3, but in English 2"),
        ("number: one", "number: two", "part 2, block 1 (check): number: two, but in English one"),
        ("within: 0.01", "within: 0.02", "part 2, block 1 (check): within: 0.02, but in English 0.01"),
        ("right: highest", "right: lowest", "part 2, block 2 (check): right: lowest, but in English highest"),
        ("我们的: one, 他们的: two", "他们的: two, 我们的: one", "what its choices stand for: ['two', 'one']"),
    ],
)
def test_what_is_built_otherwise_is_named_with_its_place(
    write: Callable[[str], Path], old: str, new: str, problem: str
) -> None:
    text = chinese(ENGLISH_TEXT)
    assert old in text
    # A part that names no page is beside that of the part before, so that one change may be two problems.
    assert problem in problems(write(text.replace(old, new, 1)))[0]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("zh/other.md", "zh/other.md: there is no lesson of this name to be translated"),
        ("zh/made.txt", "zh/made.txt: there is no lesson of this name to be translated"),
        ("fr/made.md", "fr/made.md: no language to translate into has this name"),
        ("en/made.md", "en/made.md: no language to translate into has this name"),
    ],
)
def test_a_file_that_nobody_would_read_is_named(write: Callable[..., Path], name: str, problem: str) -> None:
    assert problems(write(ENGLISH_TEXT, name)) == [problem]


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
    # A lesson that is not there would be read in English.
    assert {path.name for path in (FOLDER / code).glob("*.md")} == {path.name for path in FOLDER.glob("*.md")}
    for name, one in lessons().items():
        assert translated[name].title != one.title
        for part, spoken in zip(one.parts, translated[name].parts, strict=True):
            assert spoken.title != part.title
            for block, said in zip(part.blocks, spoken.blocks, strict=True):
                assert block != said, (name, part.title)
