"""A thread of the bridge that submits a run, records its events, and resubmits it after a node loss."""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
import tempfile
import threading
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ray

from core.atomic import atomic_write
from core.config import RunConfig
from core.config.folders import translation_models
from core.errors import StaleAttemptError, StoreError
from core.events import Finished
from core.messages import N_, Message
from core.models.source import (
    SAFE_WEIGHTS,
    SMALL_FILES,
    TORCH_WEIGHTS,
    encoder_folder,
    has_safe_weights,
    model_folder,
)
from core.store import Status, Store
from core.store.attempt import Attempt
from core.tasks.dataset import write_data
from core.weight_files import weight_files
from core.workers.cluster.node import (
    ROWS,
    START,
    TRANSLATIONS,
    WEIGHTS,
    Arrived,
    Failed,
    Parcel,
    Report,
    SentFile,
)
from core.workers.cluster.ray_cluster import Model, RayCluster
from core.workers.cluster.ray_engine import Resources
from core.workers.failures import plain_failure, requeued_with_less
from core.workers.recorder import Recorder
from core.workers.run_controls import ControlListener
from core.workers.run_rows import TaskSource
from core.workers.run_worker import known_predictions, make_room, start_of

# Number of consecutive losses without a new checkpoint at which the run itself is assumed to be the cause.
MOST_LOSSES = 3
# Ray's errors for a task whose node or process was lost through no fault of the run.
LOST = (
    ray.exceptions.NodeDiedError,
    ray.exceptions.WorkerCrashedError,
    ray.exceptions.ObjectLostError,
    ray.exceptions.LocalRayletDiedError,
)


class RemoteRun(threading.Thread):
    """Thread that executes a claimed run on the cluster. Every failure is recorded in the store as a plain message."""

    def __init__(self, store: Store, cluster: RayCluster, run_id: str, attempt: int, asked: Resources) -> None:
        super().__init__(name=f"run {run_id}")
        self.asked = asked
        self.node_id: str | None = None
        self._store, self._cluster, self._run_id = store, cluster, run_id
        self._attempt = store.attempt(run_id, attempt)
        self._log_path = store.log_path(run_id)
        self._log_path.parent.mkdir(parents=True, exist_ok=True)
        self._log_path.touch()
        self._listener: _RemoteControls | None = None

    def run(self) -> None:
        try:
            self._attempt.register()
            make_room(self._store, self._attempt)
            self._carry()
        except StaleAttemptError as error:
            self._log(str(error))
        except BaseException:
            self._log(traceback.format_exc())
            raise
        finally:
            make_room(self._store)
            self._store.close()

    def _log(self, text: str) -> None:
        # A full disk must not hide the original error.
        with contextlib.suppress(OSError), self._log_path.open("a", encoding="utf-8") as log:
            log.write(f"{time.strftime('%H:%M:%S')} {text.rstrip()}\n")

    def _carry(self) -> None:
        losses = 0
        while True:
            before = self._store.run(self._run_id).checkpoint_step
            try:
                self._send()
                return
            except StaleAttemptError:
                raise
            except ray.exceptions.TaskCancelledError:
                begun = self._store.run(self._run_id).checkpoint_step is not None
                self._attempt.end(Status.STOPPED, None if begun else Message("Stopped before it reached a node."))
                return
            except ray.exceptions.OutOfMemoryError:
                if not requeued_with_less(self._attempt, self._store.run(self._run_id)):
                    self._fail(MemoryError())
                return
            except LOST as error:
                self._log(str(error))
                losses = losses + 1 if self._store.run(self._run_id).checkpoint_step == before else 1
                if not self._restart(losses):
                    return
            except ray.exceptions.RayError as error:
                self._log(str(error))
                message = Message(
                    "The cluster could not execute the run ({error}): its log has the details.",
                    error=type(error).__name__,
                )
                self._attempt.end(Status.FAILED, message)
                return
            except Exception as error:
                self._log(traceback.format_exc())
                self._fail(error)
                return

    def _fail(self, error: BaseException) -> None:
        config = self._store.run(self._run_id).config
        self._attempt.end(Status.FAILED, plain_failure(error, config.phases[-1].batch_size))

    def _restart(self, losses: int) -> bool:
        """Begin the next attempt after a node loss. Returns: False if the run has ended instead."""
        run = self._store.run(self._run_id)
        if self._listener is not None and self._listener.stop_asked:
            message = Message(
                "Its node was lost while it stopped. It was last saved at step {step}.", step=run.checkpoint_step or 0
            )
            self._attempt.end(Status.STOPPED, message)
            return False
        if losses >= MOST_LOSSES:
            message = Message(
                "Its node was lost {times} times in a row without a new checkpoint: its log has the details.",
                times=losses,
            )
            self._attempt.end(Status.FAILED, message)
            return False
        self.node_id = None
        message = _sentence_of_loss(run.place, run.last_step, run.checkpoint_step)
        self._attempt = self._attempt.restart_after_node_loss(message)
        return True

    def _send(self) -> None:
        """Submit the run and record its reports."""
        models = models_of(self._store.effective_config(self._run_id))
        recorder = Recorder(self._store, self._attempt, self._log)
        reports = self._cluster.start(packed(self._store, self._attempt, models), models, self.asked)
        self._listener = _RemoteControls(self._store, self._cluster, self._attempt, reports)
        with self._listener:
            try:
                for reference in reports:
                    if self._take(ray.get(reference), recorder, self._listener):
                        return
            except ray.exceptions.RayError:
                raise  # the task has ended, so there is nothing to cancel
            except BaseException:
                ray.cancel(reports, force=True)
                raise

    def _take(self, report: Report, recorder: Recorder, listener: _RemoteControls) -> bool:
        """Process one report. Returns: True for the last one."""
        attempt = self._attempt
        match report:
            case Arrived():
                self.node_id = report.node_id
                listener.arrived()
                attempt.placed(self._cluster.name_of(report.node_id))
            case str():
                self._log(report)
            case SentFile():
                self._keep(report)
            case Failed():
                if not (report.of_memory and requeued_with_less(attempt, self._store.run(self._run_id))):
                    attempt.end(Status.FAILED, report.message)
                return True
            case _:
                recorder.record(report)
        return isinstance(report, Finished)

    def _keep(self, file: SentFile) -> None:
        """Write a file of weights. It arrives before its checkpoint's event, so every recorded checkpoint exists."""
        folder = self._attempt.folder
        folder.mkdir(parents=True, exist_ok=True)
        try:
            with atomic_write(folder / file.name) as partial:
                partial.write_bytes(file.content)
                self._attempt.check()
        except OSError as error:
            raise StoreError(
                "{what} could not be written ({reason}): free some disk space.", what=file.name, reason=error.strerror
            ) from error


class _RemoteControls(ControlListener):
    """Controls of a submitted run, which pass through the switchboard to its node."""

    def __init__(self, store: Store, cluster: RayCluster, attempt: Attempt, reports: Any) -> None:
        super().__init__(store, attempt.run_id, attempt.number, self._ask, self._cancel)
        self.stop_asked = False
        self._board, self._key, self._reports = cluster.board, f"{attempt.run_id}.{attempt.number}", reports
        self._has_arrived, self._lock = False, threading.Lock()
        if store.run(attempt.run_id).status == Status.PAUSED:
            self._ask("pause", None, None)  # paused when its node was lost

    def arrived(self) -> None:
        with self._lock:
            self._has_arrived = True

    def _ask(self, kind: str, name: str | None, value: float | None) -> None:
        self._board.ask.remote(self._key, (kind, name, value))
        if kind == "stop":
            self.stop_asked = True
            with self._lock:
                if not self._has_arrived:  # a run that waits for a node polls no controls
                    self._cancel()

    def _cancel(self) -> None:
        ray.cancel(self._reports, force=True)

    def __exit__(self, *arguments: object) -> None:
        super().__exit__(*arguments)
        self._board.forget.remote(self._key)


def _sentence_of_loss(place: str | None, step: int, checkpoint: int | None) -> Message:
    where = Message("Node {name}", name=place) if place else Message("Its node")
    if checkpoint:
        return Message(
            "{node} was lost at step {step}. The run continued elsewhere from the checkpoint of step {checkpoint}.",
            node=where,
            step=step,
            checkpoint=checkpoint,
        )
    return Message("{node} was lost at step {step}. The run continued elsewhere from the start.", node=where, step=step)


def models_of(config: RunConfig) -> list[Model]:
    """Return the models that a run loads. Raises: EncoderError if one is unavailable."""
    found = [_model(config.encoder.id, encoder_folder(config.encoder.id))]
    for name in translation_models(config):
        found.append(_model(name, model_folder(name, what=N_("Translation model"), check=lambda _: None)))
    return found


def _model(name: str, folder: Path) -> Model:
    weights = SAFE_WEIGHTS if has_safe_weights(folder) else TORCH_WEIGHTS
    patterns = (*SMALL_FILES, "*.spm", weights)
    paths = {str(path.relative_to(folder)): path for pattern in patterns for path in sorted(folder.rglob(pattern))}
    stamps = [[name, path.stat().st_size, path.stat().st_mtime_ns] for name, path in sorted(paths.items())]
    return Model(name, hashlib.sha256(json.dumps(stamps).encode()).hexdigest()[:16], paths)


def packed(store: Store, attempt: Attempt, models: Sequence[Model]) -> Parcel:
    """Pack a claimed run with everything that it needs, except the files of its models.

    Raises: TaskError if its rows are unavailable, TrainingError if it starts from missing weights, OSError for files
        that cannot be read.
    """
    config = store.effective_config(attempt.run_id)
    start, translations = start_of(store, config), None
    stored = store.cache_folder / TRANSLATIONS
    if translation_models(config) and stored.exists():
        with contextlib.closing(sqlite3.connect(stored)) as db:
            translations = db.serialize()
    files = {f"{WEIGHTS}/{path.name}": path.read_bytes() for path in weight_files(attempt.folder)}
    with tempfile.TemporaryDirectory() as folder:
        # Write the rows again: if the stored file is damaged, they come from the task.
        rows = Path(folder) / ROWS
        write_data(rows, TaskSource(store.folder).rows_of(config.task, config.seed))
        files[ROWS] = rows.read_bytes()
    if start is not None:
        files[START] = start.read_bytes()
    return Parcel(
        run_id=attempt.run_id,
        attempt=attempt.number,
        config=config.to_json(),
        files=files,
        known=known_predictions(store, attempt.run_id),
        translations=translations,
        models={model.name: model.key for model in models},
    )
