"""Presets are valid configs, and their phases divide the steps."""

from __future__ import annotations

from typing import Any

import pytest

from core.config import RunConfig
from core.config.edit import apply_settings
from core.config.fields import build
from core.config.objective import ObjectiveConfig
from core.config.plan import plan_phase
from core.config.presets import PRESETS, Preset, preset
from core.errors import ConfigError
from core.parameters import AUTO
from tests.cases import each

TWO = [name for name, entry in PRESETS.items() if len(entry.objectives) == 2]


def objectives(name: str) -> list[ObjectiveConfig]:
    return [build(ObjectiveConfig, objective) for objective in PRESETS[name].objectives]


@each("entry", PRESETS.values())
class TestEvery:
    def test_it_is_found_by_its_name_and_described(self, entry: Preset) -> None:
        assert preset(entry.name) is entry
        assert entry.label
        assert entry.summary.endswith(".")
        assert entry.source

    @each("blocks", [1, 2, 6, 12])
    def test_it_can_be_planned_on_encoders_of_any_depth(self, entry: Preset, blocks: int) -> None:
        if entry.name == "multi-view-scl" and blocks == 1:
            with pytest.raises(ConfigError, match="the encoder has no other; remove it"):
                plan_phase(objectives(entry.name)[0], blocks)
            return
        prepared = [objective.with_tokens(16) for objective in objectives(entry.name)]
        assert all(plan_phase(objective, blocks).passes for objective in prepared)


def test_the_papers_numbers_are_the_defaults() -> None:
    (usual,) = objectives("ce-scl")
    assert (usual.weight, usual.temperature, usual.combine) == (0.9, 0.3, "convex")
    assert usual == ObjectiveConfig()
    (one_stage,), (two_stage,) = objectives("rdrop-one-stage"), objectives("rdrop-two-stage")
    assert one_stage.terms[0].views[0].view == "head_dropout"
    assert two_stage.terms[0].views[0].view == "dropout"
    (tokens,) = objectives("token-scl")
    assert (tokens.terms[0].level, tokens.terms[0].parameters["k"], tokens.weight) == ("token", AUTO, 0.2)
    assert tokens.with_tokens(200).terms[0].parameters["k"] == 30  # with texts of the same length


@each(("name", "level"), [("dropout-nt-xent-encoder", "sentence"), ("dropout-nt-xent-logits", "logits")])
def test_dropout_contrast_has_the_numbers_of_the_notes_script(name: str, level: str) -> None:
    config = apply_settings(RunConfig(), {"preset": name})
    contrast, ce = config.phases[0].objective.terms
    assert (contrast.level, contrast.weight, ce.weight, config.encoder.dropout) == (level, 1.0, 1.0, 0.3)
    assert contrast.parameters["temperature"] == 1 / 30
    assert contrast.parameters["candidates"] == "all"  # the 2N − 1 other vectors
    assert [view.view for term in (contrast, ce) for view in term.views] == ["dropout", "dropout"]
    chosen = apply_settings(RunConfig(), {"encoder.dropout": 0.2, "preset": name})  # in any order
    assert chosen.encoder.dropout == 0.2
    assert apply_settings(config, {"preset": "ce"}).encoder.dropout == 0.3


@each("name", TWO)
class TestTwoPhases:
    @each("steps", [2, 3, 7, 100, 101])
    def test_the_steps_or_epochs_are_those_of_both(self, name: str, steps: int) -> None:
        assert [phase["epochs"] for phase in PRESETS[name].phases({"epochs": steps})] == [steps / 2, steps / 2]
        made = [phase["steps"] for phase in PRESETS[name].phases({"steps": steps})]
        assert sum(made) == steps
        assert min(made) >= 1
        assert abs(made[0] - made[1]) <= 1

    @each("phase", [{"steps": 1}, {"steps": 0}, {"steps": -3}, {"epochs": 0}, {"epochs": -1.0}])
    def test_too_short_a_run_is_refused_with_the_number_that_was_given(self, name: str, phase: dict[str, Any]) -> None:
        ((field, value),) = phase.items()
        with pytest.raises(ConfigError) as caught:
            PRESETS[name].phases(phase)
        assert (caught.value.field, caught.value.value) == (field, value)

    def test_one_can_be_changed_alone(self, name: str) -> None:
        first, second = PRESETS[name].phases({"steps": 8, "optimiser": {"learning_rate": 1e-5}})
        first["optimiser"]["learning_rate"] = 1.0
        assert second["optimiser"]["learning_rate"] == (None if PRESETS[name].parts[1] == "classifier" else 1e-5)


def test_a_presets_own_objective_cannot_be_changed_from_outside() -> None:
    for name, entry in PRESETS.items():
        before = objectives(name)
        for phase in entry.phases({"steps": 8}):
            phase["objective"]["terms"].clear()
        assert objectives(name) == before


@each("name", ["", "CE", "scl", None, 3, ["ce"]])
def test_an_unknown_name_is_answered_with_those_that_exist(name: object) -> None:
    with pytest.raises(ConfigError, match=r"^preset = .* cannot be used: choose one of ce, .*, hard-negatives\.$"):
        preset(name)


def test_cert_with_paraphrases_is_cert_on_a_weak_and_a_strong_view() -> None:
    (cert, classifier), (ours, ours_classifier) = objectives("cert"), objectives("cert-paraphrases")
    assert ours_classifier == classifier
    assert ours.terms[0].model_copy(update={"views": ()}) == cert.terms[0].model_copy(update={"views": ()})
    assert [view.model_dump() for view in ours.terms[0].views] == [
        {"view": "paraphrase", "strength": strength} for strength in ("weak", "strong")
    ]
