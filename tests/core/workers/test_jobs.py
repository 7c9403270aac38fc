from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from core.errors import ConfigError, EngineError
from core.store import Status
from core.store.job_table import JobTable
from core.store.work import Claim
from core.workers import Jobs, jobs
from core.workers import job_kinds as kinds
from core.workers.processes import NICENESS
from tests.core.workers.watching import ended, is_gone, process_of, wait_until


class TestJobs:
    def test_a_job_is_done_and_stays_so(self, own_jobs: Jobs) -> None:
        before = time.time()
        job_id = own_jobs.start("count", {"to": 3}, "Count to three")
        record = wait_until(own_jobs, job_id, ended)
        assert (record.id, record.kind, record.label) == (job_id, "count", "Count to three")
        assert (record.status, record.request) == ("finished", {"to": 3})
        assert record.result == {"counted": 3, "folder": str(own_jobs.folder)}
        assert before <= record.created_at <= time.time()
        assert own_jobs.log(job_id) == "counted 3\n"
        assert own_jobs.cancel(job_id).status == "finished"

    def test_it_has_a_session_of_its_own_lets_training_go_first_and_its_threads_sleep(
        self, own_jobs: Jobs, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("JOBS_NICENESS", str(NICENESS))
        job_id = own_jobs.start("wait", {}, "Wait")
        wait_until(own_jobs, job_id, lambda record: record.done == 1)
        process = process_of(own_jobs, job_id)
        assert os.getsid(process.pid) == process.pid != os.getsid(0)
        assert process.nice() == NICENESS
        assert process.environ()["OMP_WAIT_POLICY"] == "PASSIVE"

    def test_the_waiting_policy_of_a_person_holds(self, own_jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
        record = wait_until(own_jobs, own_jobs.start("look", {}, "Look"), ended)
        assert record.result["threads"]["OMP_WAIT_POLICY"] == "ACTIVE"

    def test_every_process_sees_the_same_jobs_the_newest_first_until_they_are_dismissed(self, own_jobs: Jobs) -> None:
        ids = [own_jobs.start("count", {"to": i}, f"job {i}") for i in range(2)]
        for job_id in ids:
            wait_until(own_jobs, job_id, ended)
        others = Jobs(own_jobs.folder)
        assert [record.id for record in others.jobs()] == ids[::-1]
        assert {record.status for record in others.jobs()} == {"finished"}
        own_jobs.dismiss(ids[1])
        assert [record.id for record in others.jobs()] == ids[:1]
        assert not (own_jobs.folder / "jobs" / ids[1]).exists()
        running = own_jobs.start("wait", {}, "Wait")
        with pytest.raises(EngineError, match=f"Job '{running}' is still running: cancel it first"):
            own_jobs.dismiss(running)

    def test_before_the_first_there_are_none(self, store_folder: Path) -> None:
        assert Jobs(store_folder).jobs() == []
        assert not store_folder.exists()

    def test_a_job_that_is_gone_for_good_is_told_from_one_with_its_pid(self, own_jobs: Jobs) -> None:
        job_id = own_jobs.start("wait", {}, "Wait")
        wait_until(own_jobs, job_id, lambda record: record.done == 1)
        table, true = JobTable(own_jobs.folder), own_jobs.job(job_id).worker
        assert true is not None
        table.register(Claim(job_id, 1, 0), replace(true, started_at=true.started_at + 1000))
        assert own_jobs.job(job_id).status == "interrupted"
        own_jobs.cancel(job_id)
        assert not is_gone(true.pid)  # it belongs to another job
        table.register(Claim(job_id, 1, 0), true)
        assert own_jobs.cancel(job_id).status == "stopped"
        assert is_gone(true.pid)

    @pytest.mark.parametrize("job_id", ["", "../../etc", "abcdefghijkl/..", "ABCDEFGHIJKM", "abcdefghijk1", "a" * 12])
    def test_an_id_that_is_none_reaches_no_path(self, own_jobs: Jobs, job_id: str) -> None:
        for method in (own_jobs.job, own_jobs.cancel, own_jobs.dismiss, own_jobs.log):
            with pytest.raises(EngineError, match="There is no job"):
                method(job_id)

    def test_an_unknown_kind_raises_and_names_what_exists(self, store_folder: Path) -> None:
        with pytest.raises(ConfigError, match=r"job = 'os.system' cannot be used: choose hub\b"):
            Jobs(store_folder).start("os.system", {}, "Oh")
        assert not store_folder.exists()


class TestCancel:
    def test_the_process_its_children_and_what_was_half_done_are_gone_within_two_seconds(self, own_jobs: Jobs) -> None:
        job_id = own_jobs.start("wait", {}, "Wait")
        record = wait_until(own_jobs, job_id, lambda record: record.done == 1)
        pids = [process_of(own_jobs, job_id).pid, int(str(record.message).split()[1])]
        assert not any(map(is_gone, pids))
        work = own_jobs.folder / "jobs" / job_id / "work"
        assert [path.read_bytes() for path in work.iterdir()] == [b"half"]
        started = time.monotonic()
        record = own_jobs.cancel(job_id)
        while not all(map(is_gone, pids)) and time.monotonic() - started < 5:
            time.sleep(0.01)
        assert time.monotonic() - started < 2
        assert (record.status, str(record.message), record.result) == ("stopped", "Cancelled.", {})
        assert own_jobs.job(job_id).status == "stopped"
        assert not work.exists()

    def test_at_once_after_the_start(self, own_jobs: Jobs) -> None:
        job_id = own_jobs.start("wait", {}, "Wait")
        pid = process_of(own_jobs, job_id).pid
        assert own_jobs.cancel(job_id).status == "stopped"
        assert is_gone(pid)

    @pytest.mark.parametrize(
        ("done", "for_s", "end"), [(5, 0.6, ("finished", {"kept": True})), (4, 60, ("stopped", {}))]
    )
    def test_a_cancelled_job_finishes_only_while_it_stores_its_result(
        self, own_jobs: Jobs, done: int, for_s: float, end: tuple[str, dict[str, bool]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # A job without enough time to store its result must not finish by chance.
        monkeypatch.setattr(jobs, "GRACE_S", 0.2)
        job_id = own_jobs.start("keep", {"done": done, "for_s": for_s}, "Keep")
        wait_until(own_jobs, job_id, lambda record: str(record.message) == "keeping")
        record = own_jobs.cancel(job_id)
        assert (record.status, record.result) == end


class TestMany:
    """Limits on duplicate, concurrent and old jobs."""

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
            wait_until(own_jobs, job_id, lambda record: str(record.message) == "stepping")
        wait_until(own_jobs, third, lambda record: str(record.message) == "queued, 2 ahead")
        wait_until(own_jobs, fourth, lambda record: str(record.message) == "queued, 3 ahead")
        assert own_jobs.start("turn", {"until": str(go[3])}, "again") == fourth
        assert own_jobs.cancel(third).status == "stopped"
        go[1].touch()
        wait_until(own_jobs, second, ended)
        wait_until(own_jobs, fourth, lambda record: str(record.message) == "stepping")
        assert own_jobs.job(first).active

    def test_active_jobs_are_limited(self, own_jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(kinds, "MAX_ACTIVE", 2)
        own_jobs.start("wait", {"n": 1}, "Wait")
        last = own_jobs.start("wait", {"n": 2}, "Wait")
        with pytest.raises(EngineError, match="2 such jobs are running or queued: wait for some to end"):
            own_jobs.start("wait", {"n": 3}, "Wait")
        assert own_jobs.start("wait", {"n": 2}, "Wait") == last
        own_jobs.cancel(last)
        own_jobs.start("wait", {"n": 3}, "Wait")

    def test_what_ended_long_ago_is_forgotten(self, own_jobs: Jobs) -> None:
        kept = {"count": 24 * 3600, "translate": 600, "map": 600, "measures": 600, "inspect": 120}
        table, recent = JobTable(own_jobs.folder), []
        for kind, kept_s in kept.items():
            for age_s in (kept_s + 60, kept_s - 60):
                job_id = table.add(kind, {"age_s": age_s}, kind, None)
                table.end(job_id, Status.FINISHED)
                change(own_jobs, job_id, ended_at=time.time() - age_s)
            recent.append(job_id)
        running = own_jobs.start("wait", {}, "Wait")
        wait_until(own_jobs, running, lambda record: record.done == 1)
        change(own_jobs, running, heartbeat_at=0.0)
        newest = own_jobs.start("count", {"to": 3}, "Count")
        assert [record.id for record in own_jobs.jobs()] == [newest, running, *reversed(recent)]


def change(found: Jobs, job_id: str, **values: object) -> None:
    """Write columns of a job's row, as another process would."""
    with JobTable(found.folder).transaction() as db:
        for name, value in values.items():
            db.execute(f"UPDATE work SET {name} = ? WHERE id = ?", (value, job_id))
