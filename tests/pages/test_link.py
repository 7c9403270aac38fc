"""The version of a link: parsed, mentioned if it is newer, and removed from the address."""

from __future__ import annotations

import pytest

from core.errors import ConfigError
from core.settings import settings
from pages.ui.header import VERSION
from tests.pages.conftest import Pages


def test_this_version_leaves_the_address(opened: Pages) -> None:
    app = opened("home", v=str(VERSION), replay="ce")
    assert not app.warning
    assert (app.query_params.get("v"), app.query_params.get("replay")) == (None, "ce")


@pytest.mark.parametrize(
    ("version", "problem"),
    [(str(VERSION + 1), "reads links up to version"), ("0", "whole numbers from 1"), ("<b>", "whole numbers from 1")],
)
def test_another_one_is_said_and_what_is_known_is_shown(opened: Pages, version: str, problem: str) -> None:
    app = opened("home", v=version, replay="ce")
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
