"""Controls that the address restores: it gives their first value, and holds their values."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar
from zlib import crc32

import streamlit as st

from core.errors import ConfigError
from core.parameters import Parameter
from pages.ui import state

Value = TypeVar("Value", int, float, str)
Number = TypeVar("Number", int, float)

SEPARATOR = ","
AGAIN_S = 2.0


def bound(name: str, options: Collection[Value], default: Value, problem: str) -> tuple[Value, dict[str, Any]]:
    """What a control holds, and the arguments that its widget takes for it.

    A press that follows soon upon another still brings the address from before the first, so the address counts only
    for a control that is not on the page yet. The default does not stand in it; of something that is no option, the
    page says so.
    """
    key = _key(name, list(options))
    value = _held(key)
    if value not in options:
        value = state.choice_in_url(name, {str(option): option for option in options}, default, problem)
        _give(key, value)
    state.put_in_url(**{name: None if value == default else value})
    return value, {"key": key}


def bound_several(name: str, options: Sequence[str], default: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
    """The same for a control with several values; what is no option is left out."""
    key = _key(name, list(options))
    value = _held(key)
    if value is None:
        text = state.text_in_url(name)
        value = list(default) if text is None else [part for part in dict.fromkeys(split(text)) if part in options]
        _give(key, value)
    state.put_in_url(**{name: None if value == list(default) else SEPARATOR.join(value)})
    return value, {"key": key}


def bound_switch(name: str) -> tuple[bool, dict[str, Any]]:
    """The same for a switch, off unless the address says `on`."""
    key = _key(name, [])
    value = _held(key)
    if value is None:
        value = state.text_in_url(name) == "on"
        _give(key, value)
    state.put_in_url(**{name: "on" if value else None})
    return bool(value), {"key": key}


def bound_number(name: str, low: float, high: float, default: float) -> tuple[float, dict[str, Any]]:
    """The same for a slider; nonsense counts as the default."""
    key = _key(name, [low, high])
    value = _held(key)
    if value is None:
        try:
            asked = float(state.text_in_url(name) or default)
        except ValueError:
            asked = default
        value = default if math.isnan(asked) else min(high, max(low, asked))
        _give(key, value)
    state.put_in_url(**{name: None if value == default else f"{value:g}"})
    return float(value), {"key": key}


def bound_text(name: str, most_chars: int) -> dict[str, Any]:
    """The same for a line of text, empty unless the address says something; what is too long is cut."""
    key = _key(name, [])
    value = _held(key)
    if value is None:
        value = (state.text_in_url(name) or "")[:most_chars]
        _give(key, value)
    state.put_in_url(**{name: value or None})
    return {"key": key}


def bound_parameter(scope: str, parameter: Parameter) -> tuple[Any, str]:
    """The same for a number of a registry: its value and the key with which `parameter_widget` draws it.

    Args:
        scope: what has the parameter; others may have one of the same name.
    """
    key = _key(f"{scope}.{parameter.name}", [])
    value = _held(key)
    if value is None:
        value = state.read_in_url(
            parameter.name, partial(_number, parameter), parameter.default, f"it is {_bounds(parameter)}"
        )
    state.put_in_url(**{parameter.name: None if value == parameter.default else str(value)})
    return value, key


def _number(parameter: Parameter, text: str) -> Any:
    """A parameter as the address says it, None for what it cannot be."""
    try:
        value = int(text) if parameter.kind == "integer" else float(text)
        return parameter.check(parameter.name, value) if math.isfinite(value) else None
    except (ConfigError, ValueError, OverflowError):
        return None


def _bounds(parameter: Parameter) -> str:
    kind = "a whole number" if parameter.kind == "integer" else "a number"
    low = "" if parameter.low is None else f" from {parameter.low:g}"
    return kind + low + ("" if parameter.high is None else f" to {parameter.high:g}")


def split(text: str) -> list[str]:
    """The parts of a list in the address."""
    return [part for part in (part.strip() for part in text.split(SEPARATOR)) if part]


def forget(names: Iterable[str]) -> None:
    """Have controls start from their defaults."""
    for name in names:
        state.put_in_url(**{name: None})
        state.forget_widget(_keys().pop(name, name))


def _key(name: str, options: list[Any]) -> str:
    """Other options make another widget: a browser may still hold an answer to the old ones."""
    key = f"bound.{name}.{crc32(repr(options).encode()):08x}"
    _keys()[name] = key
    return key


def _give(key: str, value: Any) -> None:
    state.set_widget(key, value)
    _given()[key] = time.monotonic()


def _held(key: str) -> Any:
    """What a control's widget holds, None before it was drawn.

    Of two answers that reach it at once, a browser draws the second alone; there the widget would stand at its lowest
    value, not at the one that it was given in the first. So for a moment it is given again what it holds.
    """
    value = state.widget_value(key)
    if value is not None and time.monotonic() - _given().get(key, -math.inf) < AGAIN_S:
        state.set_widget(key, value)
    return value


def give_again(names: Iterable[str]) -> None:
    """Have controls be given what they hold, for a moment.

    A browser draws what is in a popover only when that is opened; a value that was given before, and not since, is lost
    on it, and the widget would show its default.
    """
    for name in names:
        if name in _keys():
            _given()[_keys()[name]] = time.monotonic()


def _given() -> dict[str, float]:
    """When each widget was given its value, seconds of the monotonic clock."""
    return state.remembered("bound.given", dict[str, float])


def _keys() -> dict[str, str]:
    """The widget that each control has now."""
    return state.remembered("bound.keys", dict[str, str])


def bound_nearest(
    name: str, options: Sequence[Number], default: Number, problem: str, known: Collection[Number] | None = None
) -> tuple[Number, dict[str, Any]]:
    """The same for numbers: for one that the address may name although it is no option here, the nearest is taken.

    Args:
        known: those that the address may name; any number where None.
    """
    wanted = _as_number(state.text_in_url(name), default)
    if wanted is not None and wanted not in options and (known is None or wanted in known):
        state.put_in_url(**{name: nearest(options, wanted)})
    return bound(name, options, default, problem)


def _as_number(text: str | None, like: Number) -> Number | None:
    """A number of the same kind, None for what is none."""
    try:
        value = type(like)(text or "")
        return value if math.isfinite(value) else None
    except (ValueError, OverflowError):
        return None


def bound_segments(label: str, name: str, choices: Mapping[str, str], default: str, problem: str) -> str:
    """Draw the choices, named as people read them, side by side; returns which of them it is."""
    value, widget = bound(name, list(choices), default, problem)
    st.segmented_control(
        label,
        list(choices),
        format_func=choices.__getitem__,
        label_visibility="collapsed",
        required=True,
        wrap=True,
        **widget,
    )
    return value


def nearest(options: Sequence[Number], wanted: Number) -> Number:
    """The option that is nearest to a number, the lower of two."""
    return min(options, key=lambda option: (abs(option - wanted), option))
