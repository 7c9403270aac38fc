"""Warm processes, with real ones: starts, jobs, and ends."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from core.config import parse_config
from core.errors import EngineError
from core.store import Status, Store
from core.store.job_table import JobTable
from core.store.liveness import liveness_of, to_json
from core.store.work import LOADING, RUNS
from core.workers import Jobs, LocalEngine, processes
from core.workers import job_kinds as kinds
from core.workers.processes import NICENESS, ONE_THREAD, PATIENT
from tests.cases import slow_but
from tests.core.workers.conftest import PROGRAM
from tests.core.workers.watching import ended, is_gone, only_process_on, process_of, processes_on, wait_for, wait_until

LARGE_LIBRARY = "import time\ntime.sleep(0.5)\nLOADED_AT = time.time()\n"


def result_of(found: Jobs, job_id: str) -> dict[str, Any]:
    record = wait_until(found, job_id, ended)
    assert record.status == "finished", (record, found.log(job_id))
    return record.result


def looked(found: Jobs, **request: Any) -> dict[str, Any]:
    """Return the warm process's facts about itself."""
    return result_of(found, found.start("look", request, "Look"))


def begun(found: Jobs, kind: str, request: dict[str, Any], message: str) -> str:
    """Start a job. Returns: its id, once it reports this message."""
    job_id = found.start(kind, request, kind)
    wait_until(found, job_id, lambda record: str(record.message).startswith(message))
    return job_id


def warm_log(found: Jobs, group: str = "one") -> str:
    return JobTable(found.folder).warm_log_path(group).read_text()


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a library that takes half a second to import. Group "one" imports it before its first job."""
    path = tmp_path / "libraries" / "large_library.py"
    path.parent.mkdir()
    path.write_text(LARGE_LIBRARY)
    monkeypatch.setenv("PYTHONPATH", f"{os.environ.get('PYTHONPATH', '')}{os.pathsep}{path.parent}")
    monkeypatch.setenv("JOBS_PRELOADED", "large_library")
    return path


class TestOneProcess:
    def test_it_has_a_session_of_its_own_one_thread_and_goes_last(
        self, own_jobs: Jobs, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("JOBS_NICENESS", str(NICENESS))
        found = looked(own_jobs)
        assert found["session"] == found["pid"]
        assert found["nice"] == NICENESS
        assert found["session_nice"] == str(NICENESS)
        assert found["threads"] == dict.fromkeys(ONE_THREAD, "1") | PATIENT

    def test_a_warm_one_answers_at_once(self, shared_jobs: Jobs) -> None:
        looked(shared_jobs)

        def at_once() -> bool:
            began = time.monotonic()
            looked(shared_jobs, again=began)
            return time.monotonic() - began < 0.3

        wait_for(at_once)  # one fast answer is enough on a busy machine

    def test_the_oldest_job_comes_first(self, shared_jobs: Jobs, tmp_path: Path) -> None:
        until = tmp_path / "go"
        first = begun(shared_jobs, "step", {"until": str(until)}, "stepping")
        others = [shared_jobs.start(kind, {"n": n}, "Look") for n, kind in enumerate(("look", "fail", "look", "look"))]
        messages = [str(shared_jobs.job(job_id).message) for job_id in others]
        assert messages == [f"queued, {n} ahead" for n in (1, 2, 3, 4)]
        until.touch()
        ends = []
        for job_id in (first, *others):
            wait_until(shared_jobs, job_id, ended)
            ends.append(shared_jobs.job(job_id).updated_at)
        assert ends == sorted(ends)

    def test_two_who_start_at_once_share_it(self, own_jobs: Jobs) -> None:
        servers = [Jobs(own_jobs.folder) for _ in range(4)]
        with ThreadPoolExecutor(4) as pool:
            ids = list(pool.map(lambda n: servers[n].start("look", {"n": n}, "Look"), range(4)))
        assert len({result_of(own_jobs, job_id)["pid"] for job_id in ids}) == 1
        assert only_process_on(own_jobs.folder)

    def test_a_second_warm_process_exits(self, shared_jobs: Jobs) -> None:
        pid = looked(shared_jobs)["pid"]
        second = psutil.Popen(
            [sys.executable, str(PROGRAM), "--warm", str(shared_jobs.folder), "one", str(to_json(liveness_of()))]
        )
        assert second.wait(timeout=30) == 0
        assert looked(shared_jobs, n=2)["pid"] == pid

    def test_an_idle_process_ends_with_its_starter(self, own_jobs: Jobs) -> None:
        table = JobTable(own_jobs.folder)
        with subprocess.Popen(["sleep", "600"]) as starter:
            identity = str(to_json(liveness_of(starter.pid)))
            idle = psutil.Popen([sys.executable, str(PROGRAM), "--warm", str(own_jobs.folder), "one", identity])
            wait_for(lambda: (named := table.warm_process("one")) is not None and named.doing == "")
            time.sleep(1.0)  # the program looks for its starter every 0.2 s
            assert idle.is_running()
            starter.kill()
        assert idle.wait(timeout=30) == 0
        assert table.warm_process("one") is None

    def test_groups_have_processes_of_their_own(self, shared_jobs: Jobs) -> None:
        other = shared_jobs.start("look_too", {}, "Look")
        assert looked(shared_jobs)["pid"] != result_of(shared_jobs, other)["pid"]

    def test_a_job_has_its_own_log_and_its_own_temporary_files(self, shared_jobs: Jobs) -> None:
        ids = [shared_jobs.start("look", {"n": n}, "Look") for n in (1, 2)]
        for n, job_id in enumerate(ids, 1):
            result = result_of(shared_jobs, job_id)
            assert Path(result["temporary"]) == shared_jobs.folder / "jobs" / job_id / "work"
            assert result["folder"] == str(shared_jobs.folder)
            lines = shared_jobs.log(job_id).splitlines()
            assert sorted(lines) == ["from Python {'n': %d}" % n, "from a child", "from a library"]  # noqa: UP031
            assert not (shared_jobs.folder / "jobs" / job_id / "work").exists()
        assert warm_log(shared_jobs) == ""

    def test_a_failure_is_a_sentence_and_the_process_goes_on(self, shared_jobs: Jobs) -> None:
        pid = looked(shared_jobs)["pid"]
        failed, tripped = (shared_jobs.start(kind, {}, kind) for kind in ("fail", "trip"))
        assert str(wait_until(shared_jobs, failed, ended).message) == "The file has no rows: add some."
        record = wait_until(shared_jobs, tripped, ended)
        assert (record.status, record.done, record.total) == ("failed", 3, 10)
        assert str(record.message) == "The job failed (KeyError: 'shoe'): its log has the details."
        assert "Traceback" in shared_jobs.log(tripped)
        assert looked(shared_jobs, n=2)["pid"] == pid

    def test_the_start_of_a_job_waits_for_nothing(self, own_jobs: Jobs, library: Path) -> None:
        job_id = own_jobs.start("look", {}, "Look")
        process = JobTable(own_jobs.folder).warm_process("one")
        assert process is not None
        assert process.doing == LOADING
        wait_until(own_jobs, job_id, lambda record: str(record.message).startswith("loading libraries"))
        assert result_of(own_jobs, job_id)["loaded_at"] > own_jobs.job(job_id).created_at


@pytest.mark.skipif(not kinds.HAS_FORK, reason="forks only on Linux")
class TestRuns:
    """The process of runs, which carries out `program.run` instead of a run."""

    @pytest.fixture
    def store(self, own_jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> Store:
        monkeypatch.setenv("SCL_DISK_GB", "1")
        return Store(own_jobs.folder)

    def dispatched(self, store: Store) -> str:
        run_id = store.create(parse_config({"phases": [{"steps": 1}]}))
        LocalEngine(store, slots=range(9)).dispatch()
        return run_id

    def test_each_run_has_a_process_of_its_own_that_shares_no_connection(
        self, own_jobs: Jobs, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        own_jobs.warm_up(RUNS)
        monkeypatch.setenv("SCL_DISK_GB", "2")  # changed after the process started
        found = []
        for _ in range(2):
            path = store.folder / f"{self.dispatched(store)}.json"
            wait_for(path.exists)
            found.append(json.loads(path.read_text()))
        assert found[0]["pid"] == found[0]["session"] != found[1]["pid"] == found[1]["session"]
        assert len({one["parent"] for one in found}) == 1
        for one in found:
            assert one["settings"] == "2"
            assert not [path for path in one["open"] if "sqlite3" in path]
            assert one["nice"] == os.nice(0)
            assert one["threads"] == {name: os.environ.get(name) for name in ONE_THREAD} | PATIENT
        wait_for(lambda: all(is_gone(one["pid"]) for one in found))
        assert {row["request"] for row in store.all("SELECT request FROM work")} == {"{}"}
        assert own_jobs.jobs() == []

    def test_one_whose_process_dies_before_it_begins_is_begun_by_the_next(self, own_jobs: Jobs, store: Store) -> None:
        own_jobs.warm_up(RUNS)
        process = only_process_on(own_jobs.folder)
        process.suspend()
        run_id = self.dispatched(store)
        assert store.run(run_id).status == Status.STARTING
        process.kill()
        wait_for(lambda: is_gone(process.pid))
        assert store.run(run_id).status == Status.INTERRUPTED
        own_jobs.jobs()  # listing jobs starts the process
        wait_for((store.folder / f"{run_id}.json").exists)

    def test_one_whose_process_cannot_load_waits_again(self, own_jobs: Jobs, store: Store, library: Path) -> None:
        library.write_text("import os\nos._exit(9)")
        own_jobs.warm_up(RUNS)
        run_id = self.dispatched(store)
        wait_for(lambda: own_jobs.jobs() == [] and store.run(run_id).status == Status.QUEUED)
        assert store.warm_process(RUNS) is None


class TestWarmUp:
    def test_it_is_loaded_before_the_first_job(self, own_jobs: Jobs, library: Path) -> None:
        own_jobs.warm_up("one")
        table = JobTable(own_jobs.folder)
        wait_for(lambda: (process := table.warm_process("one")) is not None and process.doing == "")
        process = only_process_on(own_jobs.folder)
        own_jobs.warm_up("one")
        job_id = own_jobs.start("look", {}, "Look")
        found = result_of(own_jobs, job_id)
        assert found["pid"] == process.pid
        assert found["loaded_at"] < own_jobs.job(job_id).created_at

    def test_a_folder_that_cannot_be_written_is_named(self, own_jobs: Jobs, store_folder: Path) -> None:
        store_folder.write_text("a file")
        for ask in (lambda: own_jobs.warm_up("one"), lambda: own_jobs.start("look", {}, "Look")):
            with pytest.raises(EngineError, match=r"^No job could be started \(.+ cannot be created"):
                ask()

    def test_a_library_that_cannot_be_loaded_fails_the_job_that_needs_it(self, own_jobs: Jobs, library: Path) -> None:
        library.write_text("raise RuntimeError('no such chip')")
        assert looked(own_jobs)["loaded_at"] is None
        assert "RuntimeError: no such chip" in warm_log(own_jobs)

    def test_a_process_that_always_dies_while_loading_is_given_up(self, own_jobs: Jobs, library: Path) -> None:
        library.write_text("import os\nprint('loading', flush=True)\nos._exit(9)")
        job_id = own_jobs.start("look", {}, "Look")
        record = wait_until(own_jobs, job_id, ended)
        assert record.status == "failed"
        assert str(record.message).startswith(
            "The process for such jobs ended 3 times while loading its libraries: close"
        )
        assert own_jobs.log(job_id) == "loading\n"
        library.write_text(LARGE_LIBRARY)
        assert looked(own_jobs, n=2)["loaded_at"]


class TestCancel:
    def test_a_job_at_work_ends_between_two_steps(self, shared_jobs: Jobs, tmp_path: Path) -> None:
        request = {"until": str(tmp_path / "never")}
        job_id = begun(shared_jobs, "step", request, "stepping")
        pid = process_of(shared_jobs, job_id).pid
        work = shared_jobs.folder / "jobs" / job_id / "work"
        assert [path.read_bytes() for path in work.iterdir()] == [b"half"]
        began = time.monotonic()
        record = shared_jobs.cancel(job_id)
        assert time.monotonic() - began < 0.5
        assert (record.status, str(record.message), record.result) == ("stopped", "Cancelled.", {})
        assert not work.exists()
        assert looked(shared_jobs)["pid"] == pid
        again = begun(shared_jobs, "step", request, "stepping")
        assert again != job_id
        shared_jobs.cancel(again)

    def test_a_waiting_job_is_never_begun(self, shared_jobs: Jobs, tmp_path: Path) -> None:
        until = tmp_path / "go"
        first = begun(shared_jobs, "step", {"until": str(until)}, "stepping")
        waiting, last = (shared_jobs.start("look", {"n": n}, "Look") for n in range(2))
        assert shared_jobs.cancel(waiting).status == "stopped"
        assert shared_jobs.job(first).active
        assert str(shared_jobs.job(last).message) == "queued, 1 ahead"
        until.touch()
        result_of(shared_jobs, last)
        assert shared_jobs.job(waiting).status == "stopped"
        assert shared_jobs.log(waiting) == ""

    def test_a_stubborn_job_is_ended_with_its_process_and_others_go_on(self, shared_jobs: Jobs) -> None:
        job_id = begun(shared_jobs, "sleep", {}, "child")
        pids = [process_of(shared_jobs, job_id).pid, int(str(shared_jobs.job(job_id).message).split()[1])]
        waiting = shared_jobs.start("look", {}, "Look")
        began = time.monotonic()
        record = shared_jobs.cancel(job_id)
        assert time.monotonic() - began < 2
        assert (record.status, str(record.message)) == ("stopped", "Cancelled.")
        assert not (shared_jobs.folder / "jobs" / job_id / "work").exists()
        assert result_of(shared_jobs, waiting)["pid"] not in pids
        wait_for(lambda: all(map(is_gone, pids)))
        assert shared_jobs.job(job_id).status == "stopped"


class TestDeath:
    @pytest.mark.parametrize("how", ["kill", "exit"])
    def test_the_job_at_work_was_interrupted_and_the_next_is_taken_up(
        self, shared_jobs: Jobs, tmp_path: Path, how: str
    ) -> None:
        until = tmp_path / "never"
        job_id = begun(shared_jobs, "step", {"until": str(until)}, "stepping")
        process = process_of(shared_jobs, job_id)
        if how == "exit":
            until.touch()
            wait_until(shared_jobs, job_id, ended)
            job_id = shared_jobs.start("die", {}, "Die")
        waiting = shared_jobs.start("look", {}, "Look")
        if how == "kill":
            process.send_signal(signal.SIGKILL)
        record = wait_until(shared_jobs, job_id, ended)
        assert record.status == "interrupted"
        assert str(record.message) == "The job's process ended early: start the job again."
        assert result_of(shared_jobs, waiting)["pid"] != process.pid
        assert only_process_on(shared_jobs.folder)


class TestEnd:
    def test_it_leaves_when_nobody_asks(self, own_jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("JOBS_IDLE_EXIT_S", "0.3")
        pid = looked(own_jobs)["pid"]
        wait_for(lambda: is_gone(pid))
        assert processes_on(own_jobs.folder) == []
        assert JobTable(own_jobs.folder).warm_process("one") is None
        assert looked(own_jobs, n=2)["pid"] != pid

    @pytest.mark.parametrize("count", slow_but([5], [5, 20]))
    def test_jobs_that_meet_its_leaving_are_not_lost(
        self, own_jobs: Jobs, monkeypatch: pytest.MonkeyPatch, count: int
    ) -> None:
        monkeypatch.setenv("JOBS_IDLE_EXIT_S", "0.03")
        for n in range(count):
            looked(own_jobs, n=n)
            time.sleep(0.01 * (n % 5 + 1))

    @pytest.fixture
    def code(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """Return the folder of code that the processes of the test check for changes."""
        folder = tmp_path / "code"
        folder.mkdir()
        monkeypatch.setenv("JOBS_CODE", str(folder))
        return folder

    def test_edited_code_is_not_run_from_memory(self, own_jobs: Jobs, code: Path) -> None:
        (code / "a.py").write_text("1")
        first = looked(own_jobs)["pid"]
        (code / "a.py").write_text("2 + 2")
        second = looked(own_jobs, n=2)["pid"]
        assert second != first
        assert looked(own_jobs, n=3)["pid"] == second
        (code / "a.py").unlink()
        wait_for(lambda: is_gone(second))  # it checks for changes regularly, also while idle
        assert JobTable(own_jobs.folder).warm_process("one") is None

    def test_code_that_is_edited_while_it_works_is_met_by_the_next_job(
        self, own_jobs: Jobs, code: Path, tmp_path: Path
    ) -> None:
        until = tmp_path / "go"
        first = begun(own_jobs, "step", {"until": str(until)}, "stepping")
        waiting = own_jobs.start("look", {}, "Look")
        (code / "new.py").touch()
        until.touch()
        # No other process checks: the old one starts its successor.
        table = JobTable(own_jobs.folder)
        wait_for(lambda: table.find_pending_ids("one") == [])
        assert result_of(own_jobs, waiting)["pid"] != result_of(own_jobs, first)["pid"]

    def test_it_does_not_outlive_its_store(self, own_jobs: Jobs) -> None:
        pid = looked(own_jobs)["pid"]
        shutil.rmtree(own_jobs.folder)
        wait_for(lambda: is_gone(pid), timeout_s=15)
        assert not own_jobs.folder.exists()

    def test_a_process_with_a_job_does_not_outlive_its_store_either(self, own_jobs: Jobs, tmp_path: Path) -> None:
        job_id = begun(own_jobs, "step", {"until": str(tmp_path / "never")}, "stepping")
        pid = process_of(own_jobs, job_id).pid
        own_jobs.folder.rename(tmp_path / "elsewhere")
        wait_for(lambda: is_gone(pid), timeout_s=15)
        assert not own_jobs.folder.exists()


def test_every_warm_kind_exists_and_every_line_is_loaded_by_its_own() -> None:
    assert kinds.WARM.keys() <= kinds.KINDS.keys()
    assert kinds.PRELOADED.keys() == {*kinds.WARM.values(), RUNS}
    for kind, line in kinds.WARM.items():
        assert kinds.KINDS[kind].partition(":")[0] in kinds.PRELOADED[line]


def test_the_stamp_of_the_code_changes_with_every_edit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "CODE", tmp_path)
    (tmp_path / "inner").mkdir()
    stamps = [processes.code_stamp()]
    for name, text in (("a.py", ""), ("inner/b.py", "1"), ("a.py", "22"), ("inner/b.py", "3")):
        (tmp_path / name).write_text(text)
        os.utime(tmp_path / name, ns=(len(stamps), len(stamps)))
        stamps.append(processes.code_stamp())
    (tmp_path / "a.py").unlink()
    stamps.append(processes.code_stamp())
    assert len(set(stamps)) == 6
    (tmp_path / "notes.txt").touch()
    assert processes.code_stamp() == stamps[-1]
