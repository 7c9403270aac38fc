"""A number to type that says in words what it cannot be.

Streamlit's own bounds refuse a number without a word and leave the page at the one before, which then is not what the
field shows.
"""

from __future__ import annotations

from typing import Any, TypeVar

from streamlit.delta_generator import DeltaGenerator

from core.errors import ConfigError
from pages.ui import state
from pages.ui.parts import escaped

Number = TypeVar("Number", int, float)

PROBLEMS = "number_field.problems"


def number_field(
    place: DeltaGenerator, label: str, low: Number, high: Number | None, value: Number | None, *, key: str, **more: Any
) -> Any:
    """Draw the field and read it.

    Args:
        low, high: both are valid; no upper bound where that is None. A whole `low` makes a field of whole numbers.
        more: as `st.number_input` takes it; `value` may be None where it has a placeholder.
    Returns: the number, or None where the field is empty; the nearest valid one where it is out of bounds, which
        `field_problem` then names.
    """
    step = more.pop("step", 1 if isinstance(low, int) else None)
    typed = place.number_input(label, value=value, step=step, key=key, **more)
    highest = typed if high is None else high
    if typed is None or low <= typed <= highest:
        return typed
    problem = ConfigError(label, typed, f"give {_text(low)} {'or more' if high is None else f'to {_text(high)}'}.")
    place.markdown(f":red[{escaped(str(problem))}]")
    state.remembered(PROBLEMS, list[ConfigError]).append(problem)
    return min(max(typed, low), highest)


def begin_fields() -> None:
    """Forget what was wrong when the fields were drawn before."""
    state.forget(PROBLEMS)


def field_problem() -> ConfigError | None:
    """What is wrong with the first field that is out of bounds, of those drawn since `begin_fields`."""
    return next(iter(state.remembered(PROBLEMS, list[ConfigError])), None)


def _text(number: float) -> str:
    return f"{number:,}" if isinstance(number, int) else f"{number:g}"
