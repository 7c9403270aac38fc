"""Computations of a step: each pass and tap that a term needs, once, and no others."""

from __future__ import annotations

from typing import Any

import pytest

from core.config.fields import build
from core.config.objective import ObjectiveConfig
from core.config.plan import TRIPLET, LogitsOf, Pass, Plan, TermPlan, VectorOf, plan_phase
from core.config.presets import PRESETS
from core.errors import ConfigError
from tests.cases import each
from tests.core.config.made import CE, DROPOUT, objective, views


def scl(**fields: Any) -> dict[str, Any]:
    return {"loss": "supcon", **fields}


def rdrop(*names: str) -> dict[str, Any]:
    return {"loss": "rdrop", "views": views(*names)}


def simcse(**fields: Any) -> dict[str, Any]:
    return {"loss": "simcse", "views": DROPOUT, **fields}


def plan(*terms: dict[str, Any], blocks: int = 6) -> Plan:
    return plan_phase(objective(*terms), blocks)


SUPERVISED = {"loss": "simcse_supervised"}


def only(made: Plan) -> TermPlan:
    (term,) = made.terms
    return term


def view_names(made: Plan) -> list[str]:
    return [p.view.view if p.view else "" for p in made.passes]


class TestOneTerm:
    def test_cross_entropy_needs_one_pass_and_the_last_layer(self) -> None:
        made = plan(CE)
        assert (made.passes, made.layers, made.tokens) == ((Pass(),), (6,), ())
        assert only(made).logits == (LogitsOf(0, 0),)
        assert only(made).groups == ()

    def test_one_stage_rdrop_needs_one_pass_and_two_draws_of_the_head(self) -> None:
        made = plan(rdrop("head_dropout"))
        assert made.passes == (Pass(),)
        assert only(made).logits == (LogitsOf(0, 0), LogitsOf(0, 1))

    def test_two_stage_rdrop_needs_two_passes(self) -> None:
        made = plan(rdrop("dropout"))
        assert view_names(made) == ["", "dropout"]
        assert only(made).logits == (LogitsOf(0, 0), LogitsOf(1, 0))

    def test_scl_needs_one_pass_and_its_pooled_vector(self) -> None:
        made = plan(scl())
        assert (made.passes, made.layers, made.tokens) == ((Pass(),), (6,), ())
        assert only(made).groups == ((VectorOf(0, 6),),)
        assert only(made).views == 1

    def test_head_dropout_gives_two_masks_of_one_vector(self) -> None:
        made = plan(scl(views=[{"view": "head_dropout", "rate": 0.25}]))
        assert made.passes == (Pass(),)
        assert only(made).groups == ((VectorOf(0, 6, 0, 0.25), VectorOf(0, 6, 1, 0.25)),)
        assert only(made).views == 2
        (group,) = only(plan(scl(views=views("dropout", "head_dropout")))).groups
        assert [(v.number, v.mask) for v in group] == [(0, 0), (1, 0), (0, 1)]  # the text itself twice

    def test_layers_as_views_stand_beside_the_last_in_one_loss(self) -> None:
        made = plan(scl(views=[{"view": "layers", "layers": [2, 4, 6]}]))
        assert made.passes == (Pass(),)
        assert made.layers == (2, 4, 6)
        assert only(made).groups == ((VectorOf(0, 6), VectorOf(0, 2), VectorOf(0, 4)),)
        assert only(made).views == 3

    def test_one_loss_per_layer_is_a_group_each(self) -> None:
        made = plan(scl(layers=[2, 4], views=DROPOUT))
        assert made.layers == (2, 4)
        assert only(made).groups == tuple((VectorOf(0, layer), VectorOf(1, layer)) for layer in (2, 4))
        assert only(made).views == 2

    def test_tokens_are_tapped_and_not_pooled(self) -> None:
        made = plan(scl(level="token", k=9, layers=[5, 6]))
        assert (made.layers, made.tokens) == ((), ((5, 9), (6, 9)))
        assert only(made).groups == ((VectorOf(0, 5),), (VectorOf(0, 6),))
        assert only(made).views == 9
        assert only(plan(scl(level="token", k=9, clusters=3))).views == 3
        assert only(plan(scl(level="token", k=9, clusters=3, views=DROPOUT))).views == 6
        assert only(plan(scl(k=9, clusters=3))).views == 1

    def test_contrast_of_logits_reads_the_classifiers_answers(self) -> None:
        made = plan(simcse(level="logits"))
        assert only(made).logits == (LogitsOf(0, 0), LogitsOf(1, 0))
        assert only(made).groups == ()
        assert only(made).views == 2

    def test_without_the_text_itself_only_the_views_are_read(self) -> None:
        made = plan(simcse(original=False, views=views("token_shuffle", "feature_cutoff")))
        assert view_names(made) == ["token_shuffle", "feature_cutoff"]
        assert only(made).groups == ((VectorOf(0, 6), VectorOf(1, 6)),)

    def test_views_that_are_alike_are_drawn_apart(self) -> None:
        made = plan(simcse(original=False, views=views("eda", "eda")))
        assert [p.draw for p in made.passes] == [0, 1]
        other = [{"view": "eda", "rate": 0.1}, {"view": "eda", "rate": 0.3}]
        assert [p.draw for p in plan(simcse(original=False, views=other)).passes] == [0, 0]

    def test_triplets_are_three_passes_over_sources_of_their_own(self) -> None:
        made = plan(SUPERVISED | {"layers": [3, 6]})
        assert made.passes == tuple(Pass(side) for side in TRIPLET)
        assert only(made).groups == tuple(tuple(VectorOf(n, layer) for n in range(3)) for layer in (3, 6))
        assert made.reads_triplets
        assert all(wanted.source != "rows" for wanted in made.passes)


class TestSharing:
    def test_terms_share_the_passes_that_they_both_need(self) -> None:
        made = plan(CE, scl(views=DROPOUT), rdrop("dropout"), simcse(level="logits"))
        assert view_names(made) == ["", "dropout"]
        assert made.layers == (6,)

    def test_a_pass_keeps_its_number_whoever_reads_it_first(self) -> None:
        made = plan(simcse(original=False, views=views("eda", "dropout")), CE)
        assert view_names(made) == ["eda", "dropout", ""]
        assert made.terms[1].logits == (LogitsOf(2, 0),)

    def test_two_terms_share_a_mask_of_the_same_rate_and_no_other(self) -> None:
        def masks(first: float, second: float) -> set[VectorOf]:
            made = plan(*(scl(views=[{"view": "head_dropout", "rate": rate}]) for rate in (first, second)))
            return {vector for term in made.terms for group in term.groups for vector in group}

        assert len(masks(0.1, 0.1)) == 2
        assert len(masks(0.1, 0.2)) == 4

    def test_other_settings_of_a_view_are_another_pass(self) -> None:
        given = [{"view": "eda", "rate": 0.1}, {"view": "eda", "rate": 0.2}, {"view": "eda"}]  # 0.1 is the default
        assert len(plan(*(simcse(views=[view]) for view in given)).passes) == 3

    def test_a_layer_is_tapped_at_the_largest_k(self) -> None:
        made = plan(
            scl(level="token", k=5), scl(level="token", k=20, layers=[5, 6]), scl(level="token", k=9, layers=[5])
        )
        assert made.tokens == ((5, 20), (6, 20))


OFF = {"weight": 0.0}


class TestWeightZero:
    def followed(self, *terms: dict[str, Any]) -> list[str]:
        return [term.key for term in plan(*terms).terms]

    def test_it_is_followed_where_that_is_free(self) -> None:
        assert self.followed(CE, scl(**OFF)) == ["cross_entropy", "supcon"]
        assert self.followed(rdrop("dropout"), simcse(**OFF)) == ["rdrop", "simcse"]
        assert self.followed(scl(level="token", k=9), CE, scl(level="token", k=4, **OFF))[-1] == "supcon_2"

    @each(
        "term",
        [simcse(), scl(layers=[3]), scl(level="token"), scl(views=views("eda")), scl(queue=64), SUPERVISED],
    )
    def test_it_is_left_out_where_it_would_cost_something(self, term: dict[str, Any]) -> None:
        made = plan(CE, term | OFF)
        assert (made.passes, made.layers, made.tokens, made.readings) == ((Pass(),), (6,), (), 1)
        assert [t.key for t in made.terms] == ["cross_entropy"]

        assert self.followed(scl(level="token", k=4), scl(level="token", k=9, **OFF)) == ["supcon"]  # a larger k

    def test_the_terms_keep_their_order_and_their_keys(self) -> None:
        assert self.followed(scl(**OFF), simcse(**OFF), scl(), CE) == ["supcon", "supcon_2", "cross_entropy"]


class TestReadings:
    @each(
        ("terms", "readings"),
        [
            ([CE], 1),
            ([CE, scl(), rdrop("head_dropout")], 1),
            ([CE, scl(views=DROPOUT)], 2),
            ([scl(views=views("dropout", "dropout", "eda", "layers", "head_dropout"))], 4),
            ([simcse(views=views("adversarial"))], 4),
            ([scl(queue=64)], 2),
            ([scl(queue=64), scl(queue=32)], 3),
            ([SUPERVISED], 3),
            ([CE, SUPERVISED], 4),
        ],
    )
    def test_every_reading_of_the_encoder_counts(self, terms: list[dict[str, Any]], readings: int) -> None:
        assert plan(*terms).readings == readings

    def test_a_changed_input_is_told(self) -> None:
        assert not plan(CE, scl(views=views("dropout", "head_dropout", "layers"))).changes_input
        for name in ("eda", "token_shuffle", "token_cutoff", "adversarial", "back_translation"):
            assert plan(scl(views=views(name))).changes_input


class TestRelativeLayers:
    @each(("blocks", "others"), [(2, (1,)), (6, (3,)), (12, (3, 6, 9))])
    def test_layers_as_views_are_others_than_the_last(self, blocks: int, others: tuple[int, ...]) -> None:
        (group,) = only(plan(scl(views=views("layers")), blocks=blocks)).groups
        assert [v.layer for v in group] == [blocks, *others]

    @each(
        ("term", "field"),
        [
            (scl(layers=[2, 12]), "supcon.layers"),
            (scl(level="token", layers=[12]), "supcon.layers"),
            (SUPERVISED | {"layers": [12]}, "simcse_supervised.layers"),
            (scl(views=[{"view": "layers", "layers": [1, 12]}]), "supcon.views.layers"),
        ],
    )
    def test_layer_12_of_6_is_refused(self, term: dict[str, Any], field: str) -> None:
        for given in ([term], [CE, term | OFF]):
            with pytest.raises(ConfigError, match=f"^{field} = 12 cannot be used: the encoder has 6 blocks"):
                plan(*given)

    def test_the_last_block_is_no_further_view(self) -> None:
        (group,) = only(plan(scl(views=[{"view": "layers", "layers": "last"}]))).groups
        assert [v.layer for v in group] == [6, 5]
        for layers, blocks in (([6], 6), ("last", 1)):
            with pytest.raises(ConfigError, match=r"^supcon\.views\.layers = .* the last block is already a view"):
                plan(scl(views=[{"view": "layers", "layers": layers}]), blocks=blocks)


@each(
    ("name", "passes", "layers", "tokens"),
    [
        ("ce-scl", 1, (6,), ()),
        ("rdrop-two-stage", 2, (6,), ()),
        ("multi-view-scl", 1, (3, 6), ()),
        ("token-scl", 1, (6,), ((6, 30),)),
        ("clustered-tokens", 1, (6,), ((6, 90),)),
        ("multi-layer-token", 1, (6,), ((5, 30), (6, 30))),
        ("dropout-nt-xent-logits", 2, (6,), ()),
        ("simcse-supervised", 3, (6,), ()),
        ("consert", 2, (6,), ()),
    ],
)
def test_no_preset_computes_more_than_its_paper(
    name: str, passes: int, layers: tuple[int, ...], tokens: tuple[tuple[int, int], ...]
) -> None:
    found = build(ObjectiveConfig, PRESETS[name].objectives[0])
    made = plan_phase(found.with_tokens(270), 6)  # with texts of the same length
    assert (len(made.passes), made.layers, made.tokens) == (passes, layers, tokens)
