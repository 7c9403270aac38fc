"""A store that opens each run or experiment of the lessons once. The tests only read them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from core.store import Store


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    opened = Store(tmp_path_factory.mktemp("lessons") / "runs")
    yield opened
    opened.close()
