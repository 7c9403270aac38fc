"""Jobs of kinds for these tests alone, and no process left when a test ends."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from core.workers import Jobs, processes
from core.workers import job_kinds as kinds
from tests.core.workers.watching import processes_on

PROGRAM = Path(__file__).with_name("program.py")
OWN = ("count", "wait", "turn", "keep", "refuse", "stumble", "vanish", "nice", "hub", "translate")
WARM = {"look": "one", "step": "one", "sleep": "one", "fail": "one", "trip": "one", "die": "one", "look_too": "two"}
WARM["fork"] = "three"


@pytest.fixture
def store_folder(tmp_path: Path) -> Path:
    return tmp_path / "runs"


@pytest.fixture
def own_jobs(store_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Jobs]:
    """Jobs of the kinds in PROGRAM; whatever still runs at the end of a test is ended."""
    monkeypatch.setattr(kinds, "KINDS", dict.fromkeys([*OWN, *WARM], "nowhere:nothing"))
    monkeypatch.setattr(kinds, "WARM", WARM)
    monkeypatch.setattr(kinds, "SERVERS", {})
    monkeypatch.setattr(kinds, "FORKING", frozenset({"three"}))
    monkeypatch.setenv("PYTHONPATH", str(processes.ROOT))
    yield Jobs(store_folder, command=(sys.executable, str(PROGRAM)))
    # A process that is ended may just have started the next one.
    while left := processes_on(store_folder):
        for process in left:
            for one in [*children_of(process), process]:
                end(one)
        psutil.wait_procs(left, timeout=5)


def children_of(process: psutil.Process) -> list[psutil.Process]:
    try:
        return list(process.children(recursive=True))
    except psutil.NoSuchProcess:
        return []


def end(process: psutil.Process) -> None:
    try:
        process.kill()
    except psutil.NoSuchProcess:
        return
