"""A stop ends the wait of a paused run, in either order of arrival."""

from __future__ import annotations

import threading

import pytest

from core.workers.run_controls import ControlState


@pytest.mark.parametrize("order", ["pause first", "stop first"])
def test_a_stop_wakes_a_paused_run(order: str) -> None:
    asked = ControlState()
    kinds = ("pause", "stop") if order == "pause first" else ("stop", "pause")
    for kind in kinds:
        asked.apply(kind, None, None)
    waiting = threading.Thread(target=asked.wait_while_paused, daemon=True)
    waiting.start()
    waiting.join(timeout=5)
    assert not waiting.is_alive()
    assert asked.stop_requested()


def test_a_paused_run_waits_until_it_goes_on() -> None:
    asked = ControlState()
    asked.apply("pause", None, None)
    waiting = threading.Thread(target=asked.wait_while_paused, daemon=True)
    waiting.start()
    waiting.join(timeout=0.2)
    assert waiting.is_alive()
    asked.apply("resume", None, None)
    waiting.join(timeout=5)
    assert not waiting.is_alive()
