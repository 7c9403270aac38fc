"""A fragment that runs again after a while, for as long as its page is in sight.

`st.fragment(run_every=…)` goes on in a tab that nobody sees, and at one pace: both take time from training.
"""

from __future__ import annotations

import bisect
import threading
import time
from pathlib import Path

import streamlit as st

# A look takes some 25 ms of one core. All pages together may take a third of one from training.
BETWEEN_LOOKS_S = 1 / 13

_mount = st.components.v2.component(
    "beat",
    html='<span class="beat" hidden></span>',
    js=Path(__file__).with_suffix(".js").read_text(encoding="utf-8"),
    isolate_styles=False,
)


class Turns:
    """When each page that follows something looks: one after the other, so that many do not all look at once."""

    def __init__(self) -> None:
        self._taken: list[float] = []
        self._lock = threading.Lock()

    def next_s(self, after_s: float, now: float) -> float:
        """Seconds until a page's next turn, `after_s` or as much more as others take. Args: now: in seconds."""
        with self._lock:
            self._taken = [at for at in self._taken if at > now - BETWEEN_LOOKS_S]
            turn = now + after_s
            for at in self._taken:
                if abs(at - turn) < BETWEEN_LOOKS_S:
                    turn = at + BETWEEN_LOOKS_S
            bisect.insort(self._taken, turn)
            return turn - now


@st.cache_resource(show_spinner=False)
def _turns() -> Turns:
    return Turns()


def beat(after_s: float, *, key: str) -> None:
    """Have the fragment that calls this run again `after_s` seconds after its answer has reached the browser.

    Later where many pages follow something: a class should not take the machine from the run that it watches.
    """
    after_s = _turns().next_s(after_s, time.monotonic())
    # Another number each time: without a change the browser would not wind its clock up again.
    data = {"after_ms": round(1000 * after_s), "number": time.monotonic_ns() // 1000}
    _mount(key=key, data=data, on_beat_change=lambda: None, height="content")
