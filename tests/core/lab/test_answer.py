"""Requests to the lab are validated, and its answers can be continued."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from core.errors import ConfigError
from core.lab.answer import answer
from tests.cases import each


def asked(**question: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(answer(json.dumps(question)))
    return found


# Losses of one view and of two, and points with and without class vectors.
@each(("space", "loss"), [("circle", "out"), ("sphere", "simcse"), ("plane", "ce"), ("simplex", "rdrop")])
def test_an_answer_can_be_continued(space: str, loss: str) -> None:
    question = {"stage": {"space": space, "points": 10}, "settings": [{"loss": loss, "weight": 0.5}]}
    whole = asked(**question, steps=8)["panels"][0]["moments"]
    half = asked(**question, steps=3)["panels"][0]["moments"][-1]
    held = [{name: half[name] for name in ("points", "class_vectors")}]
    rest = asked(**question, steps=5, held=held)["panels"][0]["moments"]
    assert [moment["loss"] for moment in rest] == pytest.approx([moment["loss"] for moment in whole[3:]], rel=1e-5)
    np.testing.assert_allclose(rest[-1]["points"], whole[-1]["points"], atol=1e-6)


def test_two_settings_begin_at_the_same_points() -> None:
    found = asked(settings=[{"loss": "out"}, {"loss": "dscl"}], steps=1)["panels"]
    first, second = (np.array(panel["moments"][0]["points"]) for panel in found)
    assert first.shape == (30, 1, 2)
    np.testing.assert_array_equal(first[:, 0], second[:, 0])


@each(
    ("space", "to", "kept"),
    [
        ("circle", (3.0, 4.0), (0.6, 0.8)),
        ("sphere", (0.0, 0.0, 2.0), (0.0, 0.0, 1.0)),
        ("plane", (3.0, 4.0), (3.0, 4.0)),
        ("simplex", (0.1, 0.2), (0.1, 0.2)),
    ],
)
def test_a_point_is_where_it_was_dragged(space: str, to: tuple[float, ...], kept: tuple[float, ...]) -> None:
    loss = "rdrop" if space == "simplex" else "simcse"
    question = {"stage": {"space": space}, "settings": [{"loss": loss}]}
    before = asked(**question)["panels"][0]["moments"][0]
    moment = asked(**question, moves=[{"text": 4, "view": 1, "to": to}])["panels"][0]["moments"][0]
    places, were = (np.array(one["places"] or one["points"]) for one in (moment, before))
    np.testing.assert_allclose(places[4, 1], kept, atol=1e-4)
    others = np.ones((30, 2), dtype=bool)
    others[4, 1] = False
    np.testing.assert_array_equal(places[others], were[others])


def test_a_view_that_a_setting_does_not_have_moves_nothing() -> None:
    before = asked(settings=[{"loss": "out"}])
    assert asked(settings=[{"loss": "out"}], moves=[{"text": 0, "view": 1, "to": [0, 1]}]) == before


def test_pulls_are_those_of_the_anchor() -> None:
    (panel,) = asked(settings=[{"loss": "out"}], anchor=7)["panels"]
    pulls = panel["moments"][0]["pulls"]
    assert {(number, view) for _, number, view, *_ in pulls} == {(n, 0) for n in range(30) if n != 7}
    assert sum(coefficient for _, _, _, coefficient, *_ in pulls) == pytest.approx(0, abs=1e-4)


def test_an_explosion_ends_the_moments_and_is_said() -> None:
    question = {"stage": {"space": "plane"}, "settings": [{"temperature": 0.05, "learning_rate": 5}, {}], "steps": 60}
    exploded, calm = asked(**question)["panels"]
    assert exploded["exploded"]
    assert len(exploded["moments"]) < 61
    assert not calm["exploded"]
    assert len(calm["moments"]) == 61


BAD: list[tuple[dict[str, Any], str]] = [
    ({"steps": -1}, r"steps = -1 cannot be used: give 0 or more"),
    ({"steps": 10_000}, r"steps = 10000"),
    ({"stage": {"points": 5}}, r"stage.points = 5"),
    ({"stage": {"space": "torus"}}, r"stage.space = 'torus'"),
    ({"settings": [{}] * 3}, r"settings"),
    ({"settings": [{"loss": "eval"}]}, r"loss = 'eval' cannot be used: choose one of ce, out"),
    ({"settings": [{"loss": "rdrop"}]}, r"on the circle, choose one of out"),
    ({"settings": [{"temperature": 0}]}, r"temperature = 0"),
    ({"settings": [{"loss": "dscl", "extra": 1}]}, r"alpha = 1.0 cannot be used: give a number from 0.01 to 0.99"),
    ({"anchor": 30}, r"anchor = 30 cannot be used: there are 30 points"),
    ({"moves": [{"text": 30, "to": [0, 1]}]}, r"moves = 30"),
    ({"moves": [{"text": 0, "to": [0, 0]}]}, r"other than the origin"),
    ({"moves": [{"text": 0, "to": [0, 1, 1]}]}, r"one number per dimension"),
    ({"moves": [{"text": 0, "to": [0, 1]}] * 61}, r"moves"),
    ({"held": [{"points": [[[1, 0]]]}]}, r"held.points = .*give numbers of shape \(30, 1, 2\)"),
    ({"held": [{"points": [[[1, 0]]] * 29 + [[[1]]]}]}, r"held.points"),
    ({"held": [{"points": [[[1e9, 0]]] * 30}]}, r"held.points"),
    ({"held": []}, r"held = 0 cannot be used: give one value per setting"),
    ({"more": 1}, r"more"),
]


@each(("question", "problem"), BAD)
def test_what_cannot_be_asked_is_said(question: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        asked(**question)


@each("text", ["", "{", "[]", "3", '{"steps": NaN}', "[" * 100_000])
def test_what_is_no_question_is_said(text: str) -> None:
    with pytest.raises(ConfigError):
        answer(text)
