"""Controls bound to URL parameters: the URL gives their first value and follows their changes.

Streamlit's own `bind="query-params"` writes the labels of options, which are translated here, and removes invalid
values without a message.
"""

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
from core.tasks.registry import task_label
from pages.ui import state
from pages.ui.address import ON, Item, split
from pages.ui.parts import run_titles
from pages.ui.visitor import visitor

Value = TypeVar("Value", int, float, str)
Number = TypeVar("Number", int, float)


@dataclass(slots=True)
class Control:
    """Current widget of a control: its set of options, its number and its start value, as arguments for any widget.

    A widget never gets another value. Its start value is the default in every response, so the order in which a browser
    draws responses does not matter. Code that needs another value creates another widget.
    """

    family: str
    number: int
    start: Any
    options: Sequence[Any]
    renew: bool = False

    @property
    def key(self) -> str:
        return f"{self.family}.{self.number}"

    @property
    def by_index(self) -> dict[str, Any]:
        """Arguments for a selectbox or radio buttons."""
        return {"key": self.key, "index": self.options.index(self.start)}

    @property
    def by_default(self) -> dict[str, Any]:
        """Arguments for segments, pills or a multiselect."""
        return {"key": self.key, "default": self.start}

    @property
    def by_value(self) -> dict[str, Any]:
        """Arguments for a slider, a toggle or a field."""
        return {"key": self.key, "value": self.start}


def bound(
    item: Item[Value],
    options: Collection[Value],
    default: Value | None = None,
    problem: str = "",
    labels: Collection[str] = (),
) -> tuple[Value, Control]:
    """Return the value of a control and the arguments of its widget.

    The second of two quick presses still carries the address from before the first. The address therefore counts only
    for a control that is not on the page yet. The page complains about a value that is no option.

    Args:
        default, problem: replace those of the item if they depend on the page's content.
        labels: labels of the options if they change with the page's content, as a browser identifies a choice by its
            label.
    """
    listed = list(options)
    usual = item.default if default is None else default
    assert usual is not None
    return _tied(item, listed, lambda: item.choice(listed, usual, problem), usual, labels)


def bound_several(
    item: Item[list[str]], options: Sequence[str], default: Sequence[str] = ()
) -> tuple[list[str], Control]:
    """Like `bound`, for a control with several values; drop values that are no option."""

    def start() -> list[str]:
        text = item.text
        return list(default) if text is None else [part for part in dict.fromkeys(split(text)) if part in options]

    return _tied(item, list(options), start, list(default))


def bound_switch(label: str, item: Item[bool], **look: Any) -> bool:
    """Draw a switch that is off unless the address says `on`, and return its value.

    Args: look: further arguments of `st.toggle`.
    """
    value, tied = _tied(item, [], lambda: item.text == ON)
    st.toggle(label, **look, **tied.by_value)
    return bool(value)


def bound_slider(label: str, item: Item[float], low: float, high: float, **look: Any) -> float:
    """Draw a slider and return its value. It clamps the number in the address, and uses the default for invalid text.

    Args: look: further arguments of `st.slider`.
    """
    usual = item.default
    assert usual is not None

    def start() -> float:
        asked = _as_number(item.text, usual)
        return usual if asked is None else min(high, max(low, asked))

    value, tied = _tied(item, [low, high], start)
    st.slider(label, low, high, **look, **tied.by_value)
    return float(value)


def bound_text(item: Item[str], most_chars: int) -> tuple[str, Control]:
    """Like `bound`, for a line of text, empty by default and cut to `most_chars`."""
    return _tied(item, [], lambda: (item.text or "")[:most_chars])


def bound_parameter(scope: str, parameter: Parameter) -> tuple[Any, Control]:
    """Like `bound`, for a number from a registry, which `parameter_widget` draws.

    Args:
        scope: owner of the parameter; another owner may have a parameter of the same name.
    """
    if parameter.kind == "integer":
        problem = _("use a whole number {bounds}", bounds=parameter.bounds)
    else:
        problem = _("use a number {bounds}", bounds=parameter.bounds)

    def number(text: str) -> Any:
        """Parse the parameter; return None if it is invalid."""
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
) -> tuple[Number, Control]:
    """Like `bound`, for numbers: replace a known number that is no option here with the nearest option.

    Args:
        known: numbers that the address may name; None allows any number.
    """
    wanted = _as_number(item.text, default)
    if wanted is not None and wanted not in options and (known is None or wanted in known):
        item.say(str(nearest(options, wanted)))
    return bound(item, options, default, problem)


@dataclass(frozen=True, slots=True)
class Valid:
    """Valid values of a parameter, as the `known` of `bound_nearest`."""

    parameter: Parameter

    def __contains__(self, value: object) -> bool:
        try:
            self.parameter.check(self.parameter.name, value)
        except ConfigError:
            return False
        return True


def bound_segments(
    label: str, item: Item[str], choices: Mapping[str, str], default: str | None = None, **look: Any
) -> str:
    """Draw the choices side by side and return the chosen one.

    Args:
        choices: labels by value, marked with `N_`; look: as in `segments`.
    """
    value, tied = bound(item, choices, default)
    segments(label, choices, tied, **{"wrap": True, **look})
    return value


def bound_choice(
    label: str, item: Item[str], labels: Mapping[str, str], default: str | None = None, **look: Any
) -> str:
    """Draw a list of choices and return the chosen one.

    Args:
        labels: labels by value, translated; look: further arguments of `st.selectbox`.
    """
    value, tied = bound(item, labels, default, labels=labels.values())
    st.selectbox(label, list(labels), format_func=labels.__getitem__, **look, **tied.by_index)
    return value


def segments(label: str, choices: Mapping[str, str], tied: Control, **look: Any) -> None:
    """Draw choices side by side, one always chosen. Args: look: further arguments of `st.segmented_control`."""
    look = {"label_visibility": "collapsed", "required": True, **look}
    st.segmented_control(label, list(choices), format_func=lambda one: _(choices[one]), **look, **tied.by_default)


def forget(items: Iterable[Item[Any]]) -> None:
    """Remove these items from the address and reset their controls to the defaults."""
    for item in items:
        item.forget()
        if item.name in _controls():
            _controls()[item.name].renew = True


def set_item(item: Item[Any], texts: str | Sequence[str]) -> None:
    """Write texts for an item into the address, and set its control to them."""
    forget([item])
    item.say(texts)


def nearest(options: Sequence[Number], wanted: Number) -> Number:
    """Return the option nearest to a number, the lower of two on a tie."""
    return min(options, key=lambda option: (abs(option - wanted), option))


def _tied(
    item: Item[Any],
    options: Sequence[Any],
    start: Callable[[], Any],
    default: Any = None,
    labels: Collection[str] = (),
) -> tuple[Any, Control]:
    """Return the value and the widget arguments of a control; write the value to the address unless it is the default.

    The control gets a new widget if its options change, if the visitor has left it, or if it is reset.
    """
    family = f"bound.{item.name}.{crc32(repr((options, *labels)).encode()):08x}"
    control = _controls().get(item.name)
    held = None
    if control is not None and control.family == family and not control.renew:
        held = state.widget_value(control.key)
    if control is None or held is None:
        number = 0 if control is None else control.number + 1
        control = _controls()[item.name] = Control(family, number, start(), options)
        held = control.start
    item.put(held, default)
    return held, control


def _controls() -> dict[str, Control]:
    return state.session_value("bound.controls", dict[str, Control])


def _as_number(text: str | None, like: Number) -> Number | None:
    """Parse a finite number of the type of `like`; return None if the text is invalid."""
    try:
        value = type(like)(text or "")
        return value if math.isfinite(value) else None
    except (ValueError, OverflowError):
        return None


def run_labels(runs: Sequence[RunSummary]) -> dict[str, str]:
    """Return the labels of runs in lists, by id."""
    return {
        run.id: " · ".join(dict.fromkeys([title, task_label(run.config), objective_label(run.effective)]))
        for run, title in zip(runs, run_titles(runs), strict=True)
    }


def pick_run(store: Store, runs: Sequence[RunSummary], named: RunRecord | None, *, key: str) -> RunRecord:
    """Draw the choice of a run, starting with the run that the address names; `key` is unique to the page."""
    labels = run_labels(runs)
    # The newest run of the visitor, or else of anyone; the runs of an experiment come last.
    usual = min(runs, key=lambda run: (run.of_experiment, run.owner != visitor().id))
    first = named.id if named is not None and named.id in labels else usual.id
    if state.widget_value(key) not in (None, *labels):  # the run was deleted meanwhile
        state.set_widget(key, first)
    # Once drawn, the list counts: the second of two quick choices still carries the address of the first.
    place = list(labels).index(first)
    picked = st.selectbox(
        _("Run"),
        list(labels),
        place,
        format_func=labels.__getitem__,
        key=key,
        label_visibility="collapsed",
    )
    return store.run(picked)
