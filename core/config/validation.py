"""Validated, frozen parts of a configuration, and one sentence for what is wrong with one."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from core.config.fields import field_at
from core.errors import ConfigError, PlaygroundError
from core.messages import N_, Message, Text
from core.parameters import bound_text, did_you_mean

# Characters that are shown on either side of what is no JSON.
AROUND = 20
Model = TypeVar("Model", bound=BaseModel)


class Section(BaseModel):
    """A part of a configuration: frozen, and without fields that nobody knows."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, validate_default=True)


def build(model: type[Model], given: Any) -> Model:
    """Validate a part of a configuration.

    Raises: ConfigError with one sentence that names field, value and remedy.
    """
    try:
        return model.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        cause = first.get("ctx", {}).get("error")
        if isinstance(cause, PlaygroundError):
            raise cause from None
        field = ".".join(str(part) for part in first["loc"]) or "config"
        raise ConfigError(field, first["input"], _remedy(model, first)) from None


def not_json(field: str, error: ValueError | RecursionError, remedy: Text) -> ConfigError:
    """The error for a text that is no JSON: the characters around the place, its line and its column.

    Args:
        remedy: what to give instead, as the end of a sentence.
    """
    if not isinstance(error, json.JSONDecodeError):
        return ConfigError(field, str(error), remedy)
    line = (error.doc.split("\n"))[error.lineno - 1]
    around = line[max(0, error.colno - 1 - AROUND) : error.colno - 1 + AROUND].strip()
    place = {"line": error.lineno, "column": error.colno}
    return ConfigError(
        field, around, "from line {line}, column {column} on it is not JSON; {remedy}", remedy=remedy, **place
    )


def _remedy(model: type[BaseModel], error: ErrorDetails) -> Text:
    """What would work instead; pydantic's own words where nobody has others."""
    if error["type"] in OUT_OF_BOUNDS:
        path = ".".join(map(str, error["loc"]))
        known = field_at(model, path)
        return known.remedy if known is not None and known.kind in ("number", "integer") else _plain_bound(error)
    if error["type"] == "literal_error":
        others, has_others, last = error["ctx"]["expected"].rpartition(" or ")
        return (
            Message("choose {names} or {last}.", names=others, last=last)
            if has_others
            else Message("choose {name}.", name=last)
        )
    return _structural(model, error)


OUT_OF_BOUNDS = {
    "int_parsing": N_("give a whole number."),
    "int_type": N_("give a whole number."),
    "int_from_float": N_("give a whole number."),
    "float_parsing": N_("give a number."),
    "float_type": N_("give a number."),
    "finite_number": N_("give a number."),
    "greater_than_equal": N_("give {ge} or more."),
    "less_than_equal": N_("give {le} or less."),
    "greater_than": N_("give a number above {gt}."),
    "less_than": N_("give a number below {lt}."),
}


def _plain_bound(error: ErrorDetails) -> Message:
    """For a number that is no described field, such as a step of a list."""
    bounds = {name: bound_text(bound) for name, bound in error.get("ctx", {}).items() if not isinstance(bound, str)}
    remedy = OUT_OF_BOUNDS[error["type"]]
    return Message(remedy, **bounds)


def _structural(model: type[BaseModel], error: ErrorDetails) -> Text:
    match error["type"]:
        case "extra_forbidden":
            names = _fields_at(model, error["loc"][:-1])
            if not names:
                return Message("there is no such field; remove it.")
            meant = did_you_mean(error["loc"][-1], names)
            return meant or Message("there is no such field; known are {names}.", names=tuple(names))
        case "missing":
            return Message("it is missing, and has no default.")
        case "model_type":
            return Message("give an object with {names}.", names=tuple(_fields_at(model, error["loc"])))
        case "tuple_type" if isinstance(error["input"], int | str) and not _fields_at(model, error["loc"]):
            return Message("give a list, such as {example}.", example=json.dumps([error["input"]], ensure_ascii=False))
        case "tuple_type":
            return Message("give a list.")
    said = re.sub(r"^\w+ should", "it should", error["msg"])
    return _unfit(error["type"], error.get("ctx", {})) or f"{said}."


def _unfit(kind: str, found: Mapping[str, Any]) -> Message | None:
    """Return the remedy for a text, a switch or a list; None where the project has no sentence of its own."""
    match kind:
        case "string_type":
            return Message("it should be a valid string.")
        case "string_too_short":
            return Message(
                "it should have at least {length}.",
                length=Message("{count} character", "{count} characters", count=found["min_length"]),
            )
        case "string_too_long":
            return Message(
                "it should have at most {length}.",
                length=Message("{count} character", "{count} characters", count=found["max_length"]),
            )
        case "string_pattern_mismatch":
            return Message("it should match pattern '{pattern}'.", pattern=found["pattern"])
        case "bool_type":
            return Message("it should be a valid boolean.")
        case "bool_parsing":
            return Message("it should be a valid boolean, unable to interpret input.")
    return None


def _fields_at(model: type[BaseModel], path: tuple[int | str, ...]) -> tuple[str, ...]:
    """The names of the fields that exist at a place."""
    here: Any = model
    for part in path:
        if isinstance(part, str) and part in getattr(here, "model_fields", {}):
            here = here.model_fields[part].annotation
            here = next((a for a in getattr(here, "__args__", ()) if hasattr(a, "model_fields")), here)
    return tuple(getattr(here, "model_fields", ()))
