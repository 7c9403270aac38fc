"""The command line, called in this process."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from core.cli.main import main


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Any:
    """Call the command line in this process; returns status, standard output and standard error."""
    monkeypatch.setenv("SCL_RUNS", str(tmp_path / "runs"))

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["core", *words])
        try:
            status = main()
        except SystemExit as error:
            status = int(error.code or 0)
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call
