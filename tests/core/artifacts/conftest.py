"""A store with two finished runs, trained once for all tests here."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from core.store import RunRecord, Store
from tests.core.artifacts.made import MORE, recorded
from tests.core.training.made import Draft, nli_csv


@pytest.fixture(scope="session")
def carried_out(tmp_path_factory: pytest.TempPathFactory, draft: Draft, small_csv: Path) -> Path:
    """Return the store: run 1 is on single texts, run 2 on pairs."""
    folder = tmp_path_factory.mktemp("carried_out")
    with closing(Store(folder / "runs")) as store:
        for path in (small_csv, nli_csv(folder / "pairs.csv")):
            recorded(store, draft(task={"path": str(path)}, optimiser={"learning_rate": 1e-2}, more=MORE))
    return folder / "runs"


@pytest.fixture
def filled(carried_out: Path, tmp_path: Path) -> Iterator[Store]:
    """Return a copy of that store for one test."""
    with closing(Store(shutil.copytree(carried_out, tmp_path / "filled"))) as opened:
        yield opened


@pytest.fixture
def run(filled: Store) -> RunRecord:
    return filled.run(filled.find("1"))


@pytest.fixture
def pair_run(filled: Store) -> RunRecord:
    return filled.run(filled.find("2"))
