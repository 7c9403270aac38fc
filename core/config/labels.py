"""The values of a config as people read them, and errors with the labels that people know its fields by."""

from __future__ import annotations

from core.config.fields import field_at
from core.config.run import RunConfig
from core.errors import ConfigError, PlaygroundError
from core.messages import N_, Message, _, listed
from core.parameters import Parameter

ABSENT = "–"
# Below, learning rates live, which are read by their power of ten.
SMALL = 1e-3
SWITCH = {
    # Translators: a setting that is switched on.
    True: N_("On"),
    # Translators: a setting that is switched off.
    False: N_("Off"),
}


def problem_text(error: PlaygroundError) -> str:
    """An error's sentence, with the label that people know a config's field by in place of its name."""
    field = field_at(RunConfig, error.field) if isinstance(error, ConfigError) else None
    if not isinstance(error, ConfigError) or field is None:
        return str(error)
    return str(ConfigError(Message(field.label), error.value, error.remedy))


def in_phase(label: str, number: int | None) -> str:
    """A label with the phase that it belongs to, numbered from 0; as it is where there is one phase (None)."""
    return label if number is None else _("Phase {number}: {setting}", number=number + 1, setting=label)


def value_text(value: object, parameter: Parameter | None = None) -> str:
    """A value as people read it, in their language; numbers are not rounded, so that two that differ look different."""
    words = parameter.values_in_words if parameter is not None else {}
    if value.__hash__ is not None and value in words:
        return words[value]
    if isinstance(value, bool):
        return _(SWITCH[value])
    if isinstance(value, float):
        return number_text(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, tuple | list):
        return listed(map(str, value))
    return ABSENT if value is None else str(value)


def number_text(value: float) -> str:
    """The shortest text of a number that is exactly this number: 0.3, 5e-05, 2e-04."""
    style = "e" if 0 < abs(value) < SMALL else "g"
    texts = (f"{value:.{digits}{style}}" for digits in range(18))
    return next(text for text in texts if float(text) == value)
