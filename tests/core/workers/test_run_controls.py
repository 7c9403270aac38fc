from __future__ import annotations

import threading

from core.workers.run_controls import ControlState


def test_a_pause_after_a_stop_does_not_hold_a_run() -> None:
    """The contract of engines covers the other order: a stop ends the wait of a paused run."""
    asked = ControlState()
    for kind in ("stop", "pause"):
        asked.apply(kind, None, None)
    waiting = threading.Thread(target=asked.wait_while_paused, daemon=True)
    waiting.start()
    waiting.join(timeout=5)
    assert not waiting.is_alive()
    assert asked.stop_requested()
