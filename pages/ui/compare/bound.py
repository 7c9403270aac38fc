"""Controls whose value is what the address says; moving one changes the address."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any
from zlib import crc32

from pages.ui import state

SEPARATOR = ","


def bound(name: str, options: Collection[str], default: str, problem: str) -> tuple[str, dict[str, Any]]:
    """What the address says under a name, and the arguments that bind a widget to it.

    The default does not stand in the address; of something that is no option, the page says so.
    """
    value = state.choice_in_url(name, {option: option for option in options}, default, problem)
    return value, _tied(name, value, default, options)


def bound_several(name: str, options: Sequence[str], default: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
    """The same for a widget with several values; what is no option is left out."""
    text = state.text_in_url(name)
    value = list(default) if text is None else [part for part in dict.fromkeys(split(text)) if part in options]
    return value, _tied(name, value, list(default), options)


def bound_switch(name: str) -> tuple[bool, dict[str, Any]]:
    """The same for a switch, off unless the address says `on`."""
    value = state.text_in_url(name) == "on"
    return value, _tied(name, value, False)


def bound_number(name: str, low: float, high: float, default: float) -> tuple[float, dict[str, Any]]:
    """The same for a slider; nonsense counts as the default."""
    try:
        given = float(state.text_in_url(name) or default)
    except ValueError:
        given = default
    value = default if math.isnan(given) else min(high, max(low, given))
    return value, _tied(name, value, default)


def split(text: str) -> list[str]:
    """The parts of a list in the address."""
    return [part for part in (part.strip() for part in text.split(SEPARATOR)) if part]


def _tied(name: str, value: Any, default: Any, options: Collection[str] = ()) -> dict[str, Any]:
    # Other options make another widget: a browser that still holds an answer to the old ones cannot give it to these.
    key = f"compare.{name}.{crc32(repr(list(options)).encode()):08x}"
    if state.widget_value(key) != value:
        state.set_widget(key, value)
    return {"key": key, "on_change": _moved, "args": (name, key, default)}


def _moved(name: str, key: str, default: Any) -> None:
    value = state.widget_value(key)
    state.put_in_url(**{name: None if value == default else _text(value)})


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return f"{value:g}"
    return SEPARATOR.join(value) if isinstance(value, list) else str(value)
