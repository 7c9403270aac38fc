"""A report on the page, with a button that prints it and nothing else."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from core.messages import _

STYLE = """
.report button { font: inherit; padding: 0.4rem 0.8rem; margin-bottom: 0.6rem; cursor: pointer;
  color: var(--st-text-color); background: var(--st-background-color);
  border: 1px solid var(--st-border-color); border-radius: var(--st-button-radius); }
.report button:hover, .report button:focus-visible { border-color: var(--st-primary-color); }
.report iframe { width: 100%; min-height: 30rem; border: 1px solid var(--st-border-color);
  border-radius: var(--st-base-radius); }
"""

_mount = st.components.v2.component(
    "report_frame",
    html='<div class="report"><button type="button"></button>'
    '<iframe sandbox="allow-same-origin allow-modals"></iframe></div>',
    css=STYLE,
    js=Path(__file__).with_name("report_frame.js").read_text(encoding="utf-8"),
    isolate_styles=False,
)


def report_frame(html: str, *, key: str) -> None:
    """Draw a whole HTML page that was made here."""
    _mount(key=key, data={"html": html, "print": _("Print"), "title": _("Report")}, height="content")
