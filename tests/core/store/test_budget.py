"""The disk budget deletes reproducible files of finished runs only, and reports it."""

from __future__ import annotations

import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

import pytest

from core.errors import ConfigError, RunNotFoundError, StoreError
from core.settings import settings
from core.store import Status, Store, budget
from core.store.budget import GB, dropped_sentence, keep_within, missing_sentence, over_budget_sentence, reading_weights
from tests.core.store.claims import DEAD, claimed, config
from tests.core.store.test_sizes import FILES, fill, walked

ROOT = Path(__file__).resolve().parents[3]
WEIGHTS, SNAPSHOTS, REST = 1000, 500, 75
WHOLE = WEIGHTS + SNAPSHOTS + REST


def ended(store: Store, status: Status = Status.FINISHED, *, at: float = 0.0) -> str:
    attempt = claimed(store)
    fill(attempt.folder)
    attempt.end(status)
    with store.transaction() as db:
        db.execute("UPDATE work SET ended_at = ? WHERE id = ?", (time.time() + at, attempt.run_id))
    return attempt.run_id


def names(store: Store, run_id: str) -> set[str]:
    folder = store.run_folder(run_id)
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    return there - {budget.WEIGHTS_LOCK}


NOT_SNAPSHOTS = {name for name in FILES if not name.startswith("snapshot-")}
NOT_WEIGHTS = NOT_SNAPSHOTS - {"checkpoint.safetensors"}


def test_snapshots_go_before_weights_and_the_run_that_finished_first_before_others(store: Store) -> None:
    middle, newest, oldest = ended(store, at=-20), ended(store, at=-10), ended(store, at=-30)
    runs = {"oldest": oldest, "middle": middle, "newest": newest}
    total, expected = 3 * WHOLE, {name: set(FILES) for name in runs}
    order = [(name, SNAPSHOTS, NOT_SNAPSHOTS) for name in runs] + [(name, WEIGHTS, NOT_WEIGHTS) for name in runs]
    for name, freed, left in order:
        assert keep_within(store, (total - 1) / GB) == 0
        expected[name], total = left, total - freed
        assert {name: names(store, run_id) for name, run_id in runs.items()} == expected
    assert keep_within(store, total / GB) == 0
    assert keep_within(store, (total - 10) / GB) == pytest.approx(10, abs=1), "frames are never dropped"
    assert sum(walked(store.run_folder(run_id)) for run_id in runs.values()) == 3 * REST


def test_what_was_dropped_is_recorded_with_its_day_and_the_budget(store: Store) -> None:
    run_id = ended(store)
    today = datetime.now()
    day = f"{today.day} {today:%b %Y}"
    keep_within(store, (WEIGHTS + REST) / GB)
    assert str(dropped_sentence(store.run(run_id))) == (
        f"Its snapshots were dropped on {day} to stay within 1.00117e-06 GB; "
        "the weights of its last step, curves and frames are kept."
    )
    keep_within(store, REST / GB)
    sentence = str(missing_sentence(store.runs()[0]))
    assert sentence.startswith(f"Its weights were dropped on {day} to stay within")
    assert "curves and frames are kept. To get them back, raise SCL_DISK_GB and run the same settings again" in sentence


def test_weights_that_are_needed_stay(store: Store) -> None:
    interrupted = store.create(config())
    store.claim_next(range(100), DEAD)
    fill(store.run_folder(interrupted))
    running = claimed(store)
    fill(running.folder)
    pinned, stopped, failed = ended(store), ended(store, Status.STOPPED), ended(store, Status.FAILED)
    store.keep_weights(pinned, True)
    queued = ended(store, Status.STOPPED)
    store.requeue(queued)
    assert keep_within(store, 10 / GB) > 0
    for run_id in (interrupted, running.run_id, pinned, stopped, failed, queued):
        assert names(store, run_id) == set(FILES)
        assert dropped_sentence(store.run(run_id)) is missing_sentence(store.run(run_id)) is None
    store.keep_weights(pinned, False)
    keep_within(store, 10 / GB)
    assert names(store, pinned) == NOT_WEIGHTS
    with pytest.raises(RunNotFoundError):
        store.keep_weights("no such run", True)


def test_a_deleted_run_keeps_its_weights_for_as_long_as_it_can_come_back(store: Store) -> None:
    run_id = ended(store)
    store.discard(run_id)
    assert keep_within(store, 10 / GB) == WHOLE - 10
    store.restore(run_id)
    assert names(store, run_id) == set(FILES)


READER = """
import sys
from core.store import Store
from core.store.budget import reading_weights
with reading_weights(Store(sys.argv[1]), sys.argv[2]):
    print("reading", flush=True)
    sys.stdin.readline()
"""


def test_weights_that_another_process_reads_stay_until_it_is_done(store: Store) -> None:
    read, other = ended(store, at=-10), ended(store)
    with run_program(READER, store.folder, read) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "reading\n"
        with reading_weights(store, read):
            pass  # readers do not block each other
        keep_within(store, 10 / GB)
        assert names(store, read) == set(FILES)
        assert names(store, other) == NOT_WEIGHTS
        reader.communicate("done\n", timeout=30)
    assert dropped_sentence(store.run(read)) is None
    keep_within(store, 10 / GB)
    assert names(store, read) == NOT_WEIGHTS


def run_program(code: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_weights_of_a_run_that_is_gone_cannot_be_read(store: Store) -> None:
    with pytest.raises(RunNotFoundError), reading_weights(store, "abcdefghijkm"):
        pass
    run_id = store.create(config())  # its folder does not exist yet
    with pytest.raises(StoreError, match="cannot be read now"), reading_weights(store, run_id):
        pass


DROPPER = """
import sys
from core.store import Store
from core.store.budget import keep_within
sys.stdin.readline()
print(keep_within(Store(sys.argv[1]), float(sys.argv[2])))
"""


def test_processes_that_make_room_at_once_drop_no_more_than_one_would(store: Store) -> None:
    runs = [ended(store, at=-10 * age) for age in (4, 3, 2, 1)]
    limit = 4 * WHOLE - 2 * SNAPSHOTS
    workers = [run_program(DROPPER, store.folder, repr(limit / GB)) for _ in range(3)]
    reported = [worker.communicate("go\n", timeout=60)[0] for worker in workers]
    assert reported == ["0\n"] * 3
    assert [names(store, run_id) for run_id in runs] == [NOT_SNAPSHOTS] * 2 + [set(FILES)] * 2


def test_files_left_by_a_process_that_died_after_the_record_go_next_time(store: Store) -> None:
    run_id = ended(store)
    assert store.record_drop(run_id, "weights", 20.0)
    assert keep_within(store, (REST + SNAPSHOTS) / GB) == 0
    assert names(store, run_id) == NOT_WEIGHTS


def test_a_folder_that_cannot_be_written_is_a_plain_message(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    ended(store)

    def refused(_path: Path, missing_ok: bool = False) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "unlink", refused)
    with pytest.raises(StoreError, match=r"No weights could be dropped \(Permission denied\): delete runs"):
        keep_within(store, 10 / GB)


def test_the_budget_is_a_setting(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SCL_DISK_GB", raising=False)
    assert settings().disk_gb == 20
    run_id = ended(store)
    assert keep_within(store) == 0
    monkeypatch.setenv("SCL_DISK_GB", repr(10 / GB))
    excess = keep_within(store)
    assert excess == REST - 10
    assert names(store, run_id) == NOT_WEIGHTS
    monkeypatch.setenv("SCL_DISK_GB", "2")
    assert str(over_budget_sentence(GB)) == (
        "Runs use 3.0 GB, more than SCL_DISK_GB = 2, and no more weights can be dropped: "
        "delete runs, or raise SCL_DISK_GB."
    )
    for value in ("0", "-1", "nan", "inf", "much"):
        monkeypatch.setenv("SCL_DISK_GB", value)
        with pytest.raises(ConfigError, match="SCL_DISK_GB"):
            keep_within(store)
