"""Reading single rows of the Hub, without a client."""

from __future__ import annotations

from typing import Any

import pytest

from core.config.fields import build
from core.errors import TaskError
from core.messages import Message
from core.tasks.hub.hub_rows import EMPTY, NO_LABEL, TOO_LONG, RowReader
from core.tasks.hub.registry import HubRequest
from tests.cases import each


def reader(names: tuple[str, ...] | None = None, **more: Any) -> RowReader:
    return RowReader(build(HubRequest, {"repository": "a/b", "text": "t", "label": "l"} | more), names)


@each(
    ("value", "label"),
    [(0, "no"), (1, "yes"), ("sport", "sport"), ("  two   words ", "two words"), (True, "yes"), ("0", "0")],
)
def test_labels(value: Any, label: str) -> None:
    assert reader(("no", "yes")).read({"t": "x", "l": value})[2] == label


@each(("value", "label"), [(0, "0"), (3.0, "3"), (2.5, "2.5"), ("-1", "-1"), (True, "True")])
def test_labels_without_names(value: Any, label: str) -> None:
    assert reader().read({"t": "x", "l": value})[2] == label


def test_a_missing_value_and_a_number_of_no_class_are_no_label() -> None:
    for value in (None, -1, -1.0, float("nan"), "", "  "):
        assert reader().read({"t": "x", "l": value}) == NO_LABEL
    for value in (-2, -2.0, 2, 255):
        assert reader(("no", "yes")).read({"t": "x", "l": value}) == NO_LABEL


def test_codes_are_given_their_names() -> None:
    found = reader(label_names={"1": "negative", "2": "positive"})
    assert [found.read({"t": "x", "l": value})[2] for value in (1, "2", 3)] == ["negative", "positive", "3"]


def test_scores() -> None:
    found = reader(kind="similarity", text_b="s")
    for value, score in ((4, "4"), (3.799999952316284, "3.8"), ("0.5", "0.5"), (1e-9, "1e-09")):
        assert found.read({"t": "x", "s": "y", "l": value}) == ("x", "y", score)
    for value in (None, float("nan"), float("inf"), "", -1, -1.0):
        assert found.read({"t": "x", "s": "y", "l": value}) == NO_LABEL
    with pytest.raises(TaskError, match="holds 'high': choose the column with the scores"):
        found.read({"t": "x", "s": "y", "l": "high"})


def test_more_labels_than_can_be_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCL_MAX_CLASSES", "3")
    found = reader()
    for i in range(3):
        found.read({"t": "x", "l": i})
    with pytest.raises(TaskError, match="Column 'l' of 'a/b' holds more than 3 different labels"):
        found.read({"t": "x", "l": 3})


def test_a_column_of_texts_is_no_label() -> None:
    with pytest.raises(TaskError, match=r"holds texts such as 'x+…: choose the column with"):
        reader().read({"t": "x", "l": "x" * 101})


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"t": " ", "s": "y", "l": 1}, EMPTY),
        ({"t": "x", "s": None, "l": 1}, EMPTY),
        ({"t": "x", "s": "y" * 11, "l": 1}, Message(TOO_LONG, most=10)),
        ({"t": "", "s": "y" * 11, "l": -1}, NO_LABEL),
    ],
)
def test_either_text_of_a_pair_counts(row: dict[str, Any], reason: Message, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCL_MAX_TEXT_CHARS", "10")
    assert reader(text_b="s").read(row) == reason
