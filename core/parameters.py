"""Parameters: settings of a run, a loss, a view or a map, described for forms and checks."""

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
# Minimum similarity, as difflib computes it, at which a name counts as a misspelling of another.
CLOSE = 0.75
# Layers by relative position, because encoders have 4 to 24 blocks.
RELATIVE_LAYERS = {
    # Translators: the last layer of an encoder.
    "last": N_("Last"),
    # Translators: of an encoder's layers.
    "last_third": N_("Last third"),
    "middle_third": N_("Middle third"),
    "first_third": N_("First third"),
    # Translators: every third layer of an encoder.
    "every_third": N_("Every 3rd"),
    # Translators: layers 6, 8, 10 and 12 of 12.
    "upper_alternate": N_("Every 2nd in the last half"),
    # Translators: all layers of an encoder.
    "every": N_("All"),
}
EMBEDDINGS = 0  # as a layer
# Placeholder for a number that `prepare` computes from the rest of the run.
AUTO = "auto"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One setting, with its bounds and its texts.

    The texts are in English; they are translated where they are shown.

    Attributes:
        default: None for a field that may be empty.
        low, high: bounds of the valid range; `low` itself is excluded if `above` is set, `high` if `below` is.
        choices: the valid values of a choice, and their display texts.
        words: display texts of other values, including None if the field may be empty.
        unit: unit of a number, in the plural.
        listed: whether a comparison lists it even at its default if another run lacks its section.
        slider: initial range of a slider, if the valid range is too wide for one.
        knob: whether the user may change it during a run.
        automatic: the display text of AUTO, if AUTO is a valid value.
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
        """Display texts by value, translated; values without one are shown unchanged."""
        layers: dict[Any, str] = {**RELATIVE_LAYERS, (EMBEDDINGS,): N_("Embeddings")} if self.kind == "layers" else {}
        left_open = {AUTO: self.automatic} if self.automatic else {}
        words = {**layers, **left_open, **(self.choices or {}), **self.words}
        return {value: _(word) for value, word in words.items()}

    @property
    def options(self) -> list[Any]:
        """Options of a choice, None first if it may be empty."""
        return [*([None] if None in self.words else []), *(self.choices or {})]

    def check(self, field: str, value: object) -> Value:
        """Return the value if it is valid.

        Raises: ConfigError naming the field, the value and a remedy.
        """
        if self.automatic and value == AUTO:
            return AUTO
        match self.kind:
            case "choice":
                choices = self.choices or {}
                if not isinstance(value, str) or value not in choices:
                    raise ConfigError(field, value, "choose one of {names}.", names=tuple(choices))
                return value
            case "switch":
                if not isinstance(value, bool):
                    raise ConfigError(field, value, "give true or false.")
                return value
            case "name":
                if not isinstance(value, str) or not 0 < len(value.strip()) <= LONGEST_NAME:
                    raise ConfigError(field, value, "give a name of 1 to {most} characters.", most=LONGEST_NAME)
                return value.strip()
            case "layers":
                if isinstance(value, str) and value in RELATIVE_LAYERS:
                    return value
                blocks = tuple(value) if isinstance(value, list | tuple) else ()
                if not blocks or not all(type(block) is int and EMBEDDINGS <= block <= 100 for block in blocks):
                    raise ConfigError(
                        field,
                        value,
                        "choose {names}, or give block numbers such as [2, 4]; 0 is the embeddings.",
                        names=tuple(RELATIVE_LAYERS),
                    )
                return tuple(sorted(set(blocks)))
            case _:
                return self._number(field, value)

    def _number(self, field: str, value: object) -> float | int:
        whole = self.kind == "integer"
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ConfigError(field, value, self.remedy)
        low_ok = self.low is None or (value > self.low if self.above else value >= self.low)
        high_ok = self.high is None or (value < self.high if self.below else value <= self.high)
        # NaN does not violate a missing bound, and a whole number may be too large for a float.
        if not (low_ok and high_ok and abs(value) <= sys.float_info.max) or (whole and value != int(value)):
            raise ConfigError(field, value, self.remedy)
        return int(value) if whole else float(value)

    @property
    def bounds(self) -> Text:
        """The valid range in words: "from 1 up to 4,096", "above 0 or auto"."""
        found: Text = ""
        low, high = ("" if bound is None else bound_text(bound) for bound in (self.low, self.high))
        if low and high:
            found = Message(RANGES[self.above, self.below], low=low, high=high)
        elif low:
            found = Message("above {low}", low=low) if self.above else Message("of at least {low}", low=low)
        elif high:
            found = Message("below {high}", high=high) if self.below else Message("of at most {high}", high=high)
        if not self.automatic:
            return found
        if not found:
            return Message("or {name}", name=AUTO)
        return Message("{bounds} or {automatic}", bounds=found, automatic=AUTO)

    @property
    def remedy(self) -> Message:
        """The remedy for an invalid value, such as "give a whole number of texts from 1 up to 4,096"."""
        whole = self.kind == "integer"
        if self.unit:
            remedy = N_("give a whole number of {unit} {bounds}.") if whole else N_("give a number of {unit} {bounds}.")
            return Message(remedy, bounds=self.bounds, unit=Message(self.unit))
        remedy = N_("give a whole number {bounds}.") if whole else N_("give a number {bounds}.")
        return Message(remedy, bounds=self.bounds)


# Keys: whether the lower bound and whether the upper bound is excluded.
RANGES = {
    (False, False): N_("from {low} up to {high}"),
    (True, False): N_("above {low} and at most {high}"),
    (False, True): N_("from {low} and below {high}"),
    (True, True): N_("above {low} and below {high}"),
}


def bound_text(bound: float) -> str:
    """Format a bound for display: 4,096, 0.5."""
    return f"{bound:,.0f}" if bound == int(bound) else f"{bound:g}"


def did_you_mean(name: object, known: Iterable[str]) -> Text:
    """Return a hint with the known name that an unknown field resembles; empty if it resembles none."""
    close = get_close_matches(str(name), known, 1, CLOSE)
    return Message("{name} is not a field; did you mean {meant}?", name=name, meant=close[0]) if close else ""


def check_parameters(
    owner: str, parameters: Sequence[Parameter], given: Mapping[str, Any], known: Iterable[str]
) -> dict[str, Any]:
    """Return `given` with its parameters checked and absent ones at their defaults.

    Args:
        owner: name of the parameters' owner, for the message.
        known: names that are not parameters and stay unchanged.
    Raises: ConfigError for an unknown name or an invalid value.
    """
    by_name = {p.name: p for p in parameters}
    unknown = sorted(set(given) - by_name.keys() - set(known))
    if unknown:
        takes = Message("{owner} takes {names}.", owner=owner, names=(*known, *by_name))
        raise ConfigError(unknown[0], given[unknown[0]], did_you_mean(unknown[0], [*known, *by_name]) or takes)
    return {**given, **{name: p.check(name, given.get(name, p.default)) for name, p in by_name.items()}}


def resolve_layers(choice: str | Sequence[int], blocks: int, field: str = "layers") -> tuple[int, ...]:
    """Return the numbers of the chosen layers, ascending; "layer l" is the output of block l, 0 that of the embeddings.

    Raises: ConfigError for a block that the encoder does not have.
    """
    third = -(-blocks // 3)  # rounded up
    middle = (blocks - third) // 2
    named = {
        "last": range(blocks, blocks + 1),
        "last_third": range(blocks - third + 1, blocks + 1),
        "middle_third": range(middle + 1, middle + third + 1),
        "first_third": range(1, third + 1),
        "every_third": range((blocks - 1) % 3 + 1, blocks + 1, 3),
        "upper_alternate": range(blocks - 2 * (third - 1), blocks + 1, 2),
        "every": range(1, blocks + 1),
    }
    numbers = tuple(named[choice] if isinstance(choice, str) else map(int, choice))
    if max(numbers) > blocks:
        raise ConfigError(
            field,
            max(numbers),
            "the encoder has {blocks}; give 0 to {last}.",
            blocks=Message("{count} block", "{count} blocks", count=blocks),
            last=blocks,
        )
    return numbers


def number(settings: Mapping[str, Value], name: str, absent: float = 0.0) -> float:
    """Return a checked numeric setting; `absent` if the owner has no such setting."""
    value = settings.get(name, absent)
    assert isinstance(value, int | float)
    return float(value)


def integer_setting(settings: Mapping[str, Value], name: str) -> int:
    """Return a checked integer setting; 0 if the owner has no such setting."""
    return int(number(settings, name))
