"""The table of work: runs and jobs are queued, claimed, handed over, begun and ended in the same way.

The column `line` names the queue of a piece of work.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from core.config import RunConfig
from core.messages import Text
from core.store.database import Database
from core.store.liveness import from_json, is_alive, observed_status, to_json
from core.store.records import Liveness, Status, config_problem, stored_config

# Kind of work of a run, and name of the queue of runs.
RUN, RUNS = "run", "runs"
# States of a warm process that is not working: importing libraries, or idle.
LOADING, NOTHING = "loading", ""
ACTIVE = "('starting', 'running', 'paused', 'stopping')"
ENDED = "('stopped', 'failed', 'finished')"
# Waiting work of a queue, next first. Experiments come last; visitors take turns; then the longest wait comes first.
# A run that starts from another waits for its end. Parameters: the queue; owners who have reached their limit.
QUEUE_QUERY = (
    "SELECT work.*, runs.config, coalesce(visitors.turn_at, 0) AS turn_at FROM work "
    "LEFT JOIN runs ON runs.id = work.id LEFT JOIN visitors ON visitors.id = work.owner "
    "WHERE work.status = 'queued' AND line = ? AND (config IS NULL OR json_valid(config)) AND NOT EXISTS ("
    "SELECT 1 FROM run_rows source WHERE source.id = json_extract(runs.config, '$.start') "
    f"AND source.discarded_at IS NULL AND (source.status = 'queued' OR source.status IN {ACTIVE})"
    ") AND (work.owner IS NULL OR work.owner NOT IN (SELECT value FROM json_each(?))) "
    "ORDER BY work.background, turn_at, work.queued_at, work.number"
)


class Claim(NamedTuple):
    """Claimed work.

    Attributes:
        attempt: number of the attempt, from 1.
        slot: the first of the slots that it occupies.
    """

    id: str
    attempt: int
    slot: int


@dataclass(frozen=True, slots=True)
class WarmProcess:
    """The process that serves a queue.

    Attributes:
        doing: LOADING, NOTHING, or the id of the current work; for a bridge, a hash of its settings.
        failed_starts: number of consecutive processes before it that ended while loading.
    """

    worker: Liveness
    doing: str
    failed_starts: int = 0

    @property
    def alive(self) -> bool:
        return is_alive(self.worker, None)


class WorkTable(Database):
    """The work of a database and the warm processes that execute it."""

    def add_work(
        self,
        work_id: str,
        kind: str,
        line: str | None,
        *,
        label: Text = "",
        request: Mapping[str, Any] | None = None,
        owner: str | None = None,
        background: bool = False,
        worker: Liveness | None = None,
    ) -> None:
        """Add work to a queue. Work without a queue or with a worker does not wait: its first attempt is starting."""
        now, starting = time.time(), line is None or worker is not None
        self.insert(
            "work",
            id=work_id,
            kind=kind,
            line=line,
            status=Status.STARTING if starting else Status.QUEUED,
            owner=owner,
            background=background,
            created_at=now,
            queued_at=now,
            attempt=int(starting),
            worker=to_json(worker),
            heartbeat_at=now,
            label=label,
            request=as_json(request or {}),
        )

    def claim_next(
        self,
        slots: Sequence[int] = (0,),
        worker: Liveness | None = None,
        most_of_owner: int | None = None,
        *,
        line: str = RUNS,
        request: Mapping[str, Any] | None = None,
        among: Collection[str] | None = None,
        accepts: Callable[[RunConfig, bool], bool] = lambda _config, _of_experiment: True,
    ) -> Claim | None:
        """Claim the next work of a queue for a free slot. No other process can claim it afterwards.

        A run with several processes occupies that many consecutive slots, or all slots if there are fewer.

        Args:
            worker: the process that holds the work until its own worker registers.
            most_of_owner: limit on the active work of one visitor; None for no limit.
            request: settings that the claiming process passes to the process that begins a run.
            among: claim one of these, even if its slot is taken or its owner has reached the limit: the caller executes
                them together. None for any work.
            accepts: called with the config of the next run, and True for a run of an experiment.
        Returns: None if nothing waits, no slot is free, or the next run is not accepted.
        """
        with self.transaction() as db:
            active = self._active(line)
            counts = Counter(row["owner"] for row in active if row["owner"] is not None)
            limit = most_of_owner if among is None else None
            busy = [owner for owner, count in counts.items() if limit is not None and count >= limit]
            # Slots outside `slots` belong to other claimants.
            taken: set[int] = {
                slot for row in active if row["slot"] in slots for slot in _slots_from(row["slot"], row, slots)
            }
            waiting: Iterable[sqlite3.Row] = db.execute(QUEUE_QUERY, (line, json.dumps(busy)))
            if among is not None:
                taken = set()
                waiting = (row for row in waiting if row["id"] in among)
            row = next((row for row in waiting if row["config"] is None or config_problem(row["config"]) is None), None)
            if row is None or (row["config"] and not accepts(stored_config(row["config"]), bool(row["background"]))):
                return None
            fitting = (slot for slot in slots if (own := _slots_from(slot, row, slots)) and taken.isdisjoint(own))
            first = next(fitting, None)
            if first is None:
                return None
            db.execute(
                "UPDATE work SET status = 'starting', attempt = attempt + 1, slot = ?, worker = ?, heartbeat_at = ?, "
                "request = iif(kind = 'run', coalesce(?, '{}'), request), ended_at = NULL, "
                "message = (SELECT work.message FROM runs WHERE runs.id = work.id AND memory_short) WHERE id = ?",
                (first, to_json(worker), time.time(), None if request is None else as_json(request), row["id"]),
            )
            db.execute("UPDATE runs SET place = NULL WHERE id = ?", (row["id"],))
            if row["owner"] is not None:
                db.execute(
                    "INSERT INTO visitors (id, turn_at) VALUES (?, ?) "
                    "ON CONFLICT (id) DO UPDATE SET turn_at = excluded.turn_at",
                    (row["owner"], time.time()),
                )
            return Claim(row["id"], row["attempt"] + 1, first)

    def _active(self, line: str) -> list[sqlite3.Row]:
        """Return the active work of a queue.

        Work held by its warm process counts even if that process has died, because the next one begins it.
        """
        named = self.warm_process(line)
        holder = None if named is None else to_json(named.worker)
        rows = self.all(
            "SELECT work.*, runs.config FROM work LEFT JOIN runs ON runs.id = work.id "
            f"WHERE line = ? AND work.status IN {ACTIVE}",
            (line,),
        )
        return [
            row
            for row in rows
            if observed_status(row).active or (row["status"] == Status.STARTING and row["worker"] == holder is not None)
        ]

    def find_held_work(self, line: str, worker: Liveness) -> tuple[Claim, dict[str, Any]] | None:
        """Return the oldest claimed work that a process holds and has not begun, with its request, or None."""
        held = (
            "SELECT * FROM work WHERE line = ? AND status IN ('starting', 'stopping') AND worker = ? "
            "ORDER BY number LIMIT 1"
        )
        for row in self.all(held, (line, to_json(worker))):
            return Claim(row["id"], row["attempt"], row["slot"] or 0), json.loads(row["request"])
        return None

    def hand_over(self, claim: Claim, worker: Liveness | None) -> None:
        """Pass claimed work to another process, which holds it until a worker registers.

        Args:
            worker: None if that process has already ended. The work then counts as interrupted until its end is
                recorded.
        """
        # The request of a run (settings) is only for its holder.
        self.write(
            "UPDATE work SET worker = ?, request = iif(kind = 'run', '{}', request), "
            "heartbeat_at = iif(?, heartbeat_at, 0) WHERE id = ? AND attempt = ? AND status = 'starting'",
            (to_json(worker), worker is not None, claim.id, claim.attempt),
        )

    def register(self, claim: Claim, worker: Liveness, holder: Liveness | None = None) -> bool:
        """Record the process that executes claimed work from now on.

        Args:
            holder: the process that has held the work so far; None for any. If a holder died and the
                next one began the claim again, only one of the two workers can register.
        Returns: False if the work has ended or belongs to another process.
        """
        with self.transaction() as db:
            begun = db.execute(
                # A run counts as running only after its first event. Its request is only for its holder.
                "UPDATE work SET worker = ?, heartbeat_at = ?, request = iif(kind = 'run', '{}', request), "
                "status = iif(kind != 'run' AND status = 'starting', 'running', status) "
                f"WHERE id = ? AND attempt = ? AND status IN {ACTIVE} AND (? OR worker IN (?, ?))",
                (
                    to_json(worker),
                    time.time(),
                    claim.id,
                    claim.attempt,
                    holder is None,
                    to_json(holder),
                    to_json(worker),
                ),
            )
            return bool(begun.rowcount)

    def queue_again(self, work_id: str, queued_at: float, message: Text | None = None) -> None:
        """Put claimed work back into its queue."""
        self.write(
            "UPDATE work SET status = 'queued', queued_at = ?, message = ?, worker = NULL, slot = NULL, "
            "request = iif(kind = 'run', '{}', request), ended_at = NULL WHERE id = ?",
            (queued_at, message, work_id),
        )

    def end(
        self, work_id: str, status: Status, message: Text | None = None, result: Mapping[str, Any] | None = None
    ) -> None:
        """Record how work ended. Work that has already ended does not change.

        Args:
            message: one sentence; None keeps the current one.
        """
        with self.transaction() as db:
            db.execute(
                "UPDATE work SET status = ?, ended_at = ?, worker = NULL, slot = NULL, message = coalesce(?, message), "
                "request = iif(kind = 'run', '{}', request), "
                f"result = coalesce(?, result) WHERE id = ? AND status NOT IN {ENDED}",
                (status, time.time(), message, None if result is None else as_json(result), work_id),
            )
            count_time(db, work_id)

    # Warm processes

    def find_pending_ids(self, line: str) -> list[str]:
        """Return the ids that a queue's warm process is to begin, oldest first: queued jobs, and work that it holds."""
        found = (
            "SELECT id, number FROM work WHERE line = ? AND status = 'queued' AND kind != 'run' UNION ALL "
            "SELECT id, number FROM work WHERE status IN ('starting', 'stopping') AND line = ? "
            "AND worker = (SELECT worker FROM warm_processes WHERE warm_group = line) ORDER BY number"
        )
        return [row["id"] for row in self.all(found, (line, line))]

    def warm_process(self, line: str) -> WarmProcess | None:
        """Return the last recorded warm process, alive or not; None if there is none or it exited normally."""
        for row in self.all("SELECT * FROM warm_processes WHERE warm_group = ?", (line,)):
            worker = from_json(row["worker"])
            assert worker is not None
            return WarmProcess(worker, row["doing"], row["failed_starts"])
        return None

    def name_warm_process(self, line: str, process: WarmProcess | None) -> None:
        """Record the warm process of a queue, and pass it the work that its predecessor held."""
        with self.transaction() as db:
            before = self.warm_process(line)
            db.execute("DELETE FROM warm_processes WHERE warm_group = ?", (line,))
            if process is None:
                return
            worker, failed = to_json(process.worker), process.failed_starts
            self.insert("warm_processes", warm_group=line, worker=worker, doing=process.doing, failed_starts=failed)
            if before is not None and before.worker != process.worker:
                db.execute(
                    "UPDATE work SET worker = ?, heartbeat_at = ? WHERE line = ? "
                    "AND status IN ('starting', 'stopping') AND worker = ?",
                    (worker, time.time(), line, to_json(before.worker)),
                )


def count_time(db: sqlite3.Connection, run_id: str, until: float | None = None) -> None:
    """Add the time since the last change to a run's working time, and restart the clock if the run is running.

    An adopted run keeps its original time.

    Args:
        until: time at which it stopped working; None for now.
    """
    now = time.time()
    db.execute(
        "UPDATE runs SET worked_s = worked_s + coalesce(max(0, ? - working_since), 0), "
        "working_since = CASE WHEN config_hash IS NOT NULL AND EXISTS (SELECT 1 FROM work WHERE work.id = runs.id "
        "AND status IN ('running', 'stopping') AND attempt = begun_attempt) THEN ? END WHERE id = ?",
        (now if until is None else until, now, run_id),
    )


def as_json(values: Mapping[str, Any]) -> str:
    return json.dumps(values, ensure_ascii=False)


def _slots_from(first: int, row: sqlite3.Row, slots: Sequence[int]) -> Sequence[int]:
    """Return the slots that work occupies from `first` on; empty if too few follow."""
    is_run = row["config"] is not None and config_problem(row["config"]) is None
    wanted = min(stored_config(row["config"]).processes if is_run else 1, len(slots))
    place = slots.index(first)
    return slots[place : place + wanted] if place + wanted <= len(slots) else ()
