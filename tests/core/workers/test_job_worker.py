from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from core.errors import ConfigError
from core.workers import Progress, carry_out
from core.workers import job_kinds as kinds
from core.workers import job_worker as work


class TestCarryOut:
    """The part that runs in the job's process, in this one."""

    @pytest.fixture
    def made(self, store_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.setattr(kinds, "KINDS", {"here": f"{__name__}:work_of_the_test"})
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
        monkeypatch.setattr(work, "write_json", lambda path, values: written.append((path.name, dict(values))))
        monkeypatch.setattr(kinds, "KINDS", {"here": f"{__name__}:quick_work"})
        assert carry_out(store_folder, "a" * 12)
        states = [values for name, values in written if name == "state.json"]
        assert states[0]["message"] == "going"
        assert len(states) < 20
        assert (states[-1]["status"], states[-1]["done"]) == ("done", 4999)

    def test_a_job_that_was_cancelled_before_it_began_is_not_begun(self, made: Path, store_folder: Path) -> None:
        (made / "state.json").write_text('{"status": "cancelled"}')
        assert not carry_out(store_folder, "a" * 12)
        assert json.loads((made / "state.json").read_text()) == {"status": "cancelled"}

    def test_progress_ends_a_job_that_was_cancelled(
        self, made: Path, store_folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(kinds, "KINDS", {"here": f"{__name__}:work_that_is_cancelled"})
        assert not carry_out(store_folder, "a" * 12)
        state = json.loads((made / "state.json").read_text())
        assert (state["status"], state["message"], state["done"], state["result"]) == ("cancelled", "Cancelled.", 1, {})
        assert not (made / "work").exists()

    def test_a_job_whose_end_is_wanted_before_it_began_is_not_begun(self, made: Path, store_folder: Path) -> None:
        (made / "cancel").touch()
        assert not carry_out(store_folder, "a" * 12)
        assert json.loads((made / "state.json").read_text())["done"] == 0

    def test_progress_ends_a_job_whose_folder_is_gone(
        self, made: Path, store_folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(kinds, "KINDS", {"here": f"{__name__}:work_without_a_store"})
        with pytest.raises(FileNotFoundError):  # nor can its end be written
            carry_out(store_folder, "a" * 12)
        assert not store_folder.exists()

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


def work_that_is_cancelled(request: dict[str, Any], folder: Path, progress: Progress) -> dict[str, Any]:
    progress(1, 5, "going")
    time.sleep(2 * work.LOOK_EVERY_S)
    (folder / "jobs" / ("a" * 12) / "cancel").touch()
    try:
        progress(2, 5, "going on")
    except Exception:  # what a careless job would do with its errors
        return {"went": "on"}
    return {"saw": "nothing"}


def work_without_a_store(request: dict[str, Any], folder: Path, progress: Progress) -> dict[str, Any]:
    progress(1, 5, "going")
    time.sleep(2 * work.LOOK_EVERY_S)
    shutil.rmtree(folder)
    try:
        progress(1, 5, "going")
    except Exception:
        (folder / "jobs" / ("a" * 12)).mkdir(parents=True)  # what a careless job would do
    return {}
