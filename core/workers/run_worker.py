"""Worker process of a run: trains, and writes every event to the store."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from itertools import count
from pathlib import Path

import torch

from core.config import RunConfig
from core.errors import PlaygroundError, StaleAttemptError, TrainingError
from core.events import Event, Finished, Started
from core.messages import Message
from core.store import ExperimentTable, Status, Store
from core.store.attempt import Attempt
from core.store.budget import keep_within, missing_sentence, over_budget_sentence
from core.store.liveness import liveness_of
from core.store.work import Claim
from core.tasks import TaskData
from core.training.checkpoints import Checkpoints
from core.training.fine_tune import fine_tune
from core.training.shared_trunk import Cell, Surface
from core.training.untrained import FolderCache
from core.weight_files import checkpoint_path
from core.workers.engine import build_engine
from core.workers.failures import end_with_error
from core.workers.followers import ranks_of
from core.workers.limits import most_of_visitor
from core.workers.machine import gpu_ids
from core.workers.processes import code_stamp, log, print_into
from core.workers.recorder import Recorder
from core.workers.run_controls import ControlState, controlled
from core.workers.run_rows import TaskSource

EXIT_FINISHED, EXIT_ENDED = 0, 1
# Limit on consecutive runs in one process. Its exit frees memory that libraries leaked.
MOST_RUNS = 50
PROCESS_STATUS, CLEAR_REFS = Path("/proc/self/status"), Path("/proc/self/clear_refs")
# A run need not fail because a busy machine or a long transaction keeps the database locked.
BUSY_TIMEOUT_S = 120.0
RESET_PEAK = "5"  # see proc_pid_clear_refs(5)


def work(store_folder: Path, claim: Claim) -> int:
    """Execute a claimed run, then start the next one in the queue.

    Runs of experiments, which are many and short, follow each other in this process, so that they reuse its libraries,
    threads and memory.

    Returns: exit status, 0 only if the last run finished. Every failure is recorded in the store as a plain message.
    """
    store, code = Store(store_folder, busy_timeout_s=BUSY_TIMEOUT_S), code_stamp()
    gc.freeze()  # exempts the libraries, which would add half a second to the collection after each run
    for carried in count(1):
        status = _carry(store, store.attempt(claim.id, claim.attempt), claim.slot)
        if status is None:
            return EXIT_ENDED
        may_follow = status == Status.FINISHED and carried < MOST_RUNS and code_stamp() == code
        following = _claim_next_here(store, claim) if may_follow else None
        if following is None:
            break
        claim = following
        print_into(store.log_path(claim.id))
    try:
        build_engine(store).dispatch()
    except PlaygroundError as error:
        log(str(error))
    return EXIT_FINISHED if status == Status.FINISHED else EXIT_ENDED


def _carry(store: Store, attempt: Attempt, slot: int) -> Status | None:
    """Execute a run. Returns: its final status; None if a later attempt has replaced this one."""
    status = Status.FAILED
    try:
        if gpu_ids():
            own = gpu_ids()[slot : slot + store.run(attempt.run_id).config.processes]
            os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(own)
        attempt.register()
        make_room(store, attempt)
        config = store.run(attempt.run_id).effective
        if config.on_shared_trunk:
            return _carry_cells(store, attempt, slot)
        recorder = Recorder(store, attempt)
        with controlled(store, [attempt]) as (state,):
            events = training_events(
                config,
                TaskSource(store.folder).rows_of(config.task, config.seed),
                attempt.folder,
                guard=attempt.check,
                controls=state,
                cache=store.cache_folder,
                translations=store.cache_folder / "translations.db",
                start=start_of(store, config),
                log=log,
            )
            with closing(events):
                for event in events:
                    recorder.record(event)
        assert isinstance(event, Finished)
        status = Status(event.status)
    except StaleAttemptError as error:
        log(str(error))
        return None
    except BaseException as error:
        log(traceback.format_exc())
        end_with_error(store, attempt, error)
    make_room(store)
    # Free memory before another run begins, which may overlap with the exit of this process.
    gc.collect()
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()
    return status


def _carry_cells(store: Store, first: Attempt, slot: int) -> Status:
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


def _claim_next_here(store: Store, ended: Claim) -> Claim | None:
    """Claim the next run for this process, if both runs belong to experiments and use one process."""
    try:
        run = store.run(ended.id)
        if not run.of_experiment or run.config.processes > 1:
            return None
        return store.claim_next(
            [ended.slot],
            liveness_of(),
            most_of_visitor(),
            accepts=lambda config, of_experiment: of_experiment and config.processes == 1,
        )
    except PlaygroundError as error:  # the ended run may be deleted already; the next one then starts in a new process
        log(str(error))
        return None


def work_in_log(store_folder: Path, claim: Claim) -> int:
    """Call `work` with this process's output redirected to the run's log."""
    print_into(Store(store_folder).log_path(claim.id))
    return work(store_folder, claim)


def training_events(
    config: RunConfig,
    data: TaskData,
    weights: Path,
    *,
    guard: Callable[[], None] = lambda: None,
    controls: ControlState,
    cache: Path,
    translations: Path,
    start: Path | None,
    log: Callable[[str], None],
) -> Generator[Event, None, None]:
    """Train a run on this machine, in as many processes as its config requests. A pause takes effect between events.

    Args:
        weights: the folder of its checkpoint.
        guard: see `Checkpoints`.
        cache: the folder for results computed before training.
        translations, start, log: see `fine_tune`.
    Yields: the run's events.
    """
    checkpoints, memory, device = Checkpoints(weights, config.checkpoint.every_steps, guard), PeakMemory(), "cpu"
    with ranks_of(config, data, weights=weights, start=start, translations=translations) as ranks:
        for event in fine_tune(
            config,
            data,
            checkpoints,
            controls=controls,
            cache=FolderCache(cache),
            translations=translations,
            start=start,
            log=log,
            ranks=ranks,
        ):
            if isinstance(event, Started):
                device = event.device
            if isinstance(event, Finished) and (peak := memory.read_bytes(device)) is not None:
                yield replace(event, values={**event.values, "peak_memory": float(peak)})
            else:
                yield event
            controls.wait_while_paused()


class PeakMemory:
    """The largest memory that this process needs from now on, beyond what it holds now.

    A process carries out several runs. Memory that an earlier run freed is therefore returned to the system first, and
    the peak starts again.
    """

    def __init__(self) -> None:
        gc.collect()
        with suppress(OSError, AttributeError):  # glibc alone keeps freed memory, and has this function
            ctypes.CDLL(None).malloc_trim(0)
        if torch.cuda.is_initialized():
            torch.cuda.reset_peak_memory_stats()
        self._before: int | None = None
        with suppress(OSError):  # only Linux has these files
            CLEAR_REFS.write_text(RESET_PEAK)
            self._before = _status_bytes("VmRSS")

    def read_bytes(self, device: str) -> int | None:
        """Return the peak so far.

        Args:
            device: of the run. On CUDA the peak is that of the tensors on the GPU; elsewhere, that of the resident
                memory of this process beyond what it held before.
        Returns: bytes; None if this system does not report it.
        """
        if torch.device(device).type == "cuda":
            return torch.cuda.max_memory_allocated()
        return None if self._before is None else max(0, _status_bytes("VmHWM") - self._before)


def _status_bytes(name: str) -> int:
    """Return a field of this process's status file, in bytes."""
    line = next(line for line in PROCESS_STATUS.read_text().splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1]) * 1024


def start_of(store: Store, config: RunConfig) -> Path | None:
    """Return the file of weights that a run starts from, or None. Raises: RunNotFoundError, TrainingError."""
    if config.start is None:
        return None
    source = store.run(config.start)
    path = checkpoint_path(store.run_folder(source.id))
    if source.status != Status.FINISHED or source.weights_dropped_at is not None or not path.exists():
        remedy = missing_sentence(source) or Message("run it to its end first.")
        raise TrainingError(
            "{title}, from which this run starts, has no weights: {remedy}",
            title=source.title,
            remedy=remedy,
        )
    return path


def make_room(store: Store, attempt: Attempt | None = None) -> None:
    """Apply the disk budget. If the runs still exceed it, say so in the message of the run that begins."""
    try:
        excess = keep_within(store)
        if excess and attempt is not None:
            attempt.notice(Message("When this run started: {sentence}", sentence=over_budget_sentence(excess)))
    except PlaygroundError as error:
        log(str(error))


def main(arguments: Sequence[str]) -> int:
    """`python -m core.workers.run_worker STORE RUN ATTEMPT SLOT`."""
    store_folder, run_id, attempt, slot = arguments
    return work(Path(store_folder), Claim(run_id, int(attempt), int(slot)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
