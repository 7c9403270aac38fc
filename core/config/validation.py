"""Validated, frozen parts of a configuration, and one sentence for what is wrong with one."""

from __future__ import annotations

import re
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from core.config.fields import field_at
from core.errors import ConfigError, PlaygroundError
from core.parameters import bound_text

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
        raise ConfigError(field, first["input"], f"{_remedy(model, first).rstrip('.')}.") from None


def _remedy(model: type[BaseModel], error: ErrorDetails) -> str:
    """What would work instead; pydantic's own words where they say it."""
    if error["type"] in OUT_OF_BOUNDS:
        path = ".".join(map(str, error["loc"]))
        known = field_at(model, path)
        return known.remedy if known is not None and known.kind in ("number", "integer") else _plain_bound(error)
    if error["type"] == "literal_error":
        return f"choose {error['ctx']['expected']}"
    return _structural(model, error)


OUT_OF_BOUNDS = {
    "int_parsing": "give a whole number",
    "int_type": "give a whole number",
    "int_from_float": "give a whole number",
    "float_parsing": "give a number",
    "float_type": "give a number",
    "finite_number": "give a number",
    "greater_than_equal": "give {ge} or more",
    "less_than_equal": "give {le} or less",
    "greater_than": "give a number above {gt}",
    "less_than": "give a number below {lt}",
}


def _plain_bound(error: ErrorDetails) -> str:
    """For a number that is no described field, such as a step of a list."""
    bounds = {name: bound_text(bound) for name, bound in error.get("ctx", {}).items() if not isinstance(bound, str)}
    return OUT_OF_BOUNDS[error["type"]].format(**bounds)


def _structural(model: type[BaseModel], error: ErrorDetails) -> str:
    match error["type"]:
        case "extra_forbidden":
            names = _fields_at(model, error["loc"][:-1])
            return f"there is no such field; {f'known are {names}' if names else 'remove it'}"
        case "missing":
            return "it is missing, and has no default"
        case "model_type":
            return f"give an object with {_fields_at(model, error['loc'])}"
        case "tuple_type":
            return "give a list"
    return re.sub(r"^\w+ should", "it should", error["msg"])


def _fields_at(model: type[BaseModel], path: tuple[int | str, ...]) -> str:
    """The names of the fields that exist at a place."""
    here: Any = model
    for part in path:
        if isinstance(part, str) and part in getattr(here, "model_fields", {}):
            here = here.model_fields[part].annotation
            here = next((a for a in getattr(here, "__args__", ()) if hasattr(a, "model_fields")), here)
    return ", ".join(here.model_fields) if hasattr(here, "model_fields") else ""
