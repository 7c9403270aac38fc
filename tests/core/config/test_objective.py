"""Objectives: terms on views, levels and layers, knobs, and invalid combinations with their messages."""

from __future__ import annotations

import math
from typing import Any

import pytest

from core.catalogue.losses import LOSSES
from core.config.objective import Knob, ObjectiveConfig
from core.errors import ConfigError
from tests.cases import each
from tests.core.config.made import CE, DROPOUT, SCL, objective, term, views


@each("loss", LOSSES)
def test_absent_settings_stand_at_the_defaults_of_the_loss(loss: str) -> None:
    found = term(loss, views=DROPOUT if LOSSES[loss].views[0] == 2 else [])
    assert found.parameters == {p.name: p.default for p in LOSSES[loss].parameters}
    assert (found.weight, found.level, found.layers, found.original) == (1.0, "sentence", "last", True)


def test_terms_of_one_loss_are_numbered_and_a_formula_has_the_classifier_first() -> None:
    made = objective(SCL, CE, SCL, {"loss": "rdrop", "views": DROPOUT}, SCL)
    assert made.keys == ("supcon", "cross_entropy", "supcon_2", "rdrop", "supcon_3")
    assert [key for key, _ in made.formula_terms] == ["cross_entropy", "rdrop", "supcon", "supcon_2", "supcon_3"]


HEAD, LAYERS = views("head_dropout"), views("layers")
TOKEN, LOGITS = {"level": "token"}, {"level": "logits"}


@each(
    ("loss", "fields", "field", "value", "remedy"),
    [
        ("dscl", {}, "views", "the text itself", "needs at least two views of a text; add one, such as dropout"),
        ("simcse", {"original": False, "views": DROPOUT}, "views", "dropout", "needs two views of a text; add one"),
        (
            "rdrop",
            {"views": DROPOUT + HEAD},
            "views",
            "the text itself, dropout, head_dropout",
            "R-Drop uses two views, including the text itself; remove one",
        ),
        ("simcse_supervised", {"views": DROPOUT}, "views", "the text itself, dropout", "no further views; remove one"),
        (
            "supcon",
            {"original": False, "views": HEAD + LAYERS},
            "original",
            False,
            "include the text itself, or add a view that the encoder reads",
        ),
        ("supcon", TOKEN | {"views": HEAD}, "views", "head_dropout", "this term contrasts tokens; choose dropout"),
        ("supcon", {"views": HEAD * 2}, "views", "head_dropout twice", "name it once"),
        ("supcon", TOKEN | {"views": LAYERS}, "views", "layers", "this term contrasts tokens"),
        ("supcon", LOGITS | {"views": LAYERS}, "views", "layers", "this term contrasts the classifier’s output"),
        ("cross_entropy", {"views": LAYERS}, "views", "layers", "which Cross-entropy does not use"),
        (
            "supcon",
            {"layers": "last_third", "views": LAYERS},
            "views",
            "layers",
            "layers as views, or one loss per layer, not both",
        ),
        ("dscl", TOKEN | {"views": DROPOUT}, "level", "token", "contrasts sentence or logits"),
        ("supcon", LOGITS | {"projection": "mlp"}, "projection", "mlp", "choose none"),
        ("supcon", LOGITS | {"layers": [1, 2]}, "layers", (1, 2), "choose last"),
        ("supcon", TOKEN | {"queue": 64}, "queue", 64, "this term contrasts tokens; set it to 0"),
        ("supcon", LOGITS | {"queue": 64}, "queue", 64, "the classifier's output; set it to 0"),
        ("supcon", {"layers": [1], "queue": 64}, "queue", 64, "other layers; set it to 0"),
        ("supcon", {"original": False, "views": DROPOUT, "queue": 64}, "queue", 64, "only changed texts; set it to 0"),
        ("supcon", TOKEN | {"k": 5, "clusters": 5}, "clusters", 5, "fewer clusters than the 5 tokens"),
        ("cross_entropy", {"mixup": 0.2, "margin": 0.5}, "mixup", 0.2, "supports no margin; set one of them to 0"),
        ("cross_entropy", {"angle_margin": 2, "mixup": 0.2}, "angle_margin", 2, "support no margin; set it to 1"),
        (
            "cross_entropy",
            {"cutmix": 1.0, "mixup": 0.2},
            "cutmix",
            1.0,
            "excludes Mixup, margin and label smoothing; set them to 0",
        ),
        ("cross_entropy", {"cutmix": 1.0, "views": DROPOUT}, "cutmix", 1.0, "without further views; remove the views"),
        (
            "cross_entropy",
            {"mixup": 0.2, "label_smoothing": 0.1},
            "mixup",
            0.2,
            "no label smoothing; set one of them to 0",
        ),
    ],
)
def test_an_impossible_mix_is_explained_in_one_sentence(
    loss: str, fields: dict[str, Any], field: str, value: object, remedy: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        term(loss, **fields)
    assert (caught.value.field, str(caught.value.value)) == (f"{loss}.{field}", str(value))
    message = str(caught.value)
    assert message.endswith(".")
    assert message.count(". ") == 0
    assert len(message) < 200
    assert remedy in message


@each(
    ("loss", "fields"),
    [
        ("dscl", {"views": views("dropout", "head_dropout", "layers")}),
        ("simcse", {"original": False, "views": views("token_shuffle", "feature_cutoff")}),
        ("simcse", {"level": "logits", "views": views("head_dropout")}),
        ("cross_entropy", {"margin": 0.5, "label_smoothing": 0.1}),
        ("supcon", {"level": "token", "k": 5, "clusters": 4, "layers": "every_third", "projection": "mlp"}),
        ("supcon", {"clusters": 40}),
        ("supcon", {"queue": 64, "views": views("dropout", "dropout"), "projection": "linear"}),
        ("simcse_supervised", {"layers": [1, 2], "projection": "mlp"}),
    ],
)
def test_valid_combinations_are_accepted(loss: str, fields: dict[str, Any]) -> None:
    assert term(loss, **fields).loss == loss


class TestWeights:
    def test_convex_weights_sum_to_one(self) -> None:
        with pytest.raises(ConfigError, match=r"sum to 1\.5 cannot be used: make convex weights sum to 1, or set"):
            objective(CE | {"weight": 0.5}, SCL, combine="convex")
        assert objective(CE | {"weight": 0.5}, combine="convex").terms[0].weight == 0.5

    def test_what_classifies(self) -> None:
        assert objective(CE).classifies
        assert objective({"loss": "rdrop", "views": DROPOUT}).classifies
        assert objective(SCL | {"level": "logits"}).classifies
        assert not objective(SCL).classifies
        assert not objective(CE | {"weight": 0.0}, SCL).classifies

    @each(
        ("made", "weight"),
        [
            (objective(CE, SCL | {"weight": 0.2}), 0.2),
            (objective(SCL | {"weight": 0.2}, {"loss": "rdrop", "views": DROPOUT}), 0.2),
            (objective(CE | {"weight": 0.5}, SCL | {"weight": 0.2}), None),
            (objective(CE), None),
            (objective(SCL), None),
            (objective(SCL, SCL), None),
            (objective(CE, SCL, SCL), None),
            (objective(CE, {"loss": "rdrop", "views": DROPOUT}), None),
        ],
    )
    def test_lambda_binds_one_loss_on_logits_and_one_contrastive_term(
        self, made: ObjectiveConfig, weight: float | None
    ) -> None:
        assert made.weight == weight

    def test_tau_is_that_of_the_one_term_that_has_one(self) -> None:
        assert objective(CE, SCL | {"temperature": 0.2}).temperature == 0.2
        assert objective(SCL, {"loss": "simcse", "views": DROPOUT}).temperature is None
        assert objective(CE).temperature is None


class TestKnobs:
    def test_the_papers_objective_has_lambda_and_temperature(self) -> None:
        found = ObjectiveConfig().knobs
        assert {name: knob._replace(help="") for name, knob in found.items()} == {
            "lambda": Knob("Weight λ", 0.9, (0.0, 1.0)),
            "temperature": Knob("Temperature τ", 0.3, (0.01, 1.0)),
        }
        assert "the hardest negatives" in found["temperature"].help
        assert "1 − λ" in found["lambda"].help

    def test_cross_entropy_alone_has_only_knobs_in_use(self) -> None:
        assert objective(CE).knobs == {}
        assert list(objective(CE | {"margin": 0.5}).knobs) == ["cross_entropy.margin"]

    def test_of_several_terms_each_has_a_label_of_its_own(self) -> None:
        dscl = {"loss": "dscl", "views": DROPOUT, "weight": 0.5}
        knobs = objective(CE, SCL, SCL | {"weight": 0.5}, dscl).knobs
        assert {name: knob.label for name, knob in knobs.items()} == {
            "cross_entropy.weight": "Weight of CE",
            "supcon.weight": "Weight of SCL",
            "supcon.temperature": "Temperature τ of SCL",
            "supcon_2.weight": "Weight of SCL 2",
            "supcon_2.temperature": "Temperature τ of SCL 2",
            "dscl.weight": "Weight of DSCL",
            "dscl.alpha": "Own view α of DSCL",
            "dscl.temperature": "Temperature τ of DSCL",
        }

    def test_what_stands_after_the_one_temperature_still_says_whose_it_is(self) -> None:
        knobs = objective(CE, {"loss": "simcse_supervised", "weight": 0.5}).knobs
        assert knobs["temperature"].label == "Temperature τ"
        assert knobs["simcse_supervised.hard_negative_weight"].label.startswith("Hard negative weight of ")

    def test_a_knob_has_the_value_that_it_was_turned_to(self) -> None:
        made = objective(CE, SCL, SCL | {"temperature": 0.2})
        for name, knob in made.knobs.items():
            assert made.value_of(name) == knob.value
            other = knob.value / 2
            assert made.with_knob(name, other).value_of(name) == other
        with pytest.raises(ConfigError, match="no such knob"):
            made.value_of("lambda")

    def test_the_weight_beside_lambda_can_be_turned_away_from_one_and_back(self) -> None:
        made = objective(SCL | {"weight": 0.2}, CE)
        assert {"lambda", "cross_entropy.weight"} <= made.knobs.keys()
        away = made.with_knob("cross_entropy.weight", 0.5)
        assert {"supcon.weight", "cross_entropy.weight"} <= away.knobs.keys()
        assert "lambda" not in away.knobs
        assert away.value_of("lambda") == 0.2
        assert away.with_knob("cross_entropy.weight", 1.0) == made

    def test_every_knob_turns_its_own_setting(self) -> None:
        made = objective(CE, SCL, SCL)
        assert made.with_knob("supcon_2.temperature", 0.1) == objective(CE, SCL, SCL | {"temperature": 0.1})
        assert made.with_knob("supcon.weight", 0.1) == objective(CE, SCL | {"weight": 0.1}, SCL)


class TestLambda:
    @each("weight", [0.0, 0.1, 0.5, 0.9, 1.0])
    def test_convex_weights_sum_to_one(self, weight: float) -> None:
        made = ObjectiveConfig().with_knob("lambda", weight).with_knob("temperature", 0.2)
        assert [t.loss for t in made.terms] == ["supcon", "cross_entropy"]
        assert [t.weight for t in made.terms] == [weight, pytest.approx(1 - weight, abs=1e-12)]
        assert (made.weight, made.temperature) == (weight, 0.2)

    @each(("weight", "combine"), [(-0.1, "convex"), (1.1, "convex"), (math.nan, "convex"), (1001, "additive")])
    def test_a_bad_weight_is_named(self, weight: float, combine: Any) -> None:
        with pytest.raises(ConfigError) as caught:
            ObjectiveConfig(combine=combine).with_knob("lambda", weight)
        assert caught.value.field == "lambda"
        assert caught.value.value is weight


class TestTurned:
    @each(
        "name",
        ["supcon.temperature", "supcon.variant", "supcon.queue", "supcon.weight", "supcon_2.weight", ".weight", "k"],
    )
    def test_what_is_no_knob_of_a_convex_mix_is_answered_with_those_that_are(self, name: str) -> None:
        with pytest.raises(ConfigError, match=f"knob = '{name}' .* its knobs are learning_rate, lambda, temperature"):
            ObjectiveConfig().with_knob(name, 0.5)
        with pytest.raises(ConfigError, match="its knobs are learning_rate"):
            objective(CE).with_knob("lambda", 0.5)

    def test_a_knob_stays_one_wherever_another_was_turned(self) -> None:
        made = objective(CE | {"weight": 0.5}, SCL | {"weight": 0.5})
        turned = made.with_knob("cross_entropy.weight", 1.0).with_knob("supcon.weight", 0.2)
        assert [t.weight for t in turned.terms] == [1.0, 0.2]
        name, smoothed = "cross_entropy.label_smoothing", objective(CE | {"label_smoothing": 0.1})
        assert smoothed.with_knob(name, 0.0).with_knob(name, 0.1) == smoothed

    def test_a_turn_into_an_impossible_mix_is_refused(self) -> None:
        with pytest.raises(ConfigError, match="supports no margin"):
            objective(CE | {"mixup": 0.2}).with_knob("cross_entropy.margin", 0.5)
        with pytest.raises(ConfigError, match="all weights 0"):
            objective(CE, SCL | {"weight": 0.0}, SCL | {"weight": 0.0}).with_knob("cross_entropy.weight", 0.0)


@each(
    ("tokens", "clusters", "k"),
    [(16, 0, 5), (200, 0, 30), (3, 0, 2), (16, 5, 10), (90, 5, 30), (900, 5, 90), (16, 20, 40)],
)
def test_a_k_that_was_left_open_follows_the_texts(tokens: float, clusters: int, k: int) -> None:
    left_open = objective(SCL | {"level": "token", "k": "auto", "clusters": clusters})
    assert left_open.counts_tokens
    made = left_open.with_tokens(tokens)
    assert made.terms[0].parameters["k"] == k
    assert not made.counts_tokens
    assert made.with_tokens(1) == made
