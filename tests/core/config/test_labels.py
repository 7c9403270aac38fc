"""Values as people read them."""

from __future__ import annotations

import math

import numpy as np

from core.catalogue.losses import LOSSES
from core.catalogue.views import VIEWS
from core.config import OptimiserConfig, PhaseConfig, TaskConfig
from core.config.describe import ABSENT, number_text, value_text
from core.config.fields import fields_of
from tests.cases import each


@each(
    ("value", "text"),
    [(0.3, "0.3"), (5e-5, "5e-05"), (2e-4, "2e-04"), (1.0, "1"), (0.0, "0"), (-0.5, "-0.5"), (0.001, "0.001")],
)
def test_a_number_is_as_short_as_it_can_be(value: float, text: str) -> None:
    assert number_text(value) == text


def test_no_number_is_rounded() -> None:
    rng = np.random.default_rng(0)
    numbers = [*rng.normal(size=50), *(10.0 ** rng.uniform(-12, 12, 50)), 0.1 + 0.2, math.nextafter(0.3, 1)]
    assert [float(number_text(float(value))) for value in numbers] == numbers


@each(("value", "text"), [(None, ABSENT), (True, "On"), (1200, "1,200"), ((2, 4), "2, 4"), ("roberta", "roberta")])
def test_other_values_without_words(value: object, text: str) -> None:
    assert value_text(value) == text


def test_words_stand_for_values() -> None:
    assert value_text(None, fields_of(TaskConfig)["train_size"]) == "All"
    assert value_text(None, fields_of(OptimiserConfig)["classifier_learning_rate"]) == "The default"
    assert value_text(False, fields_of(OptimiserConfig)["bias_correction"]) == "Off"
    assert value_text(None, fields_of(PhaseConfig)["epochs"]) == ABSENT


def test_every_value_that_a_choice_has_can_be_read() -> None:
    entries = [*LOSSES.values(), *VIEWS.values()]
    choices = [p for entry in entries for p in entry.parameters if p.kind == "choice"]
    assert choices
    for parameter in choices:
        assert parameter.choices is not None
        assert [value_text(v, parameter) for v in parameter.choices] == list(parameter.choices.values())


def test_layers_by_place_and_by_number() -> None:
    layers = next(p for p in LOSSES["supcon"].parameters if p.name == "layers")
    assert value_text("last_third", layers) == "Last third"
    assert value_text((2, 4), layers) == "2, 4"
