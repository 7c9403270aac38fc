"""One value that says everything about a run: its JSON form, its bounds and its refusals."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from core.config import (
    ObjectiveConfig,
    RunConfig,
    build,
    check_turn,
    mixed_objective,
    parse_config,
)
from core.errors import SHOWN_CHARS, ConfigError

FULL: dict[str, Any] = {
    "version": 1,
    "name": "λ sweep",
    "task": {"id": "csv", "path": "/a/train.csv", "test_path": "/a/test.csv", "train_size": 20, "sampler": "balanced"},
    "encoder": {"id": "roberta-base", "pooling": "mean", "max_length": 64},
    "phases": [
        {
            "trainable": {"part": "last_blocks", "blocks": 4},
            "objective": {
                "combine": "additive",
                "terms": [{"loss": "cross_entropy"}, {"loss": "supcon", "weight": 0.2, "temperature": 0.1}],
            },
            "optimiser": {"learning_rate": 1e-4, "weight_decay": 0.0, "warmup_fraction": 0.5},
            "batch_size": 8,
            "epochs": 1.5,
        }
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


def optimiser(**fields: Any) -> dict[str, Any]:
    return phase(optimiser=fields)


def turn(**fields: Any) -> dict[str, Any]:
    return {"knob_turns": [{"step": 1, "name": "lambda", "value": 0.5} | fields]}


@pytest.mark.parametrize("given", [{}, FULL], ids=["defaults", "everything"])
class TestJson:
    def test_a_config_survives_its_json_form(self, given: dict[str, Any]) -> None:
        config = parse_config(given)
        assert parse_config(config.to_json()) == config
        assert parse_config(config.to_json().encode()) == config
        assert parse_config(json.loads(config.to_json())) == config

    def test_the_json_form_is_one_and_sorted(self, given: dict[str, Any]) -> None:
        text = parse_config(given).to_json()
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


@pytest.mark.parametrize(
    ("path", "field"),
    [
        (lambda c: c, "seed"),
        (lambda c: c.task, "id"),
        (lambda c: c.phase, "steps"),
        (lambda c: c.phase.optimiser, "learning_rate"),
        (lambda c: c.phase.objective.terms[1], "weight"),
        (lambda c: c.phase.objective.terms[1], "temperature"),
        (lambda c: c.knob_turns[0], "value"),
    ],
)
def test_a_config_is_frozen(path: Any, field: str) -> None:
    part = path(parse_config(FULL))
    with pytest.raises(ValidationError, match="frozen"):
        setattr(part, field, 1)


def test_a_change_to_the_parameters_read_from_a_term_does_not_reach_it() -> None:
    term = parse_config(FULL).phase.objective.terms[1]
    term.parameters["temperature"] = 9.0
    assert term.parameters == {"temperature": 0.1}


@pytest.mark.parametrize(
    ("given", "field", "value"),
    [
        ({"lr": 1}, "lr", 1),
        (phase(learning_rate=1), "phases.0.learning_rate", 1),
        (optimiser(lr=3), "phases.0.optimiser.lr", 3),
        ({"task": {"kind": "x"}}, "task.kind", "x"),
        ({"version": 2}, "version", 2),
        ({"name": "x" * 81}, "name", "x" * 81),
        ({"name": 3}, "name", 3),
        ({"name": "\ud800"}, "name", "\ud800"),
        ({"seed": -1}, "seed", -1),
        ({"seed": 2**32}, "seed", 2**32),
        ({"seed": 0.5}, "seed", 0.5),
        ({"seed": "many"}, "seed", "many"),
        ({"seed": None}, "seed", None),
        ({"device": "tpu"}, "device", "tpu"),
        ({"task": None}, "task", None),
        ({"task": {"id": ["a"]}}, "task.id", ["a"]),
        ({"task": {"train_size": 1}}, "task.train_size", 1),
        ({"task": {"validation_size": 0}}, "task.validation_size", 0),
        ({"task": {"sampler": "sorted"}}, "task.sampler", "sorted"),
        ({"encoder": {"pooling": "max"}}, "encoder.pooling", "max"),
        ({"encoder": {"max_length": 3}}, "encoder.max_length", 3),
        ({"encoder": {"max_length": 8193}}, "encoder.max_length", 8193),
        ({"phases": []}, "phases", []),
        ({"phases": [{}, {}]}, "phases", [{}, {}]),
        ({"phases": "one"}, "phases", "one"),
        ({"phases": [1]}, "phases.0", 1),
        (phase(batch_size=0), "phases.0.batch_size", 0),
        (phase(batch_size=4097), "phases.0.batch_size", 4097),
        (phase(steps=0), "phases.0.steps", 0),
        (phase(steps=1_000_001), "phases.0.steps", 1_000_001),
        (phase(steps=1.5), "phases.0.steps", 1.5),
        (phase(steps=[1]), "phases.0.steps", [1]),
        (phase(epochs=0), "phases.0.epochs", 0),
        (phase(epochs=math.nan), "phases.0.epochs", math.nan),
        (phase(steps=5, epochs=1.0), "epochs", 1.0),
        (phase(trainable={"part": "head"}), "phases.0.trainable.part", "head"),
        (phase(trainable={"blocks": 0}), "phases.0.trainable.blocks", 0),
        (optimiser(learning_rate=0), "phases.0.optimiser.learning_rate", 0),
        (optimiser(learning_rate=1.1), "phases.0.optimiser.learning_rate", 1.1),
        (optimiser(learning_rate=math.nan), "phases.0.optimiser.learning_rate", math.nan),
        (optimiser(learning_rate="fast"), "phases.0.optimiser.learning_rate", "fast"),
        (optimiser(weight_decay=-0.1), "phases.0.optimiser.weight_decay", -0.1),
        (optimiser(warmup_fraction=1.5), "phases.0.optimiser.warmup_fraction", 1.5),
        (optimiser(max_gradient_norm=0), "phases.0.optimiser.max_gradient_norm", 0),
        (optimiser(max_gradient_norm=math.inf), "phases.0.optimiser.max_gradient_norm", math.inf),
        ({"probe": {"size": 1}}, "probe.size", 1),
        ({"probe": {"frame_steps": ["a"]}}, "probe.frame_steps.0", "a"),
        ({"checkpoint": {"every_steps": 0}}, "checkpoint.every_steps", 0),
        (terms(), "phases.0.objective.terms", []),
        (terms({}), "phases.0.objective.terms.0.loss", {}),
        (terms("supcon"), "phases.0.objective.terms.0", "supcon"),
        (terms({"loss": "triplet"}), "loss", "triplet"),
        (terms({"loss": ["supcon"]}), "loss", ["supcon"]),
        (terms({"loss": None}), "loss", None),
        (terms({"loss": "supcon", "tau": 0.1}), "tau", 0.1),
        (terms({"loss": "cross_entropy", "temperature": 0.1}), "temperature", 0.1),
        (terms({"loss": "supcon", "temperature": 0}), "temperature", 0),
        (terms({"loss": "supcon", "temperature": math.nan}), "temperature", math.nan),
        (terms({"loss": "supcon", "temperature": math.inf}), "temperature", math.inf),
        (terms({"loss": "supcon", "temperature": "cold"}), "temperature", "cold"),
        (terms({"loss": "supcon", "temperature": 10**400}), "temperature", 10**400),
        (terms({"loss": "supcon", "weight": -1}), "phases.0.objective.terms.0.weight", -1),
        (terms({"loss": "supcon", "weight": math.nan}), "phases.0.objective.terms.0.weight", math.nan),
        (terms({"loss": "supcon", "weight": math.inf}), "phases.0.objective.terms.0.weight", math.inf),
        (terms({"loss": "supcon", "weight": "heavy"}), "phases.0.objective.terms.0.weight", "heavy"),
        (terms({"loss": "supcon", "weight": 0}), "objective.terms", "all weights 0"),
        (
            terms({"loss": "supcon", "weight": 0.5}, {"loss": "supcon", "weight": 0.5}),
            "objective.terms",
            "supcon, supcon",
        ),
        (
            terms({"loss": "cross_entropy", "weight": 0.5}, {"loss": "supcon", "weight": 0.6}),
            "objective.terms",
            "weights that sum to 1.1",
        ),
        (terms({"loss": "supcon"}, combine="mixed"), "phases.0.objective.combine", "mixed"),
        (turn(step=0), "knob_turns.0.step", 0),
        (turn(name="batch_size"), "knob_turns.0.name", "batch_size"),
        (turn(value=math.nan), "knob_turns.0.value", math.nan),
        (turn(value=None), "knob_turns.0.value", None),
        (turn(value=1.5), "lambda", 1.5),
        (turn(value=-0.1), "lambda", -0.1),
        (turn(name="temperature", value=0.0), "temperature", 0.0),
        (turn(name="temperature", value=101.0), "temperature", 101.0),
        (turn(name="learning_rate", value=-1.0), "learning_rate", -1.0),
        (turn(name="learning_rate", value=100.1), "learning_rate", 100.1),
        (terms({"loss": "cross_entropy"}) | turn(), "knob", "lambda"),
        (terms({"loss": "cross_entropy"}) | turn(name="temperature"), "knob", "temperature"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_bad_value_is_refused_in_one_sentence(given: dict[str, Any], field: str, value: object) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(given)
    assert caught.value.field == field
    assert caught.value.value == value or (value != value and math.isnan(caught.value.value))
    message = str(caught.value)
    assert message.startswith(f"{field} = ")
    assert " cannot be used: " in message
    assert message.endswith(".")
    assert "\n" not in message
    assert len(message) < 300


@pytest.mark.parametrize(
    "given",
    ["", "{", "[]", "null", "3", b"\xff\xfe", "[" * 100_000, None, 3, ["phases"]],
    ids=["empty", "cut", "list", "null", "number", "bytes", "nested", "none", "int", "a list"],
)
def test_what_is_no_json_object_is_refused_in_one_sentence(given: Any) -> None:
    with pytest.raises(ConfigError, match=r"^config = .* cannot be used: give one JSON object"):
        parse_config(given)


def test_an_unknown_field_is_answered_with_those_that_exist() -> None:
    with pytest.raises(ConfigError, match=r"known are learning_rate, weight_decay, .*, max_gradient_norm\."):
        parse_config(optimiser(lr=1))


def test_an_unknown_parameter_is_answered_with_those_of_the_loss() -> None:
    with pytest.raises(ConfigError, match="supcon takes weight, temperature"):
        parse_config(terms({"loss": "supcon", "tau": 1}))


def test_a_long_value_is_cut_in_the_message() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config({"device": "x" * 100_000})
    assert len(str(caught.value)) < 5 * SHOWN_CHARS


def test_steps_are_known_only_after_preparation() -> None:
    assert parse_config(phase(steps=5)).steps == 5
    with pytest.raises(ConfigError, match="prepare the run first"):
        _ = parse_config(phase(epochs=1)).steps


class TestMixedObjective:
    @pytest.mark.parametrize("weight", [0.0, 0.1, 0.5, 0.9, 1.0])
    def test_convex_weights_sum_to_one(self, weight: float) -> None:
        objective = mixed_objective(weight, 0.2)
        assert [t.loss for t in objective.terms] == ["cross_entropy", "supcon"]
        assert [t.weight for t in objective.terms] == [pytest.approx(1 - weight, abs=1e-12), weight]
        assert objective.weight == weight
        assert objective.temperature == 0.2

    def test_the_additive_form_leaves_cross_entropy_whole(self) -> None:
        objective = mixed_objective(2.5, 0.2, "additive")
        assert [(t.loss, t.weight) for t in objective.terms] == [("cross_entropy", 1.0), ("supcon", 2.5)]

    def test_the_default_objective_is_the_papers_usual_best(self) -> None:
        assert ObjectiveConfig().weight == mixed_objective(0.9, 0.3).weight
        assert ObjectiveConfig().temperature == 0.3

    @pytest.mark.parametrize(
        ("weight", "combine"), [(-0.1, "convex"), (1.1, "convex"), (math.nan, "convex"), (1001, "additive")]
    )
    def test_a_bad_weight_is_named(self, weight: float, combine: Any) -> None:
        with pytest.raises(ConfigError) as caught:
            mixed_objective(weight, combine=combine)
        assert caught.value.field == "lambda"
        assert caught.value.value is weight

    @pytest.mark.parametrize("temperature", [0.0, -1.0, math.nan, math.inf])
    def test_a_bad_temperature_is_named(self, temperature: float) -> None:
        with pytest.raises(ConfigError) as caught:
            mixed_objective(0.5, temperature)
        assert caught.value.field == "temperature"


class TestTurned:
    @pytest.mark.parametrize("combine", ["convex", "additive"])
    def test_lambda_moves_the_weights_and_keeps_the_temperature(self, combine: Any) -> None:
        before = mixed_objective(0.9, 0.2, combine)
        assert before.turned("lambda", 0.4) == mixed_objective(0.4, 0.2, combine)
        assert before == mixed_objective(0.9, 0.2, combine)

    def test_temperature_moves_alone(self) -> None:
        assert mixed_objective(0.9, 0.2).turned("temperature", 0.5) == mixed_objective(0.9, 0.5)

    @pytest.mark.parametrize(("ce", "combine"), [(0.25, "convex"), (1.0, "additive"), (0.5, "additive")])
    def test_a_knob_turned_to_where_it_stands_changes_nothing(self, ce: float, combine: str) -> None:
        given = [
            {"loss": "cross_entropy", "weight": ce},
            {"loss": "supcon", "weight": 0.75, "temperature": 0.2},
        ]
        objective = build(ObjectiveConfig, {"terms": given, "combine": combine})
        assert objective.turned("temperature", 0.2) == objective
        assert objective.turned("lambda", 0.75) == objective

    @pytest.mark.parametrize("name", ["lambda", "temperature", "learning_rate", ""])
    def test_a_knob_that_the_objective_lacks_is_refused(self, name: str) -> None:
        objective = build(ObjectiveConfig, {"terms": [{"loss": "cross_entropy"}]})
        with pytest.raises(ConfigError, match=f"knob = '{name}' cannot be used"):
            objective.turned(name, 0.5)

    @pytest.mark.parametrize("value", [0.0, 1.0, 100.0])
    def test_the_learning_rate_factor_has_bounds(self, value: float) -> None:
        check_turn(RunConfig(), "learning_rate", value)
        with pytest.raises(ConfigError, match="give a factor from 0 to 100"):
            check_turn(RunConfig(), "learning_rate", math.nan)


@pytest.mark.parametrize("model", [RunConfig, ObjectiveConfig])
def test_building_from_a_model_gives_an_equal_one(model: type[BaseModel]) -> None:
    assert build(model, model()) == model()
