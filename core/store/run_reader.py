"""Read access to a store, for pages, exports and experiments."""

from __future__ import annotations

import json
import re
import sqlite3
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.config import KnobTurn
from core.errors import RunNotFoundError, StoreError, quote_value
from core.events import Evaluation, FloatArray, Frame, Predictions, Probe, Step, Tokens
from core.representation.projections import Points
from core.store import frames as frame_files
from core.store.database import UNDO_S, build_record
from core.store.liveness import UNRESPONSIVE_S, observed_status, rows_of_work
from core.store.records import (
    Discarded,
    KnobState,
    RunRecord,
    RunSummary,
    Status,
    Turn,
    UnreadableRun,
    config_problem,
    stored_config,
    stored_text,
    with_turns,
)
from core.store.sizes import RunSize, size_of_run, sizes_of_runs
from core.store.work import WorkTable

# Shorter prefixes of an id could be mistaken for a run's number.
SHORTEST_PREFIX = 4
RUN_ID = re.compile(r"[a-z0-9]{12}")
SUMMARY_COLUMNS = (
    "id, number, name, config, status, created_at, started_at, ended_at, attempt, begun_attempt, last_step, steps, "
    "checkpoint_step, device, message, worker, heartbeat_at, probe IS NOT NULL AS probe_known, "
    "keep_weights, snapshots_dropped_at, weights_dropped_at, dropped_gb, worked_s, working_since, peak_memory, tags, "
    "background, place, owner, config_hash"
)


class RunReader(WorkTable):
    """Reader of the runs of a database. Each run has a folder with frames, checkpoint and log."""

    def runs(self) -> list[RunSummary]:
        """Return all readable runs that are not discarded, newest first."""
        every = f"SELECT {SUMMARY_COLUMNS} FROM run_rows WHERE discarded_at IS NULL ORDER BY number DESC"
        rows = rows_of_work(self, every)
        turns = self._turns()
        readable = [row for row in rows if config_problem(row["config"]) is None]
        return [build_record(RunSummary, row, **_summary_fields(row, turns.get(row["id"], ()))) for row in readable]

    def unreadable_runs(self) -> list[UnreadableRun]:
        """Return the runs whose stored config this version cannot read, newest first; `runs` leaves them out."""
        rows = self.all(
            "SELECT id, number, name, owner, config FROM run_rows WHERE discarded_at IS NULL ORDER BY number DESC"
        )
        found = ((row, config_problem(row["config"])) for row in rows)
        return [build_record(UnreadableRun, row, reason=problem) for row, problem in found if problem is not None]

    def run(self, run_id: str) -> RunRecord:
        """Return one run. Raises: RunNotFoundError, also for a malformed id; StoreError for an unreadable config."""
        row = self._row(run_id)
        if (problem := config_problem(row["config"])) is not None:
            raise StoreError(build_record(UnreadableRun, row, reason=problem).sentence)
        probe = None
        if row["probe"]:
            probe = Probe(**{name: tuple(values) for name, values in json.loads(row["probe"]).items()})
        computed = _summary_fields(row, self._turns(run_id).get(run_id, ()))
        return build_record(RunRecord, row, **computed, probe=probe, facts=json.loads(row["facts"] or "{}"))

    def _turns(self, run_id: str | None = None) -> dict[str, tuple[Turn, ...]]:
        """Return the recorded knob turns of one run, or of all runs, by run id."""
        found: dict[str, list[Turn]] = {}
        where, values = ("WHERE run_id = ?", (run_id,)) if run_id is not None else ("", ())
        for row in self.all(f"SELECT run_id, step, name, value FROM knob_turns {where} ORDER BY step, name", values):
            found.setdefault(row["run_id"], []).append((row["step"], row["name"], row["value"]))
        return {of_run: tuple(turns) for of_run, turns in found.items()}

    def find(self, text: str) -> str:
        """Return the id of the run with this id, number or unambiguous id prefix.

        Raises: RunNotFoundError.
        """
        rows = self.all("SELECT id, number FROM run_rows WHERE discarded_at IS NULL")
        matches = [r["id"] for r in rows if text in (r["id"], str(r["number"]))]
        if not matches and len(text) >= SHORTEST_PREFIX:
            matches = [r["id"] for r in rows if r["id"].startswith(text)]
        if not matches:
            raise RunNotFoundError("There is no run {text}: give an id from the list of runs.", text=quote_value(text))
        if len(matches) > 1:
            raise RunNotFoundError(
                "{text} matches several runs: give a full id from the list of runs.", text=quote_value(text)
            )
        return str(matches[0])

    def _row(self, run_id: str) -> sqlite3.Row:
        named = "SELECT *, probe IS NOT NULL AS probe_known FROM run_rows WHERE id = ? AND discarded_at IS NULL"
        rows = rows_of_work(self, named, (run_id,)) if RUN_ID.fullmatch(run_id) else []
        if not rows:
            raise RunNotFoundError("Run {id} does not exist: choose one from the list of runs.", id=quote_value(run_id))
        return rows[0]

    def run_folder(self, run_id: str) -> Path:
        """Return the folder of a run's files. Raises: RunNotFoundError, so that no unchecked id becomes a path."""
        return self.folder / "files" / str(self._row(run_id)["id"])

    def log_path(self, run_id: str) -> Path:
        return self.run_folder(run_id) / "log.txt"

    @property
    def cache_folder(self) -> Path:
        return self.folder / "cache"

    def discarded(self, within_s: float = UNDO_S) -> list[Discarded]:
        """Return the runs discarded within the last `within_s` seconds, most recently discarded first."""
        rows = self.all(
            "SELECT id, number, name, owner, discarded_at FROM run_rows WHERE discarded_at > ? "
            "ORDER BY discarded_at DESC, number DESC",
            (time.time() - within_s,),
        )
        found = ((row, size_of_run(self.folder / "files" / row["id"])) for row in rows)
        return [build_record(Discarded, row, at=row["discarded_at"], size=size.total) for row, size in found]

    def sizes(self) -> dict[str, RunSize]:
        """Return the disk usage of every run by id, including deleted runs whose files still exist."""
        return sizes_of_runs(self.folder / "files")

    def size(self, run_id: str) -> RunSize:
        """Return the disk usage of one run. Raises: RunNotFoundError."""
        return size_of_run(self.run_folder(run_id))

    def steps(self, run_id: str, after: int = 0, most: int = -1) -> list[Step]:
        """Return the first `most` steps after step `after`, in order; all of them if `most` is -1."""
        sql = "SELECT step, measures FROM steps WHERE run_id = ? AND step > ? ORDER BY step LIMIT ?"
        return [Step(row["step"], json.loads(row["measures"])) for row in self.all(sql, (run_id, after, most))]

    def newest_times(self, run_id: str, most: int) -> dict[int, float]:
        """Return the recording times (Unix time) of the newest `most` steps, by step, ascending."""
        sql = "SELECT step, at FROM steps WHERE run_id = ? ORDER BY step DESC LIMIT ?"
        return {row["step"]: row["at"] for row in reversed(self.all(sql, (run_id, most)))}

    def evaluations(self, run_id: str) -> list[Evaluation]:
        rows = self.all("SELECT * FROM evaluations WHERE run_id = ? ORDER BY step, split", (run_id,))
        return [Evaluation(row["step"], row["split"], json.loads(row["measures"])) for row in rows]

    def last_scores(self) -> dict[str, list[Evaluation]]:
        """Return the newest evaluation of every split, by run id."""
        found: dict[str, list[Evaluation]] = {}
        # With max(), SQLite takes the other columns from the row that holds the maximum.
        newest_of = "SELECT run_id, split, max(step) AS step, measures FROM evaluations GROUP BY run_id, split"
        for row in self.all(newest_of):
            newest = Evaluation(row["step"], row["split"], json.loads(row["measures"]))
            found.setdefault(row["run_id"], []).append(newest)
        return found

    def knob_turns(self, run_id: str) -> list[KnobTurn]:
        """Return the knob turns that the run has applied, in order, whether planned or made by a user.

        Raises: RunNotFoundError.
        """
        run, made = self.run(run_id), self._turns(run_id).get(run_id, ())
        recorded = {(step, name) for step, name, _value in made}
        return [
            turn
            for turn in run.effective.knob_turns
            if turn.step <= run.last_step or (turn.step, turn.name) in recorded
        ]

    def frame_steps(self, run_id: str) -> list[int]:
        """Return the steps that have a frame, in order."""
        return [row["step"] for row in self.all("SELECT step FROM frames WHERE run_id = ? ORDER BY step", (run_id,))]

    def frame(self, run_id: str, step: int) -> Frame:
        """Read a frame. Raises: StoreError for a frame that is missing or damaged."""
        path = self._frame_path(run_id, step)
        embeddings, logits = (frame_files.read_array(path, name) for name in ("embeddings", "logits"))
        return Frame(step, embeddings, logits, frame_files.read_array(path, frame_files.ATTENTION, optional=True))

    def map_points(self, run_id: str, step: int) -> Points:
        """Read the 2-D map [N, 2] of a frame. Raises: StoreError for a frame that is missing or damaged."""
        return frame_files.read_array(self._frame_path(run_id, step), frame_files.MAP)

    def predictions(self, run_id: str, split: str = "test") -> Predictions | None:
        """Read the logits of a split's rows at the end of a run; None if they were not stored. Raises: StoreError."""
        return frame_files.read_predictions(self.run_folder(run_id), split)

    def embeddings(self, run_id: str, step: int) -> FloatArray:
        """Read the pooled vectors [N, H] of a frame. Raises: StoreError for a frame that is missing or damaged."""
        return frame_files.read_array(self._frame_path(run_id, step), "embeddings")

    def attention(self, run_id: str, step: int) -> NDArray[np.float16] | None:
        """Read the [CLS] attention of a frame (see `Frame`); None if it was not stored. Raises: StoreError."""
        return frame_files.read_array(self._frame_path(run_id, step), frame_files.ATTENTION, optional=True)

    def tokens(self, run_id: str) -> Tokens:
        """Read the tokens of the examples whose attention is in the frames; empty if they were not stored.

        Raises: StoreError for a damaged file.
        """
        return frame_files.read_tokens(self.run_folder(run_id) / frame_files.TOKENS)

    def logits(self, run_id: str, step: int) -> FloatArray:
        """Read the logits [N, C] of a frame. Raises: StoreError for a frame that is missing or damaged."""
        return frame_files.read_array(self._frame_path(run_id, step), "logits")

    def _frame_path(self, run_id: str, step: int) -> Path:
        rows = self.all("SELECT file FROM frames WHERE run_id = ? AND step = ?", (run_id, step))
        if not rows:
            raise StoreError(
                "Run {id} has no frame at step {step}: choose one of its frames.", id=quote_value(run_id), step=step
            )
        return self.run_folder(run_id) / str(rows[0]["file"])

    def knob_state(self, run_id: str) -> KnobState:
        """Return the state of the knobs, in which every turn is pending or in the config.

        Raises: RunNotFoundError.
        """
        # Pending turns first, because a worker may move one to the config meanwhile.
        turns = self.all(
            "SELECT name, value FROM controls WHERE run_id = ? AND kind = 'turn' AND taken_at IS NULL ORDER BY number",
            (run_id,),
        )
        run = self.run(run_id)
        return KnobState(run.effective, run.last_step + 1, {turn["name"]: turn["value"] for turn in turns})

    def visitor_names(self) -> dict[str, str]:
        """Return the names that visitors chose, by visitor id."""
        return {row["id"]: row["name"] for row in self.all("SELECT id, name FROM visitors WHERE name != ''")}


def _summary_fields(row: sqlite3.Row, turns: tuple[Turn, ...]) -> dict[str, Any]:
    """Compute the fields of a RunSummary that a row holds in another form, or not at all."""
    status = observed_status(row)
    values = {
        "config": stored_config(row["config"]),
        "effective": with_turns(row["config"], turns),
        "status": status,
        "message": stored_text(row["message"]),
        "probe_known": bool(row["probe_known"]),
        "keep_weights": bool(row["keep_weights"]),
        "tags": tuple(json.loads(row["tags"])),
        "of_experiment": bool(row["background"]),
        "adopted": row["config_hash"] is None,
        # A starting run has no heartbeats until its worker has registered.
        "responding": not status.active
        or status == Status.STARTING
        or time.time() - (row["heartbeat_at"] or 0.0) < UNRESPONSIVE_S,
    }
    if status == Status.INTERRUPTED:
        values["ended_at"] = row["heartbeat_at"] or row["created_at"]
    return values
