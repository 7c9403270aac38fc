"""The contrastive term on which a verdict rests, and its values over the newest steps."""

from __future__ import annotations

import pytest

from core.advice.newest_contrast import compares_pooled_vectors, newest_contrast
from core.config.objective import ObjectiveConfig, TermConfig
from core.events import Step
from tests.cases import each
from tests.core.config.made import DROPOUT, SCL, objective, term, views


def step(number: int, **values: float) -> Step:
    found = {"phase": 1.0, "lambda": 0.9, "temperature": 0.3, "loss.supcon": 2.0, "collapse_line.supcon": 2.7}
    return Step(number, found | {"lower_bound.supcon": 1.9} | values)


def test_it_is_the_mean_of_the_newest_steps() -> None:
    losses = [9.0, *[2.0, 2.2] * 5]
    steps = [step(i, **{"loss.supcon": loss}) for i, loss in enumerate(losses, start=1)]
    found = newest_contrast(steps, ObjectiveConfig(), classes=3)
    assert found is not None
    assert (found.loss, found.line, found.bound, found.steps) == pytest.approx((2.1, 2.7, 1.9, 10))
    assert (found.temperature, found.classes, found.weight, found.shown) == (0.3, 3, 0.9, True)


def test_every_batch_is_compared_with_its_own_line() -> None:
    """Separate medians would have the wrong order: 5.2 above 5.1."""
    pairs = [(5.2, 5.5), (5.0, 5.1), (5.6, 5.5), (4.7, 4.9), (5.5, 5.0), (5.3, 5.8), (4.9, 5.1)]
    steps = [step(i, **{"loss.supcon": loss, "collapse_line.supcon": line}) for i, (loss, line) in enumerate(pairs)]
    found = newest_contrast(steps, ObjectiveConfig(), classes=2)
    assert found is not None
    assert found.line - found.loss == pytest.approx(sum(line - loss for loss, line in pairs) / len(pairs))
    assert found.line > found.loss


def test_steps_before_a_knob_was_turned_do_not_count() -> None:
    steps = [*(step(i, **{"loss.supcon": 9.0}) for i in range(1, 5)), step(5, temperature=0.1)]
    found = newest_contrast(steps, ObjectiveConfig().with_knob("temperature", 0.1), classes=2)
    assert found is not None
    assert (found.loss, found.temperature) == (2.0, 0.1)


def test_a_phase_without_contrast_has_none() -> None:
    steps = [step(1), Step(2, {"phase": 2.0, "loss": 1.0, "loss.cross_entropy": 1.0})]
    assert newest_contrast(steps, ObjectiveConfig(), classes=2) is None
    assert newest_contrast([], ObjectiveConfig(), classes=2) is None


def test_batches_without_positives_say_nothing() -> None:
    starved = step(3, **{"loss.supcon": 0.0, "active_anchors.supcon": 0.0})
    assert newest_contrast([starved], ObjectiveConfig(), classes=2) is None
    found = newest_contrast([step(1), step(2), starved], ObjectiveConfig(), classes=2)
    assert found is not None
    assert found.loss == 2.0


def test_a_term_that_counts_goes_before_one_of_weight_zero() -> None:
    terms = objective(SCL | {"weight": 0.0}, {"loss": "simcse", "views": DROPOUT})
    steps = [step(1, **{"loss.simcse": 0.5, "collapse_line.simcse": 2.8})]
    found = newest_contrast(steps, terms, classes=2)
    assert found is not None
    assert (found.loss, found.line, found.bound, found.classes) == (0.5, 2.8, 0.0, None)


@each(
    ("found", "shown"),
    [
        (term("supcon"), True),
        (term("dscl", views=DROPOUT), True),
        (term("supcon", projection="mlp"), False),
        (term("supcon", level="token"), False),
        (term("supcon", level="logits"), False),
        (term("supcon", layers="last_third"), False),
        (term("supcon", views=views("layers")), False),
        (term("simcse_supervised"), False),
    ],
)
def test_only_the_pooled_vectors_of_the_last_block_are_those_of_the_map(found: TermConfig, shown: bool) -> None:
    assert compares_pooled_vectors(found) is shown
