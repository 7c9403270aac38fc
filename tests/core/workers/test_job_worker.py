from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from core.errors import ConfigError, TaskError
from core.store import Status
from core.store.job_table import JobRecord, JobTable
from core.store.work import Claim
from core.workers import Progress, carry_out
from core.workers import job_kinds as kinds
from core.workers import job_worker as work


class TestCarryOut:
    """The code of a job's process, called in this one."""

    @pytest.fixture
    def table(self, store_folder: Path, monkeypatch: pytest.MonkeyPatch) -> JobTable:
        monkeypatch.setattr(kinds, "KINDS", {work.__name__: f"{__name__}:{work.__name__}" for work in WORKS})
        return JobTable(store_folder)

    @pytest.fixture
    def job_id(self, table: JobTable) -> str:
        return table.add("work_of_the_test", {"a": 1}, "")

    def test_the_work_is_given_request_folder_and_progress(
        self, table: JobTable, job_id: str, store_folder: Path
    ) -> None:
        assert carry_out(table, Claim(job_id, 1, 0))
        job = found(table, job_id)
        assert (job.status, job.done, job.total, str(job.message)) == ("finished", 2, 5, "")
        assert job.result == {"request": {"a": 1}, "folder": str(store_folder), "worker": os.getpid()}
        assert list(table.job_folder(job_id).iterdir()) == []

    def test_progress_is_written_now_and_then(self, table: JobTable, monkeypatch: pytest.MonkeyPatch) -> None:
        written: list[tuple[int, str]] = []
        report = table.report

        def recorded(job_id: str, done: int, total: int | None, message: str) -> None:
            written.append((done, message))
            report(job_id, done, total, message)

        monkeypatch.setattr(table, "report", recorded)
        job_id = table.add("quick_work", {}, "")
        assert carry_out(table, Claim(job_id, 1, 0))
        assert written[0][1] == "going"
        assert len(written) < 20
        assert (found(table, job_id).status, found(table, job_id).done) == ("finished", 4999)

    @pytest.mark.parametrize("kind", ["work_that_leaves_files", "work_that_fails", "work_that_is_cancelled"])
    def test_its_temporary_files_are_gone_before_it_reads_as_ended(
        self, table: JobTable, kind: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        job_id = table.add(kind, {}, "")
        left: list[bool] = []
        end = table.end

        def watched(job_id: str, *rest: Any) -> None:
            left.append(table.work_folder(job_id).exists())
            end(job_id, *rest)

        monkeypatch.setattr(table, "end", watched)
        (table.work_folder(job_id) / "half").write_bytes(b"half")
        carry_out(table, Claim(job_id, 1, 0))
        assert left == [False]
        assert not found(table, job_id).active

    @pytest.mark.parametrize("cancel", [lambda table, job: table.end(job, Status.STOPPED), JobTable.ask_to_end])
    def test_a_job_that_was_cancelled_before_it_began_is_not_begun(
        self, table: JobTable, job_id: str, cancel: Callable[[JobTable, str], None]
    ) -> None:
        cancel(table, job_id)
        assert not carry_out(table, Claim(job_id, 1, 0))
        job = found(table, job_id)
        assert (job.status, job.done, job.result) == ("stopped", 0, {})

    def test_progress_ends_a_job_that_was_cancelled(self, table: JobTable) -> None:
        job_id = table.add("work_that_is_cancelled", {}, "")
        assert not carry_out(table, Claim(job_id, 1, 0))
        job = found(table, job_id)
        assert (job.status, str(job.message), job.done, job.result) == ("stopped", "Cancelled.", 1, {})
        assert not table.work_folder(job_id).exists()

    def test_it_waits_until_whoever_starts_it_has_written_its_row(self, table: JobTable) -> None:
        with ThreadPoolExecutor(1) as pool:
            with table.transaction():
                job_id = table.add("work_of_the_test", {"a": 1}, "")
                done = pool.submit(lambda: carry_out(JobTable(table.folder), Claim(job_id, 1, 0)))
                time.sleep(0.3)
                assert not done.done()
            assert done.result(timeout=30)

    def test_no_other_id_is_carried_out(self, table: JobTable) -> None:
        with pytest.raises(ConfigError, match="give the id of a job"):
            carry_out(table, Claim("../aaaaaaaaa", 1, 0))


def found(table: JobTable, job_id: str) -> JobRecord:
    record = table.job(job_id)
    assert record is not None
    return record


def work_of_the_test(request: dict[str, Any], folder: Path, progress: Progress) -> dict[str, Any]:
    progress(2, 5, "going")
    [job] = JobTable(folder).jobs()
    return {"request": request, "folder": str(folder), "worker": job.worker and job.worker.pid}


def quick_work(request: dict[str, Any], folder: Path, progress: Progress) -> dict[str, Any]:
    for i in range(5000):
        progress(i, 5000, "going")
    return {}


def work_that_leaves_files(request: dict[str, Any], folder: Path, progress: Progress) -> dict[str, Any]:
    table = JobTable(folder)
    (table.work_folder(table.jobs()[0].id) / "more").write_bytes(b"more")
    return {}


def work_that_fails(request: dict[str, Any], folder: Path, progress: Progress) -> dict[str, Any]:
    raise TaskError("The file has no rows: add some.")


def work_that_is_cancelled(request: dict[str, Any], folder: Path, progress: Progress) -> dict[str, Any]:
    progress(1, 5, "going")
    time.sleep(2 * work.LOOK_EVERY_S)
    table = JobTable(folder)
    table.ask_to_end(table.jobs()[0].id)
    try:
        progress(2, 5, "going on")
    except Exception:  # as a careless job would handle its errors
        return {"went": "on"}
    return {"saw": "nothing"}


WORKS = (work_of_the_test, quick_work, work_that_leaves_files, work_that_fails, work_that_is_cancelled)
