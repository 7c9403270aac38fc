"""Worker process of a run: trains, and writes every event to the store."""

from __future__ import annotations

import gc
import os
import sys
import traceback
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import count
from pathlib import Path

import torch

from core.config import RunConfig
from core.errors import PlaygroundError, StaleAttemptError, TrainingError
from core.events import Event, Finished, Started
from core.messages import Message
from core.store import Status, Store
from core.store.attempt import Attempt
from core.store.budget import keep_within, missing_sentence, over_budget_sentence
from core.store.liveness import liveness_of
from core.store.work import Claim
from core.tasks import TaskData
from core.training.checkpoints import Checkpoints
from core.training.fine_tune import fine_tune
from core.training.untrained import FolderCache
from core.weight_files import checkpoint_path
from core.workers.engine import build_engine
from core.workers.failures import end_with_error
from core.workers.followers import ranks_of
from core.workers.limits import most_of_visitor
from core.workers.machine import gpu_ids
from core.workers.peak_memory import PeakMemory
from core.workers.processes import code_stamp, log, print_into
from core.workers.recorder import Recorder
from core.workers.run_controls import ControlState, controlled
from core.workers.run_rows import TaskSource
from core.workers.surface_worker import carry_cells

EXIT_FINISHED, EXIT_ENDED = 0, 1
# Limit on consecutive runs in one process. Its exit frees memory that libraries leaked.
MOST_RUNS = 50


def work(store_folder: Path, claim: Claim) -> int:
    """Execute a claimed run, then start the next one in the queue.

    Runs of experiments, which are many and short, follow each other in this process, so that they reuse its libraries,
    threads and memory.

    Returns: exit status, 0 only if the last run finished. Every failure is recorded in the store as a plain message.
    """
    store, code = Store(store_folder), code_stamp()
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
            return carry_cells(store, attempt, slot)
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
