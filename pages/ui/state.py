"""State of a page: the only module that accesses session_state and query_params.

State that must survive a refresh is in the URL or in the store; session state holds only expendable values.
"""

from __future__ import annotations

import runpy
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from core.errors import PlaygroundError, quote_value
from core.messages import _
from pages.ui.parts import escaped

Value = TypeVar("Value")

APP = Path(__file__).resolve().parents[2] / "app.py"

COMPLAINTS = "complaints"
EVERY_PAGE = "every page"
# Long enough to read a sentence or two.
COMPLAINT_S = 30


def mark_app() -> None:
    """Record that this session went through app.py."""
    st.session_state["app"] = True


def require_app() -> None:
    """Run app.py if it did not call this page.

    Streamlit treats a folder pages/ as its older kind of multipage app. Until a session has called `st.navigation`, a
    new server runs a page opened by its URL without app.py, so without theme and navigation.
    """
    if "app" not in st.session_state:
        runpy.run_path(str(APP))
        st.stop()


def text_in_url(name: str) -> str | None:
    """Return the text of a URL parameter, None if absent; the caller validates it."""
    text: str | None = st.query_params.get(name)
    return text


def texts_in_url(name: str) -> list[str]:
    """Return all texts of a URL parameter that may repeat; the caller validates them."""
    return list(st.query_params.get_all(name))


def put_in_url(name: str, *texts: str) -> None:
    """Set all texts of a URL parameter; no texts drop it."""
    if not texts:
        st.query_params.pop(name, None)
    elif st.query_params.get_all(name) != list(texts):
        st.query_params[name] = list(texts)


def complain(name: str, text: str, problem: str, *, everywhere: bool = False) -> None:
    """Show on the page why a URL parameter is invalid.

    Args:
        problem: trusted or escaped text; translated here if it is only marked.
        everywhere: whether every page has this parameter; app.py, not the page, then repeats the complaint.
    """
    # Translators: {problem} is a clause, such as "no run has that id".
    sentence = _(
        "The link asks for {name} = {value}, but {problem}. Showing the default instead.",
        name=name,
        value=escaped(quote_value(text)),
        problem=_(problem),
    )
    _say(name, sentence, EVERY_PAGE if everywhere else _page())


def complain_of_error(name: str, text: str, error: PlaygroundError) -> None:
    """Show on the page that a URL parameter is unusable and left out."""
    sentence = _(
        "The link asks for {name} = {value}, which was left out: {error}",
        name=name,
        value=escaped(quote_value(text)),
        error=escaped(str(error)),
    )
    _say(name, sentence, _page())


def _say(name: str, sentence: str, page: str) -> None:
    session_value(COMPLAINTS, dict[str, tuple[str, str, float]])[name] = (sentence, page, time.monotonic())
    st.warning(sentence)


def repeat_complaints(only: str = "", but: str = "", *, everywhere: bool = False) -> None:
    """Show recent complaints about the URL again: a page that reruns itself would remove them unread.

    Args:
        only: parameter whose complaint is repeated; "" repeats those of all parameters.
        but: parameter to skip, as its complaint is shown elsewhere.
        everywhere: repeat complaints about the parameters of every page instead of the page's own.
    """
    here = EVERY_PAGE if everywhere else _page()
    for name, (sentence, page, said_at) in session_value(COMPLAINTS, dict[str, tuple[str, str, float]]).items():
        wanted = name == only if only else name != but
        if wanted and page == here and time.monotonic() - said_at < COMPLAINT_S:
            st.warning(sentence)


def _page() -> str:
    return urlsplit(st.context.url or "").path


def in_session() -> bool:
    """Return whether this thread serves a visitor; jobs and timers of the server do not."""
    return get_script_run_ctx(suppress_warning=True) is not None


def session_value(name: str, default: Callable[[], Value]) -> Value:
    """Return a value of this browser session, created on first use."""
    key = f"remembered.{name}"
    if key not in st.session_state:
        st.session_state[key] = default()
    value: Value = st.session_state[key]
    return value


def remember(name: str, value: Any) -> None:
    st.session_state[f"remembered.{name}"] = value


def forget(name: str) -> None:
    st.session_state.pop(f"remembered.{name}", None)


def widget_value(key: str, default: Any = None) -> Any:
    """Return the value of a keyed widget, even of one drawn further down; `default` before it was drawn."""
    return st.session_state.get(key, default)


def form_key(name: str) -> str:
    """Return the key of a form widget. It changes when the form restarts, because browsers keep the value of a key."""
    revision = session_value("form.revision", int)
    return f"form.{name}.{revision}" if revision else f"form.{name}"


def begin_form() -> None:
    """Restart the form, with all widgets at their defaults."""
    remember("form.revision", session_value("form.revision", int) + 1)


def set_widget(key: str, value: Any) -> None:
    """Give a keyed widget a value before it is drawn."""
    st.session_state[key] = value
