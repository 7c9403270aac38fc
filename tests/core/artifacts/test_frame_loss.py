"""Data of the force view: the run's own loss at a step, and a message for everything that a frame lacks."""

from __future__ import annotations

from typing import Any

from core.artifacts.frame_loss import names_layers, shown_contrast
from core.catalogue.losses import LOSSES
from core.config import RunConfig, parse_config
from tests.cases import each

CE = {"loss": "cross_entropy", "weight": 0.1}
DROPOUT = [{"view": "dropout"}]


def made(*terms: dict[str, Any], turns: tuple[tuple[int, str, float], ...] = ()) -> RunConfig:
    objective = {"terms": list(terms), "combine": "additive"}
    knob_turns = [{"step": step, "name": name, "value": value} for step, name, value in turns]
    return parse_config({"phases": [{"steps": 20, "batch_size": 12, "objective": objective}], "knob_turns": knob_turns})


def test_a_plain_run_is_shown_exactly() -> None:
    found = shown_contrast(made({"loss": "supcon", "temperature": 0.2, "weight": 0.9}, CE), 8, None, 6)
    assert (found.law.symbol, found.law.views) == ("L_out", 1)
    assert (found.law.temperature, found.own, found.source) == (0.2, True, "vectors")
    assert found.remarks == ()
    assert found.batch_size == 12
    assert found.about == ("The contrastive loss of this run at step 8 is Supervised contrastive (L_out), τ 0.2.")


def test_variant_and_temperature_are_those_of_the_frames_step() -> None:
    config = made({"loss": "supcon", "temperature": 0.2, "variant": "in"}, turns=((5, "temperature", 0.7),))
    assert [shown_contrast(config, step, None, 6).law.temperature for step in (0, 4, 5, 20)] == [0.2, 0.2, 0.7, 0.7]
    assert shown_contrast(config, 5, None, 6).law.symbol == "L_in"


def test_a_weight_that_was_turned_to_zero_contrasts_nothing() -> None:
    config = made({"loss": "supcon", "weight": 0.9}, CE, turns=((5, "lambda", 0.0),))
    config = parse_config(config.model_dump(mode="json"))
    assert shown_contrast(config, 4, None, 6).own
    found = shown_contrast(config, 5, None, 6)
    assert not found.own
    assert "has no contrastive loss at this step: Cross-entropy exerts no forces" in found.remarks[0]


@each("loss", ["cross_entropy", "rdrop"])
def test_a_run_without_contrast_says_what_is_shown_instead(loss: str) -> None:
    term = {"loss": loss} | ({"views": [{"view": "head_dropout"}]} if loss == "rdrop" else {})
    found = shown_contrast(made(term), 1, None, 6)
    assert not found.own
    assert "exerts no forces between texts" in found.remarks[0]
    assert found.about == "Shown instead: supervised contrastive loss (L_out) at τ 0.3 on the pooled vectors."


def test_every_loss_on_vectors_has_a_law_and_none_whose_texts_are_not_in_a_frame() -> None:
    for entry in LOSSES.values():
        assert (entry.forces is not None) == (entry.reads == "vectors")
    found = shown_contrast(made({"loss": "simcse_supervised"}), 1, None, 6)
    assert not found.own
    assert "This run contrasts premises with entailed" in found.remarks[0]


@each(
    ("term", "symbol"),
    [
        ({"loss": "dscl", "alpha": 0.2}, "DSCL"),
        ({"loss": "dscl", "uniform": True}, "DSCL"),
        ({"loss": "simcse"}, "SimCSE"),
        ({"loss": "simcse", "candidates": "all"}, "NT-Xent"),
        ({"loss": "supcon"}, "L_out"),
        ({"loss": "supcon", "normalize": False, "variant": "in"}, "L_in"),
    ],
)
def test_every_loss_has_its_law_and_views_are_one_stored_vector(term: dict[str, Any], symbol: str) -> None:
    config = made(term | {"views": DROPOUT})
    found = shown_contrast(config, 1, None, 6)
    assert (found.law.symbol, found.law.views) == (symbol, 2)
    assert found.law.settings == config.phases[0].objective.terms[0].parameters
    assert "2 views of each text (the text itself, second dropout pass)" in found.remarks[0]
    assert "one vector of the unchanged text without dropout" in found.remarks[0]


SUMMED = "The run sums this loss over the anchors of a batch; the value shown is their mean."
TOKENS = {"loss": "supcon", "level": "token", "layers": [3, 6], "k": 30, "clusters": 5, "projection": "mlp"}
AVERAGED = "The run averages this loss over layers 3 and 6; the forces here are of layer {}."
OTHER = "The run contrasts the pooled vectors of {}; here the same loss is computed on those of {}."


@each(
    ("term", "layer", "blocks", "remarks"),
    [
        (
            TOKENS,
            None,
            6,
            (
                (
                    "The run contrasts the 30 tokens of a text with the highest [CLS] attention, in 5 clusters, "
                    "from layers 3 and 6. Frames hold no token vectors, so the same loss is computed on the "
                    "pooled vectors of layer 6."
                ),
                "The run contrasts the output of an MLP on these vectors, which frames do not hold.",
            ),
        ),
        ({"loss": "supcon", "layers": [3, 6]}, None, 6, (AVERAGED.format(6),)),
        ({"loss": "supcon", "layers": [3, 6]}, 3, 6, (AVERAGED.format(3),)),
        ({"loss": "supcon", "layers": [3, 6]}, 4, 6, (OTHER.format("layers 3 and 6", "layer 4"),)),
        ({"loss": "supcon"}, 6, 6, ()),
        ({"loss": "supcon", "reduction": "sum"}, 6, 6, (SUMMED,)),
        (
            {"loss": "supcon", "temperature": 0.21, "base_temperature": 0.07},
            6,
            6,
            ("Its factor τ/τ₀, 3, is left out.",),
        ),
        ({"loss": "supcon"}, 2, 6, (OTHER.format("layer 6", "layer 2"),)),
        ({"loss": "supcon"}, None, None, ()),
        (
            {"loss": "supcon", "layers": "last_third"},
            None,
            None,
            (OTHER.format("the last third of the layers", "the last layer"),),
        ),
        ({"loss": "supcon", "layers": [1]}, None, None, (OTHER.format("layer 1", "the last layer"),)),
        ({"loss": "supcon", "queue": 64}, 6, 6, ("Its queue of 64 past vectors is left out.",)),
    ],
)
def test_tokens_layers_a_projection_head_and_a_queue_are_named(
    term: dict[str, Any], layer: int | None, blocks: int | None, remarks: tuple[str, ...]
) -> None:
    config = made(term)
    found = shown_contrast(config, 1, layer, blocks)
    assert (found.law.views, found.remarks) == (1, remarks)
    assert names_layers(config) == ("layers" in term)


def test_logits_and_layers_as_views_are_compared() -> None:
    found = shown_contrast(made({"loss": "supcon", "level": "logits"}), 1, None, 6)
    assert (found.source, found.own) == ("logits", True)
    found = shown_contrast(made({"loss": "supcon", "views": [{"view": "layers", "layers": [2, 4, 6]}]}), 1, None, 6)
    assert found.law.views == 3


def test_of_several_terms_the_heaviest_is_shown() -> None:
    config = made({"loss": "supcon", "weight": 0.3}, {"loss": "simcse", "weight": 0.6, "views": DROPOUT})
    found = shown_contrast(config, 1, None, 6)
    assert found.law.symbol == "SimCSE"
    assert found.remarks[0] == "It has the largest weight, 0.6, of 2 contrastive terms."
