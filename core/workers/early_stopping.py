"""Poor runs of an experiment end early, by Ray Tune's asynchronous successive halving (ASHA).

Source: Li et al. 2020, A system for massively parallel hyperparameter tuning, arXiv:1810.05934, algorithm 2.

Nothing is remembered: at every validation score the rungs are filled again from the store, so that it does not matter
which process, or which machine, carried out the runs before.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.events import VALIDATION
from core.messages import Message
from core.store import ExperimentTable, Store

SCORE = "accuracy"
Curve = Sequence[tuple[int, float]]


@dataclass(frozen=True, slots=True)
class _Trial:
    """As Tune's scheduler knows a run."""

    trial_id: str


def is_poor(run_id: str, curves: Mapping[str, Curve], *, grace_steps: int, reduction: int, steps: int) -> bool:
    """Whether ASHA ends a run at its newest score.

    Args:
        curves: step and score of every run so far, in order of steps; higher is better.
        grace_steps: the first rung; the others are at `reduction` times the one before.
        reduction: about one of this number goes on from a rung.
        steps: of a whole run.
    """
    from ray.tune.schedulers import AsyncHyperBandScheduler

    asha = AsyncHyperBandScheduler(
        time_attr="step",
        metric="score",
        mode="max",
        grace_period=grace_steps,
        reduction_factor=reduction,
        max_t=max(steps, grace_steps),
    )

    def report(name: str) -> str:
        """Every score of a run. Returns: what becomes of it at the last."""
        trial: Any = _Trial(name)
        nobody: Any = None
        asha.on_trial_add(nobody, trial)
        decision = asha.CONTINUE
        for step, score in curves[name]:
            decision = asha.on_trial_result(nobody, trial, {"step": step, "score": score})
        return str(decision)

    for other in curves:
        if other != run_id:
            report(other)
    return report(run_id) == asha.STOP


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
