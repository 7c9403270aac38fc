"""A setting of a run, a loss, a view or a map, with what a form and a check need to know of it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Literal

from core.errors import ConfigError
from core.messages import N_, Message, Text, _

Value = float | int | bool | str | tuple[int, ...]
Kind = Literal["number", "integer", "switch", "choice", "name", "layers"]

LONGEST_NAME = 300
# How alike two names have to be, as difflib counts it, for one to be a slip of the other.
CLOSE = 0.75
# Layers by place, because encoders have 4 to 24 blocks.
RELATIVE_LAYERS = {
    # Translators: the last layer of an encoder.
    "last": N_("Last"),
    # Translators: of an encoder's layers.
    "last_third": N_("Last third"),
    # Translators: every third of an encoder's layers.
    "every_third": N_("Every third"),
}
# A number that follows from the rest of a run, and is there once the run is prepared.
AUTO = "auto"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One setting, with the bounds a form may offer.

    Its texts are English, and are translated where they are shown.

    Attributes:
        default: None for a field that may be empty.
        low, high: bounds of what is valid; `low` itself is excluded where `above` is set, `high` where `below` is.
        choices: the valid values of a choice, and the words people read for them.
        words: what people read for other values; for None where it may be empty.
        unit: what a number counts, in the plural.
        listed: whether it is listed even at its default where another run lacks what it belongs to.
        slider: the range a slider shows first, where the valid one is too wide to aim in.
        knob: whether it may be turned while a run is going.
        automatic: where it may be AUTO, the words people read for that.
    """

    name: str
    label: str
    default: Value | None
    help: str
    kind: Kind = "number"
    low: float | None = None
    high: float | None = None
    above: bool = False
    below: bool = False
    choices: Mapping[Any, str] | None = None
    words: Mapping[Any, str] = field(default_factory=dict)
    unit: str = ""
    listed: bool = False
    slider: tuple[float, float] | None = None
    knob: bool = False
    automatic: str = ""

    @property
    def values_in_words(self) -> dict[Any, str]:
        """What people read for its values, translated; those that are not there are read as they are."""
        layers = RELATIVE_LAYERS if self.kind == "layers" else {}
        left_open = {AUTO: self.automatic} if self.automatic else {}
        words = {**layers, **left_open, **(self.choices or {}), **self.words}
        return {value: _(word) for value, word in words.items()}

    @property
    def options(self) -> list[Any]:
        """What a choice may be, None first where it may be empty."""
        return [*([None] if None in self.words else []), *(self.choices or {})]

    def check(self, field: str, value: object) -> Value:
        """The value if it is valid.

        Raises: ConfigError naming the field, the value and what would work.
        """
        if self.automatic and value == AUTO:
            return AUTO
        match self.kind:
            case "choice":
                return self._choice(field, value)
            case "switch":
                if not isinstance(value, bool):
                    raise ConfigError(field, value, "give true or false.")
                return value
            case "name":
                if not isinstance(value, str) or not 0 < len(value.strip()) <= LONGEST_NAME:
                    raise ConfigError(field, value, "give a name of 1 to {most} characters.", most=LONGEST_NAME)
                return value.strip()
            case "layers":
                return self._layers(field, value)
            case _:
                return self._number(field, value)

    def _choice(self, field: str, value: object) -> str:
        choices = self.choices or {}
        if not isinstance(value, str) or value not in choices:
            raise ConfigError(field, value, "choose one of {names}.", names=tuple(choices))
        return value

    def _layers(self, field: str, value: object) -> str | tuple[int, ...]:
        if isinstance(value, str) and value in RELATIVE_LAYERS:
            return value
        numbers = tuple(value) if isinstance(value, list | tuple) else ()
        if not numbers or not all(isinstance(n, int) and not isinstance(n, bool) and 1 <= n <= 100 for n in numbers):
            names = tuple(RELATIVE_LAYERS)
            raise ConfigError(field, value, "choose {names}, or give block numbers such as [2, 4].", names=names)
        return tuple(sorted(set(numbers)))

    def _number(self, field: str, value: object) -> float | int:
        whole = self.kind == "integer"
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ConfigError(field, value, self.remedy)
        low_ok = self.low is None or (value > self.low if self.above else value >= self.low)
        high_ok = self.high is None or (value < self.high if self.below else value <= self.high)
        # A NaN fails no bound that is absent; a whole number may be too large to be a float.
        if not (low_ok and high_ok and abs(value) <= sys.float_info.max) or (whole and value != int(value)):
            raise ConfigError(field, value, self.remedy)
        return int(value) if whole else float(value)

    @property
    def bounds(self) -> Text:
        """What it may be: "from 1 up to 4,096", "above 0 or auto"."""
        found: Text = ""
        low, high = ("" if bound is None else bound_text(bound) for bound in (self.low, self.high))
        if low and high:
            found = Message(RANGES[self.above, self.below], low=low, high=high)
        elif low:
            found = Message("above {low}", low=low) if self.above else Message("from {low} up", low=low)
        elif high:
            found = Message("below {high}", high=high) if self.below else Message("up to {high}", high=high)
        if not self.automatic:
            return found
        if not found:
            return Message("or {name}", name=AUTO)
        return Message("{bounds} or {automatic}", bounds=found, automatic=AUTO)

    @property
    def remedy(self) -> Message:
        """What works instead of a value that does not: "give a whole number of texts from 1 up to 4,096."."""
        whole_number = self.kind == "integer"
        if self.unit:
            remedy = (
                N_("give a whole number of {unit} {bounds}.")
                if whole_number
                else N_("give a number of {unit} {bounds}.")
            )
            return Message(remedy, bounds=self.bounds, unit=Message(self.unit))
        return Message(
            N_("give a whole number {bounds}.") if whole_number else N_("give a number {bounds}."), bounds=self.bounds
        )


# By whether the lower bound is excluded, and whether the upper one is.
RANGES = {
    (False, False): N_("from {low} up to {high}"),
    (True, False): N_("above {low} up to {high}"),
    (False, True): N_("from {low} and below {high}"),
    (True, True): N_("above {low} and below {high}"),
}


def bound_text(bound: float) -> str:
    """A bound as people read it: 4,096, 0.5."""
    return f"{bound:,.0f}" if bound == int(bound) else f"{bound:g}"


def did_you_mean(name: object, known: Iterable[str]) -> Text:
    """A hint for a field that does not exist: the name that it resembles; empty where it resembles none."""
    close = get_close_matches(str(name), known, 1, CLOSE)
    return Message("there is no such field; did you mean {name}?", name=close[0]) if close else ""


def checked(
    owner: str, parameters: Sequence[Parameter], given: Mapping[str, Any], known: Iterable[str]
) -> dict[str, Any]:
    """`given` with its parameters checked and the absent ones at their defaults.

    Args:
        owner: what takes the parameters, for the message.
        known: names that are no parameters and stay as they are.
    Raises: ConfigError for an unknown name or an invalid value.
    """
    by_name = {p.name: p for p in parameters}
    unknown = sorted(set(given) - by_name.keys() - set(known))
    if unknown:
        takes = Message("{owner} takes {names}.", owner=owner, names=(*known, *by_name))
        raise ConfigError(unknown[0], given[unknown[0]], did_you_mean(unknown[0], [*known, *by_name]) or takes)
    return {**given, **{name: p.check(name, given.get(name, p.default)) for name, p in by_name.items()}}


def resolve_layers(choice: str | Sequence[int], blocks: int, field: str = "layers") -> tuple[int, ...]:
    """Block numbers 1 … `blocks` that a choice means, ascending; "layer l" is the output of block l.

    Raises: ConfigError for a block that the encoder does not have.
    """
    if choice == "last":
        return (blocks,)
    if choice == "last_third":
        return tuple(range(blocks - -(-blocks // 3) + 1, blocks + 1))
    if choice == "every_third":
        return tuple(range((blocks - 1) % 3 + 1, blocks + 1, 3))
    numbers = tuple(int(n) for n in choice)
    if max(numbers) > blocks:
        raise ConfigError(
            field,
            max(numbers),
            "the encoder has {blocks}; give 1 to {last}.",
            blocks=Message("{count} block", "{count} blocks", count=blocks),
            last=blocks,
        )
    return numbers


def number(settings: Mapping[str, Value], name: str, absent: float = 0.0) -> float:
    """A checked setting that is a number; `absent` where the owner has no such setting."""
    value = settings.get(name, absent)
    assert isinstance(value, int | float)
    return float(value)


def whole(settings: Mapping[str, Value], name: str, absent: int = 0) -> int:
    """A checked setting that is a whole number; `absent` where the owner has no such setting."""
    return int(number(settings, name, absent))
