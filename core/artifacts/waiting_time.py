"""Predicted times at the pace of earlier runs: of a run before its launch, and of queued runs, by a simulation."""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple

from core.advice.estimate import Estimate, assumed_flops, estimate, measured_flops
from core.config import RunConfig
from core.config.plan import plan_phase
from core.models.source import encoder_shape
from core.settings import settings
from core.store import RunSummary, Status, Store, Waiting
from core.tasks import TaskData

FEWEST_STEPS = 3
# Number of steps from which the pace or the speed of an earlier run is measured, and of the fewest that show a speed.
STEPS_READ, FEWEST_OF_SPEED = 200, 6
UNKNOWN = float("inf")


@dataclass(frozen=True, slots=True)
class Place:
    """Position of a queued run.

    Attributes:
        before: number of runs that begin before it.
        seconds, end_s: seconds until it begins and until it ends; None if unknown.
    """

    before: int
    seconds: float | None
    end_s: float | None


class RemainingTime(NamedTuple):
    """Seconds until a set of runs has ended (None if unknown), and number of other runs that begin before its last."""

    seconds: float | None
    others: int


@dataclass(frozen=True, slots=True)
class Pace:
    """Time of a run before its first step, per step, and after its last step, in seconds."""

    head_s: float
    step_s: float
    tail_s: float


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
        fits = arithmetic(run.config) == arithmetic(config) and run.last_step >= FEWEST_OF_SPEED
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


def places(store: Store, slots: int, most_of_owner: int | None = None) -> dict[str, Place]:
    """Return the position of every queued run, by id.

    Args:
        slots: number of runs active at a time; most_of_owner: limit for one visitor, None for no limit.
    """
    return _simulated_times(store, slots, most_of_owner)[0]


def remaining_time(
    store: Store, run_ids: Collection[str], slots: int, most_of_owner: int | None = None
) -> RemainingTime:
    """Return the time until all of `run_ids` have ended, including other runs that begin before them."""
    waiting, going = _simulated_times(store, slots, most_of_owner)
    of_these = [place for run_id, place in waiting.items() if run_id in run_ids]
    ends = [place.end_s for place in of_these] + [left for run_id, left in going.items() if run_id in run_ids]
    known = [end for end in ends if end is not None]
    last = max((place.before for place in of_these), default=0)
    others = sum(place.before < last and run_id not in run_ids for run_id, place in waiting.items())
    return RemainingTime(max(known, default=0.0) if len(known) == len(ends) else None, others)


def _simulated_times(
    store: Store, slots: int, most_of_owner: int | None
) -> tuple[dict[str, Place], dict[str, float | None]]:
    """Return the positions of queued runs, and the seconds left of active runs, by id."""
    runs = {run.id: run for run in store.runs()}
    pace = _pace(store, list(runs.values()))
    left = {run.id: _left_s(run, pace(run.config)) for run in runs.values() if run.status.active}
    line = [run for run in store.queued_runs() if run.id in runs]
    takes = {run.id: _whole_s(runs[run.id], pace(runs[run.id].config)) for run in line}
    # A paused run does not end by itself, but it frees its slot for a queued run.
    paused_s = 60 * settings().paused_minutes
    going = [(runs[key].owner, paused_s if runs[key].status == Status.PAUSED else s) for key, s in left.items()]
    return simulate_queue(line, takes, going, slots, most_of_owner), left


def simulate_queue(
    line: Sequence[Waiting],
    takes_s: Mapping[str, float | None],
    going: Sequence[tuple[str | None, float | None]],
    slots: int,
    most_of_owner: int | None,
) -> dict[str, Place]:
    """Simulate the queue. Times are unknown for runs that wait for a run of unknown duration.

    Args:
        line: the queued runs; takes_s: the seconds that each of them will take.
        going: owner and seconds left of each active run.
    """
    queues = dict[tuple[bool, str | None], deque[Waiting]]()
    for run in sorted(line, key=lambda one: one.queued_at):
        queues.setdefault((run.background, run.owner), deque()).append(run)
    found = dict[str, Place]()
    turns = {run.owner: run.turn_at for run in line}
    ends = [(UNKNOWN if left is None else left, place, owner) for place, (owner, left) in enumerate(going)]
    heapq.heapify(ends)
    counts = Counter(owner for owner, _ in going)
    now, turn = 0.0, max([run.turn_at for run in line], default=0.0)
    while queues:
        may = [
            queue[0]
            for (_, owner), queue in queues.items()
            if owner is None or most_of_owner is None or counts[owner] < most_of_owner
        ]
        if len(ends) >= slots or not may:
            if not ends:
                break  # there are no slots, so no run can begin
            now, _, ended = heapq.heappop(ends)
            counts[ended] -= 1
            continue
        run = min(may, key=lambda one: (one.background, turns[one.owner], one.queued_at))
        queue = queues[run.background, run.owner]
        queue.popleft()
        if not queue:
            del queues[run.background, run.owner]
        turn += 1.0
        if run.owner is not None:
            turns[run.owner] = turn
        takes = takes_s[run.id]
        end = UNKNOWN if takes is None else now + takes
        found[run.id] = Place(len(found), _known(now), _known(end))
        counts[run.owner] += 1
        heapq.heappush(ends, (end, len(going) + len(found), run.owner))
    return found


def _known(seconds: float) -> float | None:
    return None if seconds == UNKNOWN else seconds


def _pace(store: Store, runs: Sequence[RunSummary]) -> Callable[[RunConfig], Pace | None]:
    """Return a function: config → pace of the newest similar finished run, or None."""
    newest = dict[tuple[object, ...], RunSummary]()
    for run in runs:
        if run.status == Status.FINISHED and run.worked_s > 0 and run.last_step:
            for kind in _kinds(run.config):
                newest.setdefault(kind, run)
    paces = dict[str, Pace]()

    def of(config: RunConfig) -> Pace | None:
        alike = next((newest[kind] for kind in _kinds(config) if kind in newest), None)
        if alike is None:
            return None
        if alike.id not in paces:
            paces[alike.id] = pace_of(alike, store.newest_times(alike.id, STEPS_READ))
        return paces[alike.id]

    return of


def pace_of(run: RunSummary, recorded_at: Mapping[int, float]) -> Pace:
    """Measure the pace of a finished run. Args: recorded_at: step → time in seconds of its newest steps, ascending."""
    steps, times = list(recorded_at), list(recorded_at.values())
    average = run.worked_s / run.last_step
    if len(steps) < 2 or run.ended_at is None:
        return Pace(0.0, average, 0.0)
    # A pause between these steps inflates the difference, so the average is an upper limit.
    step_s = min(average, (times[-1] - times[0]) / (steps[-1] - steps[0]))
    rest = run.worked_s - step_s * run.last_step
    tail_s = min(rest, max(0.0, run.ended_at - times[-1]))
    return Pace(rest - tail_s, step_s, tail_s)


def _kinds(config: RunConfig) -> tuple[tuple[object, ...], tuple[object, ...]]:
    """Return what a run must share with another to have its pace: the same work, or else the same encoder."""
    phases = tuple((phase.batch_size, phase.trainable.part) for phase in config.phases)
    same_work = (config.encoder, config.task.id, config.precision, phases)
    return same_work, (config.encoder.id, config.precision)


def _whole_s(run: RunSummary, pace: Pace | None) -> float | None:
    steps = run.steps - (run.checkpoint_step or 0)
    return None if pace is None else pace.head_s + steps * pace.step_s + pace.tail_s


def _left_s(run: RunSummary, pace: Pace | None) -> float | None:
    """Return the seconds left of an active run, or None if unknown, as for a paused run."""
    if run.status == Status.PAUSED:
        return None
    if run.last_step < FEWEST_STEPS:
        return _whole_s(run, pace)
    if pace is None:
        return run.elapsed_s / run.last_step * (run.steps - run.last_step)
    own_s = max(0.0, run.elapsed_s - pace.head_s) / run.last_step
    return own_s * (run.steps - run.last_step) + pace.tail_s
