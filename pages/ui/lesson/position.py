"""The visitor's position in the lessons, the navigation, and the answers, which the browser stores for all tabs."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import streamlit as st
from pydantic import Field, TypeAdapter, ValidationError

from core.lessons.lesson import Lesson, Part, lessons
from core.lessons.numbers import experiment_id_of, run_id_of
from core.messages import _
from core.store import Store
from pages.ui import address, reads, state
from pages.ui.address import SEPARATOR, Address, EveryPage, Lessons
from pages.ui.bound import forget, set_item
from pages.ui.form_start import forget_links
from pages.ui.lab import forget_lab
from pages.ui.parts import UI, component, show_errors

BETWEEN = "."
# Keys of the visitor's answers and last part, and of the part that the visitor is going to.
KEPT, GOING = "lesson.kept", "lesson.going"
# Time in seconds after which a visitor who has not arrived is assumed to have gone elsewhere.
GOING_S = 10
TABLES: Mapping[str, type[Address]] = {
    "fine_tune": address.FineTune,
    "runs": address.Runs,
    "explore": address.Explore,
    "tokens": address.Tokens,
    "compare": address.Compare,
    "experiments": address.Experiments,
    "data": address.Data,
    "loss_lab": address.LossLab,
}
KEEPING = "lesson.keeping"
# Keys of the texts that were last received from the browser and last sent to it.
TAKEN, SENT = "lesson.taken", "lesson.sent"
FORGOTTEN = "lesson.forgotten"
# Limit on untrusted text from the browser, far above the length of all answers.
MOST_CHARS = 20_000


@dataclass(frozen=True, slots=True)
class LessonPosition:
    """A part of a lesson; `number` counts from 1."""

    lesson: Lesson
    number: int

    @property
    def part(self) -> Part:
        return self.lesson.parts[self.number - 1]

    @property
    def text(self) -> str:
        """The part as an address names it, such as `temperature.3`."""
        return f"{self.lesson.name}{BETWEEN}{self.number}"

    @property
    def is_last(self) -> bool:
        return self.number == len(self.lesson.parts)

    def go(self, steps: int) -> LessonPosition:
        return LessonPosition(self.lesson, self.number + steps)


@dataclass
class Answers:
    """The visitor's predictions, and answers with their number of tries, by the key of the question.

    Attributes:
        predicted, checked: a choice is stored as its position, which is the same in every language.
        shown: questions whose answer the visitor revealed.
    """

    predicted: dict[str, int] = field(default_factory=dict)
    checked: dict[str, tuple[float | int, int]] = field(default_factory=dict)
    shown: set[str] = field(default_factory=set)


def read_place(text: str) -> LessonPosition | None:
    """Parse the text of a part; None if there is no such part."""
    name, _, number = text.partition(BETWEEN)
    lesson = lessons().get(name)
    if lesson is None or not number.isdecimal() or not 1 <= int(number) <= len(lesson.parts):
        return None
    return LessonPosition(lesson, int(number))


@dataclass
class StoredAnswers:
    """The data that the browser stores.

    Attributes:
        last: the visitor's last part, in the form of `LessonPosition.text`.
    """

    answers: Answers = field(default_factory=Answers)
    last: Annotated[str, Field(max_length=80)] = ""


STORED = TypeAdapter(StoredAnswers)


def kept() -> StoredAnswers:
    """Return the visitor's answers and last part in this session."""
    return state.session_value(KEPT, StoredAnswers)


def answers() -> Answers:
    return kept().answers


def go_to(at: LessonPosition) -> None:
    """Request a part. This is a callback: the click survives when another click interrupts the rerun."""
    state.remember(GOING, (at.text, time.monotonic()))


def continue_navigation(at: LessonPosition | None) -> None:
    """Switch to the requested part, on every rerun until the visitor has arrived or GOING_S seconds have passed.

    It repeats because a late event of the previous page, such as a changed control, can bring that page back.

    Args:
        at: the current part.
    """
    text, since = state.session_value(GOING, lambda: ("", 0.0))
    going = read_place(text)
    if going is None:
        return
    if going == at or time.monotonic() - since > GOING_S:
        cancel_navigation()
        return
    here = EveryPage.LESSON.read(read_place, None)
    if here is not None and here.lesson.name == going.lesson.name and here.part.shown == going.part.shown:
        # Both parts show the same page, so the visitor's changes to it stay.
        EveryPage.LESSON.put(going.text)
        st.rerun()
    st.switch_page("pages/lessons.py", query_params={Lessons.OPEN.name: going.text})


def cancel_navigation() -> None:
    """Cancel the requested part."""
    state.forget(GOING)


def open_beside(at: LessonPosition) -> None:
    """Switch to the part's page. Raises: PlaygroundError if a run that it shows cannot be opened."""
    shown = at.part.shown
    store = reads.open_engine().store
    for table in TABLES.values():
        forget(table.items().values())
    forget_lab()
    forget_links()
    given = {name: texts for name, value in shown.address.items() if (texts := _texts(store, name, value))}
    kept().last = at.text
    st.switch_page(f"pages/{shown.page}.py", query_params={**given, EveryPage.LESSON.name: at.text})


def change(choice: Mapping[str, Any], page: str) -> None:
    """Apply a choice to the page beside a part.

    This is a callback: the click survives when another click interrupts the rerun.
    """
    items = TABLES[page].items()
    with show_errors():
        store = reads.open_engine().store
        for name, value in choice.items():
            set_item(items[name], _texts(store, name, value))
        forget_lab()
        forget_links()


def _texts(store: Store, name: str, value: Any) -> str | list[str]:
    """Format a value for the address, with the ids of the runs that it names. A deleted run is restored."""
    match name:
        case "run":
            return run_id_of(store, str(value))
        case "experiment":
            return experiment_id_of(store, str(value))
        case "runs":
            return SEPARATOR.join(run_id_of(store, one) for one in value)
        case "set":
            return [str(one) for one in value]
    return address.as_text(value) or ""


_mount = component(
    "lesson_answers",
    '<div class="lesson-answers" hidden></div>',
    [UI / "lesson" / "keeping.js"],
    [".stElementContainer:has(.lesson-answers) { display: none; }"],
)


def keep_answers() -> None:
    """Merge the answers that the browser has stored, and make it store later ones. Draws nothing."""
    given = (state.widget_value(KEEPING) or {}).get("kept")
    if given is not None and given != state.session_value(TAKEN, lambda: None):
        # Answers of this session take precedence.
        found, now = parse_stored(str(given)), kept()
        now.answers.predicted = found.answers.predicted | now.answers.predicted
        now.answers.checked = found.answers.checked | now.answers.checked
        now.answers.shown |= found.answers.shown
        now.last = now.last or (found.last if read_place(found.last) else "")
        state.remember(TAKEN, str(given))
    # The texts that the browser may hold by now.
    known = [text for name in (TAKEN, SENT) if (text := state.session_value(name, lambda: None)) is not None]
    text = STORED.dump_json(kept()).decode() if kept() != StoredAnswers() else ""
    if known:
        state.remember(SENT, text)
    _mount(key=KEEPING, data=[{"text": text, "known": known}], on_kept_change=lambda: None)


def parse_stored(text: str) -> StoredAnswers:
    """Parse the text that the browser has stored; return empty data if it is invalid."""
    try:
        return STORED.validate_json(text) if 0 < len(text) <= MOST_CHARS else StoredAnswers()
    except ValidationError:
        return StoredAnswers()


def forget_button() -> None:
    """Draw the button that deletes all answers, for the next user of this computer, or restores those just deleted."""

    def forget_all() -> None:
        state.remember(FORGOTTEN, kept())
        state.forget(KEPT)

    gone: StoredAnswers | None = state.session_value(FORGOTTEN, lambda: None)
    if answers() != Answers():
        st.button(_("Forget my answers"), type="tertiary", icon=":material/restart_alt:", on_click=forget_all)
    elif gone is not None:
        label, icon = _("Restore my answers"), ":material/undo:"
        st.button(label, type="tertiary", icon=icon, on_click=state.remember, args=(KEPT, gone))
