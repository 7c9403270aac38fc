"""What a lesson points at on the page, and what it hides there."""

from __future__ import annotations

import re
from pathlib import Path

import streamlit as st

from pages.ui.lesson.place import TABLES, At

# The theme's, which a style outside of a component cannot read.
ACCENT = "light-dark(#2f6f9f, #6cb0de)"
MAP = "map_view"
FOLDER = Path(__file__).parent

_mount = st.components.v2.component(
    "lesson_pointing",
    html="<div></div>",
    css=(FOLDER / "lesson.css").read_text(encoding="utf-8"),
    js=(FOLDER / "pointing.js").read_text(encoding="utf-8"),
    isolate_styles=False,
)


def point(at: At) -> None:
    """Outline what the part speaks of, scroll it into view, and hide what it does without."""
    shown = at.part.shown
    hidden = [selector(shown.page, name) for name in dict.fromkeys((*at.lesson.hides, *shown.hides))]
    target = None if shown.points_at is None else selector(shown.page, shown.points_at)
    rules = [f"{', '.join(hidden)} {{ display: none !important }}"] if hidden else []
    if target is not None:
        rules.append(f"{target} {{ outline: 2px solid {ACCENT}; outline-offset: 6px; border-radius: 4px }}")
    with st.container(key="lesson_pointing"):
        if rules:
            st.html(f"<style>{' '.join(rules)}</style>")
        _mount(key="lesson.pointing", data=[{"target": target, "part": at.text}], height="content")


def selector(page: str, name: str) -> str:
    """The CSS selector of a control, by its name in the page's address, or of an element by its key or the key's start.

    Of the map, whose key is that of its run, the name is `map_view`.
    """
    if name == MAP:
        return ".map-view"
    if name in TABLES[page].items():
        return f'[class*="st-key-bound-{_class(name)}-"]'
    return f'[class*="st-key-{_class(name)}"]'


def _class(name: str) -> str:
    """As Streamlit makes a class of a key."""
    return re.sub(r"[^a-zA-Z0-9_-]", "-", name)
