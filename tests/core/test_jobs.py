from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest
from filelock import FileLock

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

def turn(request, folder, progress):
    progress(1, None, "at work")
    while not os.path.exists(request["until"]):
        time.sleep(0.02)
    return {}

def keep(request, folder, progress):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    progress(request["done"], 5, "keeping")
    time.sleep(jobs.GRACE_S + 1)
    return {"kept": True}

def refuse(request, folder, progress):
    raise TaskError("The file has no rows: add some.")

def stumble(request, folder, progress):
    progress(3, 10, "walking")
    raise KeyError("shoe")

def vanish(request, folder, progress):
    progress(3, 10, "walking")
    os._exit(9)

names = ("count", "wait", "turn", "keep", "refuse", "stumble", "vanish")
jobs.KINDS = {name: f"__main__:{name}" for name in names}
jobs.AT_ONCE = {"turn": 2}
sys.exit(jobs.main(sys.argv[1:]))
"""
KINDS = ("count", "wait", "turn", "keep", "refuse", "stumble", "vanish", "hub", "translate")


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
        ids = [own_jobs.start("count", {"to": i}, f"job {i}") for i in range(3)]
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

    def test_one_that_is_keeping_its_result_gets_to_the_end(self, own_jobs: Jobs) -> None:
        job_id = own_jobs.start("keep", {"done": 5}, "Keep")
        wait_until(own_jobs, job_id, lambda record: record.message == "keeping")
        record = own_jobs.cancel(job_id)
        assert (record.status, record.result) == ("done", {"kept": True})

    def test_one_that_still_counts_does_not(self, own_jobs: Jobs) -> None:
        job_id = own_jobs.start("keep", {"done": 4}, "Keep")
        wait_until(own_jobs, job_id, lambda record: record.message == "keeping")
        assert own_jobs.cancel(job_id).status == "cancelled"

    def test_a_job_that_is_done_stays_done(self, own_jobs: Jobs) -> None:
        job_id = own_jobs.start("count", {"to": 1}, "Count")
        wait_until(own_jobs, job_id, ended)
        assert own_jobs.cancel(job_id).status == "done"


class TestDismiss:
    def test_the_record_is_gone(self, own_jobs: Jobs) -> None:
        kept, dismissed = (own_jobs.start("count", {"to": i}, "Count") for i in range(2))
        for job_id in (kept, dismissed):
            wait_until(own_jobs, job_id, ended)
        own_jobs.dismiss(dismissed)
        assert [record.id for record in own_jobs.jobs()] == [kept]
        assert not (own_jobs.folder / "jobs" / dismissed).exists()

    def test_not_while_it_runs(self, own_jobs: Jobs) -> None:
        job_id = own_jobs.start("wait", {}, "Wait")
        with pytest.raises(EngineError, match=f"Job '{job_id}' is still running: cancel it first"):
            own_jobs.dismiss(job_id)


class TestMany:
    """Jobs do not pile up."""

    def test_what_is_being_done_is_not_started_twice(self, own_jobs: Jobs, tmp_path: Path) -> None:
        request = {"until": str(tmp_path / "go"), "some": (1, 2)}
        job_id = own_jobs.start("turn", request, "First")
        assert Jobs(own_jobs.folder).start("turn", request, "Second") == job_id
        assert own_jobs.start("turn", request | {"some": (1, 3)}, "Other") != job_id
        assert own_jobs.start("wait", request, "Other") != job_id
        (tmp_path / "go").touch()
        wait_until(own_jobs, job_id, ended)
        assert own_jobs.start("turn", request, "Again") != job_id

    def test_two_at_once_start_one(self, own_jobs: Jobs) -> None:
        with ThreadPoolExecutor(4) as pool:
            ids = set(pool.map(lambda _: own_jobs.start("wait", {}, "Wait"), range(4)))
        assert [record.id for record in own_jobs.jobs()] == list(ids)

    def test_some_kinds_wait_for_their_turn(self, own_jobs: Jobs, tmp_path: Path) -> None:
        go = [tmp_path / f"go{i}" for i in range(4)]
        first, second, third, fourth = (own_jobs.start("turn", {"until": str(path)}, path.name) for path in go)
        for job_id in (first, second):
            wait_until(own_jobs, job_id, lambda record: record.message == "at work")
        wait_until(own_jobs, third, lambda record: record.message == "waiting for its turn, 2 before it")
        wait_until(own_jobs, fourth, lambda record: record.message == "waiting for its turn, 3 before it")
        assert own_jobs.start("turn", {"until": str(go[3])}, "again") == fourth
        assert own_jobs.cancel(third).status == "cancelled"
        go[1].touch()
        wait_until(own_jobs, second, ended)
        wait_until(own_jobs, fourth, lambda record: record.message == "at work")
        assert own_jobs.job(first).active

    def test_there_are_only_so_many(self, own_jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(jobs, "MAX_ACTIVE", 2)
        own_jobs.start("wait", {"n": 1}, "Wait")
        last = own_jobs.start("wait", {"n": 2}, "Wait")
        with pytest.raises(EngineError, match="2 such jobs are at work or waiting: let some of them end"):
            own_jobs.start("wait", {"n": 3}, "Wait")
        assert own_jobs.start("wait", {"n": 2}, "Wait") == last
        own_jobs.cancel(last)
        own_jobs.start("wait", {"n": 3}, "Wait")

    @pytest.mark.parametrize(("kind", "kept_s"), [("count", 24 * 3600), ("translate", 600)])
    def test_what_ended_long_ago_is_forgotten(self, own_jobs: Jobs, kind: str, kept_s: float) -> None:
        old, recent = (own_jobs.start("count", {"to": i}, "Count") for i in range(2))
        for job_id, age_s in ((old, kept_s + 60), (recent, kept_s - 60)):
            wait_until(own_jobs, job_id, ended)
            folder = own_jobs.folder / "jobs" / job_id
            (folder / "job.json").write_text(json.dumps(json.loads((folder / "job.json").read_text()) | {"kind": kind}))
            os.utime(folder / "state.json", (time.time() - age_s,) * 2)
        running = own_jobs.start("wait", {}, "Wait")
        wait_until(own_jobs, running, lambda record: record.done == 1)
        os.utime(own_jobs.folder / "jobs" / running / "state.json", (0, 0))
        newest = own_jobs.start("count", {"to": 3}, "Count")
        assert [record.id for record in own_jobs.jobs()] == [newest, running, recent]

    def test_who_cannot_have_the_lock_is_told(self, own_jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(jobs, "LOCK_TIMEOUT_S", 0.05)
        (own_jobs.folder / "jobs").mkdir(parents=True)
        with (
            FileLock(own_jobs.folder / "jobs" / ".lock"),
            pytest.raises(EngineError, match=r"No job could be started .*lock.* could not be acquired"),
        ):
            own_jobs.start("count", {"to": 1}, "Count")


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
        told = {"task": task.id, "name": "Tiny opinions", "was_here": False, "left_out": {}, "note": ""}
        assert record.result == told
        assert task.name == "Tiny opinions"
        assert task.source.startswith("acme/tiny from the Hugging Face Hub, revision ")
        assert task.splits == {"train": 60, "test": 20}
        expected = [*opinions(60)["text"], *opinions(20, 72)["text"]]
        assert list(library.rows(task.id).texts) == expected
        again = wait_until(found, found.start("hub", TINY | {"name": "Other"}, "Other"), ended, timeout_s=60)
        assert again.result == told | {"was_here": True}

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

    def test_rows_that_make_no_task_are_not_kept(self, found: Jobs, hub: HubServer) -> None:
        columns = {"text": [f"text {i}" for i in range(26)]}
        fifteen, one = ([i % classes for i in range(26)] for classes in (15, 1))
        hub.add("dataset", "acme/many", {"train.parquet": parquet_file(columns | {"label": fifteen})})
        hub.add(
            "dataset",
            "acme/one",
            {name: parquet_file(columns | {"label": one}) for name in ("train.parquet", "test.parquet")},
        )
        hub.add(
            "dataset",
            "acme/unseen",
            {
                "train.parquet": parquet_file(columns | {"label": [i % 2 for i in range(26)]}),
                "test.parquet": parquet_file(columns | {"label": [i % 3 for i in range(26)]}),
            },
        )
        few = "'many' has too few rows with the label '11' for a test split: give every class at least three rows"
        cases: list[tuple[str, dict[str, Any], str]] = [
            ("many", {}, few + ", or drop it; choose other splits or another label column."),
            ("many", {"max_rows": 20}, "'many' has "),
            ("one", {}, "'one' has the one label '0': learning needs rows of at least two classes; choose other"),
            ("unseen", {"test": "test"}, "'unseen' has the label '2' outside of the training rows only"),
        ]
        base = {"text": "text", "label": "label"}
        started = [found.start("hub", base | {"repository": f"acme/{name}"} | more, name) for name, more, _ in cases]
        for job_id, (_, more, sentence) in zip(started, cases, strict=True):
            record = wait_until(found, job_id, ended, timeout_s=60)
            assert (record.status, record.result) == ("failed", {})
            assert sentence in record.message
            assert ("ask for more rows, or choose" in record.message) == ("max_rows" in more)
        assert not (found.folder / "tasks").exists()

    def test_a_name_that_is_none_is_refused_before_anything_is_asked(self, found: Jobs, hub: HubServer) -> None:
        for name in (" ", "n" * 81):
            record = wait_until(found, found.start("hub", TINY | {"name": name}, "Tiny"), ended, timeout_s=60)
            assert record.status == "failed"
            assert record.message.startswith("name = ")
        assert hub.served == []

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
