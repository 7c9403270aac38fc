"""Poor runs of an experiment end early, by asynchronous successive halving (ASHA).

Source: Li et al. 2020, A system for massively parallel hyperparameter tuning, arXiv:1810.05934, algorithm 2.

Nothing is remembered: at every validation score the rungs are filled again from the store, so that it does not matter
which process, or which machine, carried out the runs before.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np

from core.events import VALIDATION
from core.messages import Message
from core.store import ExperimentTable, Store

SCORE = "accuracy"
Curve = Sequence[tuple[int, float]]


def is_poor(run_id: str, curves: Mapping[str, Curve], *, grace_steps: int, reduction: int, steps: int) -> bool:
    """Whether ASHA ends a run at its newest score: on the rung that it reaches, it is not among the best.

    Args:
        curves: step and score of every run so far, in order of steps; higher is better.
        grace_steps: the first rung; the others are at `reduction` times the one before.
        reduction: about one of this number goes on from a rung.
        steps: of a whole run.
    """
    rungs = [grace_steps]
    while rungs[-1] * reduction <= steps:
        rungs.append(rungs[-1] * reduction)
    before = _by_rung(curves[run_id][:-1], rungs)
    reached = {rung: score for rung, score in _by_rung(curves[run_id], rungs).items() if rung not in before}
    for rung, score in reached.items():
        others = [_by_rung(curve, rungs).get(rung) for name, curve in curves.items() if name != run_id]
        known = [other for other in others if other is not None]
        return bool(known and score < np.percentile(known, 100 * (1 - 1 / reduction)))
    return False


def _by_rung(curve: Curve, rungs: Sequence[int]) -> dict[int, float]:
    """The scores of a run, each at the highest rung that it reaches and that no earlier score has taken."""
    found: dict[int, float] = {}
    for step, score in curve:
        if free := [rung for rung in rungs if rung <= step and rung not in found]:
            found[free[-1]] = score
    return found


def reason_to_end(store: Store, run_id: str, step: int, steps: int) -> Message | None:
    """Why a run ends early at this step, in a sentence; None where it goes on.

    It goes on where an experiment that is going on needs it whole.
    """
    table = ExperimentTable(store.folder)
    experiments = [one for one in table.of_run(run_id) if one.wanted]
    if step >= steps or not experiments:
        return None
    for experiment in experiments:
        rule = json.loads(experiment.design).get("early_stopping")
        if rule is None:
            return None
        scored = table.evaluations(experiment.id, VALIDATION)
        curves = {
            name: [(one.step, one.values[SCORE]) for one in found if 0 < one.step < steps]
            for name, found in scored.items()
        }
        if not curves.get(run_id) or not is_poor(run_id, curves, steps=steps, **rule):
            return None
        others = sum(any(at >= step for at, _score in curve) for name, curve in curves.items() if name != run_id)
    return Message(
        "Ended early at step {step}: by validation accuracy it was not among the best 1 in {reduction} of the {runs} "
        "runs that had come as far (ASHA).",
        step=step,
        reduction=rule["reduction"],
        runs=others + 1,
    )
