"""The version has one value, in the package and in its builds."""

from __future__ import annotations

import tomllib
from pathlib import Path

from core import __version__

ROOT = Path(__file__).resolve().parents[2]


def test_the_package_has_the_version_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == __version__
