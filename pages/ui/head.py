"""The first line of a page: its name, and beside it what the whole page is about."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

APP_NAME = "SCL Playground"


def page_head(title: str) -> DeltaGenerator:
    """Draw the page's `<h1>`; the container that is returned continues that line."""
    head = st.container(horizontal=True, vertical_alignment="center", gap="medium", key="page_head")
    head.title(title, anchor=False, width="content")
    return head


def tab_title(*parts: str) -> None:
    """Name the browser's tab: the most special part first, the app last."""
    st.set_page_config(page_title=" · ".join([*parts, APP_NAME]))
