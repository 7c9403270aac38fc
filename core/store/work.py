"""The work of a store: runs and jobs wait in lines, are claimed, handed over, begun and ended alike, in one table."""

from __future__ import annotations

import json
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from core.config import RunConfig
from core.messages import Text
from core.store.database import Database
from core.store.liveness import from_json, is_alive, observed_status, to_json
from core.store.records import Liveness, Status, config_problem, stored_config

# The kind of the work that is a run, and the line in which runs wait.
RUN, RUNS = "run", "runs"
# What a warm process does that is no work of its line.
LOADING, NOTHING = "loading", ""
ACTIVE = "('starting', 'running', 'paused', 'stopping')"
ENDED = "('stopped', 'failed', 'finished')"
# What waits in a line, the next one first: experiments behind the rest, people by turns, the longest wait first. A run
# that starts from another waits for its end. Parameters: the line; owners who have as much going on as they may.
IN_LINE = (
    "SELECT work.*, runs.config, coalesce(visitors.turn_at, 0) AS turn_at FROM work "
    "LEFT JOIN runs ON runs.id = work.id LEFT JOIN visitors ON visitors.id = work.owner "
    "WHERE work.status = 'queued' AND line = ? AND (config IS NULL OR json_valid(config)) AND NOT EXISTS ("
    "SELECT 1 FROM run_rows source WHERE source.id = json_extract(runs.config, '$.start') "
    f"AND source.discarded_at IS NULL AND (source.status = 'queued' OR source.status IN {ACTIVE})"
    ") AND (work.owner IS NULL OR work.owner NOT IN (SELECT value FROM json_each(?))) "
    "ORDER BY work.background, turn_at, work.queued_at, work.number"
)


class Claim(NamedTuple):
    """Work that was taken. Attributes: attempt: from 1; slot: the first of those that it takes."""

    id: str
    attempt: int
    slot: int


@dataclass(frozen=True, slots=True)
class WarmProcess:
    """The process that carries out the work of a line.

    Attributes:
        doing: LOADING, NOTHING, or the id of what it works on; of a bridge, an identity of its settings.
        failed_starts: how many before it ended while they were loading.
    """

    worker: Liveness
    doing: str
    failed_starts: int = 0

    @property
    def alive(self) -> bool:
        return is_alive(self.worker, None)


class WorkTable(Database):
    """The work of a database and the warm processes that carry it out."""

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
        """Put work in a line; work of no line is starting already, as its first attempt, in a process of its own."""
        now, starting = time.time(), line is None or worker is not None
        self.write(
            "INSERT INTO work (id, kind, line, status, owner, background, created_at, queued_at, attempt, worker, "
            "heartbeat_at, label, request) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                work_id,
                kind,
                line,
                Status.STARTING if starting else Status.QUEUED,
                owner,
                background,
                now,
                now,
                int(starting),
                to_json(worker),
                now,
                label,
                as_json(request or {}),
            ),
        )

    def claim_next(
        self,
        slots: Sequence[int] = (0,),
        worker: Liveness | None = None,
        most_of_owner: int | None = None,
        *,
        line: str = RUNS,
        request: Mapping[str, Any] | None = None,
        accepts: Callable[[RunConfig, bool], bool] = lambda _config, _of_experiment: True,
    ) -> Claim | None:
        """Take the next work of a line for a free slot, so that nobody else can.

        A run in several processes takes as many slots, one behind the other, or all that there are.

        Args:
            worker: the process that it is handed to, until the one that carries it out registers.
            most_of_owner: how much of one visitor's may go on at a time; None for any number.
            request: what the process that begins a run needs to know of the one that claimed it.
            accepts: called with the config of the next run, and True for one of an experiment.
        Returns: None when nothing waits, no slot is free, or the next run is not accepted.
        """
        with self.transaction() as db:
            active = self._active(line)
            # A slot of somebody else's is none of these.
            taken = {slot for row in active if row["slot"] in slots for slot in _slots_from(row["slot"], row, slots)}
            waiting = db.execute(IN_LINE, (line, _busy(active, most_of_owner)))
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
        """What goes on in a line; what was handed to its process counts, which another one begins where that dies."""
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

    def handed_to(self, line: str, worker: Liveness) -> tuple[Claim, dict[str, Any]] | None:
        """Claimed work of a line that a process holds and has not begun, with its request; None where there is none."""
        held = (
            "SELECT * FROM work WHERE line = ? AND status IN ('starting', 'stopping') AND worker = ? "
            "ORDER BY number LIMIT 1"
        )
        for row in self.all(held, (line, to_json(worker))):
            return Claim(row["id"], row["attempt"], row["slot"] or 0), json.loads(row["request"])
        return None

    def hand_over(self, claim: Claim, worker: Liveness | None) -> None:
        """Have claimed work be held by another process until one registers; None when that has ended already.

        Then the work reads as interrupted, unless its end is written.
        """
        # What a run's holder was told (settings) is for nobody else.
        self.write(
            "UPDATE work SET worker = ?, request = iif(kind = 'run', '{}', request), "
            "heartbeat_at = iif(?, heartbeat_at, 0) WHERE id = ? AND attempt = ? AND status = 'starting'",
            (to_json(worker), worker is not None, claim.id, claim.attempt),
        )

    def register(self, claim: Claim, worker: Liveness, holder: Liveness | None = None) -> bool:
        """Name the process that carries claimed work out from here on.

        Args:
            holder: the process that has the work until then. Of two that were begun for one claim, since the first
                holder died, only one can register.
        Returns: False when the work has ended before, or another process has it.
        """
        with self.transaction() as db:
            begun = db.execute(
                # A run is running once it has said what it begins with. What its holder was told is for nobody else.
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
        """Put work that was claimed back into its line."""
        self.write(
            "UPDATE work SET status = 'queued', queued_at = ?, message = ?, worker = NULL, slot = NULL, "
            "request = iif(kind = 'run', '{}', request), ended_at = NULL WHERE id = ?",
            (queued_at, message, work_id),
        )

    def end(
        self, work_id: str, status: Status, message: Text | None = None, result: Mapping[str, Any] | None = None
    ) -> None:
        """Write how work ended; of work that has ended already, nothing is changed.

        Args:
            message: one sentence; None leaves the one that is there.
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

    def awaiting(self, line: str) -> list[str]:
        """The ids of what a line's process is to begin, the oldest first: jobs in line, and what was handed to it."""
        found = (
            "SELECT id, number FROM work WHERE line = ? AND status = 'queued' AND kind != 'run' UNION ALL "
            "SELECT id, number FROM work WHERE status IN ('starting', 'stopping') AND line = ? "
            "AND worker = (SELECT worker FROM warm_processes WHERE warm_group = line) ORDER BY number"
        )
        return [row["id"] for row in self.all(found, (line, line))]

    def warm_process(self, line: str) -> WarmProcess | None:
        """The process that was last named, alive or not; None when it left in good order."""
        for row in self.all("SELECT * FROM warm_processes WHERE warm_group = ?", (line,)):
            worker = from_json(row["worker"])
            assert worker is not None
            return WarmProcess(worker, row["doing"], row["failed_starts"])
        return None

    def name_warm_process(self, line: str, process: WarmProcess | None) -> None:
        """Name the process of a line, to which goes what the one before it was to begin."""
        with self.transaction() as db:
            before = self.warm_process(line)
            db.execute("DELETE FROM warm_processes WHERE warm_group = ?", (line,))
            if process is None:
                return
            db.execute(
                "INSERT INTO warm_processes (warm_group, worker, doing, failed_starts) VALUES (?, ?, ?, ?)",
                (line, to_json(process.worker), process.doing, process.failed_starts),
            )
            if before is not None and before.worker != process.worker:
                db.execute(
                    "UPDATE work SET worker = ?, heartbeat_at = ? WHERE line = ? "
                    "AND status IN ('starting', 'stopping') AND worker = ?",
                    (to_json(process.worker), time.time(), line, to_json(before.worker)),
                )


def count_time(db: sqlite3.Connection, run_id: str, until: float | None = None) -> None:
    """Add the time since the last change to what a run has worked, and go on counting where it runs.

    One that was adopted has its time from elsewhere.

    Args:
        until: when it stopped working; now where None.
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


def _busy(active: Sequence[sqlite3.Row], most: int | None) -> str:
    """The owners who have as much going on as they may, as JSON."""
    if most is None:
        return "[]"
    counts = Counter(row["owner"] for row in active if row["owner"] is not None)
    return json.dumps([owner for owner, count in counts.items() if count >= most])


def _slots_from(first: int, row: sqlite3.Row, slots: Sequence[int]) -> Sequence[int]:
    """The slots that work takes where it begins at `first`; none where there are too few from there on."""
    is_run = row["config"] is not None and config_problem(row["config"]) is None
    wanted = min(stored_config(row["config"]).processes if is_run else 1, len(slots))
    place = slots.index(first)
    return slots[place : place + wanted] if place + wanted <= len(slots) else ()
