"""Controls that the address restores: it gives their first value, and holds their values."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from zlib import crc32

import streamlit as st

from core.config.describe import objective_label
from core.errors import ConfigError
from core.messages import _
from core.parameters import Parameter
from core.store import RunRecord, RunSummary, Store
from core.tasks.task_label import task_label
from pages.ui import state
from pages.ui.address import ON, Item, split
from pages.ui.parts import run_titles

Value = TypeVar("Value", int, float, str)
Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True)
class Tied:
    """A control's key and the value that it starts with, as the different widgets take them.

    A widget is never given another value: what it starts with is its default, which is in every answer, so that it
    does not matter which of several answers a browser draws first. Whoever wants another value makes another widget.
    """

    key: str
    start: Any
    options: Sequence[Any] = ()

    @property
    def by_index(self) -> dict[str, Any]:
        """For a selectbox or radio buttons."""
        return {"key": self.key, "index": self.options.index(self.start)}

    @property
    def by_default(self) -> dict[str, Any]:
        """For segments, pills or a multiselect."""
        return {"key": self.key, "default": self.start}

    @property
    def by_value(self) -> dict[str, Any]:
        """For a slider, a toggle or a field."""
        return {"key": self.key, "value": self.start}


def bound(
    item: Item[Value],
    options: Collection[Value],
    default: Value | None = None,
    problem: str = "",
    labels: Collection[str] = (),
) -> tuple[Value, Tied]:
    """What a control holds, and what its widget takes for it.

    A press that follows soon upon another still brings the address from before the first, so the address counts only
    for a control that is not on the page yet. Of something that is no option, the page says so.

    Args:
        default, problem: where they depend on what is shown; otherwise the item's own.
        labels: of the options, where they depend on what is shown: a browser knows a choice by its label alone.
    """
    listed = list(options)
    usual = item.default if default is None else default
    assert usual is not None
    return _tied(item, listed, lambda: item.choice(listed, usual, problem), usual, labels)


def bound_several(item: Item[list[str]], options: Sequence[str], default: Sequence[str] = ()) -> tuple[list[str], Tied]:
    """The same for a control with several values; what is no option is left out."""

    def start() -> list[str]:
        text = item.text
        return list(default) if text is None else [part for part in dict.fromkeys(split(text)) if part in options]

    return _tied(item, list(options), start, list(default))


def bound_switch(item: Item[bool]) -> tuple[bool, Tied]:
    """The same for a switch, off unless the address says `on`."""
    return _tied(item, [], lambda: item.text == ON)


def bound_number(item: Item[float], low: float, high: float) -> tuple[float, Tied]:
    """The same for a slider; nonsense counts as the default."""
    usual = item.default
    assert usual is not None

    def start() -> float:
        asked = _as_number(item.text, usual)
        return usual if asked is None else min(high, max(low, asked))

    return _tied(item, [low, high], start)


def bound_text(item: Item[str], most_chars: int) -> tuple[str, Tied]:
    """The same for a line of text, empty unless the address says something; what is too long is cut."""
    return _tied(item, [], lambda: (item.text or "")[:most_chars])


def bound_parameter(scope: str, parameter: Parameter) -> tuple[Any, Tied]:
    """The same for a number of a registry, which `parameter_widget` draws.

    Args:
        scope: what has the parameter; others may have one of the same name.
    """
    if parameter.kind == "integer":
        problem = _("it is a whole number {bounds}", bounds=parameter.bounds)
    else:
        problem = _("it is a number {bounds}", bounds=parameter.bounds)

    def number(text: str) -> Any:
        """The parameter as the address says it, None for what it cannot be."""
        try:
            value = int(text) if parameter.kind == "integer" else float(text)
            return parameter.check(parameter.name, value) if math.isfinite(value) else None
        except (ConfigError, ValueError, OverflowError):
            return None

    item: Item[Any] = Item(parameter.name, str, parameter.default, problem)
    return _tied(item, [scope], lambda: item.read(number, parameter.default))


def bound_nearest(
    item: Item[Number],
    options: Sequence[Number],
    default: Number,
    problem: str = "",
    known: Container[Number] | None = None,
) -> tuple[Number, Tied]:
    """The same for numbers: for one that the address may name although it is no option here, the nearest is taken.

    Args:
        known: those that the address may name; any number where None.
    """
    wanted = _as_number(item.text, default)
    if wanted is not None and wanted not in options and (known is None or wanted in known):
        state.put_in_url(**{item.name: nearest(options, wanted)})
    return bound(item, options, default, problem)


@dataclass(frozen=True, slots=True)
class Valid:
    """The numbers that a parameter may be, as `bound_nearest` takes them."""

    parameter: Parameter

    def __contains__(self, value: object) -> bool:
        try:
            self.parameter.check(self.parameter.name, value)
        except ConfigError:
            return False
        return True


def bound_segments(label: str, item: Item[str], choices: Mapping[str, str], default: str | None = None) -> str:
    """Draw the choices, named as people read them, side by side; returns which of them it is.

    Args:
        choices: with their names, marked with `N_`.
    """
    value, tied = bound(item, list(choices), default)
    segments(label, choices, tied, wrap=True)
    return value


def segments(label: str, choices: Mapping[str, str], tied: Tied, **look: Any) -> None:
    """Draw choices side by side, one of which is always chosen. Args: look: as `st.segmented_control` takes it."""
    look = {"label_visibility": "collapsed", "required": True, **look}
    st.segmented_control(label, list(choices), format_func=lambda one: _(choices[one]), **look, **tied.by_default)


def forget(items: Iterable[Item[Any]]) -> None:
    """Have the address say nothing of these, and their controls start from their defaults."""
    for item in items:
        item.forget()
        if item.name in _controls():
            _controls()[item.name].renew = True


def nearest(options: Sequence[Number], wanted: Number) -> Number:
    """The option that is nearest to a number, the lower of two."""
    return min(options, key=lambda option: (abs(option - wanted), option))


@dataclass(slots=True)
class _Control:
    """The widget that a control has now: the `number`th for these options, from a start value."""

    family: str
    number: int
    start: Any
    renew: bool = False

    @property
    def key(self) -> str:
        return f"{self.family}.{self.number}"


def _tied(
    item: Item[Any],
    options: Sequence[Any],
    start: Callable[[], Any],
    default: Any = None,
    labels: Collection[str] = (),
) -> tuple[Any, Tied]:
    """What a control holds, which the address then says unless it is the default.

    It is another widget where it has other options, was left, or is to start again.
    """
    family = f"bound.{item.name}.{crc32(repr((options, *labels)).encode()):08x}"
    control = _controls().get(item.name)
    held = None
    if control is not None and control.family == family and not control.renew:
        held = state.widget_value(control.key)
    if control is None or held is None:
        number = 0 if control is None else control.number + 1
        control = _controls()[item.name] = _Control(family, number, start())
        held = control.start
    item.put(held, default)
    return held, Tied(control.key, control.start, options)


def _controls() -> dict[str, _Control]:
    return state.remembered("bound.controls", dict[str, _Control])


def _as_number(text: str | None, like: Number) -> Number | None:
    """A number of the same kind, None for what is none."""
    try:
        value = type(like)(text or "")
        return value if math.isfinite(value) else None
    except (ValueError, OverflowError):
        return None


def run_labels(runs: Sequence[RunSummary]) -> dict[str, str]:
    """What lists of runs call each of them, by id."""
    return {
        run.id: f"{title} · {task_label(run.config)} · {objective_label(run.effective)}"
        for run, title in zip(runs, run_titles(runs), strict=True)
    }


def pick_run(store: Store, runs: Sequence[RunSummary], named: RunRecord | None, *, key: str) -> RunRecord:
    """Draw the runs to choose from, the one that the address names chosen at first; `key` is the page's own."""
    labels = run_labels(runs)
    first = named.id if named is not None and named.id in labels else runs[0].id
    if state.widget_value(key) not in (None, *labels):  # it was deleted meanwhile
        state.set_widget(key, first)
    # Once it was drawn the list counts: a choice that follows soon upon another still brings the address of the first.
    place = list(labels).index(first)
    picked = st.selectbox(
        _("Run"),
        list(labels),
        place,
        format_func=labels.__getitem__,
        key=key,
        label_visibility="collapsed",
        width="stretch",
    )
    return store.run(picked)
