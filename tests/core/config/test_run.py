"""A config as the complete description of a run: its JSON form, bounds and refusals."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from core.config import PhaseConfig, RunConfig, check_turn, parse_config, peak_rates
from core.config.edit import put
from core.config.fields import fields_of
from core.config.objective import ObjectiveConfig
from core.config.sections import (
    EncoderConfig,
    OptimiserConfig,
    ProbeConfig,
    ResourcesConfig,
    TaskConfig,
    TrainableConfig,
)
from core.errors import ConfigError
from core.messages import Message
from core.parameters import Parameter
from tests.cases import each
from tests.core.config.made import CE, SCL, turned

FULL: dict[str, Any] = {
    "version": 2,
    "name": "λ sweep",
    "task": {
        "id": "file",
        "path": "/a/train.csv",
        "test_path": "/a/test.csv",
        "reading": {"text": "review", "text_b": "", "encoding": "cp949", "delimiter": "\t", "header": True}
        | {"quote": "'", "escape": "\\", "skip_initial_space": True},
        "drop": ["duplicate"],
        "imbalance": 4.0,
        "train_size": 20,
        "label_noise": 0.1,
        "text_noise": 0.2,
        "sampler": "balanced",
    },
    "encoder": {"id": "roberta-base", "pooling": "mean", "max_length": 64, "dropout": 0.3},
    "phases": [
        {
            "trainable": {"part": "last_blocks", "blocks": 4, "reinitialised_blocks": 1},
            "objective": {
                "combine": "additive",
                "terms": [
                    CE,
                    SCL
                    | {"weight": 0.2, "temperature": 0.1, "layers": [2, 4], "views": [{"view": "eda", "rate": 0.3}]},
                ],
            },
            "optimiser": {
                "name": "adafactor",
                "learning_rate": 1e-4,
                "classifier_learning_rate": 1e-3,
                "layer_decay": 0.95,
                "weight_decay": 0.0,
                "warmup_fraction": 0.5,
            },
            "batch_size": 8,
            "micro_batch": 4,
            "gradient_checkpointing": True,
            "steps": 5,
        },
        {"trainable": {"part": "lora", "lora_rank": 4}, "objective": {"terms": [CE]}, "steps": 9},
    ],
    "probe": {"size": 50, "frame_steps": [0, 5, 10]},
    "checkpoint": {"every_steps": 10},
    "device": "cpu",
    "seed": 7,
    "knob_turns": [
        {"step": 3, "name": "lambda", "value": 0.5},
        {"step": 4, "name": "temperature", "value": 0.3},
        {"step": 5, "name": "learning_rate", "value": 2.0},
    ],
}


def phase(**fields: Any) -> dict[str, Any]:
    return {"phases": [fields]}


def terms(*given: Any, **more: Any) -> dict[str, Any]:
    return phase(objective={"terms": list(given)} | more)


def turn(**fields: Any) -> dict[str, Any]:
    return {"knob_turns": [{"step": 1, "name": "lambda", "value": 0.5} | fields]}


@each("given", [{}, FULL])
def test_a_config_survives_its_json_form_which_is_sorted(given: dict[str, Any]) -> None:
    config = parse_config(given)
    text = config.to_json()
    assert parse_config(text) == parse_config(text.encode()) == parse_config(json.loads(text)) == config
    assert parse_config(text).to_json() == text
    assert list(json.loads(text)) == sorted(json.loads(text))


def test_nothing_that_was_given_is_lost() -> None:
    def contains(whole: Any, part: Any) -> bool:
        if isinstance(part, dict):
            return all(contains(whole[key], value) for key, value in part.items())
        if isinstance(part, list):
            return len(whole) == len(part) and all(map(contains, whole, part))
        return bool(whole == part)

    assert contains(json.loads(parse_config(FULL).to_json()), FULL)


def test_a_config_is_frozen() -> None:
    config = parse_config(FULL)
    phase, term = config.phases[0], config.phases[0].objective.terms[1]
    fields = {"seed": config, "id": config.task, "steps": phase, "learning_rate": phase.optimiser, "weight": term}
    for field, part in (fields | {"temperature": term, "value": config.knob_turns[0]}).items():
        with pytest.raises(ValidationError, match="frozen"):
            setattr(part, field, 1)
    term.parameters["temperature"] = 9.0
    term.views[0].parameters["rate"] = 0.9
    assert term.parameters["temperature"] == 0.1
    assert term.views[0].parameters["rate"] == 0.3


SECTIONS: dict[str, type[BaseModel]] = {
    "task": TaskConfig,
    "encoder": EncoderConfig,
    "phases.0": PhaseConfig,
    "phases.0.trainable": TrainableConfig,
    "phases.0.optimiser": OptimiserConfig,
    "probe": ProbeConfig,
    "resources": ResourcesConfig,
    "": RunConfig,
}


def beyond(field: Parameter) -> list[object]:
    """Return values that a field refuses."""
    if field.kind == "choice":
        return ["nonsense", 3, *([] if None in field.words else [None])]
    if field.kind == "switch":
        return ["often"]
    if field.kind == "name":
        return [3]
    values: list[object] = ["many", math.nan, [1]]
    if field.low is not None:
        values += [field.low if field.above else field.low - 1]
    if field.high is not None:
        values += [field.high if field.below else field.high + 1]
    return [*values, 1.5] if field.kind == "integer" else values


@each(("path", "section"), SECTIONS.items())
def test_no_field_takes_a_value_beyond_its_bounds(path: str, section: type[BaseModel]) -> None:
    for name, field in fields_of(section).items():
        for value in beyond(field):
            given: dict[str, Any] = {"phases": [{}]}
            put(given, f"{path}.{name}".lstrip("."), value)
            check_refusal(given, f"{path}.{name}".lstrip("."), value)


@each(
    ("given", "field", "value"),
    [
        ({"lr": 1}, "lr", 1),
        (phase(learning_rate=1), "phases.0.learning_rate", 1),
        ({"task": {"kind": "x"}}, "task.kind", "x"),
        ({"version": 1}, "version", 1),
        ({"device": "x" * 100_000}, "device", "x" * 100_000),
        ({"name": "\ud800"}, "name", "\ud800"),
        ({"seed": None}, "seed", None),
        ({"task": None}, "task", None),
        ({"task": {"id": ["a"]}}, "task.id", ["a"]),
        ({"phases": [{}, {}, {}]}, "phases", [{}, {}, {}]),
        ({"phases": "one"}, "phases", "one"),
        ({"phases": [1]}, "phases.0", 1),
        (phase(steps=5, epochs=1.0), "epochs", 1.0),
        ({"phases": [{}, {"batch_size": 0}]}, "phases.1.batch_size", 0),
        ({"probe": {"frame_steps": ["a"]}}, "probe.frame_steps.0", "a"),
        ({"checkpoint": {"every_steps": 0}}, "checkpoint.every_steps", 0),
        (terms(), "phases.0.objective.terms", []),
        (terms({"loss": "triplet"}), "loss", "triplet"),
        (terms({"loss": ["supcon"]}), "loss", ["supcon"]),
        (terms({"loss": "cross_entropy", "temperature": 0.1}), "temperature", 0.1),
        (terms({"loss": "supcon", "temperature": 0}), "temperature", 0),
        (terms({"loss": "supcon", "temperature": 10**400}), "temperature", 10**400),
        (terms({"loss": "supcon", "weight": -1}), "phases.0.objective.terms.0.weight", -1),
        (terms({"loss": "supcon", "weight": math.inf}), "phases.0.objective.terms.0.weight", math.inf),
        (terms({"loss": "supcon", "weight": 0}), "objective.terms", "all weights 0"),
        (terms({"loss": "supcon", "views": "dropout"}), "phases.0.objective.terms.0.views", "dropout"),
        (terms({"loss": "supcon", "views": [{"rate": 1}]}), "phases.0.objective.terms.0.views.0.view", {"rate": 1}),
        (terms({"loss": "supcon", "views": [{"view": "blur"}]}), "view", "blur"),
        (terms({"loss": "supcon", "views": [{"view": "eda", "rte": 1}]}), "rte", 1),
        (terms({"loss": "supcon", "views": [{"view": "eda", "rate": 1}]}), "rate", 1),
        (terms(*[{"loss": "supcon"}] * 9), "phases.0.objective.terms", [{"loss": "supcon"}] * 9),
        (terms({"loss": "supcon"}, combine="mixed"), "phases.0.objective.combine", "mixed"),
        (turn(step=0), "knob_turns.0.step", 0),
        (turn(name="batch_size"), "knob", "batch_size"),
        (turn(name=""), "knob_turns.0.name", ""),
        (turn(name="x" * 81), "knob_turns.0.name", "x" * 81),
        (turn(value=math.nan), "knob_turns.0.value", math.nan),
        (turn(value=1.5), "lambda", 1.5),
        (turn(name="temperature", value=0.0), "temperature", 0.0),
        (turn(name="learning_rate", value=100.1), "learning_rate", 100.1),
    ],
)
def test_a_bad_value_is_refused_in_one_sentence(given: dict[str, Any], field: str, value: object) -> None:
    check_refusal(given, field, value)


def check_refusal(given: dict[str, Any], field: str, value: object) -> str:
    """Check the error of this config. Returns: its message."""
    with pytest.raises(ConfigError) as caught:
        parse_config(given)
    assert caught.value.field == field
    found = caught.value.value
    found = str(found) if isinstance(found, Message) else found
    assert found == value or (value != value and math.isnan(found))
    message = str(caught.value)
    assert message.startswith(f"{field} = ")
    assert " cannot be used: " in message
    assert message.endswith((".", "?"))
    assert "\n" not in message
    assert len(message) < 300
    return message


@each("given", ["", "{", "[]", "null", "3", b"\xff\xfe", "[" * 100_000, None, 3, ["phases"]])
def test_what_is_no_json_object_is_refused_in_one_sentence(given: Any) -> None:
    with pytest.raises(ConfigError, match=r"^config = .* cannot be used: .*give a config as exported"):
        parse_config(given)


def test_an_unknown_field_is_answered_with_those_that_exist() -> None:
    with pytest.raises(ConfigError, match=r"the fields are name, learning_rate, .*, max_gradient_norm\."):
        parse_config(phase(optimiser={"lr": 1}))


TERMS = "phases.0.objective.terms"


@each(
    ("given", "field", "value", "remedy"),
    [
        (terms("supcon"), f"{TERMS}.0", "supcon", "give an object with loss, weight, views."),
        (terms({"loss": "supcon", "views": ["no"]}), f"{TERMS}.0.views.0", "no", "give an object with view."),
        (terms({}), f"{TERMS}.0.loss", {}, "it is missing, and has no default."),
        ({"task": 3}, "task", 3, "give an object with id, name, path, test_path, "),
        (phase(objective={"terms": "supcon"}), TERMS, "supcon", "give a list."),
        ({"name": "x" * 81}, "name", "x" * 81, ": it should have at most 80 characters."),
        ({"phases": []}, "phases", [], ": it should have at least 1 item"),
    ],
)
def test_a_remedy_is_worded_for_people(given: dict[str, Any], field: str, value: object, remedy: str) -> None:
    assert remedy in check_refusal(given, field, value)


def test_steps_are_known_only_after_preparation() -> None:
    assert parse_config(phase(steps=5)).steps == 5
    with pytest.raises(ConfigError, match="prepare the run first"):
        _ = parse_config(phase(epochs=1)).steps
    with pytest.raises(ConfigError, match="prepare the run first"):
        peak_rates(OptimiserConfig(learning_rate=1e-4))


class TestPhases:
    CONTRAST = ObjectiveConfig().with_knob("lambda", 1.0)
    TWO = parse_config({"phases": [{"steps": 5, "objective": CONTRAST.model_dump()}, {"steps": 3}]})

    def test_a_step_belongs_to_one_phase(self) -> None:
        assert [self.TWO.phase_at(step) for step in (1, 5, 6, 8, 99)] == [0, 0, 1, 1, 1]
        assert RunConfig().phase_at(7) == 0

    def test_a_turn_is_checked_against_the_phase_of_its_step(self) -> None:
        config = parse_config({"phases": [{"steps": 5}, {"steps": 3, "objective": {"terms": [CE]}}]})
        check_turn(config, 5, "lambda", 0.5)
        with pytest.raises(ConfigError, match="knob = 'lambda' cannot be used"):
            check_turn(config, 6, "lambda", 0.5)

    def test_turns_of_two_phases_need_steps(self) -> None:
        with pytest.raises(ConfigError, match=r"knob_turns = 'lambda' cannot be used: give the steps of both phases"):
            parse_config({"phases": [{"epochs": 1}, {"steps": 3}]} | turn())
        assert parse_config({"phases": [{"epochs": 1}, {"steps": 3}]} | turn(name="learning_rate")).knob_turns


def test_turns_that_are_valid_alone_cannot_together_turn_all_weights_to_0() -> None:
    weights = terms(CE | {"weight": 0.5}, SCL | {"weight": 0.5}, combine="additive")
    first, second = (3, "supcon.weight", 0.0), (4, "cross_entropy.weight", 0.0)
    config = turned(first, **weights)
    for both in ((first, second), (second, first)):
        with pytest.raises(ConfigError, match="all weights 0"):
            turned(*both, **weights)
    for step in (4, 2):  # after step 2, the recorded turn follows
        with pytest.raises(ConfigError, match="all weights 0"):
            check_turn(config, step, "cross_entropy.weight", 0.0)
