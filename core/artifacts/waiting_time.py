"""When a queued run will begin: the line is played through at the pace of earlier runs. Imports no torch."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from core.config import RunConfig
from core.store import RunSummary, Status, Store, Waiting

FEWEST_STEPS = 3


@dataclass(frozen=True, slots=True)
class Place:
    """A queued run's place in the line: how many begin before it, and in how many seconds it will; None: unknown."""

    before: int
    seconds: float | None


def places(store: Store, slots: int, most_of_owner: int | None = None) -> dict[str, Place]:
    """The place of every run that waits, by id.

    Args:
        slots: runs that go on at a time; most_of_owner: of one visitor; None for any number.
    """
    runs = {run.id: run for run in store.runs()}
    pace = _pace(list(runs.values()))
    going = [(run.owner, _left_s(run, pace)) for run in runs.values() if run.status.active]
    takes = {run.id: _whole_s(runs[run.id], pace) for run in store.line() if run.id in runs}
    return played([run for run in store.line() if run.id in takes], takes, going, slots, most_of_owner)


def played(
    line: Sequence[Waiting],
    takes_s: Mapping[str, float | None],
    going: Sequence[tuple[str | None, float | None]],
    slots: int,
    most_of_owner: int | None,
) -> dict[str, Place]:
    """Play the line through. Once something of unknown length has to end first, times are unknown.

    Args:
        line: the runs that wait; takes_s: the seconds that each of them will take.
        going: owner and seconds left of each run that goes on.
    """
    waiting, found = list(line), dict[str, Place]()
    turns = {run.owner: run.turn_at for run in line}
    ends = [(float("inf") if left is None else left, place, owner) for place, (owner, left) in enumerate(going)]
    heapq.heapify(ends)
    now, turn = 0.0, max([run.turn_at for run in line], default=0.0)
    while waiting:
        counts = Counter(owner for _, _, owner in ends)
        free = len(ends) < slots
        may = [
            run for run in waiting if run.owner is None or most_of_owner is None or counts[run.owner] < most_of_owner
        ]
        if not free or not may:
            if not ends:
                break  # nothing can begin: there are no slots
            now, _, _ = heapq.heappop(ends)
            continue
        run = min(may, key=lambda one: (one.background, turns[one.owner], one.queued_at))
        waiting.remove(run)
        turn += 1.0
        if run.owner is not None:
            turns[run.owner] = turn
        found[run.id] = Place(len(found), None if now == float("inf") else now)
        takes = takes_s[run.id]
        heapq.heappush(ends, (float("inf") if takes is None else now + takes, len(going) + len(found), run.owner))
    return found


def _pace(runs: Sequence[RunSummary]) -> Callable[[RunConfig], float | None]:
    """Seconds per step of the newest finished run that is most like a config; None where none was measured."""
    finished = [run for run in runs if run.status == Status.FINISHED and run.worked_s > 0 and run.last_step]

    def of(config: RunConfig) -> float | None:
        for alike in (_work_of, _encoder_of):
            for run in finished:
                if alike(run.config) == alike(config):
                    return run.worked_s / run.last_step
        return None

    return of


def _work_of(config: RunConfig) -> tuple[object, ...]:
    phases = tuple((phase.batch_size, phase.trainable.part) for phase in config.phases)
    return (config.encoder, config.task.id, config.precision, phases)


def _encoder_of(config: RunConfig) -> tuple[object, ...]:
    return (config.encoder.id, config.precision)


def _whole_s(run: RunSummary, pace: Callable[[RunConfig], float | None]) -> float | None:
    per_step = pace(run.config)
    return None if per_step is None else per_step * (run.steps - (run.checkpoint_step or 0))


def _left_s(run: RunSummary, pace: Callable[[RunConfig], float | None]) -> float | None:
    """Of a run that goes on; nobody knows how long a pause lasts."""
    if run.status == Status.PAUSED:
        return None
    if run.last_step >= FEWEST_STEPS:
        return run.elapsed_s / run.last_step * (run.steps - run.last_step)
    return _whole_s(run, pace)
