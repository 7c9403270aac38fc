"""Data: browse tasks, add a file or a Hugging Face data set, and preview the views of a text."""

from __future__ import annotations

import streamlit as st

from core.messages import N_, _
from pages.ui import reads, state
from pages.ui.add_file import add_file
from pages.ui.add_hub import add_hub, running_fetches
from pages.ui.address import Data
from pages.ui.browse import browse
from pages.ui.controls import show_notice
from pages.ui.parts import page_head

VIEWS = {"browse": N_("Browse"), "file": N_("Add a file"), "hub": "Hugging Face Hub"}


def page() -> None:
    reads.open_engine()
    head = page_head(_("Data"))
    view = Data.VIEW.choice(VIEWS, "browse")
    picked = head.segmented_control(
        _("Section"),
        list(VIEWS),
        default=view,
        format_func=lambda one: _(VIEWS[one]),
        label_visibility="collapsed",
        required=True,
        key=f"data.view.{view}",
    )
    if picked != view:
        Data.VIEW.put(picked)
        st.rerun()
    show_notice()
    running_fetches()
    match view:
        case "file":
            add_file()
        case "hub":
            add_hub()
        case _:
            browse(head)


state.require_app()
page()
