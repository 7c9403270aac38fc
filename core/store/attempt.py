"""Write access for one attempt at a run. A later attempt revokes it."""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from core.config.compare import config_hash
from core.errors import StaleAttemptError
from core.events import Frame, Predictions, Started, Step, Tokens
from core.messages import Message, Text
from core.representation.projections import Points
from core.store import frames as frame_files
from core.store.database import build_record
from core.store.liveness import liveness_of, oom_kills
from core.store.records import Control, Status, stored_config
from core.store.run_reader import RunReader
from core.store.work import Claim, count_time
from core.weight_files import SNAPSHOTS, snapshot_path


class Attempt:
    """Writer of one attempt. Once a later attempt exists, every write raises StaleAttemptError."""

    def __init__(self, store: RunReader, run_id: str, number: int) -> None:
        self.store, self.run_id, self.number = store, run_id, number
        self.folder = store.run_folder(run_id)

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self.store.transaction() as db:
            row = db.execute("SELECT attempt, status FROM work WHERE id = ?", (self.run_id,)).fetchone()
            if row is None or row["attempt"] != self.number or not Status(row["status"]).active:
                raise StaleAttemptError(
                    "Attempt {number} of run {id} is no longer the current one.", number=self.number, id=self.run_id
                )
            yield db

    def _write(self, sql: str, values: Sequence[Any]) -> None:
        with self._writing() as db:
            db.execute(sql, values)

    def check(self) -> None:
        """Check that this attempt is the current one. Raises: StaleAttemptError."""
        with self._writing():
            return

    def register(self) -> None:
        """Register this process as the worker of the run, and delete partial files that a killed worker left."""
        with self._writing():
            self.store.register(Claim(self.run_id, self.number, 0), liveness_of())
            self.store.write("UPDATE runs SET oom_kills = ? WHERE id = ?", (oom_kills(), self.run_id))
        for partial in self.folder.glob("*.partial"):
            partial.unlink(missing_ok=True)

    def record_node(self, place: str) -> None:
        """Record the cluster node that executes the run."""
        self._write("UPDATE runs SET place = ? WHERE id = ?", (place, self.run_id))

    def restart_after_node_loss(self, message: Text) -> Attempt:
        """Begin and return the next attempt, after the node of this one was lost.

        The holder stays the same, and a paused run stays paused.

        Args:
            message: the run's message to the user.
        """
        with self._writing() as db:
            db.execute(
                "UPDATE work SET attempt = attempt + 1, heartbeat_at = ?, message = ?, "
                "status = CASE status WHEN 'paused' THEN status ELSE 'starting' END WHERE id = ?",
                (time.time(), message, self.run_id),
            )
            db.execute("UPDATE runs SET place = NULL WHERE id = ?", (self.run_id,))
            count_time(db, self.run_id)
        return Attempt(self.store, self.run_id, self.number + 1)

    def record_start(self, event: Started) -> None:
        """Record the run's first event, and delete what an earlier attempt recorded after the checkpoint."""
        with self._writing() as db:
            cut = db.execute(
                "SELECT file FROM frames WHERE run_id = ? AND step > ?", (self.run_id, event.step)
            ).fetchall()
            for table in ("steps", "evaluations", "frames"):
                db.execute(f"DELETE FROM {table} WHERE run_id = ? AND step > ?", (self.run_id, event.step))
            # A pause or stop received while the encoder was loading stays in effect.
            db.execute(
                "UPDATE work SET status = 'running' WHERE id = ? AND status = 'starting'",
                (self.run_id,),
            )
            db.execute(
                "UPDATE runs SET begun_attempt = ?, device = ?, probe = ?, facts = ?, last_step = ?, "
                "started_at = coalesce(started_at, ?) WHERE id = ?",
                (
                    self.number,
                    event.device,
                    json.dumps(asdict(event.probe), ensure_ascii=False),
                    json.dumps(dict(event.facts)),
                    event.step,
                    time.time(),
                    self.run_id,
                ),
            )
            count_time(db, self.run_id)
        for row in cut:
            (self.folder / row["file"]).unlink(missing_ok=True)
        # Later snapshots are written again. Unplanned ones come from a stop, and a resumed run does not need them.
        planned = self.store.run(self.run_id).config.checkpoint.snapshot_steps or ()
        needed = {snapshot_path(self.folder, step) for step in planned if step <= event.step}
        for path in {*self.folder.glob(SNAPSHOTS)} - needed:
            path.unlink(missing_ok=True)
        if event.step or cut:
            # These were computed from frames of an earlier attempt.
            for name in ("maps-*", "measures-*", "layers"):
                for folder in self.folder.glob(name):
                    shutil.rmtree(folder, ignore_errors=True)

    def steps(self, events: Sequence[Step]) -> None:
        now = time.time()
        rounded = [as_stored(event.values) for event in events]
        with self._writing() as db:
            db.executemany(
                "INSERT OR REPLACE INTO steps (run_id, step, at, measures) VALUES (?, ?, ?, ?)",
                [(self.run_id, e.step, now, json.dumps(values)) for e, values in zip(events, rounded, strict=True)],
            )
            db.execute("UPDATE runs SET last_step = ? WHERE id = ?", (max(e.step for e in events), self.run_id))

    def evaluation(self, step: int, split: str, values: Mapping[str, float]) -> None:
        measures = json.dumps(dict(values))
        with self._writing():
            self.store.insert(
                "evaluations", replace=True, run_id=self.run_id, step=step, split=split, measures=measures
            )

    def predictions(self, event: Predictions) -> None:
        """Store the model's predictions for the rows of a split."""
        self.check()
        frame_files.write_predictions(self.folder, event)

    def frame(self, frame: Frame, points: Points) -> None:
        """Store a frame. Its file is written before its row, so that every row refers to a complete file."""
        self.check()
        name = f"frame-{frame.step:07d}.safetensors"
        frame_files.write_frame(self.folder / name, frame, points)
        with self._writing():
            self.store.insert("frames", replace=True, run_id=self.run_id, step=frame.step, file=name)

    def tokens(self, event: Tokens) -> None:
        """Store the tokens of the examples. A resumed run overwrites them with the same tokens."""
        self.check()
        frame_files.write_tokens(self.folder / frame_files.TOKENS, event)

    def record_knob_turn(self, step: int, name: str, value: float) -> None:
        with self._writing() as db:
            self.store.insert("knob_turns", replace=True, run_id=self.run_id, step=step, name=name, value=value)
            _take_turn(db, self.run_id, name, value)

    def record_refused_turn(self, name: str, value: float, message: Text) -> None:
        """Discard a knob turn that the run cannot apply, and state the reason in the run's message."""
        with self._writing() as db:
            _take_turn(db, self.run_id, name, value)
            db.execute("UPDATE work SET message = ? WHERE id = ?", (message, self.run_id))

    def record_checkpoint(self, step: int) -> None:
        self._write("UPDATE runs SET checkpoint_step = ? WHERE id = ?", (step, self.run_id))

    def record_peak_memory(self, peak: float | None) -> None:
        """Record the peak memory of this attempt, unless an earlier attempt needed more. Args: peak: bytes."""
        if peak is not None:
            larger = "UPDATE runs SET peak_memory = max(?, coalesce(peak_memory, 0)) WHERE id = ?"
            self._write(larger, (int(peak), self.run_id))

    def notice(self, message: Text) -> None:
        self._write("UPDATE work SET message = ? WHERE id = ?", (message, self.run_id))

    def heartbeat(self) -> None:
        self._write("UPDATE work SET heartbeat_at = ? WHERE id = ?", (time.time(), self.run_id))

    def take_controls(self, after: int = 0) -> list[Control]:
        """Return the pending controls numbered above `after`, oldest first.

        A stop, pause or resume is marked as taken and changes the status. A turn stays pending until a step uses it.
        """
        waiting = "SELECT * FROM controls WHERE run_id = ? AND taken_at IS NULL AND number > ? ORDER BY number"
        if not self.store.all(waiting, (self.run_id, after)):
            return []
        with self._writing() as db:
            rows = db.execute(waiting, (self.run_id, after)).fetchall()
            for row in rows:
                status = {"stop": Status.STOPPING, "pause": Status.PAUSED, "resume": Status.RUNNING}.get(row["kind"])
                if status is not None:
                    db.execute("UPDATE controls SET taken_at = ? WHERE number = ?", (time.time(), row["number"]))
                    # A stop is final: a later pause changes nothing.
                    db.execute(
                        "UPDATE work SET status = ? WHERE id = ? AND status != 'stopping'", (status, self.run_id)
                    )
            count_time(db, self.run_id)
        return [build_record(Control, row) for row in rows]

    def requeue_with_half_micro_batch(self, phase: int) -> bool:
        """Requeue a run that ran out of memory, with half the micro-batch, ahead of its owner's other runs.

        The batch size stays the same, so the gradients do too. A run is requeued at most once, and only if its
        micro-batch has at least two texts.

        Returns: True if the run was requeued; False if nothing changed.
        """
        with self._writing() as db:
            row = db.execute("SELECT * FROM runs WHERE id = ?", (self.run_id,)).fetchone()
            config = stored_config(row["config"])
            at_once = config.phases[phase].effective_micro_batch or config.phases[phase].batch_size
            if row["memory_short"] or at_once < 2:
                return False
            phases = list(config.phases)
            phases[phase] = phases[phase].model_copy(update={"micro_batch": at_once // 2})
            text = config.model_copy(update={"phases": tuple(phases)}).to_json()
            message = Message(
                "Not enough memory for {before} texts at a time. The run restarted with {now} at a time and the "
                "same batch.",
                before=at_once,
                now=at_once // 2,
            )
            db.execute(
                "UPDATE runs SET config = ?, config_hash = ?, memory_short = 1, place = NULL WHERE id = ?",
                (text, config_hash(text), self.run_id),
            )
            self.store.queue_again(self.run_id, 0.0, message)
            count_time(db, self.run_id)
        return True

    def end(self, status: Status, message: Text | None = None) -> None:
        with self._writing():
            self.store.end(self.run_id, status, message)


def as_stored(values: Mapping[str, float]) -> dict[str, float]:
    """Return the values of a step as the store keeps them: nine significant digits represent a float32 exactly."""
    return {name: float(f"{value:.9g}") for name, value in values.items()}


def _take_turn(db: sqlite3.Connection, run_id: str, name: str, value: float) -> None:
    """Mark the oldest pending turn to this value, and all earlier turns of the knob, as taken.

    Later turns stay pending: they may not have reached the worker yet.
    """
    waiting = "run_id = ? AND kind = 'turn' AND name = ? AND taken_at IS NULL"
    db.execute(
        f"UPDATE controls SET taken_at = ? WHERE {waiting} "
        f"AND number <= (SELECT min(number) FROM controls WHERE {waiting} AND value = ?)",
        (time.time(), run_id, name, run_id, name, value),
    )
