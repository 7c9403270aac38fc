"""Forces on an anchor and the spread of the push, against the losses themselves, slow loops and autograd in float64."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from core.catalogue.loss_entry import ForceLaw
from core.catalogue.losses import LOSSES
from core.losses.evaluate import Contrasted, TermInput
from core.losses.forces import batch_forces, losses_at_mean_positive, push_spread
from core.parameters import Value, number
from core.registry import load
from tests.cases import each
from tests.core.losses.made import random_rows

LABELS = torch.tensor([0, 0, 1, 1, 1, 2, 0])
FEATURES = random_rows(7, 5)


def law_of(loss: str, views: int = 1, **settings: Value) -> ForceLaw:
    entry = LOSSES[loss]
    return ForceLaw(entry, {**entry.defaults, **settings}, views)


OUT, IN = law_of("supcon"), law_of("supcon", variant="in")
TAUS = [0.05, 0.3, 2.0]
LAWS = {
    "L_out": OUT,
    "L_in": IN,
    "L_out of three views": law_of("supcon", 3),
    "L_in of two views": law_of("supcon", 2, variant="in"),
    "L_out of vectors as they are": law_of("supcon", normalize=False),
    "DSCL": law_of("dscl", 2, alpha=0.2),
    "DSCL of three views": law_of("dscl", 3, alpha=0.7),
    "uniform DSCL": law_of("dscl", 2, uniform=True),
    "DSCL of the notes' formula": law_of("dscl", 2, variant="notes-formula"),
    "uniform DSCL of the notes' formula": law_of("dscl", 3, uniform=True, variant="notes-formula"),
    "DSCL of the notes' code": law_of("dscl", 2, variant="notes-code"),
    "DSCL of the notes' code, of vectors as they are": law_of("dscl", 2, variant="notes-code", normalize=False),
    "DSCL of vectors as they are": law_of("dscl", 2, normalize=False),
    "SimCSE": law_of("simcse", 2),
    "NT-Xent": law_of("simcse", 2, candidates="all"),
    "SimCSE without candidates of the label": law_of("simcse", 2, label_filter=True),
    "NT-Xent without candidates of the label": law_of("simcse", 2, candidates="all", label_filter=True),
    "SINCERE": law_of("sincere"),
    "ε-SupInfoNCE of two views": law_of("sincere", 2, epsilon=0.5),
    "DCL": law_of("dcl", 2),
}


def variant_of(law: ForceLaw) -> Any:
    return law.settings.get("variant", "out")


def loss_of(law: ForceLaw, features: Tensor, tau: float) -> Tensor:
    """Compute the training loss for texts whose views have equal vectors."""
    given = TermInput(layers=(Contrasted(features.unsqueeze(1).expand(-1, law.views, -1)),))
    return load(law.entry.compute)(given, LABELS, {**law.settings, "temperature": tau})


def own_loss(law: ForceLaw, free: Tensor, z: Tensor, i: int, tau: float) -> Tensor | None:
    """Compute the loss of text i from that text's vector. Returns: the loss, or None without a positive."""
    scores, texts = [], []
    for j in range(len(z)):
        if law.settings.get("label_filter") and j != i and LABELS[j] == LABELS[i]:
            continue
        copies = law.views if not law.second_views else 1
        for _ in range(copies if j != i or law.second_views else copies - 1):
            scores.append(z[j] @ free / tau)
            texts.append(j)
    log_p = torch.stack(scores).log_softmax(0)
    own = [k for k, j in enumerate(texts) if j == i]
    alike = [k for k, j in enumerate(texts) if j != i and law.entry.uses_labels and LABELS[j] == LABELS[i]]
    if not own + alike:
        return None
    if not law.forces.softmax:
        negatives = [k for k in range(len(texts)) if k not in own + alike]
        push, pulls = torch.stack(scores)[negatives].logsumexp(0), torch.stack(scores)[own + alike]
        if law.entry.name == "dcl":
            return push - pulls.mean()
        return (torch.logaddexp(pulls - number(law.settings, "epsilon"), push) - pulls).mean()
    if variant_of(law).startswith("notes"):
        logits, count = torch.stack(scores), len(own + alike)
        alpha = len(own) / (count + len(own)) if law.settings["uniform"] else number(law.settings, "alpha")
        if variant_of(law) == "notes-formula":
            return -(log_p[own + alike] + math.log((1 - alpha) * (count + 1) / count)).mean()
        logits = logits - logits.detach().max()
        return logits.logsumexp(0) - (1 - alpha) * count / max(count - 1, 1) * logits[own + alike].mean()
    if law.entry.name == "dscl":
        alpha = len(own) / (len(own) + len(alike)) if law.settings["uniform"] else number(law.settings, "alpha")
        if not alike:
            return -log_p[own].mean()
        return -(alpha * log_p[own].mean() + (1 - alpha) * log_p[alike].mean())
    chosen = log_p[own + alike]
    return math.log(len(chosen)) - chosen.logsumexp(0) if variant_of(law) == "in" else -chosen.mean()


@each("name", LAWS)
@each("tau", TAUS)
def test_coefficients_are_the_gradient_on_each_anchor(name: str, tau: float) -> None:
    law = LAWS[name]
    z = FEATURES / FEATURES.norm(dim=1, keepdim=True) if law.normalize else FEATURES
    found = batch_forces(FEATURES, LABELS, temperature=tau, law=law)
    for i in range(7):
        free = z[i].clone().requires_grad_()
        loss = own_loss(law, free, z, i, tau)
        if loss is None:
            assert not found.coefficients[i].any()
            assert found.losses[i] == 0
            continue
        (gradient,) = torch.autograd.grad(loss, free)
        torch.testing.assert_close((found.coefficients[i].unsqueeze(1) * z).sum(0), gradient, atol=1e-9, rtol=1e-7)
        if variant_of(law) != "notes-code":
            assert float(found.coefficients[i].sum()) == pytest.approx(0, abs=1e-9)
        assert float(found.losses[i]) == pytest.approx(loss.item(), rel=1e-9, abs=1e-12)


@pytest.mark.filterwarnings("ignore:supcon_loss without normalisation")
@each("name", LAWS)
@each("tau", TAUS)
def test_they_sum_to_the_gradient_of_the_loss_that_training_takes(name: str, tau: float) -> None:
    """Each text is an anchor, with the gradient of its own loss, and a candidate in the losses of others."""
    law = LAWS[name]
    z = (FEATURES / FEATURES.norm(dim=1, keepdim=True) if law.normalize else FEATURES).clone().requires_grad_()
    loss = loss_of(law, z, tau)
    (gradient,) = torch.autograd.grad(loss, z)
    found = batch_forces(FEATURES, LABELS, temperature=tau, law=law)
    fixed = z.detach()
    total = (found.coefficients + found.coefficients.T) @ fixed / int(found.has_positive.sum())
    if law.normalize:  # the loss normalises too, so only rotations of a vector count
        total = total - (total * fixed).sum(1, keepdim=True) * fixed
    torch.testing.assert_close(total, gradient, atol=1e-9, rtol=1e-7)
    assert float(found.losses[found.has_positive].mean()) == pytest.approx(loss.item(), rel=1e-9)


def test_a_near_positive_pushes_under_l_out_and_never_under_l_in_or_sincere() -> None:
    """If p of a positive exceeds its target 1/|P| under L_out, the anchor is pushed away from it."""
    angles = torch.tensor([0.0, 0.1, 2.0, 3.0])
    features = torch.stack([angles.cos(), angles.sin()], 1).double()
    labels = torch.tensor([0, 0, 0, 1])
    out = batch_forces(features, labels, temperature=0.3, law=OUT)
    assert out.p[0, 1] > out.X[0, 1] == 0.5
    assert out.coefficients[0, 1] > 0
    for law in (IN, law_of("sincere"), law_of("sincere", epsilon=0.5)):
        assert (batch_forces(features, labels, temperature=0.3, law=law).coefficients[0, 1:3] < 0).all()


def test_with_every_positive_at_their_mean_l_out_and_l_in_are_equal() -> None:
    found, z = [], [row / row.norm() for row in FEATURES]
    for i in range(7):
        positives = [j for j in range(7) if j != i and LABELS[j] == LABELS[i]]
        if positives:
            mean = sum(z[j] for j in positives) / len(positives)
            scores = [float(z[i] @ (mean if j in positives else z[j])) / 0.3 for j in range(7) if j != i]
            found.append(math.log(sum(map(math.exp, scores))) - float(z[i] @ mean) / 0.3)
    expected = pytest.approx(sum(found) / len(found), rel=1e-12)
    assert losses_at_mean_positive(FEATURES, LABELS, temperature=0.3) == (expected, expected)


def test_a_text_alone_in_its_batch_feels_nothing() -> None:
    found = batch_forces(torch.ones(1, 4), torch.tensor([0]), temperature=0.5)
    assert found.p.tolist() == found.coefficients.tolist() == [[0]]
    assert found.losses.tolist() == [0]


@each("tau", TAUS)
@each("variant", ["out", "in"])
def test_the_spread_is_that_of_a_slow_loop(tau: float, variant: str) -> None:
    entropies, effective, top, losses = [], [], [], {"in": [], "out": []}
    z = [row / row.norm() for row in FEATURES]
    for i in range(7):
        positives = [j for j in range(7) if j != i and LABELS[j] == LABELS[i]]
        if not positives:
            continue
        scores = [math.exp(float(z[i] @ z[j]) / tau) if j != i else 0.0 for j in range(7)]
        p = [score / sum(scores) for score in scores]
        losses["out"].append(-sum(math.log(p[j]) for j in positives) / len(positives))
        losses["in"].append(-math.log(sum(p[j] for j in positives) / len(positives)))
        negatives = [p[j] for j in range(7) if LABELS[j] != LABELS[i]]
        shares = [share / sum(negatives) for share in negatives]
        entropies.append(-sum(share * math.log(share) for share in p if share > 0))
        effective.append(math.exp(-sum(share * math.log(share) for share in shares if share > 0)))
        top.append(max(shares))  # 5 % of four or five, rounded up, is one
    law = law_of("supcon", variant=variant)
    found = push_spread(FEATURES, LABELS, temperature=tau, law=law)
    mean = {kind: sum(values) / len(values) for kind, values in losses.items()}
    other = "in" if variant == "out" else "out"
    assert [one.symbol for one in law.variants] == [f"L_{variant}", f"L_{other}"]
    assert found.losses == pytest.approx((mean[variant], mean[other]))
    expected = [sum(values) / len(values) for values in (entropies, effective, top)]
    assert found[1:] == pytest.approx(expected)


def test_the_spread_of_an_even_push_is_exact_in_double_precision() -> None:
    """All vectors are equidistant: every p is 1/6, and each of four negatives contributes a quarter of the push."""
    found = push_spread(torch.eye(7), LABELS, temperature=0.3, anchor=2)
    assert (*found.losses, *found[1:]) == pytest.approx((math.log(6), math.log(6), math.log(6), 4, 0.25), rel=1e-13)
    on_average = push_spread(torch.eye(7), LABELS, temperature=0.3)
    assert on_average.top_share == pytest.approx(0.25, rel=1e-13)
    assert on_average.effective_negatives == pytest.approx(4, rel=1e-13)


def test_a_high_temperature_spreads_the_push_evenly_and_a_low_one_gives_it_to_the_hardest() -> None:
    cold, hot = (push_spread(FEATURES, LABELS, temperature=tau) for tau in (0.01, 1e4))
    assert hot.entropy == pytest.approx(math.log(6), abs=1e-3)
    assert cold.effective_negatives < hot.effective_negatives
    assert hot.effective_negatives == pytest.approx((4 * 3 + 4 * 3) / 6, abs=1e-3)
    assert cold.top_share > 0.9


def test_the_spread_of_one_anchor_is_its_own() -> None:
    found = push_spread(FEATURES, LABELS, temperature=0.3, anchor=2)
    alone = batch_forces(FEATURES, LABELS, temperature=0.3)
    assert found.losses[0] == pytest.approx(float(alone.losses[2]))
    p = alone.p[2].tolist()
    assert found.top_share == pytest.approx(max(p[j] for j in (0, 1, 5, 6)) / sum(p[j] for j in (0, 1, 5, 6)))


def test_of_many_negatives_the_strongest_twentieth_counts() -> None:
    features = torch.eye(42)
    labels = torch.tensor([0, 0, *range(1, 41)])
    assert push_spread(features, labels, temperature=1.0, anchor=0).top_share == pytest.approx(2 / 40)


def test_a_batch_without_positives_or_negatives_has_no_spread() -> None:
    apart = push_spread(FEATURES, torch.arange(7), temperature=0.3)
    assert all(math.isnan(value) for value in (*apart.losses, *apart[1:]))
    together = push_spread(FEATURES, torch.zeros(7, dtype=torch.long), temperature=0.3)
    assert math.isnan(together.top_share)
    assert together.losses[0] > 0


def test_the_push_is_accurate_where_float32_would_cancel() -> None:
    angles = torch.tensor([0.0, 0.01, 2.2, 2.3])
    features = torch.stack([angles.cos(), angles.sin()], 1)
    found = push_spread(features, torch.tensor([0, 0, 1, 1]), temperature=0.01, anchor=0)
    odds = math.exp((math.cos(2.2) - math.cos(2.3)) / 0.01)
    assert found.top_share == pytest.approx(odds / (1 + odds), rel=1e-3)
