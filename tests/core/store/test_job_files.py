from __future__ import annotations

import json
from pathlib import Path

from core.store.job_files import read_job_files
from core.store.job_table import JobTable

JOB = {"kind": "count", "label": "Count", "request": {"to": 1}, "created_at": 5.0}
STATE = {"status": "done", "done": 3, "total": 3, "message": "", "result": {"counted": 3}}


def write(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / f"{name}.json").write_text(text)


def test_files_become_rows_the_oldest_first(tmp_path: Path) -> None:
    jobs = tmp_path / "jobs"
    write(jobs / ("b" * 12), job=json.dumps(JOB | {"created_at": 6.0}))
    write(jobs / ("a" * 12), job=json.dumps(JOB), state=json.dumps(STATE), process="{}")
    going_on, done = JobTable(tmp_path).jobs()
    assert (done.id, done.kind, done.label, done.request) == ("a" * 12, "count", "Count", {"to": 1})
    assert (done.status, done.done, done.total, done.result) == ("done", 3, 3, {"counted": 3})
    assert (going_on.id, going_on.status) == ("b" * 12, "interrupted")


def test_a_damaged_folder_hides_no_other(tmp_path: Path) -> None:
    write(tmp_path / ("a" * 12), job=json.dumps(JOB), state='{"status": ')
    write(tmp_path / ("b" * 12))
    write(tmp_path / ("c" * 12), job='{"kind": ')
    write(tmp_path / ("d" * 12), job='{"kind": "count"}')
    write(tmp_path / ("e" * 12), job="[]")
    assert [row["id"] for row in read_job_files(tmp_path)] == ["a" * 12]
    assert read_job_files(tmp_path / "none") == []
