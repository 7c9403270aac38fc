"""Translations of lessons: each differs from its lesson only in words, and visitors of its language read it."""

from __future__ import annotations

import re
from pathlib import Path

from core.lessons.lesson import FOLDER, Check, Lesson, Prediction, TryButtons, lessons, placeholders, read_lesson
from core.messages import ENGLISH, in_language
from tests.cases import each
from tests.catalogues import TRANSLATED
from tests.core.lessons.test_lesson import WHOLE, written

FORMULA = re.compile(r"\$\$.+?\$\$|\$[^$]+\$", re.DOTALL)


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


@each(
    ("old", "new"),
    [
        ("minutes: 3", "minutes: 4"),
        ("score: accuracy", "score: macro_f1"),
        ("panel: texts", "panel: moved"),
        ("{{ one }}", "$x$"),
        ("[This, That]", "[This, That, Neither]"),
        ("After.\n", ""),
        ("within: 0.01", "within: 0.02"),
    ],
)
def test_another_structure_is_seen(tmp_path: Path, old: str, new: str) -> None:
    assert old in WHOLE
    lesson, other = (read_lesson(written(tmp_path, text)) for text in (WHOLE, WHOLE.replace(old, new, 1)))
    assert skeleton(lesson) != skeleton(other)


@each("code", TRANSLATED)
def test_every_translation_is_built_as_its_lesson(code: str) -> None:
    for path in (FOLDER / code).iterdir():
        assert skeleton(read_lesson(path)) == skeleton(read_lesson(FOLDER / path.name)), path


def test_every_folder_is_of_a_language() -> None:
    assert {path.name for path in FOLDER.iterdir() if path.is_dir()} == set(TRANSLATED)


def test_visitors_get_the_lessons_of_their_language_and_english_ones_beside_them(tmp_path: Path) -> None:
    (tmp_path / "zh").mkdir()
    (tmp_path / "made.md").write_text(WHOLE, encoding="utf-8")
    (tmp_path / "zh" / "made.md").write_text(WHOLE.replace("A title", "标题"), encoding="utf-8")
    (tmp_path / "another.md").write_text(WHOLE.replace("place: 1", "place: 2"), encoding="utf-8")
    for _again in range(2):
        for code, title in ((ENGLISH, "A title"), ("zh", "标题"), ("ko", "A title")):
            with in_language(code):
                assert [one.title for one in lessons(tmp_path).values()] == [title, "A title"]


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
