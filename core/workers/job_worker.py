"""Execution of a job in its process, with progress and result reported to the store."""

from __future__ import annotations

import shutil
import time
import traceback
from collections.abc import Mapping
from pkgutil import resolve_name
from typing import Any

from core.errors import ConfigError, PlaygroundError, quote_value
from core.messages import Message, Text
from core.store.job_table import AHEAD, JobRecord, JobTable
from core.store.liveness import liveness_of
from core.store.records import Status
from core.store.work import Claim
from core.workers import job_kinds as kinds
from core.workers.job_kinds import Progress
from core.workers.processes import flush, log

WAIT_S = 0.5
# Shortest intervals between writes of the progress, and between checks for a cancellation.
WRITE_EVERY_S = 0.2
LOOK_EVERY_S = 0.02
NO_MEMORY = Message("Not enough memory: ask for fewer rows.")


class Cancelled(BaseException):
    """Raised by a job's progress callback once the job is cancelled.

    A BaseException, so that no `except Exception` on the way treats it as an error.
    """


def carry_out(table: JobTable, claim: Claim) -> bool:
    """Execute a claimed job in this process, and record its progress and result.

    Returns: True if it finished. Every failure is recorded in the job's row as one sentence.
    Raises: ConfigError for an unknown job.
    """
    # Register before reading: this waits for the transaction in which the starting process adds the row.
    begun = table.register(claim, liveness_of())
    job = table.job(claim.id)
    if job is None:
        raise ConfigError("job", quote_value(claim.id), "give the id of a job.")
    if not begun:
        return False  # cancelled before this process registered
    state = _State(table, claim.id)
    try:
        state.check_cancelled()
        _wait_for_turn(table, job, state.progress)
        work = resolve_name(kinds.KINDS[job.kind])
        state.end(Status.FINISHED, result=work(job.request, table.folder, state.progress))
    except Cancelled:
        state.end(Status.STOPPED)
    except PlaygroundError as error:
        state.end(Status.FAILED, message=error.message)
    except MemoryError:
        state.end(Status.FAILED, message=NO_MEMORY)
    except Exception as error:
        log(traceback.format_exc().rstrip())
        cause = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        state.end(Status.FAILED, message=Message("The job failed ({cause}): its log has the details.", cause=cause))
    return state.status == Status.FINISHED


def _wait_for_turn(table: JobTable, job: JobRecord, progress: Progress) -> None:
    """Wait until few enough jobs of the kind are ahead of this one."""
    while job.kind in kinds.AT_ONCE:
        line = [record.id for record in reversed(table.jobs()) if record.kind == job.kind and record.active]
        before = line.index(job.id) if job.id in line else 0
        if before < kinds.AT_ONCE[job.kind]:
            return
        progress(0, None, AHEAD.fill(count=before))
        time.sleep(WAIT_S)


class _State:
    """Reporter of a job's progress and end."""

    def __init__(self, table: JobTable, job_id: str) -> None:
        self._table, self._job_id = table, job_id
        self._written_at = self._looked_at = 0.0
        self._said: tuple[int, int | None, Text] = (0, None, Message("starting"))
        self.status = Status.RUNNING

    def progress(self, done: int, total: int | None, message: Text) -> None:
        """Report progress, at most every WRITE_EVERY_S unless the message changes. Raises: Cancelled."""
        self.check_cancelled()
        new_message = message != self._said[2]
        self._said = (done, total, message)
        if new_message or time.monotonic() - self._written_at >= WRITE_EVERY_S:
            self._write()

    def end(self, status: Status, *, message: Text = "", result: Mapping[str, Any] | None = None) -> None:
        # When the job shows as ended, its log and progress must be complete and its temporary files gone.
        flush()
        shutil.rmtree(self._table.work_folder(self._job_id), ignore_errors=True)
        if not self._table.exists():
            return  # the store was deleted, so nothing is left to record
        with self._table.transaction():
            self._write()
            self._table.end(self._job_id, status, message, result)
        self.status = status

    def check_cancelled(self) -> None:
        """Check for a cancellation. Raises: Cancelled."""
        if time.monotonic() - self._looked_at < LOOK_EVERY_S:
            return
        if not self._table.exists() or not self._table.is_wanted(self._job_id):
            raise Cancelled
        self._looked_at = time.monotonic()

    def _write(self) -> None:
        self._table.report(self._job_id, *self._said)
        self._written_at = time.monotonic()
