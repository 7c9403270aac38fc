"""SCL Playground: watch a text encoder learn. Page list, page config and error boundary."""

from __future__ import annotations

import logging
from pathlib import Path

import streamlit as st

from core.errors import PlaygroundError
from pages.ui import state
from pages.ui.head import APP_NAME, tab_title
from pages.ui.lesson.panel import lesson_panel
from pages.ui.link import copy_link, take_version
from pages.ui.parts import escaped
from pages.ui.visitor import greet

st.set_page_config(page_title=APP_NAME, page_icon="assets/icon.svg", layout="wide")

STYLE = Path(__file__).parent / "assets" / "style.css"

PAGES = [
    st.Page("pages/home.py", title="Home", default=True),
    st.Page("pages/fine_tune.py", title="Fine-tune"),
    st.Page("pages/runs.py", title="Runs"),
    st.Page("pages/explore.py", title="Explore"),
    st.Page("pages/tokens.py", title="Tokens"),
    st.Page("pages/compare.py", title="Compare"),
    st.Page("pages/experiments.py", title="Experiments"),
    st.Page("pages/data.py", title="Data"),
    st.Page("pages/loss_lab.py", title="Loss lab"),
    st.Page("pages/lessons.py", title="Lessons"),
]


def main() -> None:
    page = st.navigation(PAGES, position="top")
    tab_title(*([] if page.title == "Home" else [page.title]))
    st.logo("assets/icon.svg", size="medium")
    st.html(STYLE)
    state.mark_app()
    try:
        greet()
        copy_link()
        state.repeat_complaints(everywhere=True)
        take_version()
        if page.title != "Lessons":
            lesson_panel(page.url_path)
        page.run()
    except PlaygroundError as error:
        st.error(escaped(str(error)))
    except Exception:
        logging.getLogger("scl_playground").exception("page %s failed", page.title)
        st.error("This page failed unexpectedly; the server's log has the details. Reload to try again.")


main()
