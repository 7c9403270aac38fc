"""The link to what is shown, ready to be sent: on every page, at the same place."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from core.figures.map_script import script_words
from core.messages import _, script_messages
from core.settings import settings
from pages.ui import state
from pages.ui.address import EveryPage

# What links are written in. A link of a later version may say things that this one does not know.
VERSION = 1
FOLDER = Path(__file__).parent

_mount = st.components.v2.component(
    "copy_link",
    html='<div class="copy-link"></div>',
    css=(FOLDER / "link.css").read_text(encoding="utf-8"),
    js="\n".join([script_words(), (FOLDER / "link.js").read_text(encoding="utf-8")]),
    isolate_styles=False,
)


def copy_link() -> None:
    """Draw the button that copies the address of what is shown, as others reach it."""
    with st.container(key="copy_link"):
        link = {"address": settings().address, "name": EveryPage.VERSION.name, "version": VERSION}
        words = {"words": script_messages("pages/ui/link.js")}
        _mount(key="link", data=[link | words], height="content")


def take_version() -> None:
    """Read the version of the link that led here, and take it out of the address; a later one is said."""
    item = EveryPage.VERSION
    version = item.read(_version, VERSION)
    if version > VERSION:
        problem = _("this app reads links up to version {version}: what it does not know is left out", version=VERSION)
        state.complain(item.name, str(version), problem, everywhere=True)
    item.forget()


def _version(text: str) -> int | None:
    return int(text) if text.isdecimal() and int(text) > 0 else None
