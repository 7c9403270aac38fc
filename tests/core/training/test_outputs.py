"""Inputs of terms from the encoder's outputs: shared if possible, with slices and masks per term."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from core.config.fields import build
from core.config.objective import ObjectiveConfig
from core.config.plan import Plan, plan_phase
from core.encoders.model import Encoder
from core.encoders.taps import Encoded, TokenViews
from core.losses.evaluate import TermInput
from core.training.outputs import PROJECTION_WIDTH, Outputs, Reader, concatenate_outputs, outputs_of, projection_head
from core.views.token_clusters import cluster_views
from tests.cases import each
from tests.core.encoders.test_model import made
from tests.core.training.made import additive

B, H, K, BLOCKS = 5, 16, 6, 2


def drawn(plan: Plan) -> Outputs:
    """Return random outputs for every tap of a plan, with ragged token masks."""
    torch.manual_seed(0)
    passes = len(plan.passes)
    pooled = {layer: torch.randn(passes, B, H, requires_grad=True) for layer in plan.layers}
    mask = torch.arange(K) < torch.tensor([6, 3, 1, 0, 4]).unsqueeze(1)  # [B, K]
    tokens = {
        layer: TokenViews(torch.randn(passes, B, K, H, requires_grad=True), mask.expand(passes, -1, -1))
        for layer, _ in plan.tokens
    }
    return Outputs(pooled, tokens)


class Counting(Encoder):
    """An encoder that counts the calls of its classifier."""

    asked = 0

    def logits(self, pooled: Tensor) -> Tensor:
        self.asked += 1
        return super().logits(pooled)


@pytest.fixture
def encoder() -> Counting:
    encoder = Counting(made("bert").model, "cls")
    return encoder.train()


def reading(encoder: Encoder, *terms: dict[str, Any], **queue: Any) -> tuple[Reader, Outputs, Plan]:
    plan = plan_phase(build(ObjectiveConfig, additive(*terms)), BLOCKS)
    outputs = drawn(plan)
    return Reader(outputs, encoder, plan, **queue), outputs, plan


def vectors_of(given: TermInput) -> Tensor:
    (layer,) = given.layers
    assert layer.view_mask is None
    return layer.vectors


DROPOUT, HEAD = {"view": "dropout"}, {"view": "head_dropout", "rate": 0.5}


def test_logits_of_a_pass_are_computed_once_for_all_terms(encoder: Counting) -> None:
    read, _, plan = reading(
        encoder,
        {"loss": "cross_entropy", "views": [DROPOUT]},
        {"loss": "rdrop", "views": [DROPOUT]},
        {"loss": "simcse", "level": "logits", "views": [DROPOUT]},
    )
    ce, rdrop, simcse = (read(key) for key in ("cross_entropy", "rdrop", "simcse"))
    assert encoder.asked == len(plan.passes) == 2
    assert all(a is b for a, b in zip(ce.logits, rdrop.logits, strict=True))
    assert torch.equal(vectors_of(simcse), torch.stack(ce.logits, 1))
    assert read("cross_entropy") is ce
    assert encoder.asked == 2


def test_head_dropout_answers_twice_from_one_pass(encoder: Counting) -> None:
    read, outputs, plan = reading(encoder, {"loss": "rdrop", "views": [HEAD]}, {"loss": "cross_entropy"})
    first, second = read("rdrop").logits
    assert len(plan.passes) == 1
    assert encoder.asked == 2
    assert not torch.equal(first, second)
    assert read("cross_entropy").logits == (first,)
    encoder.eval()
    first, second = Reader(outputs, encoder, plan)("rdrop").logits
    assert torch.equal(first, second)
    torch.testing.assert_close(first, encoder.logits(outputs.pooled[BLOCKS][0]))


def test_masks_of_pooled_vectors_are_drawn_once_per_pass_layer_and_number(encoder: Counting) -> None:
    read, outputs, _ = reading(encoder, {"loss": "supcon", "views": [HEAD]}, {"loss": "simcse", "views": [HEAD]})
    supcon, simcse = vectors_of(read("supcon")), vectors_of(read("simcse"))
    assert torch.equal(supcon, simcse)
    assert not torch.equal(supcon[:, 0], supcon[:, 1])
    plain = outputs.pooled[BLOCKS][0]
    for view in supcon.unbind(1):
        kept = view != 0
        assert 0.2 < kept.float().mean() < 0.8
        torch.testing.assert_close(view[kept], 2 * plain[kept])  # the rate is 0.5


def test_layers_as_views_stand_unmasked_beside_the_masked_ones(encoder: Counting) -> None:
    read, outputs, _ = reading(encoder, {"loss": "supcon", "views": [HEAD, {"view": "layers", "layers": [1]}]})
    vectors = vectors_of(read("supcon"))
    assert vectors.shape == (B, 3, H)
    assert torch.equal(vectors[:, 2], outputs.pooled[1][0])
    assert (vectors[:, :2] == 0).any()


def test_one_loss_per_layer_reads_each_layer_of_each_pass(encoder: Counting) -> None:
    read, outputs, _ = reading(encoder, {"loss": "supcon", "layers": [1, 2], "views": [DROPOUT]})
    found = read("supcon").layers
    for layer, contrasted in zip((1, 2), found, strict=True):
        assert torch.equal(contrasted.vectors, outputs.pooled[layer].transpose(0, 1))


def test_tokens_are_cut_to_the_k_of_each_term(encoder: Counting) -> None:
    read, outputs, plan = reading(
        encoder,
        {"loss": "supcon", "level": "token", "k": 2},
        {"loss": "supcon", "level": "token", "k": K, "views": [DROPOUT]},
    )
    assert plan.tokens == ((BLOCKS, K),)
    (short,), (long,) = read("supcon").layers, read("supcon_2").layers
    tokens, mask = outputs.tokens[BLOCKS]
    assert torch.equal(short.vectors, tokens[0, :, :2])
    assert torch.equal(short.view_mask, mask[0, :, :2])
    assert torch.equal(long.vectors, torch.cat([tokens[0], tokens[1]], 1))
    assert torch.equal(long.view_mask, torch.cat([mask[0], mask[1]], 1))


def test_clusters_are_means_of_the_terms_own_tokens_pass_by_pass(encoder: Counting) -> None:
    read, outputs, _ = reading(
        encoder,
        {"loss": "supcon", "level": "token", "k": 4, "clusters": 2, "views": [DROPOUT]},
        {"loss": "supcon", "level": "token", "k": K},
    )
    (found,) = read("supcon").layers
    tokens, mask = outputs.tokens[BLOCKS]
    expected = [cluster_views(tokens[number, :, :4], mask[number, :, :4], 2) for number in range(2)]
    torch.testing.assert_close(found.vectors, torch.cat([means for means, _ in expected], 1))
    assert torch.equal(found.view_mask, torch.cat([there for _, there in expected], 1))
    assert found.view_mask.any()
    assert not found.view_mask.all()


def test_each_term_goes_through_its_own_projection(encoder: Counting) -> None:
    heads = {"supcon": nn.Linear(H, 3), "supcon_3": nn.Linear(H, 4)}
    encoder.projections = nn.ModuleDict(heads)
    read, outputs, _ = reading(
        encoder, {"loss": "supcon"}, {"loss": "supcon"}, {"loss": "supcon", "level": "token", "k": K}
    )
    pooled = outputs.pooled[BLOCKS][0].unsqueeze(1)
    torch.testing.assert_close(vectors_of(read("supcon")), heads["supcon"](pooled))
    torch.testing.assert_close(vectors_of(read("supcon_2")), pooled)
    (tokens,) = read("supcon_3").layers
    torch.testing.assert_close(tokens.vectors, heads["supcon_3"](outputs.tokens[BLOCKS].vectors[0]))


@each(("kind", "linears"), [("linear", 1), ("mlp", 2)])
def test_projection_heads_have_the_width_of_the_papers(kind: str, linears: int) -> None:
    head = projection_head(kind, H)
    assert head(torch.randn(3, H)).shape == (3, PROJECTION_WIDTH)
    assert sum(isinstance(module, nn.Linear) for module in head.modules()) == linears


def test_mixup_mixes_pooled_vectors_with_one_share_and_tells_it(encoder: Counting) -> None:
    encoder.eval()
    read, outputs, _ = reading(
        encoder, {"loss": "cross_entropy", "mixup": 0.4, "views": [DROPOUT]}, {"loss": "cross_entropy"}
    )
    given = read("cross_entropy")
    partners, share = given.mixed
    assert sorted(partners.tolist()) == list(range(B))
    for logits, pooled in zip(given.logits, outputs.pooled[BLOCKS], strict=True):
        torch.testing.assert_close(logits, encoder.logits(share * pooled + (1 - share) * pooled[partners]))
    assert read("cross_entropy_2").mixed is None
    torch.testing.assert_close(read("cross_entropy_2").logits[0], encoder.logits(outputs.pooled[BLOCKS][0]))


def test_a_margin_of_the_angle_reads_the_last_layer_with_its_inputs(encoder: Counting) -> None:
    encoder.eval()
    read, outputs, _ = reading(
        encoder, {"loss": "cross_entropy", "angle_margin": 2, "views": [DROPOUT]}, {"loss": "cross_entropy"}
    )
    given = read("cross_entropy")
    assert given.logits == ()
    for last, pooled in zip(given.last, outputs.pooled[BLOCKS], strict=True):
        torch.testing.assert_close(last.features @ last.weight.T + last.bias, encoder.logits(pooled))
    assert read("cross_entropy_2").last == ()


def test_a_term_is_given_its_own_queue(encoder: Counting) -> None:
    held = torch.randn(3, H), torch.tensor([0, 1, 0])
    read, *_ = reading(encoder, {"loss": "supcon", "queue": 8}, {"loss": "supcon"}, queue={"supcon": held}.get)
    assert read("supcon").queue is held
    assert read("supcon_2").queue is None


def test_outputs_are_split_by_pass_and_joined_across_micro_batches() -> None:
    pooled, tokens = torch.randn(6, H), TokenViews(torch.randn(6, K, H), torch.rand(6, K) > 0.5)
    whole = outputs_of(Encoded({2: pooled}, {1: tokens}, {}), 2)
    assert torch.equal(whole.pooled[2][1], pooled[3:])
    assert torch.equal(whole.tokens[1].mask[1], tokens.mask[3:])
    assert [tuple(vectors.shape) for vectors in whole.vectors] == [(2, 3, H), (2, 3, K, H)]

    def part(start: int, end: int) -> Outputs:
        views = TokenViews(whole.tokens[1].vectors[:, start:end], whole.tokens[1].mask[:, start:end])
        return Outputs({2: whole.pooled[2][:, start:end]}, {1: views})

    together = concatenate_outputs([part(0, 2), part(2, 3)])
    assert torch.equal(together.pooled[2], whole.pooled[2])
    assert torch.equal(together.tokens[1].vectors, whole.tokens[1].vectors)
    assert torch.equal(together.tokens[1].mask, whole.tokens[1].mask)
