"""A store with finished runs, which the tests of a module only read. Other tests use `elsewhere`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from core.config import RunConfig
from core.store import RunRecord, Store
from tests.conftest import module_store as store
from tests.core.artifacts.made import MORE, recorded

__all__ = ["store"]


@pytest.fixture(scope="module")
def run(store: Store, draft: Callable[..., RunConfig]) -> RunRecord:
    return recorded(store, draft(more=MORE))
