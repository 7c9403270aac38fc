"""One widget for one parameter of the registry; an invalid number gets an error message.

Streamlit's bounds refuse a number without a message. The page then keeps the previous value, while the field shows the
refused one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from core.config.describe import value_text
from core.config.objective import Knob
from core.errors import ConfigError
from core.messages import N_, _, with_more
from core.parameters import AUTO, RELATIVE_LAYERS, Parameter, Value
from pages.ui import state
from pages.ui.parts import escaped

PROBLEMS = "number_field.problems"


def number_field(place: Any, parameter: Parameter, value: float | None, *, key: str, **more: Any) -> Any:
    """Draw a number field and read it.

    Args:
        place: streamlit itself or a column.
        more: further arguments of `st.number_input`.
    Returns: the number, or None if the field is empty; `value` if the typed number is out of bounds, which
        `field_problem` then reports.
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
    """Show a problem below its field, and record it for `field_problem`."""
    place.markdown(f":red[{escaped(str(problem))}]")
    state.session_value(PROBLEMS, list[ConfigError]).append(problem)


def begin_fields() -> None:
    """Forget the problems of the previous draw."""
    state.forget(PROBLEMS)


def field_problem() -> ConfigError | None:
    """Return the first problem of the fields drawn since `begin_fields`, or None."""
    return next(iter(state.session_value(PROBLEMS, list[ConfigError])), None)


CHOSEN = "chosen"
# Spans up to this width need steps finer than hundredths.
NARROW = 0.2
# Spans wider than this need only whole numbers.
WIDE = 50.0


def parameter_widget(place: Any, parameter: Parameter, value: Any, key: str) -> Value:
    """Draw a parameter of a registry at its value and read it; numbers are sliders.

    Raises: ConfigError for invalid block numbers.
    """
    if parameter.automatic:
        words = {AUTO: parameter.automatic, CHOSEN: N_("Custom value")}
        if _named_or_chosen(place, parameter, words, value, key) == AUTO:
            return AUTO
        span = parameter.slider or (0.0, 1.0)
        start = span[0] if value == AUTO else float(value)
        if parameter.kind == "integer":
            # Translators: a value that the user sets, instead of leaving it to the app.
            number = replace(parameter, label=N_("Custom value"), help="", automatic="")
            return int(number_field(place, number, int(start), key=f"{key}.chosen"))
        return number_slider(place, Knob(N_("Custom value"), start, span), "", f"{key}.chosen")
    if parameter.kind == "layers":
        picked = _named_or_chosen(place, parameter, {**RELATIVE_LAYERS, CHOSEN: N_("Custom blocks")}, value, key)
        if picked != CHOSEN:
            return picked
        typed = place.text_input(
            _("Blocks"),
            "" if isinstance(value, str) else ", ".join(map(str, value)),
            placeholder="1, 2",
            help=_("Block numbers, counted from 1; 0 is the embeddings."),
            key=f"{key}.blocks",
        )
        try:
            return tuple(int(part) for part in typed.replace(",", " ").split())
        except ValueError:
            raise ConfigError(parameter.name, typed, "give block numbers such as 2, 4.") from None
    if parameter.kind == "number":
        label = _(parameter.label)
        for number, word in parameter.words.items():
            label = with_more(label, f"{number:g}: {_(word).lower()}")
        knob = Knob(label, float(value), parameter.slider or (0.0, 1.0))
        return number_slider(place, knob, parameter.help, key)
    read: Value = parameter_field(place, parameter, value, key=key)
    return read


def parameter_field(place: Any, parameter: Parameter, value: Any, *, key: str, **more: Any) -> Any:
    """Draw a field of a form at its value and read it; numbers are typed.

    Args:
        more: further arguments of Streamlit's widget of that kind; of a choice, including options and labels if they
            are not all of the parameter's.
    """
    match parameter.kind:
        case "choice":
            more = _offered(parameter) | more
            index = more["options"].index(value)
            return place.selectbox(_(parameter.label), index=index, help=_(parameter.help) or None, key=key, **more)
        case "switch":
            return place.toggle(_(parameter.label), value, help=_(parameter.help), key=key, **more)
        case "name":
            more = {"max_chars": 300} | more
            return place.text_input(_(parameter.label), value, help=_(parameter.help), key=key, **more)
    return number_field(place, parameter, value, key=key, **more)


def segmented_field(place: Any, parameter: Parameter, value: Any, *, key: str, **more: Any) -> Any:
    """Draw a choice of a few options side by side, one always chosen, and read it."""
    more = _offered(parameter) | more
    label, about = _(parameter.label), _(parameter.help) or None
    return place.segmented_control(label, default=value, required=True, help=about, key=key, **more)


def _offered(parameter: Parameter) -> dict[str, Any]:
    """Return the options of a choice and the function that formats them."""
    return {"options": parameter.options, "format_func": partial(value_text, parameter=parameter)}


def _named_or_chosen(place: Any, parameter: Parameter, words: Mapping[str, str], value: Any, key: str) -> str:
    """Draw the choice between named values and a custom value, and read it. Args: words: labels of the named values."""
    options = list(words)
    index = options.index(value if value in options else CHOSEN)
    picked: str = place.selectbox(
        _(parameter.label), options, index, format_func=lambda one: _(words[one]), help=_(parameter.help), key=key
    )
    return picked


def number_slider(place: Any, knob: Knob, about: str, key: str) -> float:
    """Draw a slider at a knob's value and read it; a value outside the knob's span widens the scale."""
    look = slider_scale(knob.slider, [knob.value]).look
    return float(place.slider(_(knob.label), value=knob.value, help=_(about) or None, key=key, **look))


class Scale(NamedTuple):
    """The bounds of a slider, and the number of decimals of its values."""

    low: float
    high: float
    digits: int

    @property
    def look(self) -> dict[str, Any]:
        """Arguments of `st.slider`."""
        step, form = 10.0**-self.digits, f"%.{self.digits}f"
        return {"min_value": self.low, "max_value": self.high, "step": step, "format": form}


def slider_scale(span: tuple[float, float], values: Sequence[float]) -> Scale:
    """Return a scale that can show each of these values: wider or finer than the span if necessary."""
    low, high = min(span[0], *values), max(span[1], *values)
    fits = {digits: all(round(value, digits) == value for value in values) for digits in (0, 2, 3)}
    if high - low > WIDE and fits[0] and low == round(low) and high == round(high):
        return Scale(low, high, 0)
    return Scale(low, high, 2 if high - low > NARROW and fits[2] else 3 if fits[3] else 4)
