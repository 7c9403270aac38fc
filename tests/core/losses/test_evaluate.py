"""A list of weighted terms: the total, the parts, the inputs of each loss, and the cost of a weight of 0."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from core.catalogue.losses import LOSSES
from core.losses import cross_entropy_loss, dscl_loss, mixup_loss, rdrop_loss, simcse_loss, supcon_loss
from core.losses.evaluate import Contrasted, Mixed, Objective, ObjectiveValue, Term, TermInput
from core.parameters import Value
from tests.cases import each
from tests.core.losses.made import settings

LABELS = torch.tensor([0, 1, 0, 1, 1])


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).requires_grad_()


def term(loss: str, weight: float = 1.0, key: str = "", **given: Value) -> Term:
    return Term(key or loss, loss, weight, settings(loss, **given))


def value_of(loss: str, read: TermInput, **given: Value) -> float:
    return Objective([term(loss, **given)])(lambda _: read, LABELS).total.item()


def evaluated(ce: float, scl: float) -> tuple[ObjectiveValue, Tensor, Tensor]:
    logits, features = drawn(5, 2), drawn(5, 1, 4, seed=1)
    inputs = {"cross_entropy": TermInput(logits=(logits,)), "supcon": TermInput(layers=(Contrasted(features),))}
    objective = Objective([term("cross_entropy", ce), term("supcon", scl, temperature=0.2)])
    return objective(inputs.__getitem__, LABELS), features, logits


def test_the_total_is_the_weighted_sum_of_the_parts() -> None:
    value, features, logits = evaluated(0.25, 2.0)
    assert list(value.parts) == ["cross_entropy", "supcon"]
    assert value.parts["cross_entropy"].item() == cross_entropy_loss(logits, LABELS).item()
    assert value.parts["supcon"].item() == supcon_loss(features, LABELS, temperature=0.2).item()
    expected = 0.25 * value.parts["cross_entropy"] + 2.0 * value.parts["supcon"]
    assert value.total.item() == pytest.approx(expected.item())


def test_a_term_of_weight_zero_is_reported_without_a_graph() -> None:
    value, features, logits = evaluated(1.0, 0.0)
    assert value.parts["supcon"].item() == supcon_loss(features, LABELS, temperature=0.2).item()
    assert not value.parts["supcon"].requires_grad
    value.total.backward()
    assert features.grad is None
    assert logits.grad is not None


def test_a_term_of_weight_zero_is_read_last_so_that_what_terms_share_keeps_its_graph() -> None:
    seen: list[tuple[str, bool]] = []

    def read(key: str) -> TermInput:
        seen.append((key, torch.is_grad_enabled()))
        return TermInput(logits=(drawn(5, 2),))

    value = Objective([term("cross_entropy", 0.0), term("cross_entropy", 1.0, "cross_entropy_2")])(read, LABELS)
    assert seen == [("cross_entropy_2", True), ("cross_entropy", False)]
    assert list(value.parts) == ["cross_entropy", "cross_entropy_2"]
    assert torch.is_grad_enabled()


def test_two_terms_of_one_loss_are_told_apart_by_their_keys() -> None:
    inputs = {key: TermInput(logits=(drawn(5, 2, seed=seed),)) for seed, key in enumerate(("cross_entropy", "other"))}
    terms = [term("cross_entropy", 0.5), term("cross_entropy", 2.0, "other", margin=1.0)]
    value = Objective(terms)(inputs.__getitem__, LABELS)
    first = cross_entropy_loss(inputs["cross_entropy"].logits[0], LABELS).item()
    second = cross_entropy_loss(inputs["other"].logits[0], LABELS, margin=1.0).item()
    assert value.total.item() == pytest.approx(0.5 * first + 2.0 * second)


def test_cross_entropy_is_the_mean_over_the_views_with_smoothing_and_margin() -> None:
    views = (drawn(5, 2), drawn(5, 2, seed=1))
    found = value_of("cross_entropy", TermInput(logits=views), label_smoothing=0.2, margin=0.5)
    one_by_one = [cross_entropy_loss(x, LABELS, label_smoothing=0.2, margin=0.5).item() for x in views]
    assert found == pytest.approx(sum(one_by_one) / 2)


def test_mixed_logits_are_held_against_both_labels() -> None:
    logits, mixed = drawn(5, 2), Mixed(torch.tensor([4, 3, 2, 1, 0]), torch.tensor(0.3))
    found = value_of("cross_entropy", TermInput(logits=(logits,), mixed=mixed), mixup=0.2)
    assert found == pytest.approx(mixup_loss(logits, LABELS, *mixed).item())
    assert found != pytest.approx(cross_entropy_loss(logits, LABELS).item())


@each("variant", ["out", "in"])
def test_supcon_takes_masks_and_a_queue_and_averages_layers(variant: str) -> None:
    mask = torch.tensor([[1, 1, 0], [1, 0, 0], [1, 1, 1], [0, 1, 1], [1, 1, 1]]).bool()
    layers = (Contrasted(drawn(5, 3, 4), mask), Contrasted(drawn(5, 3, 4, seed=1)))
    queue = (drawn(6, 4, seed=2).detach(), torch.tensor([0, 0, 1, 1, 0, 1]))
    found = value_of("supcon", TermInput(layers=layers, queue=queue), variant=variant, temperature=0.2)
    singly = [
        supcon_loss(vectors, LABELS, temperature=0.2, variant=variant, view_mask=view_mask, queue=queue).item()  # type: ignore[arg-type]
        for vectors, view_mask in layers
    ]
    assert found == pytest.approx(sum(singly) / 2)


@each(("reduction", "base"), [("mean_all", 0.07), ("mean_all", 0.0), ("mean", 0.07), ("sum", 0.0)])
def test_supcon_takes_the_reduction_and_the_factor_of_the_notes_code(reduction: str, base: float) -> None:
    """One text is alone in its class, so the means differ. A base temperature of 0 stands for no factor."""
    features, labels = drawn(5, 1, 4), torch.tensor([0, 1, 0, 2, 1])
    given: dict[str, Any] = {"temperature": 0.2, "reduction": reduction}
    found = Objective([term("supcon", **given, base_temperature=base)])(
        lambda _: TermInput(layers=(Contrasted(features),)), labels
    )
    expected = supcon_loss(features, labels, **given, base_temperature=base or None)
    assert found.total.item() == pytest.approx(expected.item())


def test_dscl_takes_the_factor_of_the_notes_code() -> None:
    read = TermInput(layers=(Contrasted(drawn(5, 2, 4)),))
    plain, scaled = (value_of("dscl", read, temperature=0.3, base_temperature=base) for base in (0.0, 0.1))
    assert scaled == pytest.approx(3 * plain)


@pytest.mark.filterwarnings("ignore:supcon_loss without normalisation")
def test_supcon_can_go_without_normalisation() -> None:
    read = TermInput(layers=(Contrasted(drawn(5, 2, 4)),))
    expected = supcon_loss(read.layers[0].vectors, LABELS, temperature=0.3, normalize=False).item()
    assert value_of("supcon", read, normalize=False) == pytest.approx(expected)
    assert value_of("supcon", read) != pytest.approx(expected)


def test_dscl_simcse_and_r_drop_are_given_their_parameters() -> None:
    features = drawn(5, 2, 4)
    one_layer = TermInput(layers=(Contrasted(features),))
    dscl = dscl_loss(features, LABELS, alpha=0.7, temperature=0.4).item()
    assert value_of("dscl", one_layer, alpha=0.7, temperature=0.4) == pytest.approx(dscl)
    queue = (drawn(6, 4, seed=2).detach(), torch.tensor([0, 0, 1, 1, 0, 1]))
    for variant in ("notes-formula", "notes-code"):
        dscl = dscl_loss(features, LABELS, temperature=0.4, variant=variant, queue=queue).item()
        assert value_of("dscl", one_layer._replace(queue=queue), temperature=0.4, variant=variant) == dscl
    both = simcse_loss(features[:, 0], features[:, 1], temperature=0.4, symmetric=True).item()
    assert value_of("simcse", one_layer, temperature=0.4, symmetric=True) == pytest.approx(both)
    among_all = supcon_loss(features, temperature=0.4).item()
    assert value_of("simcse", one_layer, temperature=0.4, candidates="all") == pytest.approx(among_all)
    triplets = drawn(5, 3, 4, seed=1)
    hard = simcse_loss(*triplets.unbind(1), temperature=0.4, hard_negative_weight=1.5).item()
    found = value_of(
        "simcse_supervised", TermInput(layers=(Contrasted(triplets),)), temperature=0.4, hard_negative_weight=1.5
    )
    assert found == pytest.approx(hard)
    logits = (drawn(5, 2), drawn(5, 2, seed=1))
    value = Objective([term("rdrop", 0.5, alpha=3.0)])(lambda _: TermInput(logits=logits), LABELS)
    expected = rdrop_loss(*logits, LABELS, alpha=3.0)
    assert {name: part.item() for name, part in value.parts.items()} == {
        "rdrop": expected.total.item(),
        "rdrop.ce": expected.ce.item(),
        "rdrop.kl": expected.kl.item(),
    }
    assert value.total.item() == pytest.approx(0.5 * expected.total.item())


def test_every_registered_loss_can_be_evaluated() -> None:
    for name, entry in LOSSES.items():
        read = TermInput(
            logits=(drawn(5, 2), drawn(5, 2, seed=1)),
            layers=(Contrasted(drawn(5, 3 if entry.reads == "triplets" else 2, 4)),),
        )
        total = Objective([term(name)])(lambda _, read=read: read, LABELS).total
        assert total.isfinite()
        assert total.requires_grad
