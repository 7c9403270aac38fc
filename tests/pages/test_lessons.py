"""The page of lessons, and the grading of their checks."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core.config.fields import build
from core.lessons import numbers
from core.lessons.lesson import Check, lessons
from core.lessons.numbers import Number
from core.store import Store
from pages.ui.lesson.panel import checks_of, is_right, right_choices, selector
from pages.ui.lesson.position import STORED, Answers, StoredAnswers, parse_stored, read_place
from tests.cases import each
from tests.pages.conftest import APP, Pages

VALUES: dict[str, Any] = {"low": 0.2, "high": 0.889, "same": 0.889, "word": "no difference shown", "none": None}


def check(**fields: Any) -> Check:
    return build(Check, {"question": "What?", "hint": "Look.", **fields})


@each(
    ("choices", "right", "expected"),
    [
        ({"A": "low", "B": "high"}, "highest", ["B"]),
        ({"A": "low", "B": "high"}, "lowest", ["A"]),
        ({"A": "low", "B": "high", "C": "same"}, "highest", ["B", "C"]),
        ({"A": "none", "B": "low"}, "highest", ["B"]),
        ({"A": "higher", "B": "no difference shown"}, "word", ["B"]),
    ],
)
def test_the_right_choice_is_that_of_the_numbers(choices: dict[str, str], right: str, expected: list[str]) -> None:
    one = check(choices=choices, right=right)
    assert right_choices(one, VALUES.__getitem__) == expected
    assert [label for label in choices if is_right(one, label, VALUES.__getitem__, None)] == expected


@each(
    ("form", "typed", "right"),
    [
        ("percent", 88.9, True),
        ("percent", 89.9, True),
        ("percent", 90.0, False),
        ("percent", 0.889, False),
        ("number", 0.889, True),
        ("number", 0.9, False),
    ],
)
def test_a_number_may_be_off_by_what_the_lesson_allows(form: str, typed: float, right: bool) -> None:
    number = build(Number, {"run": "ce", "score": "accuracy", "form": form})
    within = 0.01
    assert is_right(check(number="high", within=within), typed, VALUES.__getitem__, number) is right


def test_a_number_that_is_not_there_is_never_right() -> None:
    number = build(Number, {"run": "ce", "score": "accuracy"})
    assert not is_right(check(number="none", within=1.0), 0.0, VALUES.__getitem__, number)


@each("text", ["", "margin", "margin.0", "margin.99", "margin.x", "nothing.1", "../x.1", "margin.-1"])
def test_what_is_no_part_is_none(text: str) -> None:
    assert read_place(text) is None


def test_a_part_is_read_as_it_is_written() -> None:
    at = read_place("margin.2")
    assert at is not None
    assert (at.text, at.lesson.name, at.go(1).text, at.is_last) == ("margin.2", "margin", "margin.3", False)


def test_what_a_browser_kept_is_read_again() -> None:
    told = StoredAnswers(
        Answers({"margin.1.1": 0}, {"collapse.1.3": (2.708, 2), "margin.4.1": (1, 1)}, {"margin.4.1"}), "margin.3"
    )
    assert parse_stored(STORED.dump_json(told).decode()) == told


@each(
    "text",
    [
        "",
        "{",
        "[]",
        '{"answers": {"predicted": {"a": "x"}}}',
        '{"answers": {"checked": {"a": [1]}}}',
        '{"answers": {"shown": 3}}',
        '{"last": ' + '"' + "x" * 81 + '"}',
        '{"last": "' + "x" * 30_000 + '"}',
        '{"last": null}',
    ],
)
def test_nonsense_from_a_browser_is_nothing(text: str) -> None:
    assert parse_stored(text) == StoredAnswers()


def test_an_answer_that_a_lesson_no_longer_has_is_none(folder: Path) -> None:
    app = AppTest.from_file(APP, default_timeout=30)
    app.query_params.update({"lesson": "margin.1", "a": "ce_1_0.1_0.5"})
    app.session_state["remembered.lesson.kept"] = StoredAnswers(Answers({"margin.1.1": 7}))
    app.switch_page("pages/loss_lab.py").run()
    assert not app.exception
    assert any(button.label == "Reveal" for button in app.button)


def test_a_control_is_found_by_its_name_in_the_address() -> None:
    assert selector("explore", "tau") == '[class*="st-key-bound-tau-"]'
    assert selector("explore", "explore.more") == '[class*="st-key-explore-more"]'


def test_the_page_lists_them_all(opened: Pages) -> None:
    app = opened("lessons")
    shown = " ".join(element.value for element in app.markdown)
    for lesson in lessons().values():
        assert lesson.title in shown
        assert lesson.about in shown
    assert [button.label for button in app.button].count("Begin") == len(lessons())


def of_margin(answered: dict[str, tuple[int, int]], *, at: str = "", shown: Iterable[str] = ()) -> AppTest:
    """Return the app for a visitor in the lesson on the margin, or on the list of lessons if `at` is empty."""
    app = AppTest.from_file(APP, default_timeout=60)
    app.session_state["remembered.lesson.kept"] = StoredAnswers(Answers({}, dict(answered), set(shown)), "margin.3")
    if at:
        app.query_params["lesson"] = at
    place = read_place(at)
    app.switch_page(f"pages/{place.part.shown.page if place else 'lessons'}.py").run()
    assert not app.exception
    return app


def test_the_card_of_a_lesson_that_was_left_goes_on(folder: Path) -> None:
    labels = [button.label for button in of_margin({}).button]
    assert labels.count(f"Continue: part 3 of {len(lessons()['margin'].parts)}") == 1
    assert labels.count("Begin") == len(lessons()) - 1


def test_a_card_counts_what_was_answered_rightly(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lesson, read = lessons()["margin"], []

    def value_of(store: Store, number: Number) -> Any:
        read.append(number)
        return numbers.value_of(store, number)

    monkeypatch.setattr("pages.ui.lesson.panel.value_of", value_of)
    keys = list(checks_of(lesson))
    counts, ticked = [], []
    for answer in product(range(2), repeat=len(keys)):
        app = of_margin({key: (place, 1) for key, place in zip(keys, answer, strict=True)})
        (caption,) = [one.value for one in app.caption if "checks right" in one.value]
        counts.append(caption.rpartition(" · ")[2])
        ticked.append([one.value for one in app.markdown if ":material/check_circle:" in one.value])
    assert sorted(counts) == ["0 of 2 checks right", *["1 of 2 checks right"] * 2, "2 of 2 checks right"]
    for count, titles in zip(counts, ticked, strict=True):
        assert [lesson.title in title for title in titles] == [True] * (count == "2 of 2 checks right")
    # Runs of lessons without answers are not loaded.
    assert all(number in lesson.numbers.values() for number in read)


def test_before_the_next_lesson_stands_what_is_open(folder: Path) -> None:
    lesson = lessons()["margin"]
    keys = list(checks_of(lesson))
    last = f"margin.{len(lesson.parts)}"
    said = [
        [one.value for one in of_margin({}, at=last, shown=keys[:shown]).caption if "not answered" in one.value]
        for shown in range(3)
    ]
    assert said == [
        ["You have not answered 2 questions of this lesson."],
        ["You have not answered 1 question of this lesson."],
        [],
    ]
    assert not [one for one in of_margin({}, at="margin.1").caption if "not answered" in one.value]


def test_a_part_is_drawn_beside_its_page_alone(opened: Pages) -> None:
    app = opened("loss_lab", lesson="margin.1")
    assert "Points under cross-entropy" in [header.value for header in app.header]
    reveal = next(button for button in app.button if button.label == "Reveal")
    assert reveal.disabled
    assert [radio.label for radio in app.radio] == ["Do the points of a class end at one position?"]
    # Text after a prediction is hidden until it is given.
    assert not any("They slow down long before that" in element.value for element in app.markdown)
    assert "Next" not in [button.label for button in opened("runs", lesson="margin.1").button]


def asked(call: str) -> AppTest:
    """Return a page that contains only a question."""
    script = (
        "from core.lessons.lesson import Check, Prediction\n"
        "from pages.ui.lesson.panel import draw_check\n"
        "from pages.ui.lesson.panel import _predicted\n"
    )
    return AppTest.from_string(script + call, default_timeout=60).run()


def test_a_prediction_is_kept_by_its_place() -> None:
    """The words differ when the visitor continues in another language."""
    app = asked("_predicted(Prediction(question='Where?', choices=('Left', 'Right')), 'at')")
    app.radio[0].set_value(1).run()
    app.button[0].click().run()
    assert not app.exception
    assert app.markdown[-1].value == "**Where?**  \nYou predicted: Right"
    assert app.session_state["remembered.lesson.kept"].answers.predicted == {"at": 1}


def test_what_is_chosen_is_graded_by_its_place() -> None:
    app = asked(
        "check = Check(question='Which?', hint='Look.', choices={'A': 'a', 'B': 'b'}, right='word')\n"
        "draw_check('at', check, {}, lambda name: 'b')"
    )
    app.radio[0].set_value(0).run()
    app.button[0].click().run()
    assert [element.value for element in app.warning] == ["Not quite: you answered “A”. Look."]
    app.radio[0].set_value(1).run()
    app.button[0].click().run()
    assert not app.exception
    assert [element.value for element in app.success] == ["Right. According to the runs: B."]
    assert app.session_state["remembered.lesson.kept"].answers.checked == {"at": (1, 2)}


@pytest.mark.parametrize(("page", "name"), [("home", "lesson"), ("lessons", "lesson"), ("lessons", "open")])
def test_what_is_no_part_of_a_lesson_is_said_on_every_page(opened: Pages, page: str, name: str) -> None:
    app = opened(page, **{name: "temperature.99"})
    sentence = (
        f"The link asks for {name} = 'temperature.99', but there is no such lesson, or the lesson has no such part"
    )
    assert sum(sentence in warning.value.replace("\\", "") for warning in app.warning) == 1
    assert name not in app.query_params
