"""A store with finished runs, which the tests of a module only read. Other tests use `elsewhere`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from core.config import RunConfig
from core.store import RunRecord, Store
from tests.core.artifacts.made import MORE, recorded


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    opened = Store(tmp_path_factory.mktemp("store") / "runs")
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def run(store: Store, draft: Callable[..., RunConfig]) -> RunRecord:
    return recorded(store, draft(more=MORE))
