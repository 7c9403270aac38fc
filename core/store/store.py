"""The store, the single source of truth about runs for pages, workers and the command line."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from core.config import RunConfig, check_turn
from core.config.compare import config_hash
from core.errors import ConfigError, EngineError, RunNotFoundError, StoreError, quote_value
from core.messages import N_, Message, Text
from core.settings import settings
from core.store.attempt import Attempt
from core.store.database import UNDO_S, build_record
from core.store.liveness import (
    boot_id,
    from_json,
    host_name,
    is_alive,
    liveness_of,
    observed_status,
    oom_kills,
    rows_of_work,
)
from core.store.names import checked_name, checked_tags, checked_visitor_name, new_id, visitor_key
from core.store.records import Liveness, Status, Waiting, config_problem
from core.store.run_reader import RUN_ID, RunReader
from core.store.sizes import Dropped, RunSize
from core.store.work import ACTIVE, QUEUE_QUERY, RUN, RUNS, count_time

CONTENT_HASH = re.compile(r"[0-9a-f]{64}")
# Rows without a run are kept this long, because they may belong to a run that is being created.
ROWS_GRACE_S = 3600.0
# Error messages for controls sent to a run that has ended, by control.
NOTHING_TO_DO = {
    "stop": N_("Run {id} is {status}: there is nothing to stop."),
    "pause": N_("Run {id} is {status}: there is nothing to pause."),
    "resume": N_("Run {id} is {status}: there is nothing to resume."),
    "turn": N_("Run {id} is {status}: its knobs can no longer be turned."),
}
# Message of a run that was stopped in the queue.
NOT_STARTED = Message("Stopped before it started.")


def default_folder() -> Path:
    """Return the folder of runs: SCL_RUNS, or by default runs/ in the working directory."""
    return settings().runs


def rows_path(folder: Path, content_hash: str) -> Path:
    """Return the path of the rows with this hash in a store's folder. Raises: StoreError for a malformed hash."""
    if not CONTENT_HASH.fullmatch(content_hash):
        raise StoreError("{hash} is not the hash of a run's rows.", hash=quote_value(content_hash))
    return folder / "rows" / f"{content_hash}.parquet"


class Store(RunReader):
    """Read and write access to the runs of a database and their folders."""

    def create(self, config: RunConfig, cell: tuple[str, int, int] | None = None, owner: str | None = None) -> str:
        """Queue a prepared run and return its id.

        Args:
            cell: an experiment's id, cell and seed. The run then waits behind runs that users started individually.
            owner: the visitor who starts the run; None on a server that is not shared.
        """
        run_id = new_id()
        self._insert(run_id, config, owner, cell, name=config.name, config_hash=config_hash(config.to_json()))
        return run_id

    def _insert(
        self,
        run_id: str,
        config: RunConfig,
        owner: str | None,
        cell: tuple[str, int, int] | None,
        worker: Liveness | None = None,
        **columns: Any,
    ) -> None:
        with self.transaction():
            self.add_work(run_id, RUN, RUNS, owner=owner, background=cell is not None, worker=worker)
            self.insert("runs", id=run_id, config=config.to_json(), steps=config.steps, **columns)
            if cell is not None:
                of_cell = dict(zip(("experiment_id", "cell", "seed"), cell, strict=True))
                self.insert("experiment_runs", replace=True, run_id=run_id, own=1, **of_cell)

    def same_as(self, config: RunConfig) -> str | None:
        """Return the id of a run with the same prepared config; None if there is none.

        A finished run is preferred, then a newer one. Runs whose knobs were turned are ignored.
        """
        rows = self.all(
            "SELECT id FROM run_rows WHERE config_hash = ? AND discarded_at IS NULL "
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
        """Add a run that was executed elsewhere, and return the attempt that writes its records.

        Args:
            run_id: its original id, which no run in this store may have.
            worked_s: its working time, in seconds.
            owner, cell: see `create`.
        Raises: StoreError for a malformed or existing id.
        """
        if not RUN_ID.fullmatch(run_id):
            raise StoreError("{id} is not a run id: choose another file.", id=quote_value(run_id))
        with self.transaction() as db:
            if db.execute("SELECT 1 FROM runs WHERE id = ?", (run_id,)).fetchone():
                raise StoreError("Run {id} exists already: open it from the list of runs.", id=run_id)
            # No hash: the same config gives different curves on another machine.
            self._insert(run_id, config, owner, cell, liveness_of(), name=checked_name(name), worked_s=worked_s)
        return self.attempt(run_id, 1)

    def bring_back(self, run_id: str) -> bool:
        """Restore a finished run that was discarded. Delete an unfinished one that an interrupted adoption left.

        Returns: True if the store has the run and it has finished.
        Raises: StoreError while another process is adopting the run.
        """
        with self.transaction() as db:
            row = db.execute("SELECT * FROM run_rows WHERE id = ?", (run_id,)).fetchone()
            if row is None:
                return False
            if observed_status(row) == Status.FINISHED:
                db.execute("UPDATE runs SET discarded_at = NULL WHERE id = ?", (run_id,))
                return True
            if observed_status(row).active:
                raise StoreError("Run {id} is being opened: try again in a moment.", id=run_id)
            self.drop_adopted(run_id)
        return False

    def drop_adopted(self, run_id: str) -> None:
        """Permanently delete a run whose adoption failed, with its files."""
        with self.transaction() as db:
            folder = self.run_folder(run_id)
            db.execute("DELETE FROM runs WHERE id = ?", (run_id,))
            shutil.rmtree(folder, ignore_errors=True)

    def discard(self, *run_ids: str) -> bool:
        """Hide runs, all or none; `restore` undoes this until `purge_discarded` deletes their files.

        If the disk is nearly full, the files of all hidden runs are deleted at once.

        Returns: True if it can be undone.
        Raises: RunNotFoundError; EngineError if one of them is active or queued.
        """
        self.despite_full_disk(lambda: self._hide(run_ids))
        if not self.nearly_full():
            return True
        for discarded in self.discarded():
            shutil.rmtree(self.folder / "files" / discarded.id, ignore_errors=True)
        self.purge_discarded(older_than_s=0.0)
        return False

    def _hide(self, run_ids: Sequence[str]) -> None:
        now = time.time()
        with self.transaction() as db:
            for run_id in run_ids:
                row = self._row(run_id)
                status = observed_status(row)
                # A queued run that cannot be read never starts, so there is nothing to stop.
                if status.active or (status == Status.QUEUED and config_problem(row["config"]) is None):
                    raise EngineError(
                        "Run {id} is {status}: stop it before deleting it.", id=run_id, status=Message(str(status))
                    )
                db.execute("UPDATE runs SET discarded_at = ? WHERE id = ?", (now, run_id))

    def restore(self, run_id: str) -> None:
        """Undo `discard`. Raises: RunNotFoundError if the run was purged."""
        if not self.write("UPDATE runs SET discarded_at = NULL WHERE id = ?", (run_id,)).rowcount:
            raise RunNotFoundError("Run {id} was deleted permanently and cannot be restored.", id=quote_value(run_id))

    def purge_discarded(self, older_than_s: float = UNDO_S) -> None:
        """Delete runs discarded more than `older_than_s` seconds ago, with their files."""
        with self.transaction() as db:
            limit = time.time() - older_than_s
            rows = db.execute("DELETE FROM runs WHERE discarded_at <= ? RETURNING id", (limit,)).fetchall()
        for row in rows:
            shutil.rmtree(self.folder / "files" / row["id"], ignore_errors=True)
        if not rows:
            return
        # Files of rows that no run uses.
        named = "SELECT DISTINCT json_extract(config, '$.task.content_hash') AS hash FROM runs WHERE json_valid(config)"
        needed = {row["hash"] for row in self.all(named)}
        for path in (self.folder / "rows").glob("*.parquet"):
            if path.stem not in needed and time.time() - path.stat().st_mtime > ROWS_GRACE_S:
                path.unlink(missing_ok=True)

    def orphans(self) -> dict[str, RunSize]:
        """Return the disk usage of folders that belong to no run, by name; recent ones may belong to a new run."""
        known, found = {row["id"] for row in self.all("SELECT id FROM runs")}, {}
        for name, size in self.sizes().items():
            with suppress(FileNotFoundError):  # deleted meanwhile
                changed_at = (self.folder / "files" / name).stat().st_mtime
                if name not in known and time.time() - changed_at > ROWS_GRACE_S:
                    found[name] = size
        return found

    def delete_orphans(self) -> None:
        """Permanently delete the folders that belong to no run."""
        for name in self.orphans():
            shutil.rmtree(self.folder / "files" / name, ignore_errors=True)

    def rename(self, run_id: str, name: str) -> None:
        """Rename a run; "" restores its number as the title. Raises: RunNotFoundError, ConfigError."""
        self._change(run_id, "name = ?", checked_name(name))

    def tag(self, run_id: str, tags: Sequence[str]) -> None:
        """Replace the tags of a run. Raises: RunNotFoundError, ConfigError."""
        self._change(run_id, "tags = ?", json.dumps(checked_tags(tags), ensure_ascii=False))

    # Disk

    def keep_weights(self, run_id: str, keep: bool) -> None:
        """Set whether the disk budget must keep a run's weights. Raises: RunNotFoundError."""
        self._change(run_id, "keep_weights = ?", keep)

    def _change(self, run_id: str, setting: str, value: object) -> None:
        with self.transaction() as db:
            self._row(run_id)
            db.execute(f"UPDATE runs SET {setting} WHERE id = ?", (value, run_id))

    def record_drop(self, run_id: str, what: Dropped, budget_gb: float) -> bool:
        """Record that a finished run's weights are dropped, before their files are deleted.

        Returns: False if nothing was recorded: the run is deleted or not finished, or its weights must be kept.
        """
        sql = (
            f"UPDATE runs SET {what}_dropped_at = ?, dropped_gb = ? WHERE id = ? AND discarded_at IS NULL "
            "AND NOT keep_weights AND EXISTS (SELECT 1 FROM work WHERE work.id = runs.id AND status = 'finished')"
        )
        return bool(self.write(sql, (time.time(), budget_gb, run_id)).rowcount)

    # Controls

    def send(self, run_id: str, kind: str, name: str | None = None, value: float | None = None) -> None:
        """Send a control to a run: "stop", "pause", "resume" or "turn" (a knob's name and value).

        A queued run stops at once.

        Raises: EngineError if the run has ended; ConfigError for a knob value out of bounds.
        """
        run = self.run(run_id)
        if kind == "turn":
            if run.config.repeats(run.last_step + 1):
                raise ConfigError(str(name), value, "this run still repeats the steps of its parent; turn it later.")
            check_turn(run.config, run.last_step + 1, str(name), float("nan") if value is None else value)
        with self.transaction():
            status = observed_status(self._row(run_id))
            if status == Status.QUEUED and kind == "stop":
                self.end(run_id, Status.STOPPED, NOT_STARTED)
            elif status.ended:
                raise EngineError(NOTHING_TO_DO[kind], id=run_id, status=Message(str(status)))
            self.insert("controls", run_id=run_id, kind=kind, name=name, value=value, sent_at=time.time())

    # The queue

    def queued_runs(self) -> list[Waiting]:
        """Return the queued runs that may begin, in the order of the queue, regardless of visitors' limits."""
        rows = self.all(QUEUE_QUERY, (RUNS, "[]"))
        return [build_record(Waiting, row, background=bool(row["background"])) for row in rows]

    def queued_counts(self) -> Counter[str | None]:
        """Return the number of queued runs of each owner, experiments aside."""
        sql = "SELECT owner FROM work WHERE status = 'queued' AND line = ? AND NOT background"
        return Counter(row["owner"] for row in self.all(sql, (RUNS,)))

    # Visitors of a shared server

    def name_visitor(self, visitor: str, name: str) -> None:
        """Set the name under which other visitors see a visitor; "" for none.

        Raises: ConfigError for a name that is too long or reserved, or that looks like another visitor's.
        """
        checked = checked_visitor_name(name)
        with self.transaction() as db:
            others = db.execute("SELECT name FROM visitors WHERE id != ? AND name != ''", (visitor,))
            if checked and visitor_key(checked) in {visitor_key(row["name"]) for row in others}:
                raise ConfigError("name", checked, "another visitor uses this name: choose another.")
            db.execute(
                "INSERT INTO visitors (id, name) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET name = excluded.name",
                (visitor, checked),
            )

    def set_queue_message(self, message: Text | None) -> None:
        """Set the message of all queued runs, which says why they do not begin; None removes it."""
        self.write("UPDATE work SET message = ? WHERE status = 'queued' AND line = ?", (message, RUNS))

    def has_queued(self) -> bool:
        """Return True if a run is queued. Does not write."""
        return bool(self.all("SELECT 1 FROM work WHERE status = 'queued' AND line = ? LIMIT 1", (RUNS,)))

    def requeue(self, run_id: str) -> None:
        """Put a stopped, failed or interrupted run back into the queue, behind the others.

        Raises: EngineError for any other status; a finished run never changes.
        """
        with self.transaction() as db:
            row = self._row(run_id)
            status = observed_status(row)
            if not status.resumable:
                raise EngineError(
                    "Run {id} is {status}: only a stopped, failed or interrupted run can be resumed.",
                    id=run_id,
                    status=Message(str(status)),
                )
            # A stop or pause sent to the last attempt must not reach the next one; a knob turn still applies.
            db.execute("DELETE FROM controls WHERE run_id = ? AND taken_at IS NULL AND kind != 'turn'", (run_id,))
            self.queue_again(run_id, time.time())
            count_time(db, run_id, until=row["heartbeat_at"])

    def killed_for_memory(self) -> list[str]:
        """Return the ids of runs whose worker on this machine has died while the kernel killed some process.

        The kernel kills processes when memory runs out.
        """
        started = f"SELECT * FROM run_rows WHERE status IN {ACTIVE} AND oom_kills < ? AND worker IS NOT NULL"
        here = (host_name(), boot_id())
        return [
            str(row["id"])
            for row in rows_of_work(self, started, (oom_kills(),))
            if observed_status(row) == Status.INTERRUPTED
            and (worker := from_json(row["worker"])) is not None
            and (worker.host, worker.boot_id) == here
        ]

    def worker_of(self, run_id: str) -> Liveness | None:
        """Return the live process that executes or holds a run; None if there is none."""
        row = self._row(run_id)
        worker = from_json(row["worker"]) if observed_status(row).active else None
        return worker if worker is not None and is_alive(worker, row["heartbeat_at"]) else None

    def withdraw(self, run_id: str) -> bool:
        """Remove a queued run that was never claimed. Returns: False if it was claimed."""
        with self.transaction() as db:
            never = "SELECT 1 FROM work WHERE work.id = runs.id AND status = 'queued' AND attempt = 0"
            return bool(db.execute(f"DELETE FROM runs WHERE id = ? AND EXISTS ({never})", (run_id,)).rowcount)

    def attempt(self, run_id: str, number: int) -> Attempt:
        """Return the writer of one attempt at a run."""
        return Attempt(self, run_id, number)
