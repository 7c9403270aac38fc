"""Verdicts on losses of vectors that are collapsed, separated, narrow, equidistant or in between."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from core.losses import supcon_loss
from core.losses.evaluate import Contrasted, TermInput, reference_lines
from core.representation.geometry import geometry
from core.representation.verdict import Contrast, Geometry, Outcome, Verdict, verdict
from tests.cases import each

LABELS = [i % 2 for i in range(16)]
RNG = np.random.default_rng(0)
SPREAD = RNG.normal(size=(16, 32))
# Two classes at opposite points have the maximal distance. Four classes would work as well.
APART = np.stack([(1 if label else -1) * np.eye(32)[0] for label in LABELS]) + 0.05 * RNG.normal(size=(16, 32))
NARROW = np.eye(32)[0] * 10 + 0.3 * RNG.normal(size=(16, 32))
COLLAPSED = np.eye(32)[0] + 0.002 * RNG.normal(size=(16, 32))


def looked_at(rows: np.ndarray) -> Geometry:
    return Geometry(**geometry(rows, LABELS))


def contrasted(rows: np.ndarray, *, temperature: float = 0.3, queue: int = 0, weight: float = 0.9) -> Contrast:
    """Return SupCon of these rows as one batch, with the reference lines of a run. The queue holds near copies."""
    vectors, labels = torch.tensor(rows, dtype=torch.float32).unsqueeze(1), torch.tensor(LABELS)
    held = None
    if queue:
        copies = torch.arange(queue) % len(rows)
        held = vectors[copies, 0] + 0.01 * torch.randn(queue, rows.shape[1]), labels[copies]
    loss = supcon_loss(vectors, labels, temperature=temperature, queue=held)
    lines = reference_lines("supcon", TermInput(layers=(Contrasted(vectors),), queue=held), labels, {})
    return Contrast(float(loss), float(lines.collapse), float(lines.bound), temperature, classes=2, weight=weight)


def judged(now: np.ndarray, start: np.ndarray | None = SPREAD, **settings: float) -> Verdict:
    before = None if start is None else looked_at(start)
    return verdict(contrasted(now, **settings), looked_at(now), before)  # type: ignore[arg-type]


@each(
    ("now", "start", "outcome", "words"),
    [
        (COLLAPSED, SPREAD, Outcome.COLLAPSED, "have collapsed"),
        (COLLAPSED, NARROW, Outcome.COLLAPSED, "have collapsed"),
        (APART, SPREAD, Outcome.SEPARATED, "not a collapse"),
        (APART, NARROW, Outcome.SEPARATED, "not a collapse"),
        (NARROW, NARROW, Outcome.UNCHANGED_NARROW, "have not collapsed"),
        (np.eye(16), RNG.normal(size=(16, 16)), Outcome.EQUIDISTANT, "Nothing has collapsed"),
        # Each vector equals one of the other class. Equal vectors would have a lower loss.
        (
            np.stack([np.eye(32)[i // 2] for i in range(16)]),
            SPREAD,
            Outcome.ABOVE_LINE,
            "identical vectors would give a lower loss",
        ),
    ],
)
def test_the_geometry_since_step_0_tells_outcomes_apart(
    now: np.ndarray, start: np.ndarray, outcome: Outcome, words: str
) -> None:
    found = judged(now, start)
    assert found.outcome == outcome
    assert words in found.sentence


@each("queue", [0, 256])
@each("temperature", [0.1, 2.0])
def test_temperature_and_queue_change_no_outcome(temperature: float, queue: int) -> None:
    assert judged(COLLAPSED, temperature=temperature, queue=queue).outcome == Outcome.COLLAPSED
    assert judged(APART, temperature=temperature, queue=queue).outcome == Outcome.SEPARATED


def test_vectors_that_draw_together_at_the_line_are_to_be_watched() -> None:
    base = np.eye(32)[0] * 4 + RNG.normal(size=(16, 32)) * 0.4
    found = verdict(Contrast(2.7, math.log(15), math.log(7), 2.0, 2), looked_at(base), looked_at(SPREAD))
    assert found.outcome == Outcome.NARROWED


def test_with_a_queue_a_fifth_of_the_descent_is_not_at_the_line() -> None:
    """The line is ln 1039 and the bound ln 519, so 2 % of the line is a fifth of the distance to the bound."""
    line, bound = math.log(1039), math.log(519)
    tenth = Contrast(line - 0.1 * (line - bound), line, bound, 0.1, 2)
    assert verdict(tenth, looked_at(SPREAD), looked_at(SPREAD)).outcome == Outcome.LEARNING
    assert tenth.covered == pytest.approx(0.1)
    assert tenth.loss > 0.98 * line


@each(
    ("within", "between", "largest", "outcome"),
    [
        (0.92, 0.92, 1.0, Outcome.NOT_APART),
        (0.95, 0.85, 1.0, Outcome.LEARNING),  # apart, although the encoder is narrow
        (0.92, 0.92, 0.6, Outcome.LEARNING),  # the classifier separates them
        (0.92, 0.92, None, Outcome.LEARNING),  # no classifier learns
    ],
)
def test_a_loss_below_its_line_does_not_learn_while_classes_are_alike_and_one_is_predicted(
    within: float, between: float, largest: float | None, outcome: Outcome
) -> None:
    narrow = Geometry(0.92, 20.0, within, between)
    assert verdict(Contrast(2.6, math.log(15), math.log(7), 0.07, 2), narrow, narrow, largest).outcome == outcome


@each("classes", [2, 4])
@each("temperature", [0.1, 0.5, 2.0])
def test_what_can_be_reached_is_the_loss_of_a_simplex(temperature: float, classes: int) -> None:
    """Classes lie in the corners of a simplex, where SupCon is minimal for equal class sizes."""
    corners = np.eye(classes) - 1 / classes
    rows = torch.tensor(np.repeat(corners, 4, axis=0))
    labels = torch.arange(classes).repeat_interleave(4)
    lowest = float(supcon_loss(rows.unsqueeze(1), labels, temperature=temperature))
    lines = reference_lines("supcon", TermInput(layers=(Contrasted(rows.unsqueeze(1)),)), labels, {})
    there = Contrast(lowest, float(lines.collapse), float(lines.bound), temperature, classes)
    assert there.reachable == pytest.approx(there.covered, rel=1e-6)


def test_at_a_high_temperature_the_most_that_can_be_covered_is_named() -> None:
    found = verdict(contrasted(APART, temperature=2.0), looked_at(SPREAD), looked_at(SPREAD))
    assert found.outcome == Outcome.NEAR_BOUND
    assert "at τ = 2" in found.sentence


def test_a_weight_of_one_is_judged_like_any_other_and_a_weight_of_zero_is_not() -> None:
    assert judged(COLLAPSED, weight=1.0).outcome == Outcome.COLLAPSED
    assert judged(COLLAPSED, weight=0.0).outcome == Outcome.OFF


@each("now", [COLLAPSED, NARROW, np.eye(16)])
def test_before_the_first_frame_or_of_other_vectors_it_says_less(now: np.ndarray) -> None:
    assert judged(now, start=None).outcome == Outcome.AT_LINE
    found = verdict(replace(contrasted(now), shown=False), looked_at(now), looked_at(SPREAD))
    assert found.outcome == Outcome.AT_LINE
    assert "are not the ones that the loss compares" in found.sentence


def test_of_vectors_that_the_map_does_not_show_nothing_is_said_of_their_classes() -> None:
    elsewhere = replace(contrasted(APART), shown=False)
    assert verdict(elsewhere, looked_at(APART), looked_at(SPREAD)).outcome == Outcome.NEAR_BOUND


def test_without_labels_tight_classes_are_not_the_aim() -> None:
    own_views = Contrast(0.1, math.log(15), 0.0, 0.05, None)
    assert verdict(own_views, looked_at(APART), looked_at(SPREAD)).outcome == Outcome.NEAR_BOUND


def test_older_runs_have_no_cosines_of_classes_and_a_more_careful_verdict() -> None:
    old = Geometry(looked_at(APART).mean_cosine, looked_at(APART).effective_rank)
    found = verdict(contrasted(APART), old, Geometry(0.1, 12.0))
    assert found.outcome == Outcome.NEAR_BOUND
    assert found.numbers.startswith("mean cosine")
    collapsed = Geometry(looked_at(COLLAPSED).mean_cosine, 12.0)
    assert verdict(contrasted(COLLAPSED), collapsed, Geometry(0.1, 12.0)).outcome == Outcome.COLLAPSED


def test_the_numbers_are_those_of_now_and_of_step_zero() -> None:
    numbers = verdict(contrasted(APART), Geometry(0.0, 1.25, 0.91, -0.84), Geometry(0.3, 28.0, 0.35, 0.25)).numbers
    assert numbers == (
        "cosine within classes 0.91 (0.35 at step 0) · between classes −0.84 (0.25 at step 0) · "
        "effective rank 1.3 (28.0 at step 0)"
    )


def test_every_outcome_has_one_short_text() -> None:
    assert all(len(outcome.value) < 190 for outcome in Outcome)


def test_the_sentence_of_a_loss_that_learns() -> None:
    mean = Contrast((math.log(15) + math.log(7)) / 2, math.log(15), math.log(7), 0.5, 2, shown=False, steps=10)
    assert verdict(mean, looked_at(SPREAD), looked_at(SPREAD)).sentence == (
        "The collapse line is the value that the contrastive loss would have if all vectors were equal. The "
        "contrastive loss has fallen 50.0% of the way from its collapse line to its lower bound. The loss is averaged "
        "over the last 10 steps. The map shows the pooled vectors, which are not the ones that the loss compares."
    )
