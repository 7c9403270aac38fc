"""Fixtures with job kinds that exist only in these tests, and a cluster. No process outlives its test."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from core.store import Store
from core.store.work import RUNS
from core.workers import Jobs, jobs, processes
from core.workers import job_kinds as kinds
from tests.core.workers.watching import processes_on
from tests.ray_cluster import DemoCluster

PROGRAM = Path(__file__).with_name("program.py")
OWN = ("count", "wait", "turn", "keep", "hub", "translate")
WARM = {"look": "one", "step": "one", "sleep": "one", "fail": "one", "trip": "one", "die": "one", "look_too": "two"}


@pytest.fixture
def store_folder(tmp_path: Path) -> Path:
    return tmp_path / "runs"


@pytest.fixture
def own_jobs(store_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Jobs]:
    """Yield jobs of the kinds in PROGRAM. Processes left at the end of a test are killed."""
    with jobs_of_program(store_folder, monkeypatch) as found:
        yield found


@pytest.fixture(scope="class")
def shared_jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jobs]:
    """Yield jobs for the tests of a class, which reuse the warm processes of earlier ones."""
    with (
        pytest.MonkeyPatch.context() as patch,
        jobs_of_program(tmp_path_factory.mktemp("shared") / "runs", patch) as found,
    ):
        yield found


@contextlib.contextmanager
def jobs_of_program(store_folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Jobs]:
    patch.setattr(kinds, "KINDS", dict.fromkeys([*OWN, *WARM], "nowhere:nothing"))
    patch.setattr(kinds, "WARM", WARM)
    patch.setattr(kinds, "SERVERS", {RUNS: kinds.SERVERS[RUNS]})
    patch.setenv("PYTHONPATH", str(processes.ROOT))
    patch.setattr(jobs, "COMMAND", (sys.executable, str(PROGRAM)))
    yield Jobs(store_folder)
    # A process may have started the next one just before it was killed.
    while left := processes_on(store_folder):
        for process in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                for one in [*process.children(recursive=True), process]:
                    one.kill()
        psutil.wait_procs(left, timeout=5)


@pytest.fixture(scope="module")
def ray_nodes() -> Iterator[DemoCluster]:
    """Yield a cluster whose head, the app's machine, provides no cores, and whose other node provides one."""
    with DemoCluster(0, 1) as nodes:
        yield nodes


@pytest.fixture(scope="module")
def ray_store(tmp_path_factory: pytest.TempPathFactory, ray_nodes: DemoCluster) -> Iterator[Store]:
    store = Store(tmp_path_factory.mktemp("ray") / "runs")
    yield store
    end_warm_process(store, kinds.CLUSTER)


def end_warm_process(store: Store, line: str) -> None:
    process = store.warm_process(line)
    if process is not None and process.alive:
        os.kill(process.worker.pid, signal.SIGKILL)
