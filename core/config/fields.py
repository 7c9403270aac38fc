"""Sections of a config: their fields as parameters with bounds, texts and units, and remedies for invalid values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from types import MappingProxyType, NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from core.errors import ConfigError, PlaygroundError
from core.messages import N_, Message, Text
from core.parameters import Kind, Parameter, bound_text, did_you_mean

KINDS: Mapping[Any, Kind] = {int: "integer", float: "number", bool: "switch", str: "name"}


@dataclass(frozen=True, slots=True)
class FieldDisplay:
    """Metadata of a field that pydantic's `Field` cannot hold; see `setting`."""

    words: Mapping[Any, str] = field(default_factory=dict)
    unit: str = ""
    listed: bool = False


def setting(
    default: Any,
    title: str,
    description: str,
    words: Mapping[Any, str] | None = None,
    *,
    unit: str = "",
    listed: bool = False,
    **bounds: Any,
) -> Any:
    """Declare a field that forms show; its texts are marked with `N_`.

    Args:
        words: display texts of values; other values are shown unchanged. A field that may be None has a text for None.
        unit: unit of a number, in the plural.
        listed: whether a comparison lists the field even at its default if another run lacks its section.
        bounds: as in pydantic's `Field`.
    """
    declared = Field(default, title=title, description=description, **bounds)
    declared.metadata.append(FieldDisplay(words or {}, unit, listed))
    return declared


@lru_cache
def fields_of(section: type[BaseModel]) -> Mapping[str, Parameter]:
    """Return the fields of a section that have a title, by name and in order."""
    parameters = {}
    for name, info in section.model_fields.items():
        if not info.title:
            continue
        shown = next((one for one in info.metadata if isinstance(one, FieldDisplay)), FieldDisplay())
        kinds = [kind for kind in get_args(info.annotation) if kind is not NoneType]
        optional = NoneType in get_args(info.annotation)
        kind = kinds[0] if optional else info.annotation
        choices = None
        if get_origin(kind) is Literal:
            choices = {value: shown.words.get(value, str(value)) for value in get_args(kind)}
        elif kind is bool and optional:
            choices = {value: shown.words[value] for value in (True, False)}
        parameters[name] = Parameter(
            name,
            info.title,
            None if info.default_factory else info.default,
            info.description or "",
            kind="choice" if choices else KINDS.get(kind, "name"),
            low=_bound(info, Ge, Gt),
            high=_bound(info, Le, Lt),
            above=any(isinstance(one, Gt) for one in info.metadata),
            below=any(isinstance(one, Lt) for one in info.metadata),
            choices=choices,
            words=shown.words,
            unit=shown.unit,
            listed=shown.listed,
        )
    return MappingProxyType(parameters)


def field_at(root: type[BaseModel], path: str) -> Parameter | None:
    """Return the field at a path that starts at `root` or at any section in it; numbers in the path are skipped.

    Both `phases.0.optimiser.learning_rate` and `learning_rate` give the rate. None if no field with a title matches.
    """
    *names, last = [name for name in path.split(".") if not name.isdecimal()] or [""]
    for section in _sections(root):
        here = _section_at(section, names)
        if here and last in fields_of(here):
            return fields_of(here)[last]
    return None


@lru_cache
def _sections(root: type[BaseModel]) -> tuple[type[BaseModel], ...]:
    """Return a section and all sections within it, the outer ones first."""
    inner = [found for name in root.model_fields if (found := _section_at(root, [name]))]
    return (root, *inner, *chain.from_iterable(_sections(section)[1:] for section in inner))


def _section_at(root: type[BaseModel], path: Iterable[str | int]) -> type[BaseModel] | None:
    """Return the section at a path, through fields that hold a section or a list of sections; numbers are skipped."""
    here: type[BaseModel] | None = root
    for name in path:
        if isinstance(name, str):
            info = here.model_fields.get(name) if here else None
            kinds = (info.annotation, *get_args(info.annotation)) if info else ()
            here = next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), None)
    return here


def _bound(info: FieldInfo, *kinds: type) -> float | None:
    """Return a bound; annotated_types stores it under the name of its class in lower case."""
    return next((getattr(one, type(one).__name__.lower()) for one in info.metadata if isinstance(one, kinds)), None)


# Characters shown on either side of a JSON error.
AROUND = 20
Model = TypeVar("Model", bound=BaseModel)


class Section(BaseModel):
    """A part of a configuration. It is frozen and rejects unknown fields."""

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
    """Return the error for invalid JSON, with the characters around the error, its line and its column.

    Args:
        remedy: what to give instead, as the end of a sentence.
    """
    if not isinstance(error, json.JSONDecodeError):
        return ConfigError(field, str(error), remedy)
    line = (error.doc.split("\n"))[error.lineno - 1]
    around = line[max(0, error.colno - 1 - AROUND) : error.colno - 1 + AROUND].strip()
    place = {"line": error.lineno, "column": error.colno}
    return ConfigError(
        field, around, "it is not valid JSON (line {line}, column {column}); {remedy}", remedy=remedy, **place
    )


def _remedy(model: type[BaseModel], error: ErrorDetails) -> Text:
    """Return the remedy for a pydantic error; pydantic's message if the project has none."""
    kind, path, given = error["type"], error["loc"], error.get("ctx", {})
    if kind in OUT_OF_BOUNDS:
        known = field_at(model, ".".join(map(str, path)))
        if known is not None and known.kind in ("number", "integer"):
            return known.remedy
        # A number without a titled field, such as a step in a list.
        bounds = {name: bound_text(bound) for name, bound in given.items() if not isinstance(bound, str)}
        return Message(OUT_OF_BOUNDS[kind], **bounds)
    if kind in UNFIT:
        length = given.get("min_length", given.get("max_length"))
        if length is None:
            return Message(UNFIT[kind], **given)
        return Message(UNFIT[kind], length=Message("{count} character", "{count} characters", count=length))
    if kind == "literal_error":
        others, has_others, last = given["expected"].rpartition(" or ")
        if not has_others:
            return Message("choose {name}.", name=last)
        return Message("choose {names} or {last}.", names=others, last=last)
    # The value has the wrong structure for its field.
    above = _section_at(model, path[:-1] if kind == "extra_forbidden" else path)
    names = tuple(above.model_fields) if above else ()
    match kind:
        case "extra_forbidden" if not names:
            return Message("{name} is not a field; remove it.", name=path[-1])
        case "extra_forbidden":
            meant = did_you_mean(path[-1], names)
            return meant or Message("{name} is not a field; the fields are {names}.", name=path[-1], names=names)
        case "missing":
            return Message("it is missing, and has no default.")
        case "model_type":
            return Message("give an object with {names}.", names=names)
        case "tuple_type" if isinstance(error["input"], int | str) and not names:
            return Message("give a list, such as {example}.", example=json.dumps([error["input"]], ensure_ascii=False))
        case "tuple_type":
            return Message("give a list.")
    return re.sub(r"^\w+ should", "it should", error["msg"]) + "."


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
# Remedies for a text or a switch.
UNFIT = {
    "string_type": N_("it should be a valid string."),
    "string_too_short": N_("it should have at least {length}."),
    "string_too_long": N_("it should have at most {length}."),
    "string_pattern_mismatch": N_("it should match pattern '{pattern}'."),
    "bool_type": N_("give true or false."),
    "bool_parsing": N_("give true or false."),
}
