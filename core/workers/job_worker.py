"""What happens in the process that has a job: it works, says how far it is, and how it ended."""

from __future__ import annotations

import json
import shutil
import sys
import time
import traceback
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from core.errors import ConfigError, PlaygroundError
from core.store.liveness import liveness_of
from core.workers import job_kinds as kinds
from core.workers.job_files import CANCEL, ID, JOB, PROCESS, STATE, has_ended, job_folder, write_json
from core.workers.job_kinds import Progress
from core.workers.job_records import Status, read_jobs

WAIT_S = 0.5
# Progress is written this often at most, and whether somebody cancelled is asked this often.
WRITE_EVERY_S = 0.2
LOOK_EVERY_S = 0.02


class Cancelled(BaseException):
    """Raised by a job's progress once nobody wants the job. No `except Exception` on its way takes it for an error."""


def carry_out(store_folder: str | Path, job_id: str) -> bool:
    """Do a job in this process, and write how far it is and how it ended.

    Returns: whether it is done; every failure ends in the job's state as one sentence.
    """
    if not ID.match(job_id):
        raise ConfigError("job", job_id, "give the id of a job.")
    folder = job_folder(Path(store_folder), job_id)
    job = json.loads((folder / JOB).read_text(encoding="utf-8"))
    write_json(folder / PROCESS, asdict(liveness_of()))
    if has_ended(folder):
        return False  # cancelled before anybody could name the process
    state = _State(folder)
    try:
        state.look()
        _wait_for_turn(Path(store_folder), job_id, job["kind"], state.progress)
        state.end("done", result=kinds.work_of(job["kind"])(job["request"], Path(store_folder), state.progress))
    except Cancelled:
        state.end("cancelled", message="Cancelled.")
    except PlaygroundError as error:
        state.end("failed", message=str(error))
    except MemoryError:
        state.end("failed", message="There was not enough memory: ask for fewer rows.")
    except Exception as error:
        _log(traceback.format_exc())
        cause = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        state.end("failed", message=f"The job ended with an error ({cause}): its log says more.")
    finally:
        shutil.rmtree(folder / "work", ignore_errors=True)
    return state.status == "done"


def _wait_for_turn(store_folder: Path, job_id: str, kind: str, progress: Progress) -> None:
    """Until fewer jobs of the kind than may work at once are before this one."""
    while kind in kinds.AT_ONCE:
        found = [record for record in read_jobs(store_folder) if record.kind == kind and record.active]
        me = next((record for record in found if record.id == job_id), None)
        if me is None:
            return
        before = [record for record in found if (record.created_at, record.id) < (me.created_at, me.id)]
        if len(before) < kinds.AT_ONCE[kind]:
            return
        progress(0, None, f"waiting for its turn, {len(before)} before it")
        time.sleep(WAIT_S)


class _State:
    """What a job writes of itself."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._written_at = 0.0
        self._looked_at = 0.0
        self._values: dict[str, Any] = {"status": "running", "done": 0, "total": None, "message": "starting"}

    @property
    def status(self) -> str:
        return str(self._values["status"])

    def progress(self, done: int, total: int | None, message: str) -> None:
        """Raises: Cancelled."""
        self.look()
        new_message = message != self._values["message"]
        self._values |= {"done": done, "total": total, "message": message}
        if new_message or time.monotonic() - self._written_at >= WRITE_EVERY_S:
            self._write()

    def end(self, status: Status, *, message: str = "", result: Mapping[str, Any] | None = None) -> None:
        self._values |= {"status": status, "message": message, "result": dict(result or {})}
        # Whoever reads that it has ended finds its whole log.
        sys.stdout.flush()
        sys.stderr.flush()
        self._write()

    def look(self) -> None:
        """Raises: Cancelled."""
        if time.monotonic() - self._looked_at < LOOK_EVERY_S:
            return
        if (self._folder / CANCEL).exists() or not self._folder.exists():
            raise Cancelled
        self._looked_at = time.monotonic()

    def _write(self) -> None:
        write_json(self._folder / STATE, self._values)
        self._written_at = time.monotonic()


def _log(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
