"""An SVG of ours on the page: unlike a picture, it follows the page's theme and can be read aloud."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from core.messages import _

_mount = st.components.v2.component(
    "drawing",
    html='<div class="drawing" role="group" tabindex="0"></div>',
    css=".drawing { color: var(--st-text-color); font-family: var(--st-font); overflow-x: auto; }",
    js=Path(__file__).with_name("drawing.js").read_text(encoding="utf-8"),
    isolate_styles=False,
)


def drawing(svg: str, *, key: str) -> None:
    """Draw an SVG element that was made here, with everything from outside escaped."""
    _mount(key=key, data={"svg": svg, "label": _("Chart")}, height="content")
