from __future__ import annotations

import os
from pathlib import Path

import pytest

from core.store import liveness
from core.store.liveness import is_alive, liveness_of


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="read only on Linux")
@pytest.mark.parametrize(("state", "alive"), [("R", True), ("S", True), ("T", True), ("Z", False), ("X", False)])
def test_a_process_is_alive_until_only_its_entry_is_left(
    state: str, alive: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    me, fields = liveness_of(), liveness._stat_fields(os.getpid())
    monkeypatch.setattr(liveness, "_stat_fields", lambda _: [state, *fields[1:]])
    assert is_alive(me, None) is alive
