"""What a translation of a lesson must have of the lesson in English: everything but its words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from core.lessons.lesson import Check, Lesson, Part, Predict, Try, placeholders, read_lesson
from core.messages import ENGLISH, LANGUAGES

Block = str | Try | Predict | Check
FORMULA = re.compile(r"\$\$.+?\$\$|\$[^$]+\$", re.DOTALL)
ALIKE = ("place", "minutes", "hides", "numbers")


def problems(folder: Path) -> list[str]:
    """What is wrong with the translations of a folder's lessons, a sentence each, with its file and place."""
    found = []
    for path in sorted(folder.glob("*/*")):
        name = f"{path.parent.name}/{path.name}"
        original = folder / path.name
        if path.parent.name not in LANGUAGES or path.parent.name == ENGLISH:
            found.append(f"{name}: no language to translate into has this name")
        elif path.suffix != ".md" or not original.is_file():
            found.append(f"{name}: there is no lesson of this name to be translated")
        else:
            found += [f"{name}{problem}" for problem in differences(read_lesson(original), read_lesson(path))]
    return found


def differences(original: Lesson, translated: Lesson) -> Iterator[str]:
    """Where a translation is not built as its lesson."""
    for field in ALIKE:
        yield from _unlike(f": {field}", getattr(translated, field), getattr(original, field))
    if len(translated.parts) != len(original.parts):
        yield from _unlike(": parts", len(translated.parts), len(original.parts))
        return
    for number, (part, theirs) in enumerate(zip(original.parts, translated.parts, strict=True), start=1):
        yield from _of_part(f", part {number}", part, theirs)


def _of_part(where: str, part: Part, theirs: Part) -> Iterator[str]:
    yield from _unlike(f"{where}: page", theirs.shown, part.shown)
    kinds, their_kinds = ([_kind(block) for block in one.blocks] for one in (part, theirs))
    if kinds != their_kinds:
        yield from _unlike(f"{where}: blocks", their_kinds, kinds)
        return
    for number, (block, other) in enumerate(zip(part.blocks, theirs.blocks, strict=True), start=1):
        yield from _of_block(f"{where}, block {number} ({_kind(block)})", block, other)


def _of_block(where: str, block: Block, theirs: Block) -> Iterator[str]:
    for name, ours, other in zip(("placeholders", "formulas"), _marks(block), _marks(theirs), strict=True):
        yield from _unlike(f"{where}: {name}", sorted(other), sorted(ours))
    for (name, ours), (_name, other) in zip(_beside_words(block), _beside_words(theirs), strict=True):
        yield from _unlike(f"{where}: {name}", other, ours)


def _unlike(where: str, translated: object, original: object) -> Iterator[str]:
    if translated != original:
        yield f"{where}: {translated!s}, but in English {original!s}"


def _kind(block: Block) -> str:
    return "text" if isinstance(block, str) else type(block).__name__.lower()


def _marks(block: Block) -> tuple[set[str], set[str]]:
    """The placeholders and the formulas in what a block says."""
    words = list(_words(block))
    return set().union(*map(placeholders, words)), {one for text in words for one in FORMULA.findall(text)}


def _words(block: Block) -> Iterator[str]:
    match block:
        case str():
            yield block
        case Try():
            yield from (block.label, *block.choices)
        case Predict():
            yield from (block.question, *block.choices)
        case Check():
            yield from (block.question, block.hint, *block.choices)


def _beside_words(block: Block) -> list[tuple[str, object]]:
    """What a block holds beside words; answers by the place of their choice."""
    match block:
        case Try():
            return [("what its choices do", list(block.choices.values()))]
        case Predict():
            return [("number of choices", len(block.choices))]
        case Check():
            graded = [("number", block.number), ("within", block.within), ("right", block.right)]
            return [*graded, ("what its choices stand for", list(block.choices.values()))]
    return []
