"""Settings offered for twins and grids are valid."""

from __future__ import annotations

from typing import Any

import pytest

from core.advice.prepare import prepare
from core.config import RunConfig, parse_config
from core.config.compare import config_differences
from core.config.edit import apply_settings, twin
from core.config.objective import ObjectiveConfig
from core.config.presets import PRESETS
from core.config.vary import TwinSetting, sweepable, twin_settings
from core.errors import ConfigError
from tests.cases import each
from tests.core.config.made import CE, DROPOUT, SCL, objective

RATE: dict[str, Any] = {"optimiser": {"learning_rate": 5e-5}}
ALONE = {"objective": {"terms": [CE]}}
TWO = {"phases": [{"steps": 10} | RATE, {"steps": 5} | ALONE | RATE]}
ADDITIVE = objective(SCL | {"weight": 0.5}, {"loss": "simcse", "weight": 0.0, "views": DROPOUT}, CE)
SMALLEST = ObjectiveConfig().with_knob("lambda", 0.0).with_knob("temperature", 0.001)
LARGEST = objective(SCL | {"weight": 1000.0, "temperature": 100.0}, CE)


def offered(config: RunConfig) -> dict[str, TwinSetting]:
    found = twin_settings(config)
    assert len({setting.path for setting in found}) == len(found)
    assert len({setting.label for setting in found}) == len(found)
    return {setting.label: setting for setting in found}


def values(setting: TwinSetting) -> list[Any]:
    return [suggestion.value for suggestion in setting.suggestions]


def test_the_default_run_offers_common_settings() -> None:
    found = offered(parse_config({"phases": [RATE]}))
    assert {label: (setting.text, [s.text for s in setting.suggestions]) for label, setting in found.items()} == {
        "Objective": ("CE + SCL", ["CE"]),
        "Weight λ": ("0.9", ["0.1", "0.5"]),
        "Temperature τ": ("0.3", ["0.1", "0.5"]),
        "Trained weights": ("All weights", ["Last blocks", "LoRA", "Classifier only"]),
        "Learning rate": ("5e-05", ["2e-05", "2e-04"]),
        "Batch size": ("16", ["8", "32"]),
        "Training rows": ("All", ["20", "100"]),
        "Pooling": ("The encoder’s own", ["[CLS]", "Mean of tokens"]),
    }


CONFIGS = [
    *(parse_config({"phases": PRESETS[name].phases({"steps": 20})}) for name in PRESETS),
    parse_config(TWO),
    *(parse_config({"phases": [{"objective": one.model_dump()}]}) for one in (ADDITIVE, SMALLEST, LARGEST)),
    parse_config({"phases": [{"trainable": {"part": "lora"}}]}),
    parse_config({"phases": [{"trainable": {"part": "last_blocks", "blocks": 1, "reinitialised_blocks": 1}}]}),
    parse_config({"phases": [{"batch_size": 1} | ALONE]}),
    parse_config({"task": {"train_size": 20}}),
    parse_config({"phases": [{"optimiser": {"learning_rate": 1.0}, "batch_size": 4096}]}),
]


@each("config", CONFIGS)
class TestEvery:
    def test_suggestions_are_other_values_that_the_config_takes(self, config: RunConfig) -> None:
        for setting in twin_settings(config):
            assert len(set(values(setting))) == len(setting.suggestions)
            assert setting.text
            for suggestion in setting.suggestions:
                changed = twin(config, setting.path, suggestion.value)
                assert config_differences([config, changed]), setting.path
                assert suggestion.text != setting.text

    def test_the_parameter_is_the_settings_own(self, config: RunConfig) -> None:
        """The parameter has the bounds of the config. A bound is valid, a value beyond it is refused."""
        for setting in twin_settings(config):
            parameter = setting.parameter
            if setting.value is not None:
                assert parameter.check(setting.path, setting.value) == setting.value
            if parameter.low is None or setting.path.endswith(".weight"):  # weights depend on each other
                continue
            beyond = [parameter.low if parameter.above else parameter.low - 1]
            beyond += [] if parameter.high is None else [parameter.high + 1]
            for value in beyond:
                with pytest.raises(ConfigError):
                    parameter.check(setting.path, value)
                with pytest.raises(ConfigError):
                    twin(config, setting.path, value)


def test_single_phase_twins_on_bundled_rows_can_run() -> None:
    original = prepare(parse_config({"phases": [{"steps": 10}]}), gpu=False)[0]
    for setting in twin_settings(original):
        for suggestion in setting.suggestions:
            ready, _ = prepare(twin(original, setting.path, suggestion.value), gpu=False)
            assert ready.probe.frame_steps == original.probe.frame_steps


def test_the_mix_is_offered_where_only_cross_entropy_is() -> None:
    found = offered(parse_config({"phases": [ALONE]}))["Objective"]
    assert (found.value, found.text, values(found)) == ("ce", "CE", ["ce-scl"])


def test_a_preset_is_recognised_whatever_the_order_of_its_stored_parameters() -> None:
    [term] = parse_config({"phases": PRESETS["ce"].phases({"steps": 20})}).phases[0].objective.model_dump()["terms"]
    stored = parse_config({"phases": [{"objective": {"terms": [dict(reversed(term.items()))]}}]})
    found = offered(stored)["Objective"]
    assert (found.value, [one.text for one in found.suggestions]) == ("ce", ["CE + SCL"])


def test_an_objective_that_is_no_preset_has_the_names_of_its_terms_and_its_unbound_weights() -> None:
    found = offered(parse_config({"phases": [{"objective": ADDITIVE.model_dump()}]}))
    named = found["Objective"]
    assert (named.value, named.text, values(named)) == (None, "CE + SCL + SimCSE", ["ce"])
    assert "Weight λ" not in found
    assert values(found["Weight of SCL"]) == [0.25, 1.0]
    assert values(found["Weight of SimCSE"]) == [0.2]
    assert found["Temperature τ of SimCSE"].path == "phases.0.objective.terms.simcse.temperature"


def test_two_phases_have_labels_of_their_own() -> None:
    found = offered(parse_config(TWO))
    assert found["Phase 1: Weight λ"].path == "phases.0.objective.lambda"
    assert found["Phase 2: Learning rate"].path == "phases.1.optimiser.learning_rate"
    assert "Objective" not in found


def test_a_batch_is_not_larger_than_the_rows_nor_the_rows_fewer_than_a_batch() -> None:
    few = offered(parse_config({"task": {"train_size": 20}}))
    assert values(few["Batch size"]) == [8]
    assert values(few["Training rows"]) == [None]
    large = offered(parse_config({"phases": [{"batch_size": 64}]}))
    assert values(large["Training rows"]) == [100]


def test_the_part_that_learns_has_its_size_and_contrast_alone_no_classifier_alone() -> None:
    simcse = offered(parse_config({"phases": PRESETS["simcse"].phases({"steps": 20})}))
    assert "classifier" not in values(simcse["Phase 1: Trained weights"])
    lora = offered(parse_config({"phases": [{"trainable": {"part": "lora"}}]}))
    assert values(lora["LoRA rank"]) == [4, 16]
    blocks = offered(parse_config({"phases": [{"trainable": {"part": "last_blocks", "blocks": 1}}]}))
    assert values(blocks["Trained blocks"]) == [2]


@each("name", PRESETS)
def test_every_suggestion_can_be_set(name: str) -> None:
    base = apply_settings(RunConfig(), {"preset": name, "steps": 20})
    for path, setting in sweepable(base).items():
        for suggestion in setting.suggestions:
            assert apply_settings(base, {path: suggestion.value}) != base, path
