"""One value that says everything about a run: its JSON form, its bounds and its refusals."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from core.config import RunConfig, check_turn, parse_config, peak_rates
from core.config.fields import build
from core.config.objective import ObjectiveConfig, mixed_objective
from core.errors import SHOWN_CHARS, ConfigError
from core.messages import Message
from tests.cases import each

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
    "encoder": {"id": "roberta-base", "pooling": "mean", "max_length": 64},
    "phases": [
        {
            "trainable": {"part": "last_blocks", "blocks": 4, "reinitialised_blocks": 1},
            "objective": {
                "combine": "additive",
                "terms": [
                    {"loss": "cross_entropy"},
                    {
                        "loss": "supcon",
                        "weight": 0.2,
                        "temperature": 0.1,
                        "layers": [2, 4],
                        "views": [{"view": "eda", "rate": 0.3}],
                    },
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
        {
            "trainable": {"part": "lora", "lora_rank": 4},
            "objective": {"terms": [{"loss": "cross_entropy"}]},
            "steps": 9,
        },
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


@each("given", [{}, FULL])
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


@each(
    ("path", "field"),
    [
        (lambda c: c, "seed"),
        (lambda c: c.task, "id"),
        (lambda c: c.phases[0], "steps"),
        (lambda c: c.phases[0].optimiser, "learning_rate"),
        (lambda c: c.phases[0].objective.terms[1], "weight"),
        (lambda c: c.phases[0].objective.terms[1], "temperature"),
        (lambda c: c.knob_turns[0], "value"),
    ],
)
def test_a_config_is_frozen(path: Any, field: str) -> None:
    part = path(parse_config(FULL))
    with pytest.raises(ValidationError, match="frozen"):
        setattr(part, field, 1)


def test_a_change_to_the_parameters_read_from_a_term_does_not_reach_it() -> None:
    term = parse_config(FULL).phases[0].objective.terms[1]
    term.parameters["temperature"] = 9.0
    term.views[0].parameters["rate"] = 0.9
    assert term.parameters["temperature"] == 0.1
    assert term.views[0].parameters["rate"] == 0.3


@each(
    ("given", "field", "value"),
    [
        ({"lr": 1}, "lr", 1),
        (phase(learning_rate=1), "phases.0.learning_rate", 1),
        (optimiser(lr=3), "phases.0.optimiser.lr", 3),
        ({"task": {"kind": "x"}}, "task.kind", "x"),
        ({"version": 3}, "version", 3),
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
        ({"phases": [{}, {}, {}]}, "phases", [{}, {}, {}]),
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
        (phase(micro_batch=0), "phases.0.micro_batch", 0),
        (phase(gradient_checkpointing="often"), "phases.0.gradient_checkpointing", "often"),
        ({"phases": [{}, {"batch_size": 0}]}, "phases.1.batch_size", 0),
        (phase(trainable={"blocks": 0}), "phases.0.trainable.blocks", 0),
        (phase(trainable={"lora_rank": 0}), "phases.0.trainable.lora_rank", 0),
        (phase(trainable={"lora_dropout": 1.0}), "phases.0.trainable.lora_dropout", 1.0),
        (phase(trainable={"reinitialised_blocks": -1}), "phases.0.trainable.reinitialised_blocks", -1),
        (optimiser(name="sgd"), "phases.0.optimiser.name", "sgd"),
        (optimiser(layer_decay=0), "phases.0.optimiser.layer_decay", 0),
        (optimiser(classifier_learning_rate=2), "phases.0.optimiser.classifier_learning_rate", 2),
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
        (terms({"loss": "supcon", "views": ["dropout"]}), "phases.0.objective.terms.0.views.0", "dropout"),
        (terms({"loss": "supcon", "views": "dropout"}), "phases.0.objective.terms.0.views", "dropout"),
        (terms({"loss": "supcon", "views": [{"rate": 1}]}), "phases.0.objective.terms.0.views.0.view", {"rate": 1}),
        (terms({"loss": "supcon", "views": [{"view": "blur"}]}), "view", "blur"),
        (terms({"loss": "supcon", "views": [{"view": "eda", "rte": 1}]}), "rte", 1),
        (terms({"loss": "supcon", "views": [{"view": "eda", "rate": 1}]}), "rate", 1),
        (terms(*[{"loss": "supcon"}] * 9), "phases.0.objective.terms", [{"loss": "supcon"}] * 9),
        (
            terms({"loss": "cross_entropy", "weight": 0.5}, {"loss": "supcon", "weight": 0.6}),
            "objective.terms",
            "weights that sum to 1.1",
        ),
        (terms({"loss": "supcon"}, combine="mixed"), "phases.0.objective.combine", "mixed"),
        (turn(step=0), "knob_turns.0.step", 0),
        (turn(name="batch_size"), "knob", "batch_size"),
        (turn(name=""), "knob_turns.0.name", ""),
        (turn(name="x" * 81), "knob_turns.0.name", "x" * 81),
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
)
def test_a_bad_value_is_refused_in_one_sentence(given: dict[str, Any], field: str, value: object) -> None:
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


@each(
    "given",
    ["", "{", "[]", "null", "3", b"\xff\xfe", "[" * 100_000, None, 3, ["phases"]],
)
def test_what_is_no_json_object_is_refused_in_one_sentence(given: Any) -> None:
    with pytest.raises(ConfigError, match=r"^config = .* cannot be used: .*give one JSON object"):
        parse_config(given)


def test_an_unknown_field_is_answered_with_those_that_exist() -> None:
    with pytest.raises(ConfigError, match=r"known are name, learning_rate, .*, max_gradient_norm\."):
        parse_config(optimiser(lr=1))


def test_an_unknown_parameter_is_answered_with_those_of_the_loss() -> None:
    with pytest.raises(ConfigError, match="supcon takes loss, weight, views, temperature"):
        parse_config(terms({"loss": "supcon", "tau": 1}))


def test_a_long_value_is_cut_in_the_message() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config({"device": "x" * 100_000})
    assert len(str(caught.value)) < 5 * SHOWN_CHARS


@each(
    ("given", "remedy"),
    [
        (terms("supcon"), "give an object with loss, weight, views."),
        (terms({"loss": "supcon", "views": ["dropout"]}), "give an object with view."),
        (terms({}), "it is missing, and has no default."),
        ({"task": 3}, "give an object with id, name, path, test_path, "),
        (phase(objective={"terms": "supcon"}), "give a list."),
        ({"name": "x" * 81}, ": it should have at most 80 characters."),
        ({"phases": []}, ": it should have at least 1 item"),
    ],
)
def test_a_remedy_is_worded_for_people(given: dict[str, Any], remedy: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(given)
    assert remedy in str(caught.value)


def test_steps_are_known_only_after_preparation() -> None:
    assert parse_config(phase(steps=5)).steps == 5
    with pytest.raises(ConfigError, match="prepare the run first"):
        _ = parse_config(phase(epochs=1)).steps


class TestBeforeThereWereViews:
    """Runs stored by the first release: terms had a loss, a weight and a temperature, and there was one phase."""

    @each("combine", ["convex", "additive"])
    def test_an_old_objective_means_what_it_meant(self, combine: Any) -> None:
        weight = 0.1 if combine == "convex" else 1.0
        old = [{"loss": "cross_entropy", "weight": weight}, {"loss": "supcon", "weight": 0.9, "temperature": 0.3}]
        found = parse_config(terms(*old, combine=combine)).phases[0].objective
        today = mixed_objective(0.9, 0.3, combine)
        assert (found.weight, found.temperature, found.as_written) == (0.9, 0.3, today.as_written)
        contrast = found.terms[1]
        assert (contrast.level, contrast.layers, contrast.views, contrast.original) == ("sentence", "last", (), True)
        assert (contrast.parameters["variant"], contrast.parameters["queue"]) == ("out", 0)
        assert not any(found.terms[0].parameters[name] for name in ("label_smoothing", "margin", "mixup"))

    def test_an_old_run_is_one_phase_of_adamw_on_the_whole_encoder(self) -> None:
        old = {"trainable": {"part": "all", "blocks": 2}, "optimiser": {"learning_rate": 5e-5}, "steps": 120}
        (found,) = parse_config({"version": 1, "phases": [old]}).phases
        assert (found.optimiser.name, found.optimiser.bias_correction, found.optimiser.layer_decay) == (
            "adamw",
            True,
            1,
        )
        assert peak_rates(found.optimiser) == (5e-5, 5e-5)
        assert (found.micro_batch, found.gradient_checkpointing) == (None, False)
        assert found.trainable.reinitialised_blocks == 0

    def test_a_classifier_without_a_rate_had_the_encoders(self) -> None:
        given = {"learning_rate": 1e-4, "classifier_learning_rate": None}
        own = given | {"classifier_learning_rate": 1e-3}
        old = parse_config({"version": 1, "phases": [{"optimiser": given}, {"optimiser": own}]})
        assert [peak_rates(phase.optimiser) for phase in old.phases] == [(1e-4, 1e-4), (1e-4, 1e-3)]
        assert old.version == 2
        assert parse_config(old.to_json()) == old
        today = parse_config({"phases": [{"optimiser": given}]})
        assert today.phases[0].optimiser.classifier_learning_rate is None
        with pytest.raises(ConfigError, match="prepare the run first"):
            peak_rates(today.phases[0].optimiser)

    @each("phases", ["one", [1], [{"optimiser": 1}], [{"optimiser": {"learning_rate": "fast"}}], 3])
    def test_what_is_no_phase_of_an_old_run_is_refused(self, phases: Any) -> None:
        with pytest.raises(ConfigError, match="phases"):
            parse_config({"version": 1, "phases": phases})

    @each(("ce", "combine"), [(0.1, "convex"), (1.0, "additive"), (0.5, "additive")])
    def test_old_turns_are_still_turns(self, ce: float, combine: str) -> None:
        old = terms({"loss": "cross_entropy", "weight": ce}, {"loss": "supcon", "weight": 0.9}, combine=combine)
        turns = [
            {"step": 2, "name": "lambda", "value": 0.5},
            {"step": 3, "name": "temperature", "value": 0.1},
            {"step": 9, "name": "learning_rate", "value": 0.5},
        ]
        assert [t.name for t in parse_config(old | {"knob_turns": turns}).knob_turns] == [t["name"] for t in turns]


class TestPhases:
    TWO = parse_config({"phases": [{"steps": 5, "objective": mixed_objective(1.0).model_dump()}, {"steps": 3}]})

    def test_the_steps_are_those_of_all_phases(self) -> None:
        assert self.TWO.steps == 8
        assert self.TWO.phase_ends == (5, 8)

    def test_a_step_belongs_to_one_phase(self) -> None:
        assert [self.TWO.phase_at(step) for step in (1, 5, 6, 8, 99)] == [0, 0, 1, 1, 1]
        assert RunConfig().phase_at(7) == 0

    def test_a_turn_is_checked_against_the_phase_of_its_step(self) -> None:
        config = parse_config(
            {"phases": [{"steps": 5}, {"steps": 3, "objective": {"terms": [{"loss": "cross_entropy"}]}}]}
        )
        check_turn(config, 5, "lambda", 0.5)
        with pytest.raises(ConfigError, match="knob = 'lambda' cannot be used"):
            check_turn(config, 6, "lambda", 0.5)

    def test_turns_of_two_phases_need_steps(self) -> None:
        with pytest.raises(ConfigError, match=r"knob_turns = 'lambda' cannot be used: give both phases their steps"):
            parse_config({"phases": [{"epochs": 1}, {"steps": 3}]} | turn())
        assert parse_config({"phases": [{"epochs": 1}, {"steps": 3}]} | turn(name="learning_rate")).knob_turns


class TestTurnsTogether:
    """Each of these turns is fine alone; the run takes them one after the other."""

    WEIGHTS = terms({"loss": "cross_entropy", "weight": 0.5}, {"loss": "supcon", "weight": 0.5}, combine="additive")

    @staticmethod
    def turns(*given: tuple[int, str, float]) -> dict[str, Any]:
        return {"knob_turns": [{"step": s, "name": name, "value": value} for s, name, value in given]}

    def test_all_weights_cannot_be_turned_to_0(self) -> None:
        first, second = (3, "supcon.weight", 0.0), (4, "cross_entropy.weight", 0.0)
        config = parse_config(self.WEIGHTS | self.turns(first))
        for both in ((first, second), (second, first)):
            with pytest.raises(ConfigError, match="all weights 0"):
                parse_config(self.WEIGHTS | self.turns(*both))
        with pytest.raises(ConfigError, match="all weights 0"):
            check_turn(config, 4, "cross_entropy.weight", 0.0)
        with pytest.raises(ConfigError, match="all weights 0"):  # the recorded one comes after it
            check_turn(config, 2, "cross_entropy.weight", 0.0)

    def test_a_turn_leaves_the_knobs_where_others_are_turned(self) -> None:
        given = self.turns((2, "cross_entropy.weight", 1.0), (3, "supcon.weight", 0.2), (4, "lambda", 0.1))
        assert len(parse_config(self.WEIGHTS | given).knob_turns) == 3

    def test_what_is_turned_off_can_be_turned_on_again(self) -> None:
        given = terms({"loss": "cross_entropy", "label_smoothing": 0.1})
        given |= self.turns((2, "cross_entropy.label_smoothing", 0.0), (3, "cross_entropy.label_smoothing", 0.2))
        assert len(parse_config(given).knob_turns) == 2


@each("value", [0.0, 1.0, 100.0])
def test_the_learning_rate_factor_has_bounds(value: float) -> None:
    check_turn(RunConfig(), 1, "learning_rate", value)
    with pytest.raises(ConfigError, match="give a factor from 0 to 100"):
        check_turn(RunConfig(), 1, "learning_rate", math.nan)


@each("model", [RunConfig, ObjectiveConfig])
def test_building_from_a_model_gives_an_equal_one(model: type[BaseModel]) -> None:
    assert build(model, model()) == model()
