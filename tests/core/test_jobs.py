from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from core import jobs
from core.errors import ConfigError, EngineError
from core.jobs import JobRecord, Jobs, Progress, carry_out
from core.tasks.library import TaskLibrary
from tests.hub_server import OPINIONS, HubServer, add_tiny_sets, opinions, parquet_file

TINY = {"repository": "acme/tiny", "text": "text", "label": "label", "test": "test", "name": "Tiny opinions"}

# Kinds for these tests alone, in the process that carries a job out.
PROGRAM = """
import os, signal, subprocess, sys, time
from core import jobs
from core.errors import TaskError

def count(request, folder, progress):
    for i in range(request["to"]):
        progress(i, request["to"], "counting")
        time.sleep(request.get("pause_s", 0))
    print("counted", request["to"])
    return {"counted": request["to"], "folder": str(folder)}

def wait(request, folder, progress):
    import tempfile
    if request.get("stubborn"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with tempfile.NamedTemporaryFile(delete=False) as partial:
        partial.write(b"half")
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    progress(1, None, f"child {child.pid}")
    time.sleep(60)

def refuse(request, folder, progress):
    raise TaskError("The file has no rows: add some.")

def stumble(request, folder, progress):
    progress(3, 10, "walking")
    raise KeyError("shoe")

def vanish(request, folder, progress):
    progress(3, 10, "walking")
    os._exit(9)

jobs.KINDS = {name: f"__main__:{name}" for name in ("count", "wait", "refuse", "stumble", "vanish")}
sys.exit(jobs.main(sys.argv[1:]))
"""
KINDS = ("count", "wait", "refuse", "stumble", "vanish", "hub")


@pytest.fixture
def store_folder(tmp_path: Path) -> Path:
    return tmp_path / "runs"


@pytest.fixture
def own_jobs(store_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Jobs]:
    """Jobs of the kinds in PROGRAM; whatever still runs at the end of a test is ended."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    monkeypatch.setattr(jobs, "KINDS", dict.fromkeys(KINDS, "nowhere:nothing"))
    monkeypatch.setenv("PYTHONPATH", str(jobs.ROOT))
    found = Jobs(store_folder, command=(sys.executable, str(program)))
    yield found
    for record in found.jobs():
        found.cancel(record.id)


def wait_until(found: Jobs, job_id: str, what: Callable[[JobRecord], bool], timeout_s: float = 30.0) -> JobRecord:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        record = found.job(job_id)
        if what(record):
            return record
        time.sleep(0.02)
    raise AssertionError(found.job(job_id), found.log(job_id))


def ended(record: JobRecord) -> bool:
    return not record.active


def process_of(found: Jobs, job_id: str) -> psutil.Process:
    return psutil.Process(json.loads((found.folder / "jobs" / job_id / "process.json").read_text())["pid"])


def is_gone(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


class TestJobs:
    def test_a_job_is_done(self, own_jobs: Jobs) -> None:
        before = time.time()
        job_id = own_jobs.start("count", {"to": 3}, "Count to three")
        record = wait_until(own_jobs, job_id, ended)
        assert (record.id, record.kind, record.label) == (job_id, "count", "Count to three")
        assert (record.status, record.request) == ("done", {"to": 3})
        assert record.result == {"counted": 3, "folder": str(own_jobs.folder)}
        assert before <= record.created_at <= time.time()
        assert own_jobs.log(job_id) == "counted 3\n"

    def test_progress_is_seen_while_it_runs(self, own_jobs: Jobs) -> None:
        job_id = own_jobs.start("count", {"to": 200, "pause_s": 0.02}, "Count")
        first = wait_until(own_jobs, job_id, lambda record: record.done > 0)
        later = wait_until(own_jobs, job_id, lambda record: record.done > first.done)
        assert (first.status, first.total, first.message) == ("running", 200, "counting")
        assert first.active
        assert later.done <= 200

    def test_it_runs_in_a_session_of_its_own(self, own_jobs: Jobs) -> None:
        job_id = own_jobs.start("wait", {}, "Wait")
        wait_until(own_jobs, job_id, lambda record: record.done == 1)
        pid = process_of(own_jobs, job_id).pid
        assert os.getsid(pid) == pid != os.getsid(0)

    def test_every_process_sees_the_same_jobs_the_newest_first(self, own_jobs: Jobs) -> None:
        ids = [own_jobs.start("count", {"to": 1}, f"job {i}") for i in range(3)]
        for job_id in ids:
            wait_until(own_jobs, job_id, ended)
        others = Jobs(own_jobs.folder).jobs()
        assert [record.id for record in others] == ids[::-1]
        assert {record.status for record in others} == {"done"}

    def test_before_the_first_there_are_none(self, store_folder: Path) -> None:
        assert Jobs(store_folder).jobs() == []
        assert not store_folder.exists()

    def test_what_a_person_can_mend_is_the_message(self, own_jobs: Jobs) -> None:
        record = wait_until(own_jobs, own_jobs.start("refuse", {}, "Refuse"), ended)
        assert (record.status, record.message, record.result) == ("failed", "The file has no rows: add some.", {})

    def test_another_error_is_named_and_its_trace_is_in_the_log(self, own_jobs: Jobs) -> None:
        job_id = own_jobs.start("stumble", {}, "Stumble")
        record = wait_until(own_jobs, job_id, ended)
        assert (record.status, record.done, record.total) == ("failed", 3, 10)
        assert record.message == "The job ended with an error (KeyError: 'shoe'): its log says more."
        assert "Traceback" in own_jobs.log(job_id)

    def test_a_process_that_vanishes_was_interrupted(self, own_jobs: Jobs) -> None:
        record = wait_until(own_jobs, own_jobs.start("vanish", {}, "Vanish"), ended)
        assert (record.status, record.done) == ("interrupted", 3)
        assert record.message == "The job's process ended before it was done: start it again."

    def test_a_job_that_is_gone_for_good_is_told_from_one_with_its_pid(self, own_jobs: Jobs) -> None:
        job_id = own_jobs.start("wait", {}, "Wait")
        wait_until(own_jobs, job_id, lambda record: record.done == 1)
        path = own_jobs.folder / "jobs" / job_id / "process.json"
        true = path.read_text()
        other = json.loads(true)
        other["started_at"] += 1000
        path.write_text(json.dumps(other))
        assert own_jobs.job(job_id).status == "interrupted"
        own_jobs.cancel(job_id)
        assert not is_gone(other["pid"])  # it is somebody else's
        path.write_text(true)
        assert own_jobs.cancel(job_id).status == "cancelled"
        assert is_gone(other["pid"])

    @pytest.mark.parametrize("job_id", ["", "../../etc", "abcdefghijkl/..", "ABCDEFGHIJKM", "abcdefghijk1", "a" * 12])
    def test_an_id_that_is_none_reaches_no_path(self, own_jobs: Jobs, job_id: str) -> None:
        for method in (own_jobs.job, own_jobs.cancel, own_jobs.dismiss, own_jobs.log):
            with pytest.raises(EngineError, match="There is no job"):
                method(job_id)

    def test_an_unknown_kind_raises_and_names_what_exists(self, store_folder: Path) -> None:
        with pytest.raises(ConfigError, match=r"job = 'os.system' cannot be used: choose hub\b"):
            Jobs(store_folder).start("os.system", {}, "Oh")
        assert not store_folder.exists()

    def test_a_folder_that_cannot_be_written_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "runs").write_text("a file")
        with pytest.raises(EngineError, match="No job could be started"):
            Jobs(tmp_path / "runs").start("hub", TINY, "Tiny")

    def test_a_damaged_folder_hides_no_other(self, own_jobs: Jobs) -> None:
        job_id = own_jobs.start("count", {"to": 1}, "Count")
        wait_until(own_jobs, job_id, ended)
        (own_jobs.folder / "jobs" / ("b" * 12)).mkdir()
        (own_jobs.folder / "jobs" / ("c" * 12)).mkdir()
        (own_jobs.folder / "jobs" / ("c" * 12) / "job.json").write_text('{"kind": ')
        (own_jobs.folder / "jobs" / ("d" * 12)).mkdir()
        (own_jobs.folder / "jobs" / ("d" * 12) / "job.json").write_text('{"kind": "count"}')
        assert [record.id for record in own_jobs.jobs()] == [job_id]


class TestCancel:
    @pytest.mark.parametrize("stubborn", [False, True])
    def test_the_process_and_its_children_are_gone_within_two_seconds(self, own_jobs: Jobs, stubborn: bool) -> None:
        job_id = own_jobs.start("wait", {"stubborn": stubborn}, "Wait")
        record = wait_until(own_jobs, job_id, lambda record: record.done == 1)
        pids = [process_of(own_jobs, job_id).pid, int(record.message.split()[1])]
        assert not any(map(is_gone, pids))
        started = time.monotonic()
        record = own_jobs.cancel(job_id)
        while not all(map(is_gone, pids)) and time.monotonic() - started < 5:
            time.sleep(0.01)
        assert time.monotonic() - started < 2
        assert (record.status, record.message, record.result) == ("cancelled", "Cancelled.", {})
        assert own_jobs.job(job_id).status == "cancelled"

    def test_what_was_half_done_is_removed(self, own_jobs: Jobs) -> None:
        job_id = own_jobs.start("wait", {}, "Wait")
        wait_until(own_jobs, job_id, lambda record: record.done == 1)
        work = own_jobs.folder / "jobs" / job_id / "work"
        assert [path.read_bytes() for path in work.iterdir()] == [b"half"]
        own_jobs.cancel(job_id)
        assert not work.exists()

    def test_at_once_after_the_start(self, own_jobs: Jobs) -> None:
        job_id = own_jobs.start("wait", {}, "Wait")
        pid = process_of(own_jobs, job_id).pid
        assert own_jobs.cancel(job_id).status == "cancelled"
        assert is_gone(pid)

    def test_a_job_that_is_done_stays_done(self, own_jobs: Jobs) -> None:
        job_id = own_jobs.start("count", {"to": 1}, "Count")
        wait_until(own_jobs, job_id, ended)
        assert own_jobs.cancel(job_id).status == "done"


class TestDismiss:
    def test_the_record_is_gone(self, own_jobs: Jobs) -> None:
        kept, dismissed = (own_jobs.start("count", {"to": 1}, "Count") for _ in range(2))
        for job_id in (kept, dismissed):
            wait_until(own_jobs, job_id, ended)
        own_jobs.dismiss(dismissed)
        assert [record.id for record in own_jobs.jobs()] == [kept]
        assert not (own_jobs.folder / "jobs" / dismissed).exists()

    def test_not_while_it_runs(self, own_jobs: Jobs) -> None:
        job_id = own_jobs.start("wait", {}, "Wait")
        with pytest.raises(EngineError, match=f"Job '{job_id}' is still running: cancel it first"):
            own_jobs.dismiss(job_id)


class TestCarryOut:
    """The part that runs in the job's process, in this one."""

    @pytest.fixture
    def made(self, store_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.setattr(jobs, "KINDS", {"here": f"{__name__}:work_of_the_test"})
        folder = store_folder / "jobs" / ("a" * 12)
        (folder / "work").mkdir(parents=True)
        job = {"kind": "here", "label": "", "request": {"a": 1}, "created_at": 0.0}
        (folder / "job.json").write_text(json.dumps(job))
        return folder

    def test_the_work_is_given_request_folder_and_progress(self, made: Path, store_folder: Path) -> None:
        assert carry_out(store_folder, "a" * 12)
        assert json.loads((made / "state.json").read_text()) == {
            "status": "done",
            "done": 2,
            "total": 5,
            "message": "",
            "result": {"request": {"a": 1}, "folder": str(store_folder)},
        }
        assert not (made / "work").exists()
        assert sorted(path.name for path in made.iterdir()) == ["job.json", "process.json", "state.json"]

    def test_progress_is_written_now_and_then(
        self, made: Path, store_folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        written = []
        monkeypatch.setattr(jobs, "_write", lambda path, values: written.append((path.name, dict(values))))
        monkeypatch.setattr(jobs, "KINDS", {"here": f"{__name__}:quick_work"})
        assert carry_out(store_folder, "a" * 12)
        states = [values for name, values in written if name == "state.json"]
        assert states[0]["message"] == "going"
        assert len(states) < 20
        assert (states[-1]["status"], states[-1]["done"]) == ("done", 4999)

    def test_a_job_that_was_cancelled_before_it_began_is_not_begun(self, made: Path, store_folder: Path) -> None:
        (made / "state.json").write_text('{"status": "cancelled"}')
        assert not carry_out(store_folder, "a" * 12)
        assert json.loads((made / "state.json").read_text()) == {"status": "cancelled"}

    def test_no_other_id_is_carried_out(self, store_folder: Path) -> None:
        with pytest.raises(ConfigError, match="give the id of a job"):
            carry_out(store_folder, "../aaaaaaaaa")


def work_of_the_test(request: dict[str, Any], folder: Path, progress: Progress) -> dict[str, Any]:
    progress(2, 5, "going")
    return {"request": request, "folder": str(folder)}


def quick_work(request: dict[str, Any], folder: Path, progress: Progress) -> dict[str, Any]:
    for i in range(5000):
        progress(i, 5000, "going")
    return {}


class TestHub:
    """The one kind that there is, with the real clients, from the start of the process to the library."""

    @pytest.fixture
    def hub(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
        with HubServer() as hub:
            add_tiny_sets(hub)
            for name, value in hub.environment(tmp_path / "home").items():
                monkeypatch.setenv(name, value)
            yield hub

    @pytest.fixture
    def found(self, store_folder: Path, hub: HubServer) -> Iterator[Jobs]:
        found = Jobs(store_folder)
        yield found
        for record in found.jobs():
            found.cancel(record.id)

    def test_a_data_set_is_fetched_into_the_library(self, found: Jobs) -> None:
        job_id = found.start("hub", TINY, "Tiny")
        record = wait_until(found, job_id, ended, timeout_s=60)
        assert record.status == "done", record
        assert record.done == record.total == 80
        library = TaskLibrary(found.folder / "tasks")
        [task] = library.tasks()
        assert record.result == {"task": task.id, "left_out": {}, "note": ""}
        assert task.name == "Tiny opinions"
        assert task.source.startswith("acme/tiny from the Hugging Face Hub, revision ")
        assert task.splits == {"train": 60, "test": 20}
        expected = [*opinions(60)["text"], *opinions(20, 72)["text"]]
        assert list(library.rows(task.id).texts) == expected

    def test_a_request_that_cannot_be_met_fails_with_one_sentence(self, found: Jobs) -> None:
        wrong, unknown = (
            found.start("hub", TINY | more, "Tiny") for more in ({"max_rows": 1}, {"repository": "acme/none"})
        )
        assert wait_until(found, wrong, ended, 60).message.startswith("max_rows = 1 cannot be used")
        record = wait_until(found, unknown, ended, 60)
        assert (record.status, record.message) == (
            "failed",
            "Data set 'acme/none' does not exist on the Hub, or is private: check the name, or set HF_TOKEN.",
        )
        assert TaskLibrary(found.folder / "tasks").tasks() == []

    def test_cancelled_while_the_hub_is_slow(self, found: Jobs, hub: HubServer) -> None:
        texts = [f"{i} {os.urandom(400).hex()}" for i in range(8000)]
        columns = {"text": texts, "label": [i % 2 for i in range(8000)]}
        hub.add("dataset", "acme/slow", {"train.parquet": parquet_file(columns, classes={"label": OPINIONS})})
        hub.bytes_per_s = 1_000_000
        job_id = found.start("hub", {"repository": "acme/slow", "text": "text", "label": "label"}, "Slow")
        first = wait_until(found, job_id, lambda record: record.message.startswith("downloading"), timeout_s=60)
        later = wait_until(found, job_id, lambda record: record.message != first.message)
        assert later.status == "running"
        assert float(later.message.split()[2]) > float(first.message.split()[2])
        pid = process_of(found, job_id).pid
        started = time.monotonic()
        assert found.cancel(job_id).status == "cancelled"
        assert is_gone(pid)
        assert time.monotonic() - started < 2
        assert TaskLibrary(found.folder / "tasks").tasks() == []


def test_a_cancelled_job_is_not_ended_while_it_keeps_its_rows() -> None:
    """The last step is taken to its end, so that a job says done exactly when its task is there."""
    code = """
import os, signal
from core.tasks.hub.fetch import _to_the_end
with _to_the_end():
    os.kill(os.getpid(), signal.SIGTERM)
print("kept")
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=jobs.ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, "kept\n"), done.stderr
