"""From which step on a run trains its classifier, and what the scores of a frame are therefore scores of.

A classifier that no loss has reached yet is a random one, and its accuracy says nothing. Such a frame is scored by a
linear probe instead: a logistic regression on the frame's own vectors. Imports no torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from core.config import RunConfig
from core.config.turns import objective_at
from core.events import BASELINE, VALIDATION, Evaluation
from core.quantities import percent

# Training rows that the linear probe of a frame is fitted on, those on the map among them.
PROBE_ROWS = 200

Scorer = Literal["classifier", "linear probe"]


def classifier_learns_from(config: RunConfig) -> int | None:
    """The first step of a prepared run that trains the classifier; None where no step does."""
    begins = [1, *(end + 1 for end in config.phase_ends[:-1])]
    changes = sorted({*begins, *(turn.step for turn in config.knob_turns if turn.step <= config.steps)})
    return next((step for step in changes if objective_at(config, step).objective.trains_classifier), None)


def classifier_learned(config: RunConfig, step: int) -> bool:
    """Whether the classifier has been trained by `step`; at step 0, whether the first step will train it."""
    first = classifier_learns_from(config)
    return first is not None and first <= max(1, step)


def scorers(config: RunConfig, evaluations: Sequence[Evaluation]) -> list[Scorer | None]:
    """What each evaluation scored; None for the random classifier of a run recorded before frames had a probe.

    Args:
        config: with the knob turns that were made.
    """
    first = classifier_learns_from(config)
    learned = [first is not None and first <= max(1, evaluation.step) for evaluation in evaluations]
    return [
        "linear probe" if evaluation.probe_rows is not None else "classifier" if known else None
        for evaluation, known in zip(evaluations, learned, strict=True)
    ]


def scored(config: RunConfig, evaluations: Sequence[Evaluation]) -> list[Evaluation]:
    """The evaluations whose scores mean something."""
    return [e for e, by in zip(evaluations, scorers(config, evaluations), strict=True) if by is not None]


def score_note(evaluation: Evaluation) -> str:
    """What a frame scored on validation, and what was scored where it is not the classifier."""
    scorer = "validation" if evaluation.probe_rows is None else "linear probe"
    return f"{scorer} {percent(evaluation.values['accuracy'])}"


def score_notes_of(config: RunConfig, evaluations: Sequence[Evaluation], steps: Sequence[int]) -> tuple[str, ...]:
    """`score_note` of each of these steps; "" where none was scored."""
    notes = {e.step: score_note(e) for e in scored(config, evaluations) if e.split == VALIDATION}
    return tuple(notes.get(step, "") for step in steps)


def classifier_note(config: RunConfig, *, over: bool = False) -> str | None:
    """A few words about a prepared run that does not train its classifier from the first step; else None.

    Args:
        over: whether the run has ended, so that no knob can be turned any more.
    """
    first = classifier_learns_from(config)
    if first == 1:
        return None
    probe = f"a linear probe, fitted on each frame's vectors of up to {PROBE_ROWS} training rows"
    if first is not None:
        return f"The classifier learns from step {first:,} on. Until then, scores are those of {probe}."
    by_weight = "lambda" in config.phases[0].objective.knobs
    why = "At λ = 1" if by_weight else "With contrastive terms alone"
    remedy = " Turn λ below 1 to train the classifier." if by_weight and not over else ""
    return f"{why} the classifier never learns. Scores are those of {probe}.{remedy}"


def predictions_note(config: RunConfig, evaluations: Sequence[Evaluation]) -> str | None:
    """A sentence about whose predictions the frames of a run hold, where it is not the classifier from the start."""
    frames = [evaluation for evaluation in evaluations if evaluation.split == VALIDATION]
    by = scorers(config, frames)
    if set(by) <= {"classifier"}:
        return None
    first = classifier_learns_from(config)
    learned = first if "classifier" in by else None
    rows = next((frame.probe_rows for frame in frames if frame.probe_rows is not None), None)
    if rows is None:
        until = "of this run has" if learned is None else f"had before step {learned:,}"
        return f"The classifier {until} learned nothing: its predictions, confidence and loss mean nothing."
    until = "The classifier has learned nothing, so" if learned is None else f"Before step {learned:,},"
    fitted = f"fitted on {rows:,} training rows at each frame"
    return f"{until} predictions, confidence and loss are a linear probe's, {fitted}."


def outcome_sentence(config: RunConfig, evaluations: Sequence[Evaluation]) -> str | None:
    """How the newest validation score compares with the linear probe of the untrained encoder; None without both.

    Where the classifier never learned, the probe of the frame is compared with that of step 0: both are fitted on the
    same rows.
    """
    given = scored(config, evaluations)
    frames = [e for e in given if e.split == VALIDATION]
    if not frames:
        return None
    last = frames[-1]
    by_probe = last.probe_rows is not None
    references = [frame for frame in frames[:-1] if frame.step == 0] if by_probe else given
    reference = next((e for e in references if by_probe or e.split == BASELINE), None)
    if reference is None:
        return None
    score, start = last.values["accuracy"], reference.values["accuracy"]
    low, high = last.values["accuracy_low"], last.values["accuracy_high"]
    relation = "level with" if score == start else "above" if score > start else "below"
    probe = "its linear probe at step 0" if by_probe else "a linear probe of the untrained encoder"
    chance = ", perhaps by chance" if low <= start <= high and score != start else ""
    interval = f"{chance}; 95% interval {percent(low)} to {percent(high)}"
    remedy = " More steps, or a higher learning rate, may lift it." if start > high and not by_probe else ""
    return f"{percent(score)} on validation, {relation} the {percent(start)} of {probe}{interval}.{remedy}"
