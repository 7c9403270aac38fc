"""Files of lessons: parsing and refusals."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import StoreError
from core.lessons.lesson import (
    FOLDER,
    Check,
    Lesson,
    Prediction,
    TryButtons,
    fill_placeholders,
    lessons,
    placeholders,
    read_lesson,
)
from core.lessons.numbers import run_id_of, value_of
from core.store import Store
from pages.ui.lesson.position import TABLES
from tests.cases import each

WHOLE = """---
title: A title
about: A question?
place: 1
minutes: 3
numbers:
  one: {run: ce, score: accuracy, form: percent}
---
## First

```page
page: explore
address: {run: ce, panel: texts}
```

Before {{ one }}.

```try
label: Turn it
choices: {A: {panel: moved}}
```

```predict
question: What?
choices: [This, That]
```

After.

## Second

```check
question: How many?
number: one
within: 0.01
hint: Look.
```
"""


def written(folder: Path, text: str) -> Path:
    (folder / "made.md").write_text(text, encoding="utf-8")
    return folder / "made.md"


def test_a_file_is_parts_of_blocks_in_their_order(tmp_path: Path) -> None:
    lesson = read_lesson(written(tmp_path, WHOLE))
    first, second = lesson.parts
    assert (lesson.name, lesson.title, first.title, second.title) == ("made", "A title", "First", "Second")
    assert [type(block) for block in first.blocks] == [str, TryButtons, Prediction, str]
    assert first.texts == ["Before {{ one }}.", "After."]
    assert [type(block) for block in second.blocks] == [Check]
    assert second.shown == first.shown


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("---\ntitle", "title", "is no lesson"),
        ("minutes: 3", "minutes: 30", "minutes"),
        ("page: explore", "page: nothing", "page"),
        ("{{ one }}", "{{ other }}", "other"),
        ("{{ one }}", "{{ one", "text"),
        ("{{ one }}", "{{ one.__class__.mro() }}{% for a in b %}{% endfor %}", "b"),
        ("  one: {", "  one: {run: ce, score: accuracy}\n  two: {", "no text uses it"),
        ("within: 0.01", "", "within"),
        ("number: one", "", "give number and within, or choices and right"),
        ("choices: [This, That]", "choices: [This]", "choices"),
        ("label: Turn it", "lable: Turn it", "lable"),
        ("## First", "A sentence.\n\n## First", "heading of two hashes"),
    ],
)
def test_what_is_wrong_is_named_with_the_file(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    assert old in WHOLE
    with pytest.raises(StoreError, match=r"made\.md is no lesson") as refused:
        read_lesson(written(tmp_path, WHOLE.replace(old, new, 1)))
    assert sentence in str(refused.value)


def test_numbers_are_filled_in() -> None:
    assert fill_placeholders("It is {{ one }}, $x_{i}$.", {"one": "88.9%"}) == "It is 88.9%, $x_{i}$."
    assert placeholders("{{ one }} and {{ two }}") == {"one", "two"}


@each(
    ("name", "sentence"),
    [
        ("in-or-out", "78.7% against 67.4%"),
        ("idle-weight", "compares row $i$ of `a` with row $i$ of `b` alone"),
        ("collapse", "dot products take the place of"),
        ("dropout-contrast", "vectors can differ and still give the same prediction"),
    ],
)
def test_claims_of_the_source_notes_are_told(name: str, sentence: str) -> None:
    text = " ".join(" ".join(block for part in lessons()[name].parts for block in part.texts).split())
    assert sentence in text


def test_there_are_at_least_eight_in_one_order() -> None:
    assert len(lessons()) >= 8
    places = [lesson.place for lesson in lessons().values()]
    assert places == sorted(set(places))
    assert {path.stem for path in FOLDER.glob("*.md")} == set(lessons())


@pytest.mark.parametrize("lesson", lessons().values(), ids=lambda lesson: lesson.name)
class TestEach:
    def test_its_numbers_are_there(self, lesson: Lesson, store: Store) -> None:
        for name, number in lesson.numbers.items():
            value = value_of(store, number)
            assert value is not None, name
            assert number.format_value(value) not in ("", "–", "nan")

    def test_every_check_has_one_right_answer_and_a_wrong_one(self, lesson: Lesson, store: Store) -> None:
        for check in (check for part in lesson.parts for check in part.checks):
            values = [value_of(store, lesson.numbers[name]) for name in check.choices.values() if check.by_number]
            if check.by_number:
                low, *_, high = ordered = sorted(float(value) for value in values if isinstance(value, float | int))
                assert len(ordered) == len(check.choices)
                assert ordered.count(high if check.right == "highest" else low) == 1
            elif check.choices:
                assert list(check.choices.values()).count(str(value_of(store, lesson.numbers[check.right]))) == 1

    def test_it_says_only_what_addresses_can_say(self, lesson: Lesson) -> None:
        for part in lesson.parts:
            known = TABLES[part.shown.page].items()
            tries = [
                choice for block in part.blocks if isinstance(block, TryButtons) for choice in block.choices.values()
            ]
            for address in (part.shown.address, *tries):
                assert set(address) <= set(known), part.title

    def test_the_runs_that_it_shows_are_those_of_the_project(self, lesson: Lesson, store: Store) -> None:
        for part in lesson.parts:
            runs = part.shown.address.get("runs", [])
            for name in [*(runs if isinstance(runs, list) else []), part.shown.address.get("run")]:
                assert name is None or store.run(run_id_of(store, str(name))).status.ended
