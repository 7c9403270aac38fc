"""The contrastive term that a run's verdict judges, averaged over the newest steps."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from core.config.objective import ObjectiveConfig, TermConfig
from core.events import OfTerm, Step
from core.parameters import number
from core.representation.verdict import Contrast

# Single batches vary, so the newest steps with the same knob values are averaged.
NEWEST_STEPS = 10


def newest_contrast(steps: Sequence[Step], objective: ObjectiveConfig, classes: int) -> Contrast | None:
    """Return the first contrastive term with a weight above 0, else the first; None if the newest step has none.

    Args:
        steps: steps of a run so far, in order.
        objective: objective of the newest step.
        classes: number of classes of the task.
    """
    newest = [step.values for step in steps[-NEWEST_STEPS:] if _knobs(step) == _knobs(steps[-1])]
    terms = zip(objective.keys, objective.terms, strict=True)
    known = [(key, term) for key, term in terms if newest and OfTerm.COLLAPSE_LINE.of(key) in newest[-1]]
    if not known:
        return None
    key, term = next(((key, term) for key, term in known if term.weight > 0), known[0])
    # A batch without positives has a loss of 0, which means nothing.
    of_term = [values for values in newest if values.get(OfTerm.ACTIVE_ANCHORS.of(key), 1.0) > 0]
    if not of_term:
        return None
    # The limit that τ sets follows from the means of line and bound.
    limited = bool(term.parameters.get("normalize", True)) and term.parameters.get("reduction") != "sum"
    # Line and bound may differ between batches, as with tokens or uneven classes. The difference of means is the mean
    # of differences, so each batch is compared with its own line.
    return Contrast(
        loss=fmean(values[OfTerm.LOSS.of(key)] for values in of_term),
        line=fmean(values[OfTerm.COLLAPSE_LINE.of(key)] for values in of_term),
        bound=fmean(values.get(OfTerm.LOWER_BOUND.of(key), 0.0) for values in of_term),
        steps=len(of_term),
        temperature=number(term.parameters, "temperature") if limited else None,
        classes=classes if term.entry.uses_labels else None,
        weight=term.weight,
        shown=compares_pooled_vectors(term),
    )


def compares_pooled_vectors(term: TermConfig) -> bool:
    """Return whether a term contrasts the last block's pooled vectors, unprojected: those that frames hold."""
    plain = term.entry.reads == "vectors" and term.level == "sentence" and term.layers == "last"
    projected = term.parameters.get("projection", "none") != "none"
    return plain and not projected and not any(view.entry.kind == "layers" for view in term.views)


def _knobs(step: Step) -> tuple[float | None, ...]:
    return tuple(step.values.get(name) for name in ("phase", "lambda", "temperature"))
