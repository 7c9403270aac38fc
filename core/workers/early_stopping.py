"""Early stopping of an experiment's poor runs, by asynchronous successive halving (ASHA).

Source: Li et al. 2020, A system for massively parallel hyperparameter tuning, arXiv:1810.05934, algorithm 2.

It keeps no state: at every validation score the rungs are computed from the store, so any process or machine may have
executed the earlier runs.
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
    """Return True if ASHA ends a run at its newest score: it reaches a rung and is not among the best there.

    Args:
        curves: step and score of every run so far, in order of steps; higher is better.
        grace_steps: step of the first rung. Each later rung is at `reduction` times the previous one.
        reduction: about 1 in `reduction` runs continues beyond a rung.
        steps: number of steps of a full run.
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
    """Assign each score of a run to the highest rung that it reaches and no earlier score occupies."""
    found: dict[int, float] = {}
    for step, score in curve:
        if free := [rung for rung in rungs if rung <= step and rung not in found]:
            found[free[-1]] = score
    return found


def reason_to_end(store: Store, run_id: str, step: int, steps: int) -> Message | None:
    """Return the reason why a run ends early at this step, in one sentence; None if it continues.

    It continues if any active experiment needs the full run.
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
        "Ended early at step {step}: its validation accuracy was not in the best 1/{reduction} of the {runs} runs "
        "that had reached this step (ASHA).",
        step=step,
        reduction=rule["reduction"],
        runs=others + 1,
    )
