"""The store: the truth about every run, read and written by pages, workers and the command line alike."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.config import KnobTurn, RunConfig, check_turn, parse_config
from core.config.identity import config_hash
from core.errors import (
    ConfigError,
    EngineError,
    PlaygroundError,
    RunNotFoundError,
    StaleAttemptError,
    StoreError,
    shown,
)
from core.events import Evaluation, FloatArray, Frame, Predictions, Probe, Started, Step, Tokens
from core.messages import N_, Message, Text, load_text
from core.representation.projections import Points
from core.settings import settings
from core.store import frames as frame_files
from core.store.database import UNDO_S, Database
from core.store.liveness import from_json, liveness_of, observed, to_json
from core.store.names import checked_name, checked_tags, checked_visitor_name, new_id, visitor_key
from core.store.records import (
    Control,
    Discarded,
    KnobState,
    Liveness,
    NextRun,
    RunRecord,
    RunSummary,
    Status,
    UnreadableRun,
    Waiting,
)
from core.store.sizes import Dropped, FolderSizes, RunSize

# Shorter beginnings of an id could be taken for a run's number.
SHORTEST_PREFIX = 4
RUN_ID = re.compile(r"[a-z0-9]{12}")
CONTENT_HASH = re.compile(r"[0-9a-f]{64}")
# Rows that were kept for a run which is just being created are not taken for those of none.
ROWS_GRACE_S = 3600.0
# What people read where something is asked of a run that has ended, by what was asked.
NOTHING_TO_DO = {
    "stop": N_("Run {id} is {status}: there is nothing to stop."),
    "pause": N_("Run {id} is {status}: there is nothing to pause."),
    "resume": N_("Run {id} is {status}: there is nothing to resume."),
    "turn": N_("Run {id} is {status}: there is nothing to turn."),
}
# What a run says of itself that was stopped while it waited.
NOT_STARTED = Message("Stopped before it started.")
# Lists of runs are read again and again, and reading a config takes a moment.
CONFIGS_KEPT = 4_096
# A knob's turn as its table has it: step, name, value.
Turn = tuple[int, str, float]
ACTIVE_STATUSES = "('starting', 'running', 'paused', 'stopping')"
# Runs that wait, the next one first: those of experiments behind the others, people by turns, whoever waited longest.
# One that starts from another waits for its end. The parameter: owners who have as many runs going on as they may.
IN_LINE = (
    "SELECT runs.*, coalesce(visitors.turn_at, 0) AS turn_at FROM runs LEFT JOIN visitors ON visitors.id = runs.owner "
    "WHERE status = 'queued' AND json_valid(config) AND NOT EXISTS ("
    "SELECT 1 FROM runs source WHERE source.id = json_extract(runs.config, '$.start') AND source.discarded_at IS NULL "
    f"AND (source.status = 'queued' OR source.status IN {ACTIVE_STATUSES})"
    ") AND (owner IS NULL OR owner NOT IN (SELECT value FROM json_each(?))) "
    "ORDER BY background, turn_at, queued_at, number"
)
SUMMARY_COLUMNS = (
    "id, number, name, config, status, created_at, started_at, ended_at, attempt, begun_attempt, last_step, steps, "
    "checkpoint_step, device, message, slot, worker, heartbeat_at, probe IS NOT NULL AS probe_known, "
    "keep_weights, snapshots_dropped_at, weights_dropped_at, dropped_gb, worked_s, working_since, tags, "
    "background, place, owner, config_hash"
)


def default_folder() -> Path:
    """Where runs live unless settings say otherwise: SCL_RUNS, else runs/ below the current folder."""
    return settings().runs


def rows_path(folder: Path, content_hash: str) -> Path:
    """The file of the exact rows that runs with this hash were made with, in a store's folder. Raises: StoreError."""
    if not CONTENT_HASH.fullmatch(content_hash):
        raise StoreError("{hash} is no hash of a run's rows.", hash=shown(content_hash))
    return folder / "rows" / f"{content_hash}.parquet"


class Store(Database):
    """The runs of a database, and per run a folder with frames, checkpoint and log."""

    def __init__(self, folder: str | Path) -> None:
        """Open the store, creating or migrating it as needed.

        Raises: StoreError when the folder cannot be written or the file is no store.
        """
        super().__init__(folder)
        self._folder_sizes = FolderSizes()

    # Runs

    def create(self, config: RunConfig, cell: tuple[str, int, int] | None = None, owner: str | None = None) -> str:
        """Queue a prepared run; returns its id.

        Args:
            cell: an experiment's id, and the cell and seed there that the run is of; it then waits behind runs that
                somebody started one by one.
            owner: the visitor whose run it is; None on a server that nobody shares.
        """
        run_id = new_id()
        now, text = time.time(), config.to_json()
        with self.transaction() as db:
            db.execute(
                "INSERT INTO runs "
                "(id, name, config, config_hash, created_at, queued_at, status, steps, background, owner) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    run_id,
                    config.name,
                    text,
                    config_hash(text),
                    now,
                    now,
                    Status.QUEUED,
                    config.steps,
                    cell is not None,
                    owner,
                ),
            )
            if cell is not None:
                _put_cell(db, cell, run_id)
        return run_id

    def same_as(self, config: RunConfig) -> str | None:
        """The newest run that computes what this prepared config says, whatever became of it; None where there is none.

        A run whose knobs were turned computed something else.
        """
        rows = self.all(
            "SELECT id FROM runs WHERE config_hash = ? AND discarded_at IS NULL "
            "AND NOT EXISTS (SELECT 1 FROM knob_turns WHERE run_id = id) "
            "ORDER BY status = 'finished' DESC, number DESC LIMIT 1",
            (config_hash(config.to_json()),),
        )
        return str(rows[0]["id"]) if rows else None

    def adopt(
        self,
        run_id: str,
        config: RunConfig,
        name: str,
        worked_s: float,
        owner: str | None = None,
        cell: tuple[str, int, int] | None = None,
    ) -> Attempt:
        """Add a run that was carried out elsewhere, and return the attempt that writes what it recorded.

        Args:
            run_id: its id there, which no run here may have.
            worked_s: seconds that it worked there.
            owner, cell: as `create` has them.
        Raises: StoreError where there is such a run.
        """
        if not RUN_ID.fullmatch(run_id):
            raise StoreError("{id} is no run id: take another file.", id=shown(run_id))
        now, worker = time.time(), to_json(liveness_of())
        with self.transaction() as db:
            if db.execute("SELECT 1 FROM runs WHERE id = ?", (run_id,)).fetchone():
                raise StoreError("Run {id} is here already: open it from the list of runs.", id=run_id)
            # It has no hash: the same config gives other curves on another machine.
            db.execute(
                "INSERT INTO runs (id, name, config, created_at, queued_at, status, steps, attempt, worker, "
                "heartbeat_at, worked_s, owner, background) VALUES (?, ?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?)",
                (
                    run_id,
                    checked_name(name),
                    config.to_json(),
                    now,
                    now,
                    Status.STARTING,
                    config.steps,
                    worker,
                    now,
                    worked_s,
                    owner,
                    cell is not None,
                ),
            )
            if cell is not None:
                _put_cell(db, cell, run_id)
        return self.attempt(run_id, 1)

    def bring_back(self, run_id: str) -> bool:
        """Whether there is such a run that has finished; one that was discarded is restored.

        What is left of an adoption that was cut off is deleted.

        Raises: StoreError while another process adopts it.
        """
        with self.transaction() as db:
            row = db.execute("SELECT * FROM runs WHERE id = ?", (run_id,)).fetchone()
            if row is None:
                return False
            if _observed(row) == Status.FINISHED:
                db.execute("UPDATE runs SET discarded_at = NULL WHERE id = ?", (run_id,))
                return True
            if _observed(row).active:
                raise StoreError("Run {id} is being opened: try again in a moment.", id=run_id)
            self._forget_adoption(db, run_id)
        return False

    def drop_adopted(self, run_id: str) -> None:
        """Delete a run whose adoption goes wrong, with its files; there is nothing to bring back."""
        with self.transaction() as db:
            self._forget_adoption(db, run_id)

    def _forget_adoption(self, db: sqlite3.Connection, run_id: str) -> None:
        folder = self.run_folder(run_id)
        db.execute("DELETE FROM runs WHERE id = ?", (run_id,))
        shutil.rmtree(folder, ignore_errors=True)

    def runs(self) -> list[RunSummary]:
        """All runs that were not discarded, newest first."""
        every = f"SELECT {SUMMARY_COLUMNS} FROM runs WHERE discarded_at IS NULL"
        rows = self.all(f"{every} ORDER BY number DESC")
        if any(_observed(row) == Status.INTERRUPTED for row in rows):
            rows = self.all(f"{every} ORDER BY number DESC")  # see `_row`
        turns = self._turns()
        readable = [row for row in rows if _problem(row["config"]) is None]
        return [RunSummary(**_summary(row, turns.get(row["id"], ()))) for row in readable]

    def unreadable_runs(self) -> list[UnreadableRun]:
        """Return the runs whose stored config this version cannot read, newest first; `runs` leaves them out."""
        rows = self.all(
            "SELECT id, number, name, owner, config FROM runs WHERE discarded_at IS NULL ORDER BY number DESC"
        )
        found = ((row, _problem(row["config"])) for row in rows)
        return [
            UnreadableRun(row["id"], row["number"], row["name"], row["owner"], problem)
            for row, problem in found
            if problem is not None
        ]

    def run(self, run_id: str) -> RunRecord:
        """Raises: RunNotFoundError, also for text that is no run id; StoreError where its config cannot be read."""
        row = self._row(run_id)
        if (problem := _problem(row["config"])) is not None:
            raise StoreError(UnreadableRun(row["id"], row["number"], row["name"], row["owner"], problem).sentence)
        probe = _probe(row["probe"])
        turns = self._turns(run_id).get(run_id, ())
        return RunRecord(**_summary(row, turns), probe=probe, facts=json.loads(row["facts"] or "{}"))

    def _turns(self, run_id: str | None = None) -> dict[str, tuple[Turn, ...]]:
        """The knob turns of one run, or of all in one query, by run id."""
        found: dict[str, list[Turn]] = {}
        where, values = ("WHERE run_id = ?", (run_id,)) if run_id is not None else ("", ())
        for row in self.all(f"SELECT run_id, step, name, value FROM knob_turns {where} ORDER BY step, name", values):
            found.setdefault(row["run_id"], []).append((row["step"], row["name"], row["value"]))
        return {of_run: tuple(turns) for of_run, turns in found.items()}

    def find(self, text: str) -> str:
        """The id of a run given by id, by an unambiguous beginning of it, or by its number.

        Raises: RunNotFoundError.
        """
        rows = self.all("SELECT id, number FROM runs WHERE discarded_at IS NULL")
        matches = [r["id"] for r in rows if text in (r["id"], str(r["number"]))]
        if not matches and len(text) >= SHORTEST_PREFIX:
            matches = [r["id"] for r in rows if r["id"].startswith(text)]
        if not matches:
            raise RunNotFoundError("There is no run {text}: give an id from the list of runs.", text=shown(text))
        if len(matches) > 1:
            raise RunNotFoundError("Run {text} fits several runs: give an id from the list of runs.", text=shown(text))
        return str(matches[0])

    def _row(self, run_id: str) -> sqlite3.Row:
        named = "SELECT *, probe IS NOT NULL AS probe_known FROM runs WHERE id = ? AND discarded_at IS NULL"
        rows = self.all(named, (run_id,)) if RUN_ID.fullmatch(run_id) else []
        if rows and _observed(rows[0]) == Status.INTERRUPTED:
            # Its worker may have ended since the row was read, once it had written how the run ended.
            rows = self.all(named, (run_id,))
        if not rows:
            raise RunNotFoundError("Run {id} does not exist: choose one from the list of runs.", id=shown(run_id))
        return rows[0]

    def run_folder(self, run_id: str) -> Path:
        """Where a run's files lie. Raises: RunNotFoundError, so an id is never joined to a path unchecked."""
        return self.folder / "files" / str(self._row(run_id)["id"])

    def log_path(self, run_id: str) -> Path:
        return self.run_folder(run_id) / "log.txt"

    @property
    def cache_folder(self) -> Path:
        return self.folder / "cache"

    def discard(self, *run_ids: str) -> None:
        """Take runs out of sight at one moment; `restore` brings one back until `purge_discarded` frees its files.

        Raises: RunNotFoundError, or EngineError while a worker has one of them; nothing is discarded then.
        """
        for run_id in run_ids:
            self._row(run_id)
        now = time.time()
        with self.transaction() as db:
            for run_id in run_ids:
                row = db.execute("SELECT * FROM runs WHERE id = ?", (run_id,)).fetchone()
                status = _observed(row)
                # A queued run that cannot be read never starts, so there is nothing to stop.
                if status.active or (status == Status.QUEUED and _problem(row["config"]) is None):
                    raise EngineError(
                        "Run {id} is {status}: stop it before deleting it.", id=run_id, status=Message(str(status))
                    )
                db.execute("UPDATE runs SET discarded_at = ? WHERE id = ?", (now, run_id))

    def discarded(self, within_s: float = UNDO_S) -> list[Discarded]:
        """The runs that were discarded in the last seconds and can be brought back, the newest moment first."""
        rows = self.all(
            "SELECT id, number, name, owner, discarded_at FROM runs WHERE discarded_at > ? "
            "ORDER BY discarded_at DESC, number DESC",
            (time.time() - within_s,),
        )
        return [
            Discarded(
                row["id"],
                row["number"],
                row["name"],
                row["owner"],
                row["discarded_at"],
                self._folder_sizes.of_run(self.folder / "files" / row["id"]).total,
            )
            for row in rows
        ]

    def restore(self, run_id: str) -> None:
        """Undo `discard`. Raises: RunNotFoundError when the files are gone already."""
        with self.transaction() as db:
            if not db.execute("UPDATE runs SET discarded_at = NULL WHERE id = ?", (run_id,)).rowcount:
                raise RunNotFoundError("Run {id} is deleted for good: it cannot be brought back.", id=shown(run_id))

    def purge_discarded(self, older_than_s: float = UNDO_S) -> None:
        """Delete runs that were discarded longer ago than that, and free their files."""
        with self.transaction() as db:
            limit = time.time() - older_than_s
            rows = db.execute("DELETE FROM runs WHERE discarded_at <= ? RETURNING id", (limit,)).fetchall()
        for row in rows:
            shutil.rmtree(self.folder / "files" / row["id"], ignore_errors=True)
        if rows:
            self._purge_rows()

    def _purge_rows(self) -> None:
        """Free the rows that no run was made with."""
        named = "SELECT DISTINCT json_extract(config, '$.task.content_hash') AS hash FROM runs WHERE json_valid(config)"
        hashes = self.all(named)
        needed = {row["hash"] for row in hashes}
        for path in (self.folder / "rows").glob("*.parquet"):
            if path.stem not in needed and time.time() - path.stat().st_mtime > ROWS_GRACE_S:
                path.unlink(missing_ok=True)

    def delete(self, run_id: str) -> None:
        """Delete a run and free its files, for good. Raises: EngineError while a worker has it."""
        self.discard(run_id)
        self.purge_discarded(0.0)

    def rename(self, run_id: str, name: str) -> None:
        """Call a run something else; "" goes back to its number. Raises: RunNotFoundError, ConfigError."""
        self._row(run_id)
        checked = checked_name(name)
        with self.transaction() as db:
            db.execute("UPDATE runs SET name = ? WHERE id = ?", (checked, run_id))

    def tag(self, run_id: str, tags: Sequence[str]) -> None:
        """Give a run these tags instead of those it had. Raises: RunNotFoundError, ConfigError."""
        self._row(run_id)
        checked = checked_tags(tags)
        with self.transaction() as db:
            db.execute("UPDATE runs SET tags = ? WHERE id = ?", (json.dumps(checked, ensure_ascii=False), run_id))

    # Disk

    def sizes(self) -> dict[str, RunSize]:
        """What every run takes on disk, by id; deleted runs whose files are not freed yet among them."""
        return self._folder_sizes.of_runs(self.folder / "files")

    def size(self, run_id: str) -> RunSize:
        """What one run takes on disk. Raises: RunNotFoundError."""
        return self._folder_sizes.of_run(self.run_folder(run_id))

    def keep_weights(self, run_id: str, keep: bool) -> None:
        """Have the disk budget leave a run's weights alone, or no longer. Raises: RunNotFoundError."""
        self._row(run_id)
        with self.transaction() as db:
            db.execute("UPDATE runs SET keep_weights = ? WHERE id = ?", (keep, run_id))

    def record_drop(self, run_id: str, what: Dropped, budget_gb: float) -> bool:
        """Record that a finished run's weights are dropped, before their files go.

        Returns: False, and nothing is recorded, when the run has been deleted or its weights are to be kept.
        """
        sql = (
            f"UPDATE runs SET {what}_dropped_at = ?, dropped_gb = ? "
            "WHERE id = ? AND status = 'finished' AND discarded_at IS NULL AND NOT keep_weights"
        )
        with self.transaction() as db:
            return bool(db.execute(sql, (time.time(), budget_gb, run_id)).rowcount)

    # What pages read

    def steps(self, run_id: str, after: int = 0, most: int = -1) -> list[Step]:
        """Steps with a number above `after`, in order; the first `most` of them."""
        sql = "SELECT step, measures FROM steps WHERE run_id = ? AND step > ? ORDER BY step LIMIT ?"
        return [Step(row["step"], json.loads(row["measures"])) for row in self.all(sql, (run_id, after, most))]

    def newest_times(self, run_id: str, most: int) -> dict[int, float]:
        """When (Unix time) each of the newest steps was recorded, by step, ascending; at most `most` of them."""
        sql = "SELECT step, at FROM steps WHERE run_id = ? ORDER BY step DESC LIMIT ?"
        return {row["step"]: row["at"] for row in reversed(self.all(sql, (run_id, most)))}

    def evaluations(self, run_id: str) -> list[Evaluation]:
        rows = self.all("SELECT * FROM evaluations WHERE run_id = ? ORDER BY step, split", (run_id,))
        return [Evaluation(row["step"], row["split"], json.loads(row["measures"])) for row in rows]

    def last_scores(self) -> dict[str, list[Evaluation]]:
        """The newest evaluation of every split, by run id."""
        found: dict[str, list[Evaluation]] = {}
        # Beside max(), SQLite takes the other columns from the row that has it.
        newest_of = "SELECT run_id, split, max(step) AS step, measures FROM evaluations GROUP BY run_id, split"
        for row in self.all(newest_of):
            newest = Evaluation(row["step"], row["split"], json.loads(row["measures"]))
            found.setdefault(row["run_id"], []).append(newest)
        return found

    def knob_turns(self, run_id: str) -> list[KnobTurn]:
        """The turns that steps of the run have used, in order: made while it ran, or said by its config.

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
        """The steps whose frames are there, in order."""
        return [row["step"] for row in self.all("SELECT step FROM frames WHERE run_id = ? ORDER BY step", (run_id,))]

    def frame(self, run_id: str, step: int) -> Frame:
        """Raises: StoreError for a frame that is missing or damaged."""
        return frame_files.read_frame(self._frame_path(run_id, step), step)

    def map_points(self, run_id: str, step: int) -> Points:
        """The flat map [N, 2] of a frame. Raises: StoreError for a frame that is missing or damaged."""
        return frame_files.read_array(self._frame_path(run_id, step), frame_files.MAP)

    def predictions(self, run_id: str, split: str = "test") -> Predictions | None:
        """The logits of a split's rows at the end of a run; None of a run that kept none. Raises: StoreError."""
        return frame_files.read_predictions(self.run_folder(run_id) / frame_files.predictions_name(split), split)

    def embeddings(self, run_id: str, step: int) -> FloatArray:
        """The pooled vectors [N, H] of a frame. Raises: StoreError for a frame that is missing or damaged."""
        return frame_files.read_array(self._frame_path(run_id, step), "embeddings")

    def attention(self, run_id: str, step: int) -> NDArray[np.float16] | None:
        """What [CLS] attends to in a frame, see `Frame`; None where it was not kept. Raises: StoreError."""
        return frame_files.read_attention(self._frame_path(run_id, step))

    def tokens(self, run_id: str) -> Tokens:
        """How the encoder reads the examples whose attention frames hold; of none, where that was not kept.

        Raises: StoreError for a damaged file.
        """
        return frame_files.read_tokens(self.run_folder(run_id) / frame_files.TOKENS)

    def logits(self, run_id: str, step: int) -> FloatArray:
        """The logits [N, C] of a frame. Raises: StoreError for a frame that is missing or damaged."""
        return frame_files.read_array(self._frame_path(run_id, step), "logits")

    def _frame_path(self, run_id: str, step: int) -> Path:
        rows = self.all("SELECT file FROM frames WHERE run_id = ? AND step = ?", (run_id, step))
        if not rows:
            raise StoreError(
                "Run {id} has no frame at step {step}: choose one of its frames.", id=shown(run_id), step=step
            )
        return self.run_folder(run_id) / str(rows[0]["file"])

    def effective_config(self, run_id: str) -> RunConfig:
        """The config with the knob turns that were made, from which the run can be repeated."""
        return self.run(run_id).effective

    # Controls

    def send(self, run_id: str, kind: str, name: str | None = None, value: float | None = None) -> int:
        """Ask a run for something: "stop", "pause", "resume" or "turn" (a knob's name and value).

        A queued run stops at once. Returns: the control's number.
        Raises: EngineError when the run has ended; ConfigError for a knob value out of bounds.
        """
        run = self.run(run_id)
        if kind == "turn":
            check_turn(run.config, run.last_step + 1, str(name), float("nan") if value is None else value)
        with self.transaction() as db:
            status = _observed(db.execute("SELECT * FROM runs WHERE id = ?", (run_id,)).fetchone())
            if status == Status.QUEUED and kind == "stop":
                _end(db, run_id, Status.STOPPED, NOT_STARTED)
            elif status.ended:
                raise EngineError(NOTHING_TO_DO[kind], id=run_id, status=Message(str(status)))
            number = db.execute(
                "INSERT INTO controls (run_id, kind, name, value, sent_at) VALUES (?, ?, ?, ?, ?)",
                (run_id, kind, name, value, time.time()),
            ).lastrowid
        return int(number or 0)

    def pending_turns(self, run_id: str) -> dict[str, float]:
        """Knob values that were asked for and not used by a step yet."""
        rows = self.all(
            "SELECT name, value FROM controls WHERE run_id = ? AND kind = 'turn' AND taken_at IS NULL ORDER BY number",
            (run_id,),
        )
        return {row["name"]: row["value"] for row in rows}

    def knob_state(self, run_id: str) -> KnobState:
        """Where the knobs are, read at one moment: a turn is either pending or in the config, never in neither.

        Raises: RunNotFoundError.
        """
        with self.snapshot():
            run = self.run(run_id)
            return KnobState(run.effective, run.last_step + 1, self.pending_turns(run_id))

    # What the engine writes

    def claim_next(
        self, slots: Sequence[int], worker: Liveness | None = None, most_of_owner: int | None = None
    ) -> tuple[str, int, int] | None:
        """Take the next queued run for a free slot, so that nobody else can.

        A run in several processes takes as many slots, one behind the other, or all that there are.

        Args:
            worker: the process that it is handed to, until its worker reports.
            most_of_owner: runs of one visitor that may go on at a time; None for any number.
        Returns: run id, attempt number and the first slot; None when nothing waits or no slot is free.
        """
        with self.transaction() as db:
            running = db.execute(f"SELECT * FROM runs WHERE status IN {ACTIVE_STATUSES}").fetchall()
            taken = {slot for row in running if _observed(row).active for slot in _slots_of(row, slots)}
            row = _first_readable(db.execute(IN_LINE, (_busy(running, most_of_owner),)))
            if row is None:
                return None
            fitting = (slot for slot in slots if (own := _slots_from(slot, row, slots)) and taken.isdisjoint(own))
            first = next(fitting, None)
            if first is None:
                return None
            attempt = row["attempt"] + 1
            db.execute(
                "UPDATE runs SET status = ?, attempt = ?, slot = ?, worker = ?, heartbeat_at = ?, "
                "message = CASE WHEN memory_short THEN message END, "
                "ended_at = NULL, place = NULL WHERE id = ?",
                (Status.STARTING, attempt, first, to_json(worker), time.time(), row["id"]),
            )
            if row["owner"] is not None:
                db.execute(
                    "INSERT INTO visitors (id, turn_at) VALUES (?, ?) "
                    "ON CONFLICT (id) DO UPDATE SET turn_at = excluded.turn_at",
                    (row["owner"], time.time()),
                )
            return str(row["id"]), attempt, first

    def next_in_line(self, most_of_owner: int | None = None) -> NextRun | None:
        """The run that `claim_next` would take; None when nothing waits."""
        running = self.all(f"SELECT * FROM runs WHERE status IN {ACTIVE_STATUSES}") if most_of_owner else []
        row = _first_readable(self.all(IN_LINE, (_busy(running, most_of_owner),)))
        return None if row is None else NextRun(_config(row["config"]), bool(row["background"]))

    def line(self) -> list[Waiting]:
        """The queued runs that may begin, in the order in which people wait; nobody's limit is looked at."""
        rows = self.all(IN_LINE, ("[]",))
        return [
            Waiting(row["id"], row["owner"], bool(row["background"]), row["turn_at"], row["queued_at"]) for row in rows
        ]

    # Visitors of a shared server

    def name_visitor(self, visitor: str, name: str) -> None:
        """What others read of a visitor; "" for none.

        Raises: ConfigError for a name that is too long or reserved, or that reads like another visitor's.
        """
        checked = checked_visitor_name(name)
        with self.transaction() as db:
            others = db.execute("SELECT name FROM visitors WHERE id != ? AND name != ''", (visitor,))
            if checked and visitor_key(checked) in {visitor_key(row["name"]) for row in others}:
                raise ConfigError("name", checked, "somebody else here has it: choose another.")
            db.execute(
                "INSERT INTO visitors (id, name) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET name = excluded.name",
                (visitor, checked),
            )

    def visitor_names(self) -> dict[str, str]:
        """The names that visitors gave themselves, by id."""
        return {row["id"]: row["name"] for row in self.all("SELECT id, name FROM visitors WHERE name != ''")}

    def say_to_queued(self, message: Text | None) -> None:
        """Why queued runs do not begin, on each of them; None takes it back."""
        with self.transaction() as db:
            db.execute("UPDATE runs SET message = ? WHERE status = 'queued'", (message,))

    def hand_over(self, run_id: str, attempt: int, worker: Liveness) -> None:
        """A claimed run is held by this process now, until its worker reports (which may be the same)."""
        with self.transaction() as db:
            db.execute(
                "UPDATE runs SET worker = ? WHERE id = ? AND attempt = ? AND status = ?",
                (to_json(worker), run_id, attempt, Status.STARTING),
            )

    def has_queued(self) -> bool:
        """Whether a run waits; only reads."""
        return bool(self.all("SELECT 1 FROM runs WHERE status = 'queued' LIMIT 1"))

    def requeue(self, run_id: str) -> None:
        """Put a run that stopped, failed or was interrupted back into the queue, behind the others.

        Raises: EngineError for one that is going on or has finished: a finished run is never changed.
        """
        self._row(run_id)
        with self.transaction() as db:
            row = db.execute("SELECT * FROM runs WHERE id = ?", (run_id,)).fetchone()
            status = _observed(row)
            if not status.resumable:
                raise EngineError(
                    "Run {id} is {status}: only a stopped, failed or interrupted run resumes.",
                    id=run_id,
                    status=Message(str(status)),
                )
            # A stop or pause meant for the attempt that ended must not reach the next one; a knob stays turned.
            db.execute("DELETE FROM controls WHERE run_id = ? AND taken_at IS NULL AND kind != 'turn'", (run_id,))
            db.execute(
                "UPDATE runs SET status = ?, queued_at = ?, worker = NULL, slot = NULL, message = NULL, "
                "ended_at = NULL WHERE id = ?",
                (Status.QUEUED, time.time(), run_id),
            )
            _count_time(db, run_id, until=row["heartbeat_at"])

    def withdraw(self, run_id: str) -> bool:
        """Take a run back that nobody has begun, as if it had not been queued. Returns: False where somebody has."""
        with self.transaction() as db:
            never = "DELETE FROM runs WHERE id = ? AND status = 'queued' AND attempt = 0"
            return bool(db.execute(never, (run_id,)).rowcount)

    def attempt(self, run_id: str, number: int) -> Attempt:
        """The writing side of one attempt at a run."""
        return Attempt(self, run_id, number)


class Attempt:
    """Writes of one attempt. Once a later attempt exists, every one of them raises StaleAttemptError."""

    def __init__(self, store: Store, run_id: str, number: int) -> None:
        self.store, self.run_id, self.number = store, run_id, number
        self.folder = store.run_folder(run_id)

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self.store.transaction() as db:
            row = db.execute("SELECT attempt, status FROM runs WHERE id = ?", (self.run_id,)).fetchone()
            if row is None or row["attempt"] != self.number or not Status(row["status"]).active:
                raise StaleAttemptError(
                    "Attempt {number} of run {id} is no longer the current one.", number=self.number, id=self.run_id
                )
            yield db

    def check(self) -> None:
        """Raises: StaleAttemptError when a later attempt has the run."""
        with self._writing():
            return

    def register(self) -> None:
        """This process has the run now; what a killed one left half-written goes."""
        with self._writing() as db:
            db.execute(
                "UPDATE runs SET worker = ?, heartbeat_at = ? WHERE id = ?",
                (to_json(liveness_of()), time.time(), self.run_id),
            )
        for partial in self.folder.glob("*.partial"):
            partial.unlink(missing_ok=True)

    def placed(self, place: str) -> None:
        """The node of a cluster that carries it out."""
        with self._writing() as db:
            db.execute("UPDATE runs SET place = ? WHERE id = ?", (place, self.run_id))

    def lost(self, message: Text) -> Attempt:
        """The next attempt, of the same holder, after the node that carried this one out was lost.

        A pause holds. Args: message: what a person reads of it.
        """
        with self._writing() as db:
            db.execute(
                "UPDATE runs SET attempt = attempt + 1, heartbeat_at = ?, place = NULL, message = ?, "
                "status = CASE status WHEN 'paused' THEN status ELSE 'starting' END WHERE id = ?",
                (time.time(), message, self.run_id),
            )
            _count_time(db, self.run_id)
        return self.store.attempt(self.run_id, self.number + 1)

    def started(self, event: Started) -> None:
        """Keep what the run said first, and cut what a dead attempt wrote after the checkpoint."""
        with self._writing() as db:
            cut = db.execute(
                "SELECT file FROM frames WHERE run_id = ? AND step > ?", (self.run_id, event.step)
            ).fetchall()
            for table in ("steps", "evaluations", "frames"):
                db.execute(f"DELETE FROM {table} WHERE run_id = ? AND step > ?", (self.run_id, event.step))
            db.execute(
                # A pause or stop that was heard while the encoder loaded holds.
                "UPDATE runs SET status = CASE status WHEN 'starting' THEN 'running' ELSE status END, "
                "begun_attempt = attempt, device = ?, probe = ?, facts = ?, last_step = ?, "
                "started_at = coalesce(started_at, ?) WHERE id = ?",
                (
                    event.device,
                    json.dumps(asdict(event.probe), ensure_ascii=False),
                    json.dumps(dict(event.facts)),
                    event.step,
                    time.time(),
                    self.run_id,
                ),
            )
            _count_time(db, self.run_id)
        for row in cut:
            (self.folder / row["file"]).unlink(missing_ok=True)
        self._drop_snapshots(event.step)
        if event.step or cut:
            self._drop_analysis()

    def _drop_analysis(self) -> None:
        """What was computed of frames of an earlier attempt: maps, measures, layers."""
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
        with self._writing() as db:
            db.execute(
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
        with self._writing() as db:
            db.execute(
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
            db.execute("UPDATE runs SET message = ? WHERE id = ?", (message, self.run_id))

    def checkpointed(self, step: int) -> None:
        with self._writing() as db:
            db.execute("UPDATE runs SET checkpoint_step = ? WHERE id = ?", (step, self.run_id))

    def notice(self, message: Text) -> None:
        with self._writing() as db:
            db.execute("UPDATE runs SET message = ? WHERE id = ?", (message, self.run_id))

    def heartbeat(self) -> None:
        with self._writing() as db:
            db.execute("UPDATE runs SET heartbeat_at = ? WHERE id = ?", (time.time(), self.run_id))

    def take_controls(self, after: int = 0) -> list[Control]:
        """Controls with a number above `after` that nobody took yet, oldest first.

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
                        "UPDATE runs SET status = ? WHERE id = ? AND status != 'stopping'", (status, self.run_id)
                    )
            _count_time(db, self.run_id)
        return [Control(row["number"], row["kind"], row["name"], row["value"]) for row in rows]

    def read_less(self, phase: int) -> bool:
        """Queue the run again, before others of its owner, to read half as many texts at a time: memory was short.

        The batch stays what it is, so the run learns the same. Done once for a run, and not where a config cannot be
        carried out in parts.

        Returns: whether the run is queued again; False where nothing was changed.
        """
        with self._writing() as db:
            row = db.execute("SELECT * FROM runs WHERE id = ?", (self.run_id,)).fetchone()
            config = _config(row["config"])
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
                "UPDATE runs SET config = ?, config_hash = ?, memory_short = 1, status = 'queued', worker = NULL, "
                "slot = NULL, place = NULL, queued_at = 0, message = ? WHERE id = ?",
                (text, config_hash(text), message, self.run_id),
            )
            _count_time(db, self.run_id)
        return True

    def end(self, status: Status, message: Text | None = None) -> None:
        with self._writing() as db:
            _end(db, self.run_id, status, message)


def _put_cell(db: sqlite3.Connection, cell: tuple[str, int, int], run_id: str) -> None:
    """A run is that of a cell under a seed, which its experiment started."""
    db.execute(
        "INSERT OR REPLACE INTO experiment_runs (experiment_id, cell, seed, run_id, own) VALUES (?, ?, ?, ?, 1)",
        (*cell, run_id),
    )


def _busy(running: Sequence[sqlite3.Row], most: int | None) -> str:
    """The owners who have as many runs going on as they may, as JSON."""
    if most is None:
        return "[]"
    counts = Counter(row["owner"] for row in running if row["owner"] is not None and _observed(row).active)
    return json.dumps([owner for owner, count in counts.items() if count >= most])


def _slots_from(first: int, row: sqlite3.Row, slots: Sequence[int]) -> Sequence[int]:
    """The slots that a run takes where it begins at `first`; none where there are too few from there on."""
    processes = _config(row["config"]).processes if _problem(row["config"]) is None else 1
    wanted = min(processes, len(slots))
    place = slots.index(first)
    return slots[place : place + wanted] if place + wanted <= len(slots) else ()


def _slots_of(row: sqlite3.Row, slots: Sequence[int]) -> Sequence[int]:
    """The slots that a running run has; a slot of somebody else's is none of these."""
    return _slots_from(row["slot"], row, slots) if row["slot"] in slots else ()


def _count_time(db: sqlite3.Connection, run_id: str, until: float | None = None) -> None:
    """Add the time since the last change to what a run has worked, and go on counting where it runs.

    One that was adopted has its time from elsewhere.

    Args:
        until: when it stopped working; now where None.
    """
    now = time.time()
    db.execute(
        "UPDATE runs SET worked_s = worked_s + coalesce(max(0, ? - working_since), 0), "
        "working_since = CASE WHEN status IN ('running', 'stopping') AND begun_attempt = attempt "
        "AND config_hash IS NOT NULL THEN ? END WHERE id = ?",
        (now if until is None else until, now, run_id),
    )


def _end(db: sqlite3.Connection, run_id: str, status: Status, message: Text | None) -> None:
    db.execute(
        "UPDATE runs SET status = ?, ended_at = ?, worker = NULL, slot = NULL, message = coalesce(?, message) "
        "WHERE id = ?",
        (status, time.time(), message, run_id),
    )
    _count_time(db, run_id)


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


def _observed(row: sqlite3.Row) -> Status:
    return observed(Status(row["status"]), from_json(row["worker"]), row["heartbeat_at"])


def _summary(row: sqlite3.Row, turns: tuple[Turn, ...]) -> dict[str, Any]:
    names = {field.name for field in fields(RunSummary)} - {
        "config",
        "effective",
        "status",
        "probe_known",
        "keep_weights",
        "of_experiment",
        "adopted",
        "tags",
    }
    status = _observed(row)
    known = {name: row[name] for name in names}
    if status == Status.INTERRUPTED:
        known["ended_at"] = row["heartbeat_at"]
    if row["message"] is not None:
        known["message"] = load_text(row["message"])
    flags = {name: bool(row[name]) for name in ("probe_known", "keep_weights")}
    flags |= {"of_experiment": bool(row["background"]), "adopted": row["config_hash"] is None}
    configs = {"config": _config(row["config"]), "effective": _effective(row["config"], turns)}
    return known | flags | configs | {"status": status, "tags": tuple(json.loads(row["tags"]))}


@lru_cache(maxsize=CONFIGS_KEPT)
def _config(text: str) -> RunConfig:
    return parse_config(text)


def _problem(text: str) -> Message | None:
    """Return why a stored config cannot be read, such as a field of a later version; None where it can."""
    try:
        _config(text)
    except PlaygroundError as error:
        return error.message
    return None


def _first_readable(rows: Iterable[sqlite3.Row]) -> sqlite3.Row | None:
    return next((row for row in rows if _problem(row["config"]) is None), None)


@lru_cache(maxsize=CONFIGS_KEPT)
def _effective(text: str, turns: tuple[Turn, ...]) -> RunConfig:
    """A config with these turns beside its own; of two at the same step, the one that was made counts."""
    config = _config(text)
    if not turns:
        return config
    made = [KnobTurn(step=step, name=name, value=value) for step, name, value in turns]
    known = {(turn.step, turn.name): turn for turn in (*config.knob_turns, *made)}
    return config.model_copy(update={"knob_turns": tuple(known[key] for key in sorted(known))})


def _probe(text: str | None) -> Probe | None:
    return Probe(**{name: tuple(values) for name, values in json.loads(text).items()}) if text else None


def _rounded(values: Mapping[str, float]) -> dict[str, float]:
    """Measures come from float32: nine digits say all of it."""
    return {name: float(f"{value:.9g}") for name, value in values.items()}
