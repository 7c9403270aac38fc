"""A setting with its bounds, and layers named by position."""

from __future__ import annotations

import math
from typing import Any

import pytest

from core.errors import ConfigError
from core.parameters import (
    LONGEST_NAME,
    RELATIVE_LAYERS,
    Parameter,
    check_parameters,
    integer_setting,
    number,
    resolve_layers,
)
from tests.cases import each

TAU = Parameter("tau", "τ", 0.3, "", low=0.0, high=100.0, above=True)
SHARE = Parameter("share", "Share", 0.5, "", low=0.0, high=1.0)
RATE = Parameter("rate", "Rate", 0.1, "", low=0.0, high=1.0, below=True)
FREE = Parameter("free", "Free", 0.0, "")
COUNT = Parameter("count", "Count", 3, "", kind="integer", low=1, high=10)
VARIANT = Parameter("variant", "Variant", "out", "", kind="choice", choices={"out": "L_out", "in": "L_in"})
SWITCH = Parameter("switch", "Switch", True, "", kind="switch")
NAME = Parameter("name", "Name", "a", "", kind="name")
LAYERS = Parameter("layers", "Layers", "last", "", kind="layers")


@each(
    ("parameter", "value", "expected"),
    [
        (TAU, 0.07, 0.07),
        (TAU, 100, 100.0),
        (SHARE, 0, 0.0),
        (SHARE, 1.0, 1.0),
        (RATE, 0.999, 0.999),
        (FREE, -1e300, -1e300),
        (COUNT, 10, 10),
        (COUNT, 2.0, 2),
        (VARIANT, "in", "in"),
        (SWITCH, False, False),
        (NAME, "  a name ", "a name"),
        (LAYERS, "last_third", "last_third"),
        (LAYERS, [4, 2, 4], (2, 4)),
        (LAYERS, (1,), (1,)),
    ],
)
def test_a_value_within_bounds_is_kept_in_its_own_type(parameter: Parameter, value: object, expected: object) -> None:
    found = parameter.check("field", value)
    assert found == expected
    assert type(found) is type(expected)


@each(
    ("parameter", "values"),
    [
        (TAU, [0.0, -1, 100.1, math.nan, math.inf, 10**400, "0.1", True, None, [0.1]]),
        (SHARE, [-0.1, 1.1, math.nan]),
        (RATE, [1.0, -0.1]),
        (FREE, [math.nan, math.inf, -math.inf, 10**400, -(10**400)]),
        (COUNT, [0, 11, 2.5, math.nan, math.inf, "3", True, 10**400]),
        (VARIANT, ["mean", ["out"], None, 1]),
        (SWITCH, [0, 1, "yes", None]),
        (NAME, ["", "  ", "x" * (LONGEST_NAME + 1), 3, None]),
        (LAYERS, ["first", [], [-1], [101], [1.0], [True], ["last"], 3, None]),
    ],
)
def test_a_value_out_of_bounds_is_refused_with_field_and_value(parameter: Parameter, values: list[object]) -> None:
    for value in values:
        with pytest.raises(ConfigError) as caught:
            parameter.check("the field", value)
        assert (caught.value.field, caught.value.value) == ("the field", value) or value != value
        assert str(parameter.bounds) in str(caught.value)
        assert str(caught.value).endswith(".")


def test_bounds_say_which_ends_belong() -> None:
    assert str(TAU.bounds) == "above 0 and at most 100"
    assert str(SHARE.bounds) == "from 0 up to 1"
    assert str(RATE.bounds) == "from 0 and below 1"
    assert str(FREE.bounds) == ""


class TestChecked:
    def test_what_is_absent_gets_its_default_and_what_was_given_is_not_changed(self) -> None:
        given = {"count": 5, "loss": "x"}
        assert check_parameters("it", [TAU, COUNT], given, ("loss",)) == {"loss": "x", "count": 5, "tau": 0.3}
        assert given == {"count": 5, "loss": "x"}

    def test_an_unknown_name_is_answered_with_those_that_exist(self) -> None:
        with pytest.raises(ConfigError, match=r"^temp = 1 cannot be used: it takes loss, tau, count\.$"):
            check_parameters("it", [TAU, COUNT], {"temp": 1}, ("loss",))


@each(
    ("choice", "by_blocks"),
    [
        ("last", {1: (1,), 6: (6,), 24: (24,)}),
        ("last_third", {1: (1,), 2: (2,), 4: (3, 4), 6: (5, 6), 12: (9, 10, 11, 12)}),
        ("every_third", {1: (1,), 2: (2,), 4: (1, 4), 6: (3, 6), 12: (3, 6, 9, 12)}),
        ("middle_third", {1: (1,), 2: (1,), 4: (2, 3), 6: (3, 4), 12: (5, 6, 7, 8)}),
        ("first_third", {1: (1,), 2: (1,), 4: (1, 2), 6: (1, 2), 12: (1, 2, 3, 4)}),
        ("upper_alternate", {1: (1,), 2: (2,), 4: (2, 4), 6: (4, 6), 12: (6, 8, 10, 12)}),
        ("every", {1: (1,), 4: (1, 2, 3, 4)}),
        ((0, 3), {3: (0, 3), 12: (0, 3)}),
    ],
)
def test_layers_by_place_follow_the_number_of_blocks(choice: Any, by_blocks: dict[int, tuple[int, ...]]) -> None:
    for blocks, expected in by_blocks.items():
        assert resolve_layers(choice, blocks) == expected


@each("choice", RELATIVE_LAYERS)
def test_a_relative_choice_stays_within_the_encoder(choice: str) -> None:
    for blocks in range(1, 25):
        layers = resolve_layers(choice, blocks)
        assert layers[-1] == blocks or choice in ("first_third", "middle_third")
        assert layers[0] >= 1
        assert list(layers) == sorted(set(layers))


def test_numbers_are_read_with_a_value_for_the_absent() -> None:
    assert number({"tau": 0.3}, "tau") == 0.3
    assert number({}, "tau", 0.5) == 0.5
    assert integer_setting({"k": 30}, "k") == 30
    assert integer_setting({}, "k") == 0
