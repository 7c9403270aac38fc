"""The scorer of each frame: the classifier once a run trains it, a linear probe before.

A classifier that no loss has reached yet is random, and its accuracy means nothing. A linear probe scores such a frame
instead: a logistic regression on the frame's vectors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from core.config import RunConfig
from core.config.plan import objective_at
from core.events import BASELINE, VALIDATION, Evaluation
from core.messages import ENGLISH, N_, Message, Text, _, sentences
from core.quantities import percent, signed

# Training rows that the linear probe of a frame is fitted on, including those on the map.
PROBE_ROWS = 200

Scorer = Literal["classifier", "linear probe"]

# Keys: whether the score is below (-1), level with (0) or above (1) that of a linear probe of the untrained encoder,
# and whether it comes from a linear probe itself.
COMPARED = {
    (0, False): N_("{score} on validation, level with the {start} of a linear probe of the encoder before training"),
    (0, True): N_("{score} on validation, level with the {start} of the linear probe at step 0"),
    (1, False): N_("{score} on validation, above the {start} of a linear probe of the encoder before training"),
    (1, True): N_("{score} on validation, above the {start} of the linear probe at step 0"),
    (-1, False): N_("{score} on validation, below the {start} of a linear probe of the encoder before training"),
    (-1, True): N_("{score} on validation, below the {start} of the linear probe at step 0"),
}


def classifier_learns_from(config: RunConfig) -> int | None:
    """Return the first step of a prepared run that trains the classifier; None if no step does."""
    begins = [1, *(end + 1 for end in config.phase_ends[:-1])]
    later = {one.step for one in config.changes_and_turns if one.step <= config.steps}
    changes = sorted({*begins, *later})
    return next((step for step in changes if objective_at(config, step).objective.trains_classifier), None)


def classifier_learned(config: RunConfig, step: int) -> bool:
    """Return whether the classifier was trained by `step`; at step 0, whether the first step will train it."""
    first = classifier_learns_from(config)
    return first is not None and first <= max(1, step)


def scorers(config: RunConfig, evaluations: Sequence[Evaluation]) -> list[Scorer | None]:
    """Return the scorer of each evaluation; None for a random classifier in a run from before frames had a probe.

    Args:
        config: with the knob turns of the run.
    """
    first = classifier_learns_from(config) or math.inf
    return [
        "linear probe" if one.probe_rows is not None else "classifier" if first <= max(1, one.step) else None
        for one in evaluations
    ]


def scored_evaluations(config: RunConfig, evaluations: Sequence[Evaluation]) -> list[Evaluation]:
    """Return the evaluations that have a scorer, without those of a random classifier."""
    return [e for e, by in zip(evaluations, scorers(config, evaluations), strict=True) if by is not None]


def score_note(evaluation: Evaluation) -> str:
    """Format a frame's validation score, and name the linear probe if it was scored."""
    if evaluation.spearman is not None:
        return spearman_text(evaluation.spearman)
    score = percent(evaluation.values["accuracy"])
    by_probe = evaluation.probe_rows is not None
    return _("linear probe {score}", score=score) if by_probe else _("validation {score}", score=score)


def spearman_text(value: float) -> str:
    return _("Spearman {score}", score=signed(value, 3))


def score_notes_of(config: RunConfig, evaluations: Sequence[Evaluation], steps: Sequence[int]) -> tuple[str, ...]:
    """Return the `score_note` of each step; "" for a step without a score."""
    notes = {e.step: score_note(e) for e in scored_evaluations(config, evaluations) if e.split == VALIDATION}
    return tuple(notes.get(step, "") for step in steps)


def is_first_note(message: Text | None, config: RunConfig) -> bool:
    """Return whether a run's message is the `classifier_note` of its launch; λ may have been turned since."""
    notes = [classifier_note(config, scored=scored) for scored in (False, True)]
    # Older runs store it in English.
    return message in notes or message in [note.render(ENGLISH) for note in notes if note is not None]


def classifier_note(config: RunConfig, *, over: bool = False, scored: bool = False) -> Message | None:
    """Return a note on a prepared run that does not train its classifier from the first step; otherwise None.

    Args:
        over: whether the run has ended, so that no knob can be turned any more.
        scored: whether the task has similarity scores.
    """
    if scored or any(term.entry.reads == "scores" for term in config.phases[0].objective.terms):
        return Message(
            "No classifier is trained. The score is Spearman's ρ between the cosines of the pairs and their scores."
        )
    first = classifier_learns_from(config)
    if first == 1:
        return None
    if first is not None:
        return Message(
            "The classifier is trained from step {step:,}. Until then, scores come from a linear probe, fitted on "
            "each frame's vectors of up to {rows} training rows.",
            step=first,
            rows=PROBE_ROWS,
        )
    by_weight = "lambda" in config.phases[0].objective.knobs
    cause = Message("At λ = 1 the classifier is not trained.")
    if not by_weight:
        cause = Message("With contrastive terms alone the classifier is not trained.")
    scores = Message(
        "Scores come from a linear probe, fitted on each frame's vectors of up to {rows} training rows.",
        rows=PROBE_ROWS,
    )
    note = Message("{first} {next}", first=cause, next=scores)
    if over or not by_weight:
        return note
    return Message("{first} {next}", first=note, next=Message("Set λ below 1 to train the classifier."))


def predictions_note(config: RunConfig, evaluations: Sequence[Evaluation]) -> str | None:
    """Return a sentence about the source of the predictions in a run's frames; None if it is always the classifier."""
    frames = [evaluation for evaluation in evaluations if evaluation.split == VALIDATION]
    by = scorers(config, frames)
    if set(by) <= {"classifier"}:
        return None
    first = classifier_learns_from(config)
    learned = first if "classifier" in by else None
    rows = next((frame.probe_rows for frame in frames if frame.probe_rows is not None), None)
    if rows is None and learned is None:  # recorded before frames had a probe
        return _(
            "The classifier of this run has learned nothing, so its predictions, confidence and loss mean nothing."
        )
    if rows is None:
        return _(
            "Before step {step:,} the classifier had learned nothing, so its predictions, confidence and loss mean "
            "nothing.",
            step=learned,
        )
    if learned is None:
        return _(
            "The classifier has learned nothing. Predictions, confidence and loss come from a linear probe, fitted "
            "on {rows:,} training rows at each frame.",
            rows=rows,
        )
    return _(
        "Before step {step:,}, predictions, confidence and loss come from a linear probe, fitted on {rows:,} "
        "training rows at each frame.",
        step=learned,
        rows=rows,
    )


def outcome_sentence(config: RunConfig, evaluations: Sequence[Evaluation]) -> str | None:
    """Compare the newest validation score with the linear probe of the untrained encoder; None if either is missing.

    If the classifier never learned, the frame's linear probe is compared with that of step 0. Both are fitted on the
    same rows.
    """
    given = scored_evaluations(config, evaluations)
    frames = [e for e in given if e.split == VALIDATION]
    if not frames:
        return None
    last = frames[-1]
    if last.spearman is not None:
        untrained = frames[0].spearman
        if last.step == 0 or frames[0].step or untrained is None:
            return None
        values = {"score": signed(last.spearman, 3), "start": signed(untrained, 3)}
        return _("Spearman's ρ on validation: {score}, and {start} before the first step.", **values)
    by_probe = last.probe_rows is not None
    references = [frame for frame in frames[:-1] if frame.step == 0] if by_probe else given
    reference = next((e for e in references if by_probe or e.split == BASELINE), None)
    if reference is None:
        return None
    score, start = last.values["accuracy"], reference.values["accuracy"]
    low, high = last.values["accuracy_low"], last.values["accuracy_high"]
    relation = (score > start) - (score < start)
    comparison = _(COMPARED[relation, by_probe], score=percent(score), start=percent(start))
    known = {"comparison": comparison, "low": percent(low), "high": percent(high)}
    sentence = _("{comparison}; 95% interval {low} to {high}.", **known)
    if low <= start <= high and score != start:
        sentence = _(
            "{comparison}. The score’s 95% interval, {low} to {high}, includes the probe’s {start}, so the "
            "difference may be chance.",
            start=percent(start),
            **known,
        )
    remedy = [_("More steps or a higher learning rate may help.")] if start > high and not by_probe else []
    return sentences([sentence, *remedy])
