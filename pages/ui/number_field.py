"""A number to type that says in words what it cannot be.

Streamlit's own bounds refuse a number without a word and leave the page at the one before, which then is not what the
field shows.
"""

from __future__ import annotations

from typing import Any

from core.errors import ConfigError
from core.messages import _
from core.parameters import Parameter
from pages.ui import state
from pages.ui.parts import escaped

PROBLEMS = "number_field.problems"


def number_field(place: Any, parameter: Parameter, value: float | None, *, key: str, **more: Any) -> Any:
    """Draw the field and read it.

    Args:
        place: streamlit itself or a column.
        more: as `st.number_input` takes it.
    Returns: the number, or None where the field is empty; `value` where what was typed is out of bounds, which
        `field_problem` then names.
    """
    more = {"step": 1 if parameter.kind == "integer" else None, "help": _(parameter.help) or None} | more
    if None in parameter.words:
        more = {"placeholder": _(parameter.words[None]).lower()} | more
    label = _(parameter.label)
    typed = place.number_input(label, value=value, key=key, **more)
    try:
        return None if typed is None else parameter.check(label, typed)
    except ConfigError as problem:
        report_problem(place, problem)
        return value


def report_problem(place: Any, problem: ConfigError) -> None:
    """Say below a field what is wrong with it, and have `field_problem` name it."""
    place.markdown(f":red[{escaped(str(problem))}]")
    state.remembered(PROBLEMS, list[ConfigError]).append(problem)


def begin_fields() -> None:
    """Forget what was wrong when the fields were drawn before."""
    state.forget(PROBLEMS)


def field_problem() -> ConfigError | None:
    """What is wrong with the first field that is out of bounds, of those drawn since `begin_fields`."""
    return next(iter(state.remembered(PROBLEMS, list[ConfigError])), None)
