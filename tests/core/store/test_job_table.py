from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from core.store import Status
from core.store.job_table import JobTable
from core.store.liveness import liveness_of
from core.store.work import Claim


@pytest.fixture
def table(tmp_path: Path) -> JobTable:
    return JobTable(tmp_path)


def test_jobs_of_a_line_are_claimed_once_each_the_oldest_first(table: JobTable) -> None:
    ids = [table.add("map", {"n": n}, "Map", "maps") for n in range(20)]
    table.add("inspect", {}, "Inspect", "model")
    assert table.claim_next(line="maps") == (ids[0], 1, 0)
    assert table.claim_next(line="maps") is None
    with ThreadPoolExecutor(4) as pool:
        claimed = list(pool.map(lambda _: JobTable(table.folder).claim_next(range(30), line="maps"), range(22)))
    assert sorted(claim.id for claim in claimed if claim) == sorted(ids[1:])
    assert table.find_pending_ids("maps") == []
    assert len(table.find_pending_ids("model")) == 1


def test_only_one_that_is_running_reports_and_only_its_first_end_counts(table: JobTable) -> None:
    job_id = table.add("hub", {}, "Fetch")
    table.hand_over(Claim(job_id, 1, 0), liveness_of())
    table.report(job_id, 2, 4, "half")
    job = table.job(job_id)
    assert job is not None
    assert (job.done, job.total, str(job.message)) == (2, 4, "half")
    table.end(job_id, Status.FINISHED, "", {"rows": 4})
    table.report(job_id, 4, 4, "late")
    table.end(job_id, Status.FAILED, "late")
    job = table.job(job_id)
    assert job is not None
    assert (job.status, job.done, str(job.message), job.result) == ("finished", 2, "", {"rows": 4})


def test_a_forgotten_job_takes_its_folder_along_first(table: JobTable, monkeypatch: pytest.MonkeyPatch) -> None:
    other, forgotten = (table.add("hub", {"n": n}, "Fetch") for n in range(2))
    had_a_row: list[bool] = []
    rmtree = shutil.rmtree

    def watched(*arguments: Any, **rest: Any) -> None:
        had_a_row.append(table.job(forgotten) is not None)
        rmtree(*arguments, **rest)

    monkeypatch.setattr(shutil, "rmtree", watched)
    table.forget([forgotten])
    assert had_a_row == [True]
    assert table.job(forgotten) is None
    assert not table.is_wanted(forgotten)
    assert [path.name for path in (table.folder / "jobs").iterdir()] == [other]
