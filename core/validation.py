"""Validated, frozen parts of a configuration, and one sentence for what is wrong with one."""

from __future__ import annotations

import re
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from core.errors import ConfigError, PlaygroundError

Model = TypeVar("Model", bound=BaseModel)


class Part(BaseModel):
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
        remedy = re.sub(r"^\w+ should", "it should", first["msg"])
        match first["type"]:
            case "extra_forbidden":
                names = _fields_at(model, first["loc"][:-1])
                remedy = f"there is no such field; {f'known are {names}' if names else 'remove it'}"
            case "missing":
                remedy = "it is missing, and has no default"
            case "model_type":
                remedy = f"give an object with {_fields_at(model, first['loc'])}"
            case "tuple_type":
                remedy = "give a list"
        raise ConfigError(field, first["input"], f"{remedy.rstrip('.')}.") from None


def _fields_at(model: type[BaseModel], path: tuple[int | str, ...]) -> str:
    """The names of the fields that exist at a place."""
    here: Any = model
    for part in path:
        if isinstance(part, str) and part in getattr(here, "model_fields", {}):
            here = here.model_fields[part].annotation
            here = next((a for a in getattr(here, "__args__", ()) if hasattr(a, "model_fields")), here)
    return ", ".join(here.model_fields) if hasattr(here, "model_fields") else ""
