"""Long jobs that are no runs, each in a process of its own: fetching a data set, and whatever else KINDS names.

A job is a folder, `jobs/<id>` of the store's folder: what was asked (job.json), which process has it (process.json),
how far it is or how it ended (state.json), and what it printed (log.txt). Any process may look; the job writes its own
state. Whether it still runs is read off the process itself. Of some kinds only so many work at once; the process of
another one waits for its turn. What ended a while ago is forgotten when the next job is started.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import psutil
from filelock import FileLock

from core.errors import ConfigError, EngineError, PlaygroundError, shown
from core.store.liveness import is_alive, liveness_of
from core.store.records import Liveness

Progress = Callable[[int, int | None, str], None]
Status = Literal["running", "done", "failed", "cancelled", "interrupted"]
# What carries a job out: function(request, store folder, progress) -> result, all of it plain JSON.
Work = Callable[[dict[str, Any], Path, Progress], dict[str, Any]]

KINDS: Mapping[str, str] = {
    "hub": "core.tasks.hub.fetch:job",
    "tokens": "core.encoders.counting:job",
    "translate": "core.views.back_translation_job:job",
}
# How many jobs of a kind work at once: more would share one connection, or need the memory of as many models.
AT_ONCE: Mapping[str, int] = {"hub": 2, "translate": 1}
# How many of a kind may work or wait.
MAX_ACTIVE = 20
# How long a job that has ended can be looked at. A translation is drawn once and kept in a cache of its own.
KEPT_S: Mapping[str, float] = {"translate": 600.0}
KEPT_OTHERS_S = 86_400.0

ROOT = Path(__file__).resolve().parents[1]
COMMAND = (sys.executable, "-m", "core.jobs")
ID = re.compile(r"[a-km-np-z2-9]{12}\Z")
ID_LETTERS = "abcdefghijkmnpqrstuvwxyz23456789"
# A process that was asked to end has this long before it is ended.
GRACE_S = 1.0
# One that has done all that it counts is only keeping its result, and has this long to get to the end.
KEEPING_GRACE_S = 30.0
WAIT_S = 0.5
LOCK_TIMEOUT_S = 10.0
# Progress is written this often at most.
WRITE_EVERY_S = 0.2
# Windows knows no sessions: a process group of its own keeps the console's Ctrl-C away.
DETACHED = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
ENDED = ("done", "failed", "cancelled")


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job as it is now.

    Attributes:
        done, total: how far it is, in what the job counts (rows); total is None while nobody knows.
        message: what it does, or one sentence on why it failed.
        result: what it gave, empty until it is done.
        created_at: seconds since the epoch.
    """

    id: str
    kind: str
    label: str
    request: dict[str, Any]
    status: Status
    done: int = 0
    total: int | None = None
    message: str = ""
    result: dict[str, Any] = field(default_factory=dict)
    created_at: float = 0.0

    @property
    def active(self) -> bool:
        return self.status == "running"


class Jobs:
    """The jobs of one store's folder. Any process may have one."""

    def __init__(self, folder: str | Path, *, command: Sequence[str] = COMMAND) -> None:
        """`command` starts the process of a job; the store's folder and the job's id are added to it."""
        self.folder = Path(folder).resolve()
        self._command = tuple(command)

    def start(self, kind: str, request: Mapping[str, Any], label: str) -> str:
        """Start a job in a session of its own; returns its id at once, or that of a job that does the same already.

        Raises: ConfigError for an unknown kind, EngineError when no process can be started or too many wait.
        """
        if kind not in KINDS:
            raise ConfigError("job", kind, f"choose {', '.join(KINDS)}.")
        asked = json.loads(json.dumps(dict(request)))  # as it will be read, so that it can be compared
        try:
            (self.folder / "jobs").mkdir(parents=True, exist_ok=True)
            with FileLock(self.folder / "jobs" / ".lock", timeout=LOCK_TIMEOUT_S):
                return self._same(kind, asked) or self._started(kind, asked, label)
        except OSError as error:
            raise EngineError(
                f"No job could be started ({error.strerror or error}): check that {self.folder} can be written, "
                "and try again."
            ) from None

    def _same(self, kind: str, request: dict[str, Any]) -> str | None:
        """A job that does the same. Makes room, and raises: EngineError where there is none."""
        self._forget_old()
        active = [record for record in self.jobs() if record.active and record.kind == kind]
        same = next((record.id for record in active if record.request == request), None)
        if same is None and len(active) >= MAX_ACTIVE:
            raise EngineError(f"{len(active)} such jobs are at work or waiting: let some of them end, or cancel them.")
        return same

    def _started(self, kind: str, request: dict[str, Any], label: str) -> str:
        job_id = "".join(secrets.choice(ID_LETTERS) for _ in range(12))
        try:
            self._make(job_id, {"kind": kind, "label": label, "request": request, "created_at": time.time()})
            self._spawn(job_id)
        except OSError:
            shutil.rmtree(_job_folder(self.folder, job_id), ignore_errors=True)
            raise
        return job_id

    def _forget_old(self) -> None:
        for record in self.jobs():
            folder = _job_folder(self.folder, record.id)
            ended_s = time.time() - (_written_at(folder) or record.created_at)
            if not record.active and ended_s > KEPT_S.get(record.kind, KEPT_OTHERS_S):
                shutil.rmtree(folder, ignore_errors=True)

    def jobs(self) -> list[JobRecord]:
        """Every job that was not dismissed, the newest first."""
        try:
            names = [path.name for path in (self.folder / "jobs").iterdir()]
        except FileNotFoundError:
            return []
        found = [record for name in names if ID.match(name) and (record := self._read(name)) is not None]
        return sorted(found, key=lambda record: (record.created_at, record.id), reverse=True)

    def job(self, job_id: str) -> JobRecord:
        """One job. Raises: EngineError when there is none with that id."""
        record = self._read(job_id) if ID.match(job_id) else None
        if record is None:
            raise EngineError(f"There is no job {shown(job_id)}: it may have been dismissed.")
        return record

    def log(self, job_id: str) -> str:
        """What a job printed, for a person who looks for the cause of an error. Raises: EngineError."""
        self.job(job_id)
        try:
            return (_job_folder(self.folder, job_id) / "log.txt").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    def cancel(self, job_id: str) -> JobRecord:
        """End a job's process, and those it started, and drop what it left half done; returns how the job ended.

        A job that was done before it could be ended stays done, and one that is keeping its result may take itself to
        the end. Raises: EngineError for an unknown id.
        """
        record = self.job(job_id)
        if not record.active:
            return record
        folder = _job_folder(self.folder, job_id)
        process = _process(folder)
        if process is not None:
            _end(process, lambda: KEEPING_GRACE_S if _is_keeping(folder) else GRACE_S)
        if (_json(folder / "state.json") or {}).get("status") not in ENDED:
            last = _json(folder / "state.json") or {}
            _write(folder / "state.json", last | {"status": "cancelled", "message": "Cancelled.", "result": {}})
        shutil.rmtree(folder / "work", ignore_errors=True)
        return self.job(job_id)

    def dismiss(self, job_id: str) -> None:
        """Forget a job that has ended. Raises: EngineError while it runs, or for an unknown id."""
        if self.job(job_id).active:
            raise EngineError(f"Job {shown(job_id)} is still running: cancel it first.")
        shutil.rmtree(_job_folder(self.folder, job_id), ignore_errors=True)

    def _make(self, job_id: str, job: dict[str, Any]) -> None:
        """The job's folder, complete before anybody sees it under its name."""
        made = self.folder / "jobs" / f".{job_id}"
        made.mkdir(parents=True)
        _write(made / "job.json", job)
        (made / "work").mkdir()
        made.rename(_job_folder(self.folder, job_id))

    def _spawn(self, job_id: str) -> None:
        folder = _job_folder(self.folder, job_id)
        with (folder / "log.txt").open("ab") as log:
            process = subprocess.Popen(
                [*self._command, str(self.folder), job_id],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                creationflags=DETACHED,
            )
        with contextlib.suppress(psutil.NoSuchProcess):  # it has ended already, and has written how
            _write(folder / "process.json", asdict(liveness_of(process.pid)))
        # While we live, a process that ended is our zombie until somebody has waited for it.
        threading.Thread(target=process.wait, name=f"wait for {process.pid}", daemon=True).start()

    def _read(self, job_id: str) -> JobRecord | None:
        folder = _job_folder(self.folder, job_id)
        # Whether it lives is asked before how it ended: a job that ends in between has ended well.
        process = _process(folder)
        alive = process is not None and is_alive(process, _written_at(folder))
        state = _json(folder / "state.json") or {}
        job = _json(folder / "job.json") or {}
        if not {"kind", "label", "request", "created_at"} <= job.keys():
            return None
        status: Status = "interrupted"
        if state.get("status") in ENDED:
            status = state["status"]
        elif alive or (process is None and time.time() - job["created_at"] < GRACE_S):
            status = "running"
        message = state.get("message", "starting")
        if status == "interrupted":
            message = "The job's process ended before it was done: start it again."
        return JobRecord(
            id=job_id,
            kind=job["kind"],
            label=job["label"],
            request=job["request"],
            status=status,
            done=state.get("done", 0),
            total=state.get("total"),
            message=message,
            result=state.get("result", {}),
            created_at=job["created_at"],
        )


def carry_out(store_folder: str | Path, job_id: str) -> bool:
    """Do a job in this process, and write how far it is and how it ended.

    Returns: whether it is done; every failure ends in the job's state as one sentence.
    """
    if not ID.match(job_id):
        raise ConfigError("job", job_id, "give the id of a job.")
    folder = _job_folder(Path(store_folder), job_id)
    job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    _write(folder / "process.json", asdict(liveness_of()))
    if (_json(folder / "state.json") or {}).get("status") in ENDED:
        return False  # cancelled before anybody could name the process
    state = _State(folder / "state.json")
    try:
        _wait_for_turn(Jobs(store_folder).jobs, job_id, state.progress)
        state.end("done", result=_work(job["kind"])(job["request"], Path(store_folder), state.progress))
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


def _wait_for_turn(jobs: Callable[[], list[JobRecord]], job_id: str, progress: Progress) -> None:
    """Until fewer jobs of the kind than may work at once are before this one."""
    while True:
        found = jobs()
        me = next((record for record in found if record.id == job_id), None)
        if me is None or me.kind not in AT_ONCE:
            return
        before = [
            record
            for record in found
            if record.kind == me.kind and record.active and (record.created_at, record.id) < (me.created_at, me.id)
        ]
        if len(before) < AT_ONCE[me.kind]:
            return
        progress(0, None, f"waiting for its turn, {len(before)} before it")
        time.sleep(WAIT_S)


def _work(kind: str) -> Work:
    if kind not in KINDS:
        raise ConfigError("job", kind, f"choose {', '.join(KINDS)}.")
    module, _, name = KINDS[kind].partition(":")
    work: Work = getattr(importlib.import_module(module), name)
    return work


class _State:
    """What a job writes of itself."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._written_at = 0.0
        self._values: dict[str, Any] = {"status": "running", "done": 0, "total": None, "message": "starting"}

    @property
    def status(self) -> str:
        return str(self._values["status"])

    def progress(self, done: int, total: int | None, message: str) -> None:
        new_message = message != self._values["message"]
        self._values |= {"done": done, "total": total, "message": message}
        if new_message or time.monotonic() - self._written_at >= WRITE_EVERY_S:
            self._write()

    def end(self, status: Status, *, message: str = "", result: Mapping[str, Any] | None = None) -> None:
        self._values |= {"status": status, "message": message, "result": dict(result or {})}
        self._write()

    def _write(self) -> None:
        _write(self._path, self._values)
        self._written_at = time.monotonic()


def _end(process: Liveness, grace_s: Callable[[], float]) -> None:
    """Ask a process and its group to end, and end them when they do not. One that has the pid by chance is let be."""
    for how in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
        if not is_alive(process, None):
            return
        _signal_group(process.pid, how)
        asked = time.monotonic()
        while time.monotonic() - asked < grace_s() and is_alive(process, None):
            time.sleep(0.02)


def _is_keeping(folder: Path) -> bool:
    state = _json(folder / "state.json") or {}
    return bool(state.get("total")) and state.get("done") == state["total"]


def _signal_group(pid: int, how: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, psutil.NoSuchProcess):
        # The job leads its group unless somebody else started it, whose group would be ended with it.
        if hasattr(os, "killpg") and os.getpgid(pid) == pid:
            os.killpg(pid, how)
        else:
            psutil.Process(pid).send_signal(how)


def _job_folder(store_folder: Path, job_id: str) -> Path:
    return store_folder / "jobs" / job_id


def _process(folder: Path) -> Liveness | None:
    try:
        return Liveness(**(_json(folder / "process.json") or {}))
    except TypeError:
        return None


def _written_at(folder: Path) -> float | None:
    try:
        return (folder / "state.json").stat().st_mtime
    except OSError:
        return None


def _json(path: Path) -> dict[str, Any] | None:
    """A file that this module wrote; None where there is none, or no longer."""
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return given if isinstance(given, dict) else None


def _write(path: Path, values: Mapping[str, Any]) -> None:
    """Under a temporary name first, so that nobody reads half a file."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    partial.write_text(json.dumps(values, ensure_ascii=False), encoding="utf-8")
    partial.replace(path)


def _log(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def main(arguments: Sequence[str]) -> int:
    """`python -m core.jobs FOLDER ID`. Returns: exit status, 0 for a job that is done."""
    store_folder, job_id = arguments
    tempfile.tempdir = str(_job_folder(Path(store_folder), job_id) / "work")
    return 0 if carry_out(store_folder, job_id) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
