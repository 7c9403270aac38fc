"""The literal list of losses, and the bounds of their parameters."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest

import core.losses
from core.errors import ConfigError
from core.losses.registry import LOSSES, TEMPERATURE, LossEntry, Parameter, loss_entry

CHOICE = Parameter("variant", "Variant", "out", "", choices=("out", "in"))
SHARE = Parameter("share", "Share", 0.5, "", low=0.0, high=1.0)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [(TEMPERATURE, 0.07), (TEMPERATURE, 100), (SHARE, 0), (SHARE, 1.0), (CHOICE, "in")],
)
def test_a_value_within_bounds_is_kept(parameter: Parameter, value: float | str) -> None:
    checked = parameter.check(parameter.name, value)
    assert checked == value
    assert isinstance(checked, str if parameter.choices else float)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        (TEMPERATURE, 0.0),
        (TEMPERATURE, -1),
        (TEMPERATURE, 100.1),
        (TEMPERATURE, math.nan),
        (TEMPERATURE, math.inf),
        pytest.param(TEMPERATURE, 10**400, id="integer beyond float"),
        (TEMPERATURE, "0.1"),
        (TEMPERATURE, True),
        (TEMPERATURE, None),
        (SHARE, -0.1),
        (SHARE, 1.1),
        (CHOICE, "mean"),
        (CHOICE, ["out"]),
    ],
)
def test_a_value_out_of_bounds_is_refused_with_name_and_value(parameter: Parameter, value: object) -> None:
    with pytest.raises(ConfigError) as caught:
        parameter.check("the field", value)
    assert caught.value.field == "the field"
    assert caught.value.value is value
    assert parameter.bounds in str(caught.value)


def test_bounds_say_whether_the_low_end_belongs() -> None:
    assert TEMPERATURE.bounds == "above 0 up to 100"
    assert SHARE.bounds == "from 0 up to 1"


@pytest.mark.parametrize("entry", LOSSES.values(), ids=LOSSES.keys())
class TestEntries:
    def test_an_entry_is_found_by_its_name(self, entry: LossEntry) -> None:
        assert loss_entry(entry.name) is entry

    def test_the_defaults_are_valid(self, entry: LossEntry) -> None:
        for parameter in entry.parameters:
            assert parameter.check(parameter.name, parameter.default) == parameter.default

    def test_the_equation_has_a_place_for_every_parameter(self, entry: LossEntry) -> None:
        assert all(f"{{{parameter.name}}}" in entry.latex for parameter in entry.parameters)


@pytest.mark.parametrize("name", ["triplet", "", "SUPCON", None, [], {}])
def test_an_unknown_loss_is_refused_with_the_names_that_exist(name: object) -> None:
    with pytest.raises(ConfigError, match="cross_entropy, supcon"):
        loss_entry(name)  # type: ignore[arg-type]


def test_reading_the_registry_does_not_import_torch() -> None:
    code = "import sys, core.losses.registry; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_every_exported_name_exists() -> None:
    assert all(hasattr(core.losses, name) for name in core.losses.__all__)


def test_an_unknown_export_names_what_exists() -> None:
    with pytest.raises(AttributeError, match="supcon_loss"):
        core.losses.triplet_loss  # noqa: B018
