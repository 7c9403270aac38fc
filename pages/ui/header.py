"""Controls at the top of every page: the language switch and *Copy link*."""

from __future__ import annotations

import streamlit as st

from core.figures.map_script import NODES, WORDS
from core.messages import ENGLISH, LANGUAGES, _, ask_for_language, script_messages
from core.settings import settings
from pages.ui import state
from pages.ui.address import EveryPage, positive_number
from pages.ui.parts import UI, component

SPOKEN = "language"

_switch = component("language", '<div class="language"></div>', [*NODES, UI / "language.js"], [UI / "header.css"])


def speak() -> None:
    """Set the visitor's language before any text is drawn, and update the address to match."""
    ask_for_language(_spoken)
    # The browser's language if there is a catalogue for it, English otherwise. zh-CN and zh-TW count as zh.
    code, asked = (st.context.locale or "").split("-")[0].casefold(), EveryPage.LANGUAGE.text
    own = code if code in LANGUAGES else ENGLISH
    known = asked if asked in LANGUAGES else None
    # Navigation drops the address of the previous page; the session keeps the language.
    state.remember(SPOKEN, known or state.session_value(SPOKEN, str) or own)
    if asked is None or known:
        EveryPage.LANGUAGE.put(_spoken(), own)


def language_switch() -> None:
    """Draw the language switch; complain if the address asks for an unknown language."""
    EveryPage.LANGUAGE.read(LANGUAGES.get, ENGLISH)
    with st.container(key="language_switch"):
        given = {
            "name": EveryPage.LANGUAGE.name,
            "languages": dict(LANGUAGES),
            "spoken": _spoken(),
            "label": _("Language"),
        }
        _switch(key="language", data=[given])


def _spoken() -> str:
    return (state.session_value(SPOKEN, str) if state.in_session() else "") or ENGLISH


# Version of links. A link of a later version may have parameters that this one does not know.
VERSION = 1

# The style of the language switch, which every page draws too, includes that of this button.
_button = component("copy_link", '<div class="copy-link"></div>', [*WORDS, *NODES, UI / "link.js"])


def copy_link() -> None:
    """Draw the button that copies a link to the current view, under the address that other users reach."""
    with st.container(key="copy_link"):
        link = {"address": settings().address, "name": EveryPage.VERSION.name, "version": VERSION}
        words = {"words": script_messages("pages/ui/link.js")}
        _button(key="link", data=[link | words])


def read_link_version() -> None:
    """Read the version of the link and remove it from the address; complain about a later version."""
    item = EveryPage.VERSION
    version = item.read(positive_number, VERSION)
    if version > VERSION:
        problem = _("this app reads links up to version {version}; newer settings are left out", version=VERSION)
        state.complain(item.name, str(version), problem, everywhere=True)
    item.forget()
