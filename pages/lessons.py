"""Lessons: what there is to learn in a few minutes each, beside the real pages."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from core.errors import PlaygroundError
from core.lessons.lesson import Lesson, lessons
from core.messages import _, ngettext, pgettext
from pages.ui import state
from pages.ui.address import Lessons
from pages.ui.lesson.panel import checks_of, right_checks
from pages.ui.lesson.place import LAST, At, answers, forget_button, go_to, keep_answers, open_beside, read_place, stay
from pages.ui.parts import escaped, glossary, page_head

OPENING = "lessons.opening"
COLUMNS = 3

_mount = st.components.v2.component(
    "lesson_opening",
    html="<div></div>",
    js=(Path(__file__).parent / "ui" / "lesson" / "opening.js").read_text(encoding="utf-8"),
)


def page() -> None:
    state.repeat_complaints()
    at = Lessons.OPEN.read(read_place, None)
    if at is not None:
        _open(at)
        return
    head = page_head(_("Lessons"))
    head.caption(_("Each takes a few minutes, beside the real pages: predict, then see."), width="content")
    keep_answers()
    _go_on()
    every = list(lessons().values())
    for first in range(0, len(every), COLUMNS):
        for place, lesson in zip(st.columns(COLUMNS), every[first : first + COLUMNS], strict=False):
            with place:
                _card(lesson)
    forget_button()
    st.header(pgettext("terms", "Words"), anchor=False)
    st.caption(_("Each opens as a card over its question mark, where the app uses it."))
    glossary()


def _open(at: At) -> None:
    """Say what is being opened, and leave for its page once that is on the screen.

    Until then the controls of the page that was left are there, and would begin with what they hold.
    """
    with st.container(height=240, border=False, vertical_alignment="center", horizontal_alignment="center"):
        st.caption(_("Opening “{title}” …", title=at.lesson.title))
    said = _mount(key=OPENING, data=[at.text], on_shown_change=lambda: None, height="content")
    if said.shown != at.text:
        return
    try:
        open_beside(at)
    except PlaygroundError as error:
        stay()
        Lessons.OPEN.forget()
        st.error(escaped(str(error)))


def _go_on() -> None:
    """Back to the lesson that somebody left in the middle."""
    at = _left()
    if at is None:
        return
    label = _(
        "Continue “{title}”, part {part} of {parts}",
        title=at.lesson.title,
        part=at.number,
        parts=len(at.lesson.parts),
    )
    st.button(label, type="primary", icon=":material/play_arrow:", key="lessons.go_on", on_click=_begin, args=(at,))


def _left() -> At | None:
    """The part at which somebody left the last lesson; None where they were at its end."""
    at = read_place(state.remembered(LAST, str))
    return None if at is None or at.is_last else at


def _card(lesson: Lesson) -> None:
    with st.container(border=True, height="stretch"):
        done, checks = _done(lesson)
        tick = " :material/check_circle:" if done == checks else ""
        st.markdown(f"**{lesson.title}**{tick}  \n{lesson.about}")
        facts = [
            ngettext("{count} part", "{count} parts", len(lesson.parts)),
            ngettext("about {count} minute", "about {count} minutes", lesson.minutes),
        ]
        if done is not None:
            facts.append(ngettext("{done} of {count} check right", "{done} of {count} checks right", checks, done=done))
        st.caption(" · ".join(facts))
        at, label = At(lesson, 1), _("Begin")
        left = _left()
        if left is not None and left.lesson.name == lesson.name:
            at, label = left, _("Continue: part {part} of {parts}", part=left.number, parts=len(lesson.parts))
        st.button(label, key=f"lessons.{lesson.name}", on_click=_begin, args=(at,))


def _done(lesson: Lesson) -> tuple[int | None, int]:
    """How many of its checks were answered rightly, and how many there are.

    The first is None where none was answered, so that no number of its runs is read, or where these cannot be read.
    """
    keys = checks_of(lesson).keys()
    if not keys & answers().checked.keys():
        return None, len(keys)
    try:
        return len(right_checks(lesson)), len(keys)
    except PlaygroundError:
        return None, len(keys)


def _begin(at: At) -> None:
    Lessons.OPEN.put(at.text)
    go_to(at)


state.require_app()
page()
