"""Adding a loss is one entry: config, command line, equation, curves and training know it by that alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from core.advice.prepare import prepare
from core.catalogue.losses import LOSSES
from core.cli.main import draft_from
from core.config import RunConfig, parse_config
from core.config.equation import term_latex, total_latex
from core.errors import ConfigError
from core.events import Step
from core.figures.curves import part_colour, part_label
from core.training.loop import train
from tests.core.losses.toy import TOY


@pytest.fixture
def _toy() -> Iterator[None]:
    LOSSES.register(TOY)
    yield
    del LOSSES[TOY.name]


pytestmark = pytest.mark.usefixtures("_toy")
TERMS = [{"loss": "cross_entropy"}, {"loss": "pull", "weight": 2, "strength": 0.25}]
OBJECTIVE = {"terms": TERMS, "combine": "additive"}


def test_it_trains_and_is_recorded_with_its_lines(draft: Callable[..., RunConfig]) -> None:
    config, data = prepare(draft(objective=OBJECTIVE, steps=4), gpu=False)
    steps = [event for event in train(config, data) if isinstance(event, Step)]
    assert len(steps) == 4
    for step in steps:
        pieces = step.values["loss.cross_entropy"] + 2 * step.values["loss.pull"]
        assert step.values["loss"] == pytest.approx(pieces, rel=1e-5)
        assert step.values["loss.pull"] > 0
        assert step.values["collapse_line.pull"] == 0


def test_its_knob_is_turned(draft: Callable[..., RunConfig]) -> None:
    config, _ = prepare(draft(objective=OBJECTIVE), gpu=False)
    assert "pull.strength" in config.phases[0].objective.knobs


def test_config_command_line_equation_and_labels_know_it() -> None:
    config = parse_config({"phases": [{"steps": 4, "objective": OBJECTIVE}]})
    objective = config.phases[0].objective
    assert parse_config(config.to_json()) == config
    assert r"2.00\,\text{Pull}" in total_latex(objective)
    assert term_latex(objective.terms[1]) == [r"\text{Pull}=0.25\,(1-\cos(z_i,z_p))"]
    made = draft_from({"settings": ('objective.terms=[{"loss": "pull", "strength": 1.5}]',)})
    assert made.phases[0].objective.terms[0].parameters["strength"] == 1.5
    with pytest.raises(ConfigError, match="strength"):
        parse_config({"phases": [{"steps": 4, "objective": {"terms": [{"loss": "pull", "strength": 10}]}}]})


def test_its_curve_has_its_name_and_its_colour() -> None:
    assert (part_label("pull"), part_colour("pull")) == ("Pull", "#123456")
    assert part_label("pull_2") == "Pull 2"


def test_it_comes_in_its_place_and_once() -> None:
    assert list(LOSSES)[-1] == "pull"
    assert LOSSES.entry("pull") is TOY
    with pytest.raises(ValueError, match="name = 'pull': there is such a loss"):
        LOSSES.register(TOY)
