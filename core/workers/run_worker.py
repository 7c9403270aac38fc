"""One attempt at one run, in a process of its own: train, and write every event into the store."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from core.config import RunConfig
from core.errors import PlaygroundError, StaleAttemptError, StoreError, TrainingError
from core.events import (
    Checkpointed,
    Evaluation,
    Event,
    Finished,
    Frame,
    KnobTurned,
    Notice,
    Predictions,
    Started,
    Step,
    Tokens,
    TurnRefused,
)
from core.representation.projections import Points, pca_map
from core.settings import PREFIX
from core.store import RunRecord, Status, Store
from core.store.budget import keep_within, missing_sentence, over_budget_sentence
from core.store.liveness import HEARTBEAT_S
from core.store.store import Attempt
from core.tasks import TaskData
from core.training.checkpoints import Checkpoints
from core.training.half_precision import halve_weights
from core.training.loop import train
from core.training.untrained import FolderCache
from core.training.weight_files import checkpoint_path, snapshot_steps
from core.workers.job_kinds import Progress
from core.workers.machine import gpu_ids
from core.workers.run_rows import TaskSource

POLL_S = 0.2
EXIT_FINISHED, EXIT_ENDED = 0, 1
# What CPU, CUDA and MPS say when memory is short, where they raise no class of its own.
MEMORY_SIGNS = ("out of memory", "can't allocate memory", "not enough memory", "status_alloc_failed")


def work(store_folder: str, run_id: str, attempt_number: int, slot: int) -> int:
    """Carry a claimed run to its end, then start the next one in the queue.

    Returns: exit status, 0 only for a finished run. Every failure ends in the store as a plain message.
    """
    store = Store(store_folder)
    attempt = store.attempt(run_id, attempt_number)
    status = Status.FAILED
    try:
        if gpu_ids():
            os.environ["CUDA_VISIBLE_DEVICES"] = gpu_ids()[slot]
        attempt.register()
        _make_room(store, attempt)
        with Link(store, run_id, attempt_number) as link:
            status = _train(store, attempt, link)
    except StaleAttemptError as error:
        _log(str(error))
        return EXIT_ENDED
    except BaseException as error:
        _log(traceback.format_exc())
        _fail(store, attempt, error)
    _make_room(store)
    _start_next(store)
    return EXIT_FINISHED if status == Status.FINISHED else EXIT_ENDED


def job(request: dict[str, Any], store_folder: Path, progress: Progress) -> dict[str, Any]:
    """Carry out a claimed run, in a process forked for it, with the settings of whoever claimed it.

    Args:
        request: "run", "attempt", "slot", and "settings", environment variables that begin with SCL_.
        progress: unused; a run reports to the store.
    Returns: "status", the exit status of `work`.
    """
    for name in [name for name in os.environ if name.startswith(PREFIX)]:
        del os.environ[name]
    os.environ.update(request["settings"])
    run_id = str(request["run"])
    log = _open_log(Store(store_folder).log_path(run_id))
    os.dup2(log, 1)
    os.dup2(log, 2)
    return {"status": work(str(store_folder), run_id, int(request["attempt"]), int(request["slot"]))}


def _open_log(path: Path) -> int:
    """A descriptor that appends to a file, never a pipe, so that a worker outlives everybody."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o644)


def _train(store: Store, attempt: Attempt, link: Link) -> Status:
    run = store.run(attempt.run_id)
    config = store.effective_config(run.id)
    data = TaskSource(store.folder).kept(config.task, config.seed)
    checkpoints = Checkpoints(attempt.folder, config.checkpoint.every_steps, guard=attempt.check)
    recorder = Recorder(store, attempt)
    events = train(
        config,
        data,
        controls=link,
        checkpoints=checkpoints,
        cache=FolderCache(store.cache_folder),
        translations=store.cache_folder / "translations.db",
        start=_start_of(store, config),
        resume=checkpoints.step() is not None,
    )
    ended: Finished | None = None
    for event in events:
        if isinstance(event, Finished):
            ended = event
        else:
            recorder.record(event)
        link.wait_while_paused()
    assert ended is not None
    if ended.status == Status.FINISHED:
        _halve_weights(
            store, store.run(run.id), data, checkpoints
        )  # before anybody takes them for those of a finished run
    recorder.record(ended)
    return Status(ended.status)


def _start_of(store: Store, config: RunConfig) -> Path | None:
    """The weights that a run starts from. Raises: RunNotFoundError, TrainingError."""
    if config.start is None:
        return None
    source = store.run(config.start)
    path = checkpoint_path(store.run_folder(source.id))
    if source.status != Status.FINISHED or source.weights_dropped_at is not None or not path.exists():
        remedy = missing_sentence(source) or "run it to its end first."
        raise TrainingError(f"{source.title}, from which this run starts, has no weights to start from: {remedy}")
    return path


def _halve_weights(store: Store, run: RunRecord, data: TaskData, checkpoints: Checkpoints) -> None:
    """Store the weights in half precision; where that goes wrong they stay whole, and the run is no worse for it."""
    assert run.probe is not None
    assert run.device is not None
    # Frames predict the probe, which is the whole validation split unless that is large.
    whole_split = run.probe.held_out == len(data.validation)
    steps = {*snapshot_steps(checkpoints.folder), run.steps}.intersection(store.frame_steps(run.id))
    try:
        known = {step: store.logits(run.id, step)[: run.probe.held_out].argmax(1) for step in steps if whole_split}
        for note in halve_weights(checkpoints, run.config, data, run.device, known):
            _log(note)
    except StaleAttemptError:
        raise
    except Exception:
        _log(traceback.format_exc())


def _make_room(store: Store, attempt: Attempt | None = None) -> None:
    """Apply the disk budget; a run that begins although there is no room left says so."""
    try:
        excess = keep_within(store)
        if excess and attempt is not None:
            attempt.notice(f"When this run started: {over_budget_sentence(excess)}")
    except PlaygroundError as error:
        _log(str(error))


class Recorder:
    """Writes events into the store; draws each frame's map onto the one before."""

    def __init__(self, store: Store, attempt: Attempt) -> None:
        self._store, self._attempt = store, attempt
        self._frames: set[int] = set()
        self._last_map: Points | None = None

    def record(self, event: Event) -> None:
        attempt = self._attempt
        match event:
            case Started():
                attempt.started(event)
                self._frames = set(self._store.frame_steps(attempt.run_id))
                self._last_map = self._newest_map()
            case Tokens():
                attempt.tokens(event)
            case Step():
                attempt.steps([event])
            case Frame() if event.step not in self._frames:  # a resumed run yields its last frame again
                self._last_map = pca_map(event.embeddings, self._last_map)
                attempt.frame(event, self._last_map)
                self._frames.add(event.step)
            case Evaluation():
                attempt.evaluation(event.step, event.split, event.values)
            case Predictions():
                attempt.predictions(event)
            case KnobTurned():
                attempt.knob_turned(event.step, event.name, event.value)
            case Checkpointed():
                attempt.checkpointed(event.step)
            case TurnRefused():
                _log(event.message)
                attempt.turn_refused(event.name, event.value, event.message)
            case Notice():
                _log(event.message)
                attempt.notice(event.message)
            case Finished():
                attempt.end(Status(event.status))

    def _newest_map(self) -> Points | None:
        """The map of the newest frame that can be read."""
        for step in sorted(self._frames, reverse=True):
            try:
                return self._store.map_points(self._attempt.run_id, step)
            except StoreError as error:
                _log(str(error))
        return None


class Link:
    """The worker's line to the store: beats, and hears what is asked, however long a step takes.

    It is the `Controls` of the training loop.
    """

    def __init__(self, store: Store, run_id: str, attempt_number: int) -> None:
        self._store, self._run_id, self._number = store, run_id, attempt_number
        self._closed, self._stop, self._awake = threading.Event(), threading.Event(), threading.Event()
        self._awake.set()
        self._turns: list[tuple[str, float]] = []
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._listen, name="link", daemon=True)

    def __enter__(self) -> Link:
        # A polite kill is a stop: it leaves a checkpoint.
        self._previous = signal.signal(signal.SIGTERM, lambda *_: self._ask_stop())
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGTERM, self._previous)
        self._closed.set()
        self._thread.join(timeout=10)

    def stop_requested(self) -> bool:
        return self._stop.is_set()

    def take_turns(self) -> Sequence[tuple[str, float]]:
        with self._lock:
            turns, self._turns = self._turns, []
        return turns

    def wait_while_paused(self) -> None:
        self._awake.wait()

    def _ask_stop(self) -> None:
        self._stop.set()
        self._awake.set()

    def _listen(self) -> None:
        attempt = self._store.attempt(self._run_id, self._number)
        next_beat, heard = 0.0, 0
        while not self._closed.wait(POLL_S):
            try:
                for control in attempt.take_controls(after=heard):
                    heard = control.number
                    self._hear(control.kind, control.name, control.value)
                if time.monotonic() >= next_beat:
                    attempt.heartbeat()
                    next_beat = time.monotonic() + HEARTBEAT_S
            except StaleAttemptError:
                self._ask_stop()  # the loop's next write is refused too, and ends the worker
                break
            except StoreError as error:
                _log(str(error))
        self._store.close()

    def _hear(self, kind: str, name: str | None, value: float | None) -> None:
        if kind == "stop":
            self._ask_stop()
        elif kind == "pause":
            self._awake.clear()
        elif kind == "resume":
            self._awake.set()
        elif kind == "turn" and name is not None and value is not None:
            with self._lock:
                self._turns.append((name, value))
        # A stop that came before a pause holds.
        if self._stop.is_set():
            self._awake.set()


def plain_failure(error: BaseException, batch_size: int) -> str:
    """What a person reads of an error that ended a run."""
    text = str(error).lower()
    if isinstance(error, torch.OutOfMemoryError | MemoryError) or any(sign in text for sign in MEMORY_SIGNS):
        remedy = (
            f"try a batch of {batch_size // 2}, or"
            if batch_size > 1
            else "train fewer blocks, read fewer tokens, or take"
        )
        return f"There was not enough memory for a batch of {batch_size}: {remedy} a smaller encoder."
    if isinstance(error, PlaygroundError):
        return str(error)
    return f"The run ended with an unexpected {type(error).__name__}: its log has the details."


def _fail(store: Store, attempt: Attempt, error: BaseException) -> None:
    try:
        run = store.run(attempt.run_id)
        batch_size = run.config.phases[run.config.phase_at(run.last_step + 1)].batch_size
        attempt.end(Status.FAILED, plain_failure(error, batch_size))
    except StoreError as problem:
        # The store cannot be written (a full disk): the run reads "interrupted", and the log says why.
        _log(str(problem))


def _start_next(store: Store) -> None:
    from core.workers.local import LocalEngine

    try:
        LocalEngine(store).dispatch()
    except PlaygroundError as error:
        _log(str(error))


def _log(text: str) -> None:
    """A line into the run's log; a disk that is too full even for that must not hide what went wrong before."""
    with contextlib.suppress(OSError):
        print(text, file=sys.stderr, flush=True)


def main(arguments: Sequence[str]) -> int:
    """`python -m core.workers.run_worker STORE RUN ATTEMPT SLOT`."""
    store_folder, run_id, attempt, slot = arguments
    return work(str(Path(store_folder)), run_id, int(attempt), int(slot))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
