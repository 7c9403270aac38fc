"""The writing side of one attempt at a run, from which a later attempt shuts it out."""

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
from core.store.liveness import liveness_of
from core.store.records import Control, Status, stored_config
from core.store.run_reader import RunReader
from core.store.work import Claim, count_time


class Attempt:
    """Writes of one attempt. Once a later attempt exists, every one of them raises StaleAttemptError."""

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
        """Raises: StaleAttemptError when a later attempt has the run."""
        with self._writing():
            return

    def register(self) -> None:
        """This process has the run now; what a killed one left half-written goes."""
        with self._writing():
            self.store.register(Claim(self.run_id, self.number, 0), liveness_of())
        for partial in self.folder.glob("*.partial"):
            partial.unlink(missing_ok=True)

    def placed(self, place: str) -> None:
        """The node of a cluster that carries it out."""
        self._write("UPDATE runs SET place = ? WHERE id = ?", (place, self.run_id))

    def restart_after_node_loss(self, message: Text) -> Attempt:
        """The next attempt, of the same holder, after the node that carried this one out was lost.

        A pause holds. Args: message: what a person reads of it.
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

    def started(self, event: Started) -> None:
        """Keep what the run said first, and cut what a dead attempt wrote after the checkpoint."""
        with self._writing() as db:
            cut = db.execute(
                "SELECT file FROM frames WHERE run_id = ? AND step > ?", (self.run_id, event.step)
            ).fetchall()
            for table in ("steps", "evaluations", "frames"):
                db.execute(f"DELETE FROM {table} WHERE run_id = ? AND step > ?", (self.run_id, event.step))
            # A pause or stop that was heard while the encoder loaded holds.
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
        self._drop_snapshots(event.step)
        if event.step or cut:
            # What was computed of frames of an earlier attempt.
            for name in ("maps-*", "measures-*", "layers"):
                for folder in self.folder.glob(name):
                    shutil.rmtree(folder, ignore_errors=True)

    def _drop_snapshots(self, step: int) -> None:
        """Those behind the checkpoint come again, and one that was made by a stop was for a run that ends there."""
        planned = self.store.run(self.run_id).config.checkpoint.snapshot_steps or ()
        for path in self.folder.glob("snapshot-*.safetensors"):
            if not any(path.name == f"snapshot-{kept:07d}.safetensors" for kept in planned if kept <= step):
                path.unlink(missing_ok=True)

    def steps(self, events: Sequence[Step]) -> None:
        now = time.time()
        with self._writing() as db:
            db.executemany(
                "INSERT OR REPLACE INTO steps (run_id, step, at, measures) VALUES (?, ?, ?, ?)",
                [(self.run_id, e.step, now, json.dumps(_rounded(e.values))) for e in events],
            )
            db.execute("UPDATE runs SET last_step = ? WHERE id = ?", (max(e.step for e in events), self.run_id))

    def evaluation(self, step: int, split: str, values: Mapping[str, float]) -> None:
        self._write(
            "INSERT OR REPLACE INTO evaluations (run_id, step, split, measures) VALUES (?, ?, ?, ?)",
            (self.run_id, step, split, json.dumps(dict(values))),
        )

    def predictions(self, event: Predictions) -> None:
        """Keep what the model says of the rows of a split."""
        self.check()
        frame_files.write_predictions(self.folder / frame_files.predictions_name(event.split), event)

    def frame(self, frame: Frame, points: Points) -> None:
        """The file first, then its row: a row always has a whole file."""
        self.check()
        name = f"frame-{frame.step:07d}.safetensors"
        frame_files.write_frame(self.folder / name, frame, points)
        self._write(
            "INSERT OR REPLACE INTO frames (run_id, step, file) VALUES (?, ?, ?)", (self.run_id, frame.step, name)
        )

    def tokens(self, event: Tokens) -> None:
        """Keep how the examples are read; a resumed run reads them the same way."""
        self.check()
        frame_files.write_tokens(self.folder / frame_files.TOKENS, event)

    def knob_turned(self, step: int, name: str, value: float) -> None:
        with self._writing() as db:
            db.execute(
                "INSERT OR REPLACE INTO knob_turns (run_id, step, name, value) VALUES (?, ?, ?, ?)",
                (self.run_id, step, name, value),
            )
            _take_turn(db, self.run_id, name, value)

    def turn_refused(self, name: str, value: float, message: Text) -> None:
        """A turn that the run cannot take waits no longer, and the run's message says why."""
        with self._writing() as db:
            _take_turn(db, self.run_id, name, value)
            db.execute("UPDATE work SET message = ? WHERE id = ?", (message, self.run_id))

    def checkpointed(self, step: int) -> None:
        self._write("UPDATE runs SET checkpoint_step = ? WHERE id = ?", (step, self.run_id))

    def notice(self, message: Text) -> None:
        self._write("UPDATE work SET message = ? WHERE id = ?", (message, self.run_id))

    def heartbeat(self) -> None:
        self._write("UPDATE work SET heartbeat_at = ? WHERE id = ?", (time.time(), self.run_id))

    def take_controls(self, after: int = 0) -> list[Control]:
        """Controls with a number above `after` that were not taken yet, oldest first.

        A stop, pause or resume counts as taken now and changes the status; a turn only once a step used it.
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
                    # A stop is final: a pause behind it changes nothing.
                    db.execute(
                        "UPDATE work SET status = ? WHERE id = ? AND status != 'stopping'", (status, self.run_id)
                    )
            count_time(db, self.run_id)
        return [Control(row["number"], row["kind"], row["name"], row["value"]) for row in rows]

    def requeue_with_half_micro_batch(self, phase: int) -> bool:
        """Queue the run again, before others of its owner, to read half as many texts at a time: memory was short.

        The batch stays what it is, so the run learns the same. Done once for a run, and not where a config cannot be
        carried out in parts.

        Returns: whether the run is queued again; False where nothing was changed.
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
                "There was not enough memory for {before} texts at a time: it reads {now} at a time now, for the "
                "gradients of the same batch.",
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


def _take_turn(db: sqlite3.Connection, run_id: str, name: str, value: float) -> None:
    """Count the oldest turn to this value, and those of its knob before it, as taken.

    A turn that was sent after it may not have reached the worker yet, and still waits.
    """
    waiting = "run_id = ? AND kind = 'turn' AND name = ? AND taken_at IS NULL"
    db.execute(
        f"UPDATE controls SET taken_at = ? WHERE {waiting} "
        f"AND number <= (SELECT min(number) FROM controls WHERE {waiting} AND value = ?)",
        (time.time(), run_id, name, run_id, name, value),
    )


def _rounded(values: Mapping[str, float]) -> dict[str, float]:
    """Measures come from float32: nine digits say all of it."""
    return {name: float(f"{value:.9g}") for name, value in values.items()}
