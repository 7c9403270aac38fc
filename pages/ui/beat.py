"""A fragment that runs again after a while, for as long as its page is in sight.

`st.fragment(run_every=…)` goes on in a tab that nobody sees, and at one pace: both take time from training.
"""

from __future__ import annotations

import time
from pathlib import Path

import streamlit as st

_mount = st.components.v2.component(
    "beat",
    html='<span class="beat" hidden></span>',
    js=Path(__file__).with_suffix(".js").read_text(encoding="utf-8"),
    isolate_styles=False,
)


def beat(after_s: float, *, key: str) -> None:
    """Have the fragment that calls this run again `after_s` seconds after its answer has reached the browser."""
    # Another number each time: without a change the browser would not wind its clock up again.
    data = {"after_ms": round(1000 * after_s), "number": time.monotonic_ns() // 1000}
    _mount(key=key, data=data, on_beat_change=lambda: None, height="content")
