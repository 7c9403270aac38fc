"""Lessons: a list of short lessons that run beside the real pages, and the glossary."""

from __future__ import annotations

from contextlib import suppress

import streamlit as st

from core.errors import PlaygroundError
from core.lessons.lesson import Lesson, lessons
from core.messages import _, ngettext, pgettext
from pages.ui import state
from pages.ui.address import Lessons
from pages.ui.lesson.panel import checks_of, right_checks
from pages.ui.lesson.position import (
    LessonPosition,
    answers,
    cancel_navigation,
    forget_button,
    go_to,
    keep_answers,
    kept,
    open_beside,
    read_place,
)
from pages.ui.parts import UI, component, escaped, glossary, in_columns, page_head

_mount = component("lesson_opening", "<div></div>", [UI / "lesson" / "opening.js"])


def page() -> None:
    state.repeat_complaints()
    at = Lessons.OPEN.read(read_place, None)
    if at is not None:
        with st.container(height=240, border=False, vertical_alignment="center", horizontal_alignment="center"):
            st.caption(_("Opening “{title}” …", title=at.lesson.title))
        # The page changes once the browser shows the announcement. Until then, the browser still holds the controls of
        # the previous page; new controls would start from their values.
        said = _mount(key="lessons.opening", data=[at.text], on_shown_change=lambda: None)
        if said.shown == at.text:
            try:
                open_beside(at)
            except PlaygroundError as error:
                cancel_navigation()
                Lessons.OPEN.forget()
                st.error(escaped(str(error)))
        return
    head = page_head(_("Lessons"))
    head.caption(
        _("Each lesson takes a few minutes and opens beside the page that it uses. Predict first, then check."),
        width="content",
    )
    keep_answers()
    # Offer to continue the lesson that the visitor left unfinished.
    left = read_place(kept().last)
    if left is not None and not left.is_last:
        label = _(
            "Continue “{title}”, part {part} of {parts}",
            title=left.lesson.title,
            part=left.number,
            parts=len(left.lesson.parts),
        )
        icon = ":material/play_arrow:"
        st.button(label, type="primary", icon=icon, key="lessons.go_on", on_click=_begin, args=(left,))
    for card, lesson in in_columns(lessons().values()):
        with card:
            _card(lesson, left)
    forget_button()
    st.header(pgettext("terms", "Glossary"), anchor=False)
    st.caption(_("Click a question mark anywhere in the app to open its card."))
    glossary()


def _card(lesson: Lesson, left: LessonPosition | None) -> None:
    """Draw the card of a lesson. Args: left: the part at which the visitor left the last lesson."""
    keys, right = checks_of(lesson).keys(), None
    # Read the lesson's runs only if the visitor answered a check. The runs may be unreadable.
    with suppress(PlaygroundError):
        right = len(right_checks(lesson)) if keys & answers().checked.keys() else None
    tick = " :material/check_circle:" if right == len(keys) else ""
    st.markdown(f"**{lesson.title}**{tick}  \n{lesson.about}")
    facts = [
        ngettext("{count} part", "{count} parts", len(lesson.parts)),
        ngettext("about {count} minute", "about {count} minutes", lesson.minutes),
    ]
    if right is not None:
        checks = ngettext("{done} of {count} check right", "{done} of {count} checks right", len(keys), done=right)
        facts.append(checks)
    st.caption(" · ".join(facts))
    at, label = LessonPosition(lesson, 1), _("Begin")
    if left is not None and not left.is_last and left.lesson.name == lesson.name:
        at, label = left, _("Continue: part {part} of {parts}", part=left.number, parts=len(lesson.parts))
    st.button(label, key=f"lessons.{lesson.name}", on_click=_begin, args=(at,))


def _begin(at: LessonPosition) -> None:
    Lessons.OPEN.put(at.text)
    go_to(at)


state.require_app()
page()
