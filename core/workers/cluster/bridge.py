"""The bridge, a process on this machine that claims queued runs and sends them to cluster nodes with free resources.

It is independent of the server, so that runs continue while the app restarts. A thread per run records its events and
resubmits it after a node loss.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
import traceback

import ray

from core.atomic import atomic_write
from core.config import RunConfig
from core.config.run import translation_models
from core.errors import EngineError, StaleAttemptError, TrainingError
from core.events import Finished
from core.messages import Message
from core.settings import settings
from core.store import Status, Store
from core.store.job_table import JobTable
from core.store.records import Liveness
from core.store.work import Claim
from core.weight_files import weight_files
from core.workers.cluster.node import START, TRANSLATIONS, WEIGHTS, Parcel, Report, SentFile
from core.workers.cluster.ray_cluster import RayCluster
from core.workers.cluster.ray_engine import Resources, fits, identity_of_settings, refusal, requested
from core.workers.failures import end_with_error
from core.workers.limits import most_of_visitor
from core.workers.recorder import Recorder
from core.workers.run_controls import listening
from core.workers.run_rows import TaskSource
from core.workers.run_worker import make_room, start_of
from core.workers.warm import WarmServer

# Slots of runs on this machine are numbered from 0.
SLOTS = range(1_000, 100_000)
RECONNECT_S = 5.0
# Interval between checks of the cluster, whose nodes may change.
LOOK_EVERY_S = 1.0
# Number of consecutive losses without a new checkpoint at which the run itself is assumed to be the cause.
MOST_LOSSES = 3
# Ray's errors for a task whose node or process was lost through no fault of the run.
LOST = (
    ray.exceptions.NodeDiedError,
    ray.exceptions.WorkerCrashedError,
    ray.exceptions.ObjectLostError,
    ray.exceptions.LocalRayletDiedError,
)


class Bridge(WarmServer):
    """Server of the queue of runs on a cluster."""

    def __init__(self, table: JobTable, line: str, starter: Liveness | None = None) -> None:
        super().__init__(table, line, starter)
        self._store = Store(table.folder)
        self._cluster: RayCluster | None = None
        self._runs: list[RemoteRun] = []
        self._next_try = 0.0

    def _load(self) -> None:
        self._connect()
        self._record(identity_of_settings())

    def _has_work(self) -> bool:
        return self._store.has_queued()

    def _turn(self) -> bool:
        if not self._table.exists():
            return False
        living = [run for run in self._runs if run.is_alive()]
        if len(living) < len(self._runs):
            self._next_try = 0.0  # resources are free again
        self._runs = living
        if self._runs:
            self._used_at = time.monotonic()
        if self._has_work() and time.monotonic() >= self._next_try:
            with self._table.transaction():
                if not self._is_current():
                    self._hand_over()
                    return False  # the process ends after its last run
            self._start_runs()
        return bool(self._runs) or self._has_work() or not self._may_exit()

    def _connect(self) -> RayCluster | None:
        """Return the cluster, connecting if necessary; None if it is unreachable, as queued runs then say."""
        if self._cluster is None:
            try:
                self._cluster = RayCluster(settings().engine)
                if self._next_try:  # an earlier connection failed
                    self._store.set_queue_message(None)
            except EngineError as error:
                self._store.set_queue_message(error.message)
                self._next_try = time.monotonic() + RECONNECT_S
        return self._cluster

    def _start_runs(self) -> None:
        """Start queued runs while nodes have free resources."""
        cluster = self._connect()
        if cluster is None:
            return
        self._next_try = time.monotonic() + LOOK_EVERY_S
        nodes = cluster.nodes()

        def is_next(config: RunConfig, _of_experiment: bool) -> bool:
            if not self._is_current():  # deregistered since this turn began
                return False
            asked, running = requested(config), [(run.node_id, run.asked) for run in self._runs]
            return fits(nodes, running, asked) or refusal(nodes.values(), asked) is not None

        while claim := self._store.claim_next(SLOTS, self._me, most_of_visitor(), accepts=is_next):
            asked = requested(self._store.run(claim.id).config)
            never = refusal(nodes.values(), asked)
            if never is None:
                self._runs.append(RemoteRun(self._store, cluster, claim, asked))
                self._runs[-1].start()
            else:
                self._store.attempt(claim.id, claim.attempt).end(Status.FAILED, never)


class RemoteRun(threading.Thread):
    """Thread that executes a claimed run on the cluster. Every failure is recorded in the store as a plain message.

    Attributes:
        asked: the resources that the run requests.
        node_id: Ray's id of the node that executes it; None until it has arrived there.
    """

    def __init__(self, store: Store, cluster: RayCluster, claim: Claim, asked: Resources) -> None:
        super().__init__(name=f"run {claim.id}")
        self.asked = asked
        self.node_id: str | None = None
        self._store, self._cluster = store, cluster
        self._attempt = store.attempt(claim.id, claim.attempt)
        self._stop_requested = False
        self._losses, self._saved_step = 0, store.run(claim.id).checkpoint_step
        self._log_path = store.log_path(claim.id)
        self._log_path.parent.mkdir(parents=True, exist_ok=True)
        self._log_path.touch()

    def run(self) -> None:
        try:
            self._attempt.register()
            make_room(self._store, self._attempt)
            has_begun = True
            while has_begun:
                has_begun = self._execute()
        except StaleAttemptError as error:
            self._log(str(error))
        finally:
            make_room(self._store)
            self._store.close()

    def _log(self, text: str) -> None:
        # A full disk must not hide the original error.
        with contextlib.suppress(OSError), self._log_path.open("a", encoding="utf-8") as log:
            log.write(f"{time.strftime('%H:%M:%S')} {text.rstrip()}\n")

    def _execute(self) -> bool:
        """Execute the current attempt. Returns: True if its node was lost, so that the next attempt has begun."""
        try:
            self._submit()
        except StaleAttemptError:
            raise
        except ray.exceptions.TaskCancelledError:
            begun = self._store.run(self._attempt.run_id).checkpoint_step is not None
            self._attempt.end(Status.STOPPED, None if begun else Message("Stopped before it reached a node."))
        except ray.exceptions.OutOfMemoryError:
            end_with_error(self._store, self._attempt, MemoryError())
        except LOST as error:
            self._log(str(error))
            return self._restart()
        except ray.exceptions.RayError as error:
            self._log(str(error))
            message = Message(
                "The cluster could not execute the run ({error}): its log has the details.",
                error=type(error).__name__,
            )
            self._attempt.end(Status.FAILED, message)
        except Exception as error:
            self._log(traceback.format_exc())
            end_with_error(self._store, self._attempt, error)
        return False

    def _restart(self) -> bool:
        """Begin the next attempt after a node loss. Returns: False if the run has ended instead."""
        run = self._store.run(self._attempt.run_id)
        self._losses = self._losses + 1 if run.checkpoint_step == self._saved_step else 1
        self._saved_step = run.checkpoint_step
        if self._stop_requested:
            message = Message(
                "Its node was lost while it stopped. It was last saved at step {step}.", step=run.checkpoint_step or 0
            )
            self._attempt.end(Status.STOPPED, message)
            return False
        if self._losses >= MOST_LOSSES:
            message = Message(
                "Its node was lost {times} times in a row without a new checkpoint: its log has the details.",
                times=self._losses,
            )
            self._attempt.end(Status.FAILED, message)
            return False
        node = Message("Node {name}", name=run.place) if run.place else Message("Its node")
        message = Message(
            "{node} was lost at step {step}. The run continued elsewhere from step {saved}.",
            node=node,
            step=run.last_step,
            saved=run.checkpoint_step or 0,
        )
        self.node_id = None
        self._attempt = self._attempt.restart_after_node_loss(message)
        return True

    def _submit(self) -> None:
        """Submit the run and record its reports."""
        cluster, parcel = self._cluster, self._packed()
        reports = cluster.start(parcel, self.asked)

        def cancel() -> None:
            ray.cancel(reports, force=True)

        def forward(kind: str, name: str | None, value: float | None) -> None:
            cluster.board.send.remote(parcel.key, kind, name, value)
            if kind == "stop":
                self._stop_requested = True
                if self.node_id is None:  # a run that waits for a node polls no controls
                    cancel()

        recorder = Recorder(self._store, self._attempt, self._log)
        if self._store.run(self._attempt.run_id).status == Status.PAUSED:
            forward("pause", None, None)  # paused when its node was lost
        try:
            with listening(self._store, self._attempt, forward, cancel):
                self.node_id = str(ray.get(next(reports)))
                self._attempt.record_node(cluster.name_of(self.node_id))
                has_ended = False
                while not has_ended:
                    has_ended = self._record(ray.get(next(reports)), recorder)
        except ray.exceptions.RayError:
            raise  # the task has ended, so there is nothing to cancel
        except BaseException:
            cancel()
            raise
        finally:
            cluster.board.forget.remote(parcel.key)

    def _record(self, report: Report, recorder: Recorder) -> bool:
        """Record a report. Returns: True for the last one."""
        match report:
            case str():
                self._log(report)
            case SentFile():
                # Weights arrive before the event of their checkpoint, so every recorded checkpoint exists.
                self._attempt.folder.mkdir(parents=True, exist_ok=True)
                with atomic_write(self._attempt.folder / report.name) as partial:
                    partial.write_bytes(report.content)
                    self._attempt.check()
            case MemoryError() | TrainingError():
                end_with_error(self._store, self._attempt, report)
                return True
            case _:
                recorder.record(report)
        return isinstance(report, Finished)

    def _packed(self) -> Parcel:
        """Pack the run with everything that it needs.

        Raises: TaskError if its rows are unavailable, TrainingError if it starts from missing weights, EncoderError if
            a model is unavailable, OSError for files that cannot be read.
        """
        store, attempt = self._store, self._attempt
        config = store.run(attempt.run_id).effective
        files = {f"{WEIGHTS}/{path.name}": path.read_bytes() for path in weight_files(attempt.folder)}
        if (start := start_of(store, config)) is not None:
            files[START] = start.read_bytes()
        stored = store.cache_folder / TRANSLATIONS
        if translation_models(config) and stored.exists():
            with contextlib.closing(sqlite3.connect(stored)) as db:
                files[TRANSLATIONS] = db.serialize()
        return Parcel(
            key=f"{attempt.run_id}.{attempt.number}",
            config=config.to_json(),
            data=TaskSource(store.folder).rows_of(config.task, config.seed),
            files=files,
            models=self._cluster.models(config),
        )
