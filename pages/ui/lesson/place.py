"""Which part of which lesson somebody is at, and how they get to another."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from core.lessons.lesson import Lesson, Part, lessons
from core.lessons.numbers import experiment_id_of, run_id_of
from core.store import Store
from pages.ui import address, reads, state
from pages.ui.address import SEPARATOR, Address, EveryPage, Item, Lessons
from pages.ui.bound import forget
from pages.ui.form_start import forget_links
from pages.ui.lab.view import forget_lab

BETWEEN = "."
# What a visitor did in the lessons, where they were last, and where they are going.
ANSWERS, LAST, GOING = "lesson.answers", "lesson.last", "lesson.going"
# Who has not arrived by then went somewhere else.
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


@dataclass(frozen=True, slots=True)
class At:
    """A part of a lesson; `number` counts from 1."""

    lesson: Lesson
    number: int

    @property
    def part(self) -> Part:
        return self.lesson.parts[self.number - 1]

    @property
    def text(self) -> str:
        """As an address has it: `temperature.3`."""
        return f"{self.lesson.name}{BETWEEN}{self.number}"

    @property
    def is_last(self) -> bool:
        return self.number == len(self.lesson.parts)

    def go(self, steps: int) -> At:
        return At(self.lesson, self.number + steps)


@dataclass
class Answers:
    """What was predicted and answered, by the place of the question; the latter with the tries it took.

    Attributes:
        predicted, checked: of what is chosen, its place among the choices, which is the same in every language.
        shown: questions whose answer somebody had shown.
    """

    predicted: dict[str, int] = field(default_factory=dict)
    checked: dict[str, tuple[float | int, int]] = field(default_factory=dict)
    shown: set[str] = field(default_factory=set)


def read_place(text: str) -> At | None:
    """None for what is no part of a lesson."""
    name, _, number = text.partition(BETWEEN)
    lesson = lessons().get(name)
    if lesson is None or not number.isdecimal() or not 1 <= int(number) <= len(lesson.parts):
        return None
    return At(lesson, int(number))


def answers() -> Answers:
    return state.remembered(ANSWERS, Answers)


def go_to(at: At) -> None:
    """Set out for a part: a callback, so that the click is not lost with a run that another one cuts short."""
    state.remember(GOING, (at.text, time.monotonic()))


def arrive(at: At | None) -> None:
    """Go on to where somebody set out for, until they are there.

    Whatever the page that is left still has to say, as a control that has just been turned, brings it back once more.

    Args:
        at: where they are.
    """
    text, since = state.remembered(GOING, lambda: ("", 0.0))
    going = read_place(text)
    if going is None:
        return
    if going == at or time.monotonic() - since > GOING_S:
        stay()
        return
    _visit(going)


def stay() -> None:
    """Give up where somebody set out for."""
    state.forget(GOING)


def _visit(at: At) -> None:
    """Go to a part, and have its page begin with what the part says.

    A part that speaks of what is there already changes nothing on the page, so what was turned there stays.
    """
    here = EveryPage.LESSON.read(read_place, None)
    if here is not None and here.lesson.name == at.lesson.name and here.part.shown == at.part.shown:
        EveryPage.LESSON.put(at.text)
        st.rerun()
    st.switch_page("pages/lessons.py", query_params={Lessons.OPEN.name: at.text})


def open_beside(at: At) -> None:
    """Leave for the part's page. Raises: PlaygroundError where a run that it shows cannot be opened."""
    shown = at.part.shown
    store = reads.open_engine().store
    for table in TABLES.values():
        forget(table.items().values())
    forget_lab()
    forget_links()
    given = {name: texts for name, value in shown.address.items() if (texts := _texts(store, name, value))}
    state.remember(LAST, at.text)
    st.switch_page(f"pages/{shown.page}.py", query_params={**given, EveryPage.LESSON.name: at.text})


def change(choice: Mapping[str, Any], page: str) -> None:
    """Have the page beside a part show something else."""
    items = TABLES[page].items()
    store = reads.open_engine().store
    for name, value in choice.items():
        forget([items[name]])
        items[name].say(_texts(store, name, value))
    forget_lab()
    forget_links()


def _texts(store: Store, name: str, value: Any) -> str | list[str]:
    """What an address says for a value, with the ids of the runs that it names."""
    match name:
        case "run":
            return _opened(store, "run", str(value))
        case "experiment":
            return _opened(store, "experiment", str(value))
        case "runs":
            return SEPARATOR.join(_opened(store, "run", one) for one in value)
        case "set":
            return [str(one) for one in value]
    item: Item[Any] = Item(name, str)
    return item.as_text(value) or ""


def _opened(store: Store, kind: str, name: str) -> str:
    """The id of a replay or an experiment of the project; one that was deleted comes back."""
    return run_id_of(store, name) if kind == "run" else experiment_id_of(store, name)
