"""Estimates of the time and memory of a run on this machine, from the speed of earlier runs."""

from __future__ import annotations

from functools import lru_cache
from operator import attrgetter

from core.advice.estimate import Estimate, assumed_flops, estimate, measured_flops
from core.config import RunConfig
from core.config.plan import plan_phase
from core.models.source import encoder_shape
from core.store import Status, Store
from core.tasks import TaskData

# Number of steps that measure a run's speed, and number of steps that a run must exceed to be used.
STEPS_READ, FEWEST_STEPS = 200, 5


def estimate_run(store: Store, config: RunConfig, data: TaskData, *, gpu: bool) -> Estimate:
    """Estimate time and memory of a prepared run from the speed of the newest similar run, or from an assumed speed."""
    flops = measured_speed(store, config)
    speed = flops or assumed_flops(gpu and config.device != "cpu")
    return estimate(config, data, encoder_shape(config.encoder.id), speed, measured=flops is not None)


def measured_speed(store: Store, config: RunConfig) -> float | None:
    """Return the speed, in FLOP/s, of the newest run that finished here with the same encoder, precision and hardware.

    Only runs that computed the whole encoder at every step count. Returns: None if there is no such run.
    """
    arithmetic = attrgetter("encoder.id", "precision", "device", "processes")
    for run in store.runs():
        fits = arithmetic(run.config) == arithmetic(config) and run.last_step > FEWEST_STEPS
        if run.status == Status.FINISHED and fits and not run.adopted and _computes_all(run.config):
            flops = _run_flops(store, run.id, run.begun_attempt)
            if flops is not None:
                return flops
    return None


@lru_cache(maxsize=256)
def _computes_all(config: RunConfig) -> bool:
    """Return whether the token count determines a run's work: one phase, nothing frozen, nothing encoded twice."""
    phase = config.phases[0]
    plain = phase.micro_batch is None and not phase.gradient_checkpointing and phase.trainable.part in ("all", "lora")
    plan = plan_phase(phase.objective, encoder_shape(config.encoder.id).blocks)
    return len(config.phases) == 1 and plain and plan.readings == len(plan.passes)


@lru_cache(maxsize=64)
def _run_flops(store: Store, run_id: str, attempt: int) -> float | None:
    run = store.run(run_id)
    steps = store.steps(run_id, most=STEPS_READ)
    return measured_flops(steps, encoder_shape(run.config.encoder.id), run.config.phases[0].trainable)
