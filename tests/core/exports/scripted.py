"""Helpers of the script tests: a Python process without this project, which runs one script after another."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from core.events import LOSS
from core.exports.entry import write_export
from core.exports.registry import EXPORTS
from core.store import RunRecord, Store

# A script promises 1e-4 on machines of one kind. On the same machine it reproduces nearly every rounding; under load,
# it deviated by a few millionths. The encoder learns so little that a wrong optimiser differed by only 1.3e-4.
TOLERANCE = 1e-5
SERVER = """
import contextlib, importlib.util, io, json, runpy, sys, traceback, warnings
assert importlib.util.find_spec("core") is None, "the project can be imported"
warnings.filterwarnings("error")
warnings.filterwarnings("ignore", "supcon_loss without normalisation")
for line in sys.stdin:
    sys.argv = json.loads(line)
    said, problem = io.StringIO(), ""
    with contextlib.redirect_stdout(said):
        try:
            runpy.run_path(sys.argv[0], run_name="__main__")
        except SystemExit as error:
            problem = str(error)
        except BaseException:
            problem = traceback.format_exc()
    print(json.dumps([said.getvalue(), problem]), flush=True)
"""


class Interpreter:
    """A separate process (`python -I`, another folder) that imports torch once for all scripts."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", SERVER], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, script: Path, *arguments: str) -> tuple[str, str]:
        """Run a script. Returns: its output, and the error that ended it, or ""."""
        self._process.stdin.write(json.dumps([str(script), *arguments]) + "\n")
        self._process.stdin.flush()
        said, problem = json.loads(self._process.stdout.readline())
        return said, problem

    def close(self) -> None:
        self._process.communicate(timeout=20)


def written(store: Store, run: RunRecord, folder: Path) -> Path:
    """Export the run's script and lint it."""
    path = folder / "script.py"
    write_export(EXPORTS["script"], store, run.id, path)
    text = path.read_text(encoding="utf-8")
    assert "import core" not in text
    assert "from core" not in text
    check = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "E4,E7,E9,F", str(path)]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return path


def differences(store: Store, run: RunRecord, table: Path) -> dict[str, float]:
    """Return the largest difference of the loss and of each part between a run's steps and a script's table."""
    with table.open(encoding="utf-8", newline="") as file:
        rows = [{name: float(value) for name, value in row.items() if value} for row in csv.DictReader(file)]
    found: dict[str, float] = {}
    steps = store.steps(run.id)
    assert [row["step"] for row in rows] == [step.step for step in steps]
    for row, step in zip(rows, steps, strict=True):
        recorded = {name: value for name, value in step.values.items() if name.split(".")[0] == LOSS}
        own = {name if name == LOSS else f"{LOSS}.{name}": value for name, value in row.items() if name != "step"}
        assert own.keys() == recorded.keys()
        for name, value in own.items():
            found[name] = max(found.get(name, 0.0), abs(value - recorded[name]))
    return found


def repeated(store: Store, run: RunRecord, interpreter: Interpreter, encoder: Path, folder: Path) -> dict[str, float]:
    """Return the `differences` between a run and its script, and check them against TOLERANCE."""
    table = folder / "steps.csv"
    script = written(store, run, folder)
    said, problem = interpreter.run(script, "--encoder", str(encoder), "--output", str(table))
    assert problem == "", problem
    assert said.splitlines()[-1].startswith("largest difference from the run's")
    found = differences(store, run, table)
    assert max(found.values()) <= TOLERANCE, found
    return found


@pytest.fixture(scope="session")
def interpreter(tmp_path_factory: pytest.TempPathFactory) -> Any:
    made = Interpreter(tmp_path_factory.mktemp("elsewhere"))
    yield made
    made.close()
