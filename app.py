"""SCL Playground: watch a text encoder learn. Page list, page config and error boundary."""

from __future__ import annotations

import logging

import streamlit as st

from core.errors import PlaygroundError

st.set_page_config(page_title="SCL Playground", page_icon="assets/icon.svg", layout="wide")

PAGES = [
    st.Page("pages/home.py", title="Home", url_path="", default=True),
    st.Page("pages/fine_tune.py", title="Fine-tune", url_path="fine-tune"),
    st.Page("pages/runs.py", title="Runs", url_path="runs"),
    st.Page("pages/explore.py", title="Explore", url_path="explore"),
]


def main() -> None:
    page = st.navigation(PAGES, position="top")
    try:
        page.run()
    except PlaygroundError as error:
        st.error(str(error))
    except Exception:
        logging.getLogger("scl_playground").exception("page %s failed", page.title)
        st.error("This page failed unexpectedly; the server's log has the details. Reload to try again.")


main()
