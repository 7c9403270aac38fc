"""SCL Playground: watch a text encoder learn. Page list, page config and error boundary."""

from __future__ import annotations

import logging
from pathlib import Path

import streamlit as st

from core.errors import PlaygroundError
from core.messages import N_, _
from pages.ui import state
from pages.ui.address import EveryPage
from pages.ui.header import copy_link, language_switch, read_link_version, speak
from pages.ui.lesson.panel import lesson_panel
from pages.ui.lesson.position import read_place
from pages.ui.parts import APP_NAME, escaped, tab_title
from pages.ui.serving import bound_uploads, check_host, end_forgotten_sessions, mend_reruns
from pages.ui.visitor import recognise_browser

st.set_page_config(page_title=APP_NAME, page_icon="assets/icon.svg", layout="wide")

STYLE = Path(__file__).parent / "assets" / "style.css"

# In groups, which assets/style.css sets apart: start, train, look, study, and the data.
PAGES = (
    ("home", N_("Home")),
    ("fine_tune", N_("Fine-tune")),
    ("runs", N_("Runs")),
    ("explore", N_("Explore")),
    ("tokens", N_("Tokens")),
    ("compare", N_("Compare")),
    ("experiments", N_("Experiments")),
    ("loss_lab", N_("Loss lab")),
    ("lessons", N_("Lessons")),
    ("data", N_("Data")),
)
HOME, LESSONS = "home", "lessons"


def main() -> None:
    speak()
    pages = [st.Page(f"pages/{name}.py", title=_(title), default=name == HOME) for name, title in PAGES]
    page = st.navigation(pages, position="top")
    tab_title(*([] if page == pages[0] else [page.title]))
    st.logo("assets/icon.svg", size="medium")
    st.html(STYLE)
    state.mark_app()
    try:
        check_host()
        bound_uploads()
        mend_reruns()
        end_forgotten_sessions()
        recognise_browser()
        copy_link()
        state.repeat_complaints(everywhere=True)
        language_switch()
        read_link_version()
        if page.url_path != LESSONS:
            lesson_panel(page.url_path)
        else:
            EveryPage.LESSON.read(read_place, None)  # this page has no panel, but reports an invalid name
        page.run()
    except PlaygroundError as error:
        st.error(escaped(str(error)))
    except Exception:
        logging.getLogger("scl_playground").exception("page %s failed", page.url_path or HOME)
        st.error(_("This page failed unexpectedly; the server's log has the details. Reload to try again."))


main()
