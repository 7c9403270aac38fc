"""Work on the cells of a surface: one process trains all cells of a seed at once."""

from __future__ import annotations

import traceback
from collections.abc import Iterator

from core.errors import StaleAttemptError
from core.events import Finished
from core.store import ExperimentTable, Status, Store
from core.store.attempt import Attempt
from core.store.liveness import liveness_of
from core.training.checkpoints import Checkpoints
from core.training.shared_trunk import Cell, Surface
from core.training.untrained import FolderCache
from core.workers.failures import end_with_error
from core.workers.processes import log
from core.workers.recorder import Recorder
from core.workers.run_controls import controlled
from core.workers.run_rows import TaskSource


def carry_cells(store: Store, first: Attempt, slot: int) -> Status:
    """Train a claimed cell together with the queued cells of its surface that have the same seed.

    Returns: FINISHED if every cell finished.
    """
    attempts = [first, *_claim_others(store, first.run_id, slot)]
    statuses: dict[int, Status] = {}
    with controlled(store, attempts) as controls:
        cells, recorders = list[Cell](), list[Recorder]()
        source = TaskSource(store.folder)
        for attempt, state in zip(attempts, controls, strict=True):
            attempt.register()
            config = store.run(attempt.run_id).effective
            data = source.rows_of(config.task, config.seed)
            checkpoints = Checkpoints(attempt.folder, config.checkpoint.every_steps, attempt.check)
            cells.append(Cell(config, data, state, checkpoints, state.is_paused))
            recorders.append(Recorder(store, attempt))
        dropped: set[int] = set()
        try:
            for number, event in Surface(cells, FolderCache(store.cache_folder), dropped).events():
                if number in dropped:
                    continue
                try:
                    if isinstance(event, Exception):
                        raise event
                    recorders[number].record(event)
                except StaleAttemptError as error:
                    log(str(error))
                    dropped.add(number)
                except Exception as error:
                    log("".join(traceback.format_exception(error)))
                    end_with_error(store, attempts[number], error)
                    statuses[number] = Status.FAILED
                    dropped.add(number)
                if isinstance(event, Finished):
                    statuses[number] = Status(event.status)
        except BaseException as error:
            log(traceback.format_exc())
            for number, attempt in enumerate(attempts):
                if number not in statuses and number not in dropped:
                    end_with_error(store, attempt, error)
    whole = len(statuses) == len(attempts) and set(statuses.values()) == {Status.FINISHED}
    return Status.FINISHED if whole else Status.FAILED


def _claim_others(store: Store, run_id: str, slot: int) -> Iterator[Attempt]:
    """Claim the queued cells of the same surface and seed, which share the slot."""
    for experiment_id, seed in ExperimentTable(store.folder).cells_of(run_id):
        runs = ExperimentTable(store.folder).runs(experiment_id)
        wanted = {run.run_id for run in runs if run.seed == seed and run.status == Status.QUEUED and run.run_id}
        while (claim := store.claim_next([slot], liveness_of(), among=wanted)) is not None:
            yield store.attempt(claim.id, claim.attempt)
