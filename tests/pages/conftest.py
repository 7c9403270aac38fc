"""What the tests of pages share."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from streamlit.components.v2 import manifest_scanner
from streamlit.runtime.scriptrunner.script_cache import ScriptCache

from core.workers import Jobs, LocalEngine, machine


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store of its own, an engine and jobs that start no process, and memory enough for any run."""
    monkeypatch.setenv("SCL_RUNS", str(tmp_path / "runs"))
    monkeypatch.setattr(LocalEngine, "warm_up", lambda _: None)
    monkeypatch.setattr(LocalEngine, "dispatch", lambda _: None)
    monkeypatch.setattr(Jobs, "_spawn", lambda *_: None)
    monkeypatch.setattr(machine, "memory_bytes", lambda: 2**40)
    return tmp_path / "runs"


@pytest.fixture(autouse=True)
def _no_components_of_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of each AppTest's time otherwise: it reads what every installed package says of itself."""
    monkeypatch.setattr(manifest_scanner, "scan_component_manifests", list)


_compiled = ScriptCache.get_bytecode


@cache
def _bytecode(path: str, _changed_at_ns: int) -> Any:
    return _compiled(ScriptCache(), path)


@pytest.fixture(autouse=True)
def _pages_are_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server does so; AppTest compiles them anew at each run, a tenth of its time."""
    monkeypatch.setattr(ScriptCache, "get_bytecode", lambda _, path: _bytecode(path, os.stat(path).st_mtime_ns))
