"""What a visitor answered in lessons, kept by the browser for all its tabs: a reload begins a new session."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import streamlit as st
from pydantic import Field, TypeAdapter, ValidationError

from core.messages import _
from pages.ui import state
from pages.ui.lesson.place import ANSWERS, LAST, Answers, answers, read_place

KEEPING = "lesson.keeping"
# What the browser gave last, and what it was sent last.
TAKEN, SENT = "lesson.taken", "lesson.sent"
FORGOTTEN = "lesson.forgotten"
# Far more than all lessons have questions; a browser can send anything.
MOST_CHARS = 20_000


@dataclass
class Kept:
    """Attributes: last: the part that somebody was at, as an address has it."""

    answers: Answers = field(default_factory=Answers)
    last: Annotated[str, Field(max_length=80)] = ""


KEPT = TypeAdapter(Kept)
_mount = st.components.v2.component(
    "lesson_answers",
    html='<div class="lesson-answers" hidden></div>',
    css=".stElementContainer:has(.lesson-answers) { display: none; }",
    js=Path(__file__).with_name("keeping.js").read_text(encoding="utf-8"),
    isolate_styles=False,
)


def keep_answers() -> None:
    """Take what the browser kept, and have it keep what is answered from then on. Draws nothing."""
    given = (state.widget_value(KEEPING) or {}).get("kept")
    if given is not None and given != state.remembered(TAKEN, lambda: None):
        _take(str(given))
    # What the browser may hold by now: what it gave, and what it was sent last.
    known = [text for name in (TAKEN, SENT) if (text := state.remembered(name, lambda: None)) is not None]
    now = Kept(answers(), state.remembered(LAST, str))
    text = KEPT.dump_json(now).decode() if now != Kept() else ""
    if known:
        state.remember(SENT, text)
    _mount(key=KEEPING, data=[{"text": text, "known": known}], on_kept_change=lambda: None, height="content")


def kept(text: str) -> Kept:
    """What a browser gives, nothing where that makes no sense."""
    try:
        return KEPT.validate_json(text) if 0 < len(text) <= MOST_CHARS else Kept()
    except ValidationError:
        return Kept()


def forget_button() -> None:
    """Offer to forget all answers, for the next who sits here, and to bring back those that were just forgotten."""
    gone: Kept | None = state.remembered(FORGOTTEN, lambda: None)
    if answers() != Answers():
        st.button(_("Forget my answers"), type="tertiary", icon=":material/restart_alt:", on_click=_forget)
    elif gone is not None:
        st.button(_("Bring my answers back"), type="tertiary", icon=":material/undo:", on_click=_put, args=(gone,))


def _take(text: str) -> None:
    """What was answered meanwhile counts more."""
    found, now = kept(text), answers()
    joined = Answers(
        found.answers.predicted | now.predicted, found.answers.checked | now.checked, found.answers.shown | now.shown
    )
    last = state.remembered(LAST, str) or (found.last if read_place(found.last) else "")
    _put(Kept(joined, last))
    state.remember(TAKEN, text)


def _forget() -> None:
    state.remember(FORGOTTEN, Kept(answers(), state.remembered(LAST, str)))
    _put(Kept())


def _put(one: Kept) -> None:
    state.remember(ANSWERS, one.answers)
    state.remember(LAST, one.last)
