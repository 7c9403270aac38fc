"""One run on the cluster, as its bridge sees it: sent to a node, recorded here, sent again where the node is lost."""

from __future__ import annotations

import os
import threading
import time
import traceback
from pathlib import Path

from core.atomic import atomic_write
from core.errors import StaleAttemptError, StoreError
from core.events import Finished
from core.messages import Message
from core.store import Status, Store
from core.store.attempt import Attempt
from core.workers.cluster.capacity import Resources
from core.workers.cluster.parcel import models_of, packed
from core.workers.cluster.ray_cluster import BROKEN, CANCELLED, LOST, OUT_OF_MEMORY, RayCluster, Stream
from core.workers.cluster.reports import Arrived, Failed, Line, Report, WeightFile
from core.workers.recorder import Recorder
from core.workers.run_controls import ControlListener
from core.workers.run_log import open_log
from core.workers.run_worker import make_room, plain_failure, requeued_with_less

# Losses in a row without a new checkpoint, after which the run is what ends its nodes.
MOST_LOSSES = 3


class RemoteRun(threading.Thread):
    """Carries a claimed run to its end. Every failure ends in the store as a plain message."""

    def __init__(self, store: Store, cluster: RayCluster, run_id: str, attempt: int, asked: Resources) -> None:
        super().__init__(name=f"run {run_id}")
        self.asked = asked
        self.node_id: str | None = None
        self._store, self._cluster, self._run_id = store, cluster, run_id
        self._first_attempt = attempt
        self._log = _RunLog(store.log_path(run_id))

    def run(self) -> None:
        attempt = self._store.attempt(self._run_id, self._first_attempt)
        try:
            attempt.register()
            make_room(self._store, attempt)
            self._carry(attempt)
        except StaleAttemptError as error:
            self._log.write(str(error))
        except BaseException:
            self._log.write(traceback.format_exc())
            raise
        finally:
            make_room(self._store)
            self._log.close()
            self._store.close()

    def _carry(self, attempt: Attempt) -> None:
        losses = 0
        while True:
            before = self._store.run(self._run_id).checkpoint_step
            tracked = _Tracked(self._store, self._cluster, attempt)
            try:
                self._once(attempt, tracked)
                return
            except StaleAttemptError:
                raise
            except CANCELLED:
                begun = self._store.run(self._run_id).checkpoint_step is not None
                attempt.end(Status.STOPPED, None if begun else Message("Stopped before a node took it."))
                return
            except OUT_OF_MEMORY:
                if not requeued_with_less(attempt, self._store.run(self._run_id)):
                    self._fail(attempt, MemoryError())
                return
            except LOST as error:
                self._log.write(str(error))
                run = self._store.run(self._run_id)
                if tracked.stop_asked:
                    attempt.end(
                        Status.STOPPED,
                        Message(
                            "Its node was lost while it stopped: it is as of step {step}.",
                            step=run.checkpoint_step or 0,
                        ),
                    )
                    return
                losses = losses + 1 if run.checkpoint_step == before else 1
                if losses >= MOST_LOSSES:
                    attempt.end(
                        Status.FAILED,
                        Message(
                            "Its node was lost {times} times in a row without a new checkpoint: its log has the "
                            "details.",
                            times=losses,
                        ),
                    )
                    return
                self.node_id = None
                attempt = attempt.restart_after_node_loss(
                    _sentence_of_loss(run.place, run.last_step, run.checkpoint_step)
                )
            except BROKEN as error:
                self._log.write(str(error))
                attempt.end(
                    Status.FAILED,
                    Message(
                        "The cluster could not carry the run out ({error}): its log has the details.",
                        error=type(error).__name__,
                    ),
                )
                return
            except Exception as error:
                self._log.write(traceback.format_exc())
                self._fail(attempt, error)
                return

    def _fail(self, attempt: Attempt, error: BaseException) -> None:
        config = self._store.run(self._run_id).config
        attempt.end(Status.FAILED, plain_failure(error, config.phases[-1].batch_size))

    def _once(self, attempt: Attempt, tracked: _Tracked) -> None:
        """Send it to a node, and record what comes back."""
        models = models_of(self._store.effective_config(self._run_id))
        recorder = Recorder(self._store, attempt, self._log.write)
        with tracked:
            stream = self._cluster.start(packed(self._store, attempt, models), models, self.asked)
            tracked.follow(stream)
            try:
                for message in stream:
                    if self._take(message, attempt, recorder, tracked):
                        return
            except BROKEN:
                raise  # there is nothing left to cancel
            except BaseException:
                stream.cancel()
                raise

    def _take(self, message: Report, attempt: Attempt, recorder: Recorder, tracked: _Tracked) -> bool:
        """Returns: whether that was the last message."""
        match message:
            case Arrived():
                self.node_id = message.node_id
                tracked.arrived()
                attempt.placed(self._cluster.name_of(message.node_id))
            case Line():
                self._log.write(message.text)
            case WeightFile():
                self._keep(attempt, message)
            case Failed():
                if not (message.of_memory and requeued_with_less(attempt, self._store.run(self._run_id))):
                    attempt.end(Status.FAILED, message.message)
                return True
            case _:
                recorder.record(message)
        return isinstance(message, Finished)

    def _keep(self, attempt: Attempt, file: WeightFile) -> None:
        """The file first, then the event that names it: a checkpoint that is recorded is there."""
        attempt.folder.mkdir(parents=True, exist_ok=True)
        try:
            with atomic_write(attempt.folder / file.name) as partial:
                partial.write_bytes(file.content)
                attempt.check()
        except OSError as error:
            raise StoreError(
                "{what} could not be written ({reason}): make room on the disk.", what=file.name, reason=error.strerror
            ) from error


class _Tracked(ControlListener):
    """The link of a run that is on its way to a node, or there: what is asked goes to the switchboard."""

    def __init__(self, store: Store, cluster: RayCluster, attempt: Attempt) -> None:
        super().__init__(store, attempt.run_id, attempt.number)
        self.stop_asked = False
        self._cluster, self._key = cluster, f"{attempt.run_id}.{attempt.number}"
        self._has_arrived, self._lock = False, threading.Lock()
        self._stream: Stream | None = None
        if store.run(attempt.run_id).status == Status.PAUSED:
            self.apply("pause", None, None)  # it was, when its node was lost

    def follow(self, stream: Stream) -> None:
        with self._lock:
            self._stream = stream
        if self.stop_asked:
            self._end_waiting()

    def arrived(self) -> None:
        with self._lock:
            self._has_arrived = True

    def apply(self, kind: str, name: str | None, value: float | None) -> None:
        self._cluster.ask(self._key, (kind, name, value))
        if kind == "stop":
            self.stop_asked = True
            self._end_waiting()

    def replaced(self) -> None:
        with self._lock:
            if self._stream is not None:
                self._stream.cancel()

    def _end_waiting(self) -> None:
        """A run that waits for a node hears nothing there."""
        with self._lock:
            if self._stream is not None and not self._has_arrived:
                self._stream.cancel()

    def __exit__(self, *arguments: object) -> None:
        super().__exit__(*arguments)
        self._cluster.forget(self._key)


class _RunLog:
    """The log of a run, to which only this thread writes."""

    def __init__(self, path: Path) -> None:
        self._descriptor = open_log(path)

    def write(self, text: str) -> None:
        try:
            os.write(self._descriptor, f"{time.strftime('%H:%M:%S')} {text.rstrip()}\n".encode())
        except OSError:
            return  # a full disk must not hide what went wrong before

    def close(self) -> None:
        os.close(self._descriptor)


def _sentence_of_loss(place: str | None, step: int, checkpoint: int | None) -> Message:
    where = Message("Node {name}", name=place) if place else Message("Its node")
    if checkpoint:
        return Message(
            "{node} was lost at step {step}: the run went on elsewhere, from the checkpoint of step {checkpoint}.",
            node=where,
            step=step,
            checkpoint=checkpoint,
        )
    return Message(
        "{node} was lost at step {step}: the run went on elsewhere, from its beginning.", node=where, step=step
    )
