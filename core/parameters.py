"""A setting of a run, a loss, a view or a map, with what a form and a check need to know of it. Imports no torch."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from core.errors import ConfigError
from core.quantities import counted

Value = float | int | bool | str | tuple[int, ...]
Kind = Literal["number", "integer", "switch", "choice", "name", "layers"]

LONGEST_NAME = 300
# Layers by place, because encoders have 4 to 24 blocks.
RELATIVE_LAYERS = {"last": "Last", "last_third": "Last third", "every_third": "Every third"}
# A number that follows from the rest of a run, and is there once the run is prepared.
AUTO = "auto"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One setting, with the bounds a form may offer.

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
        """What people read for its values; those that are not there are read as they are."""
        layers = RELATIVE_LAYERS if self.kind == "layers" else {}
        left_open = {AUTO: self.automatic} if self.automatic else {}
        return {**layers, **left_open, **(self.choices or {}), **self.words}

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
                    raise ConfigError(field, value, f"give a name of 1 to {LONGEST_NAME} characters.")
                return value.strip()
            case "layers":
                return self._layers(field, value)
            case _:
                return self._number(field, value)

    def _choice(self, field: str, value: object) -> str:
        choices = self.choices or {}
        if not isinstance(value, str) or value not in choices:
            raise ConfigError(field, value, f"choose one of {', '.join(choices)}.")
        return value

    def _layers(self, field: str, value: object) -> str | tuple[int, ...]:
        if isinstance(value, str) and value in RELATIVE_LAYERS:
            return value
        numbers = tuple(value) if isinstance(value, list | tuple) else ()
        if not numbers or not all(isinstance(n, int) and not isinstance(n, bool) and 1 <= n <= 100 for n in numbers):
            raise ConfigError(
                field, value, f"choose {', '.join(RELATIVE_LAYERS)}, or give block numbers such as [2, 4]."
            )
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
    def _noun(self) -> str:
        noun = "whole number" if self.kind == "integer" else "number"
        return f"{noun} of {self.unit}" if self.unit else noun

    @property
    def bounds(self) -> str:
        parts = []
        if self.low is not None:
            parts.append(f"{'above' if self.above else 'from'} {bound_text(self.low)}")
        if self.high is not None:
            parts.append(f"{'below' if self.below else 'up to'} {bound_text(self.high)}")
        elif self.low is not None and not self.above:
            parts.append("up")
        if self.automatic:
            parts.append(f"or {AUTO}")
        return " ".join(parts)

    @property
    def remedy(self) -> str:
        """What works instead of a value that does not: "give a whole number of texts from 1 up to 4,096."."""
        return f"give a {self._noun} {self.bounds}."


def bound_text(bound: float) -> str:
    """A bound as people read it: 4,096, 0.5."""
    return f"{bound:,.0f}" if bound == int(bound) else f"{bound:g}"


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
        takes = ", ".join([*known, *by_name])
        raise ConfigError(unknown[0], given[unknown[0]], f"{owner} takes {takes}.")
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
        raise ConfigError(field, max(numbers), f"the encoder has {counted(blocks, 'block')}; give 1 to {blocks}.")
    return numbers


def number(settings: Mapping[str, Value], name: str, absent: float = 0.0) -> float:
    """A checked setting that is a number; `absent` where the owner has no such setting."""
    value = settings.get(name, absent)
    assert isinstance(value, int | float)
    return float(value)


def whole(settings: Mapping[str, Value], name: str, absent: int = 0) -> int:
    """A checked setting that is a whole number; `absent` where the owner has no such setting."""
    return int(number(settings, name, absent))
