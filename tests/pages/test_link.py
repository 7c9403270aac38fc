"""The version of a link: read, said where it is a later one, and taken out of the address."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.errors import ConfigError
from core.settings import settings
from pages.ui.header import VERSION

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def opened(folder: Path) -> Callable[[str], AppTest]:
    def open_with(version: str) -> AppTest:
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        app.query_params["v"] = version
        app.query_params["replay"] = "ce"
        return app.run()

    return open_with


def test_this_version_leaves_the_address(opened: Callable[[str], AppTest]) -> None:
    app = opened(str(VERSION))
    assert not app.warning
    assert (app.query_params.get("v"), app.query_params.get("replay")) == (None, "ce")


@pytest.mark.parametrize(
    ("version", "problem"), [(str(VERSION + 1), "reads links up to version"), ("0", "from 1 on"), ("<b>", "from 1 on")]
)
def test_another_one_is_said_and_what_is_known_is_shown(
    opened: Callable[[str], AppTest], version: str, problem: str
) -> None:
    app = opened(version)
    (warning,) = app.warning
    assert problem in warning.value
    assert "<b>" not in warning.value
    assert (app.query_params.get("v"), app.query_params.get("replay")) == (None, "ce")


@pytest.mark.parametrize("address", ["http://192.168.1.20:8501", "https://scl.example.org/app/"])
def test_an_address_of_the_server_is_taken(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("SCL_ADDRESS", address)
    assert settings().address == address


@pytest.mark.parametrize(
    "address", ["192.168.1.20:8501", "ftp://host", "http://", "http://a b", "https://host/?x=1", "javascript:alert(1)"]
)
def test_what_is_no_address_is_refused(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("SCL_ADDRESS", address)
    with pytest.raises(ConfigError, match="SCL_ADDRESS"):
        settings()
