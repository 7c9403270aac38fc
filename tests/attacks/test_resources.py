"""A starved machine: little memory, few file handles, a full disk, a worker that hangs, a store that vanishes."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner
from streamlit.runtime.session_manager import SessionInfo

from core.advice.prepare import prepare
from core.cli.main import cli
from core.errors import DiskFullError, StoreError
from core.store import Status, Store
from core.store import liveness as live
from core.store.database import RESERVE, Database
from core.store.liveness import liveness_of, to_json
from core.workers import LocalEngine
from core.workers.failures import end_with_error
from core.workers.processes import ROOT
from pages.ui.serving import LeftSessions
from tests.core.store.claims import claimed
from tests.pages.conftest import Draft, page
from tests.pages.test_pages import words

HOUR_S = 3600.0


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """Yield a process that only sleeps and leads its session, as workers do."""
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as process:
        yield process
        process.kill()


@pytest.fixture
def running(store: Store, draft: Draft) -> str:
    """Return a run of batches of 8 that this process executes."""
    config, _ = prepare(draft(batch_size=8), gpu=False)
    run_id = claimed(store, config).run_id
    store.write("UPDATE work SET status = 'running' WHERE id = ?", (run_id,))
    return run_id


def give_to(store: Store, run_id: str, pid: int, silent_s: float = 0.0) -> None:
    """Let a process be the worker of a run."""
    store.write(
        "UPDATE work SET worker = ?, heartbeat_at = ? WHERE id = ?",
        (to_json(liveness_of(pid)), time.time() - silent_s, run_id),
    )


class TestMemory:
    @pytest.mark.parametrize(("after", "status"), [(4, Status.QUEUED), (3, Status.INTERRUPTED)])
    def test_a_worker_killed_by_the_kernel_is_retried_with_half(
        self,
        after: int,
        status: Status,
        store: Store,
        running: str,
        child: subprocess.Popen[bytes],
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """3 processes were killed before the run began; after the worker's death there are 3 or 4."""
        counter = tmp_path / "memory.events"
        monkeypatch.setattr(live, "OOM_COUNTERS", (counter,))
        counter.write_text("low 0\noom 9\noom_kill 3\n")
        store.attempt(running, 1).register()
        give_to(store, running, child.pid)
        child.kill()
        child.wait()
        counter.write_text(f"low 0\noom 9\noom_kill {after}\n")
        LocalEngine(store, slots=range(0), forks=False).dispatch()
        run = store.run(running)
        assert run.status == status
        assert run.config.phases[0].micro_batch == (4 if status == Status.QUEUED else None)


class TestSilence:
    def test_stop_ends_a_worker_that_does_not_respond(
        self, store: Store, running: str, child: subprocess.Popen[bytes]
    ) -> None:
        os.kill(child.pid, signal.SIGSTOP)
        give_to(store, running, child.pid, silent_s=20.0)
        assert store.run(running).responding
        give_to(store, running, child.pid, silent_s=31.0)
        assert not store.run(running).responding
        LocalEngine(store, slots=range(0), forks=False).stop(running)
        assert child.wait(timeout=10) == -signal.SIGKILL
        run = store.run(running)
        assert (run.status, run.responding) == (Status.STOPPED, True)
        assert "did not respond" in str(run.message)

    def test_its_page_says_so_and_lets_it_be_stopped_again(
        self, folder: Path, store: Store, running: str, child: subprocess.Popen[bytes]
    ) -> None:
        store.write("UPDATE work SET status = 'stopping' WHERE id = ?", (running,))
        give_to(store, running, child.pid, silent_s=40.0)
        drawn = page("fine_tune", run=running)
        assert "The worker does not respond" in words(drawn)
        next(button for button in drawn.button if button.label == "Stop").click().run()
        assert child.wait(timeout=10) == -signal.SIGKILL


class TestHandles:
    def run(self, script: str, *arguments: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", script, *arguments], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.strip()

    def test_a_low_soft_limit_is_raised(self) -> None:
        script = (
            "import resource as r\nfrom core.workers.processes import raise_handle_limit\n"
            "r.setrlimit(r.RLIMIT_NOFILE, (256, 1024))\nraise_handle_limit()\nprint(r.getrlimit(r.RLIMIT_NOFILE))"
        )
        assert self.run(script) == "(1024, 1024)"

    def test_a_process_without_handles_names_the_cause(self, store: Store) -> None:
        script = (
            "import resource as r, sys\nfrom core.store import Store\nfrom core.errors import StoreError\n"
            "store = Store(sys.argv[1])\nstore.close()\nr.setrlimit(r.RLIMIT_NOFILE, (64, 64))\nheld = []\n"
            "try:\n    while True: held.append(open('/dev/null'))\nexcept OSError: pass\n"
            "try: store.runs()\nexcept StoreError as error: text = str(error)\nheld.clear()\nprint(text)"
        )
        assert "too many open files" in self.run(script, str(store.folder))

    def test_a_session_is_shut_down_when_it_is_forgotten(self) -> None:
        """The cache has room for two of three sessions, which expire after two minutes."""
        now, ended = [0.0], []
        cache = LeftSessions(maxsize=2, ttl=120.0, timer=lambda: now[0])
        for name in ("first", "second", "third"):
            session: Any = SimpleNamespace(id=name, shutdown=partial(ended.append, name))
            cache[name] = SessionInfo(client=None, session=session)
        assert ended == ["first"]
        del cache["second"]  # its visitor has returned
        now[0] = 121.0
        assert len(cache) == 0
        assert ended == ["first", "third"]


def fill_disk(store: Store, patch: pytest.MonkeyPatch) -> None:
    """Let the store refuse every change until its reserve is deleted, as on a full disk."""
    store.keep_reserve()
    assert (store.folder / RESERVE).stat().st_size == 2**20
    plain = Database.transaction

    @contextmanager
    def transaction(database: Database) -> Iterator[Any]:
        if (database.folder / RESERVE).exists():
            raise DiskFullError("The disk is full.")
        with plain(database) as db:
            yield db

    patch.setattr(Database, "transaction", transaction)
    patch.setattr(Database, "nearly_full", lambda _: True)


class TestDisk:
    def test_a_run_can_be_deleted_on_a_full_disk_and_its_files_go_at_once(self, store: Store, running: str) -> None:
        folder = store.run_folder(running)
        folder.mkdir(parents=True)
        (folder / "frame-0000000.safetensors").write_bytes(b"0" * 100)
        store.attempt(running, 1).end(Status.FAILED)
        with pytest.MonkeyPatch.context() as patch:
            fill_disk(store, patch)
            assert not store.discard(running)
        assert not folder.exists()
        assert store.runs() == store.discarded() == []

    @pytest.mark.parametrize(
        "error", [OSError(errno.ENOSPC, "No space left on device"), RuntimeError("I/O error: No space left on device")]
    )
    def test_a_run_that_fails_for_lack_of_space_names_the_cause(
        self, error: Exception, store: Store, running: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        fill_disk(store, monkeypatch)
        end_with_error(store, store.attempt(running, 1), error)
        run = store.run(running)
        assert run.status == Status.FAILED
        assert str(run.message) == "The disk is full: free some space or delete runs, then resume this run."

    def test_files_that_belong_to_no_run_are_found_and_deleted(self, folder: Path, store: Store, running: str) -> None:
        own, orphan, recent = (folder / "files" / name for name in (running, "abcdefabcdef", "fedcbafedcba"))
        for of_run in (own, orphan, recent):
            of_run.mkdir(parents=True)
            (of_run / "frame-0000000.safetensors").write_bytes(b"0" * 2**20)
        for of_run in (own, orphan):
            os.utime(of_run, (time.time() - 2 * HOUR_S,) * 2)
        assert list(store.orphans()) == [orphan.name]
        drawn = page("runs")
        assert "1 folder of files belongs to no run (1.0 MB)." in words(drawn)
        assert r"including 1\.0 MB of deleted runs" in words(drawn)  # the recent folder, not the orphan
        next(button for button in drawn.button if button.label == "Delete these files").click().run()
        assert not orphan.exists()
        assert own.exists()
        assert recent.exists()

    def test_the_command_line_deletes_runs(self, store: Store, running: str) -> None:
        def call(*arguments: str) -> Any:
            return CliRunner().invoke(cli, ["delete", *arguments, "--runs", str(store.folder)])

        assert "stop it before deleting it" in str(call("1").exception)
        store.attempt(running, 1).end(Status.FAILED)
        assert f"Deleted Run 1 ({running})." in call("1").output
        assert [run.id for run in store.discarded()] == [running]
        assert "There is no run" in str(call("1").exception)
        assert "or --orphans" in call().output


class TestVanishingStore:
    def test_a_moved_store_is_noticed_not_made_again_and_found_when_it_is_back(
        self, store: Store, running: str, tmp_path: Path
    ) -> None:
        away = tmp_path / "away"
        store.folder.rename(away)
        with ThreadPoolExecutor(1) as new_thread:  # it has no connection yet
            for read in (store.runs, new_thread.submit(store.runs).result):
                with pytest.raises(StoreError, match="moved, deleted or replaced"):
                    read()
        assert not store.folder.exists()
        away.rename(store.folder)
        assert [run.id for run in store.runs()] == [running]

    def test_files_without_their_database_are_not_taken_for_a_new_store(self, store: Store, running: str) -> None:
        store.run_folder(running).mkdir(parents=True)
        store.close()
        for path in store.folder.glob("runs.sqlite3*"):
            path.unlink()
        with pytest.raises(StoreError, match="missing: restore it from a backup"):
            Store(store.folder)
        shutil.rmtree(store.folder / "files")
        Store(store.folder).close()
