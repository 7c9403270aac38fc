"""Fixtures and helpers of the page tests."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import streamlit
from itsdangerous import URLSafeSerializer
from streamlit.components.v2 import manifest_scanner
from streamlit.runtime.scriptrunner.script_cache import ScriptCache
from streamlit.testing.v1 import AppTest

from core.config import RunConfig
from core.store import Store
from core.store.secret import server_secret
from core.workers import LocalEngine, machine, processes
from pages.ui.visitor import COOKIE, SALT

APP = str(Path(__file__).resolve().parents[2] / "app.py")
KEY = "open sesame, please"
# Types of a function that opens a page, and of one that makes a draft.
Pages = Callable[..., AppTest]
Draft = Callable[..., RunConfig]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a new store. Its engine and jobs start no process, and any run fits in memory."""
    monkeypatch.setenv("SCL_RUNS", str(tmp_path / "runs"))
    monkeypatch.setattr(LocalEngine, "warm_up", lambda _: None)
    monkeypatch.setattr(LocalEngine, "dispatch", lambda _: None)
    monkeypatch.setattr(processes, "spawn", lambda *_: None)
    monkeypatch.setattr(machine, "memory_bytes", lambda: 2**40)
    return tmp_path / "runs"


def page(name: str, **query: str) -> AppTest:
    """Open a page by its name, with these parameters in its address."""
    app = AppTest.from_file(APP, default_timeout=60)
    app.query_params.update(query)
    return checked(app.switch_page(f"pages/{name}.py").run())


@pytest.fixture
def opened(folder: Path) -> Pages:
    """Return `page`, which opens pages over this folder."""
    return page


@pytest.fixture
def shared(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """Return the store of a shared server. Its visitor is ada."""
    monkeypatch.setenv("SCL_SHARED", "1")
    monkeypatch.setenv("SCL_ADMIN_KEY", KEY)
    store = Store(folder)
    monkeypatch.setattr(type(streamlit.context), "cookies", cookie_of("ada", folder))
    yield store
    store.close()


def cookie_of(visitor_id: str, folder: Path) -> dict[str, str]:
    """Return the cookies of a browser that this store's server knows as a visitor."""
    return {COOKIE: str(URLSafeSerializer(server_secret(folder), salt=SALT).dumps(visitor_id))}


def checked(app: AppTest) -> AppTest:
    """Return the app if the run raised no unexpected exception."""
    assert not app.exception
    assert not [error.value for error in app.error if "failed unexpectedly" in error.value]
    return app


@pytest.fixture(autouse=True)
def _no_components_of_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the scan of all installed packages, which takes half of each AppTest's time."""
    monkeypatch.setattr(manifest_scanner, "scan_component_manifests", list)


_compiled = ScriptCache.get_bytecode


@cache
def _bytecode(path: str, _changed_at_ns: int) -> Any:
    return _compiled(ScriptCache(), path)


@pytest.fixture(autouse=True)
def _pages_are_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cache compiled pages as a server does. AppTest compiles them for each run, a tenth of its time."""
    monkeypatch.setattr(ScriptCache, "get_bytecode", lambda _, path: _bytecode(path, os.stat(path).st_mtime_ns))
