"""A shared server, and its pages as a visitor sees them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import streamlit
from streamlit.testing.v1 import AppTest

from core.config import RunConfig
from core.store import Store
from core.workers import Jobs, LocalEngine
from tests.pages.conftest import cookie_of

ROOT = Path(__file__).resolve().parents[2]
KEY = "open sesame, please"
Draft = Callable[..., RunConfig]


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """Return the store of a shared server that starts no process. Its visitor is ada."""
    monkeypatch.setenv("SCL_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("SCL_SHARED", "1")
    monkeypatch.setenv("SCL_ADMIN_KEY", KEY)
    monkeypatch.setattr(LocalEngine, "warm_up", lambda _: None)
    monkeypatch.setattr(LocalEngine, "dispatch", lambda _: None)
    monkeypatch.setattr(Jobs, "_spawn", lambda *_: None)
    store = Store(tmp_path / "runs")
    monkeypatch.setattr(type(streamlit.context), "cookies", cookie_of("ada", store.folder))
    yield store
    store.close()


def page(name: str, **query: str) -> AppTest:
    drawn = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    drawn.query_params.update(query)
    drawn.run()
    return drawn.switch_page(f"pages/{name}.py").run()
