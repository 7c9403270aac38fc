"""What a page remembers: the only place that touches session_state and query_params.

What must outlive a refresh is in the URL or in the store; session state holds only what may be lost.
"""

from __future__ import annotations

import runpy
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from core.errors import PlaygroundError, shown
from core.messages import _
from pages.ui.parts import escaped

Value = TypeVar("Value")

APP = Path(__file__).resolve().parents[2] / "app.py"

COMPLAINTS = "complaints"
EVERY_PAGE = "every page"
# Time enough to read a sentence or two.
COMPLAINT_S = 30


def mark_app() -> None:
    """This session went through app.py."""
    st.session_state["app"] = True


def require_app() -> None:
    """Go through app.py, if this page was not called by it.

    A fresh server takes the folder pages/ for Streamlit's older kind of app: until somebody has called `st.navigation`,
    it runs a page that is opened by its address on its own, without theme and navigation.
    """
    if "app" not in st.session_state:
        runpy.run_path(str(APP))
        st.stop()


def text_in_url(name: str) -> str | None:
    """What the URL says under a name, None when it does not have it; the caller checks it."""
    text: str | None = st.query_params.get(name)
    return text


def texts_in_url(name: str) -> list[str]:
    """All that the URL says under a name that may come several times; the caller checks it."""
    return list(st.query_params.get_all(name))


def put_all_in_url(name: str, texts: Sequence[str]) -> None:
    """Have the URL say these under a name, or nothing."""
    if not texts:
        st.query_params.pop(name, None)
    elif st.query_params.get_all(name) != list(texts):
        st.query_params[name] = list(texts)


def put_in_url(**values: str | float | None) -> None:
    """Set or (None) drop parameters of this page's URL."""
    for name, value in values.items():
        if value is None:
            st.query_params.pop(name, None)
        elif st.query_params.get(name) != str(value):
            st.query_params[name] = str(value)


def complain(name: str, text: str, problem: str, *, everywhere: bool = False) -> None:
    """Say on the page what the URL has wrong under a name.

    Args:
        problem: ours, or escaped; translated here where it is only marked.
        everywhere: whether every page has such a name, and none of them says it again by itself.
    """
    # Translators: {problem} is a clause, such as "no run has that id".
    sentence = _(
        "The address asks for {name} = {value}, but {problem}; showing the default instead.",
        name=name,
        value=escaped(shown(text)),
        problem=_(problem),
    )
    _say(name, sentence, EVERY_PAGE if everywhere else _page())


def complain_of_error(name: str, text: str, error: PlaygroundError) -> None:
    """Say on the page what the URL has under a name that cannot be used, and that it is left out."""
    sentence = _(
        "The address asks for {name} = {value}, which is left out: {error}",
        name=name,
        value=escaped(shown(text)),
        error=escaped(str(error)),
    )
    _say(name, sentence, _page())


def _say(name: str, sentence: str, page: str) -> None:
    remembered(COMPLAINTS, dict[str, tuple[str, str, float]])[name] = (sentence, page, time.monotonic())
    st.warning(sentence)


def repeat_complaints(only: str = "", but: str = "", *, everywhere: bool = False) -> None:
    """Say again what the address had wrong a moment ago: a page that draws itself again would take it away unread.

    Args:
        only: of this name alone; otherwise of all names.
        but: not of this name, which is said elsewhere.
        everywhere: of the names that every page has, instead of the page's own.
    """
    here = EVERY_PAGE if everywhere else _page()
    for name, (sentence, page, said_at) in remembered(COMPLAINTS, dict[str, tuple[str, str, float]]).items():
        wanted = name == only if only else name != but
        if wanted and page == here and time.monotonic() - said_at < COMPLAINT_S:
            st.warning(sentence)


def _page() -> str:
    return urlsplit(st.context.url or "").path


def in_session() -> bool:
    """Whether this thread serves a visitor; jobs and timers of the server serve nobody."""
    return get_script_run_ctx(suppress_warning=True) is not None


def remembered(name: str, default: Callable[[], Value]) -> Value:
    """A value of this browser session, made when first asked for."""
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
    """The value of a keyed widget, also of one that is drawn further down; `default` before it was drawn."""
    return st.session_state.get(key, default)


def forget_widget(key: str) -> None:
    """Let a keyed widget be drawn again from its default."""
    st.session_state.pop(key, None)


def form_key(name: str) -> str:
    """The key of a widget of the form; it changes when the form begins again, as a browser keeps what a key showed."""
    revision = remembered("form.revision", int)
    return f"form.{name}.{revision}" if revision else f"form.{name}"


def begin_form() -> None:
    """Have the form's widgets be drawn from their defaults again."""
    remember("form.revision", remembered("form.revision", int) + 1)


def set_widget(key: str, value: Any) -> None:
    """Give a keyed widget a value before it is drawn."""
    st.session_state[key] = value
