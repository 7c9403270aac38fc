"""What a field of a config is for people: its title, help, unit, bounds and values in words, read off the field.

They are kept for good, and therefore in English, until they are shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from types import MappingProxyType, NoneType
from typing import Any, Literal, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from core.parameters import Kind, Parameter

KINDS: Mapping[Any, Kind] = {int: "integer", float: "number", bool: "switch", str: "name"}


@dataclass(frozen=True, slots=True)
class Shown:
    """What pydantic's own `Field` has no place for, beside it in the field's annotation; its texts marked with `N_`.

    Attributes:
        words: what people read for a value; other values are read as they are. A field that may be None has words for
            None.
        unit: what a number counts, in the plural.
        listed: whether it is listed even at its default where other runs lack what it belongs to.
    """

    words: Mapping[Any, str] = field(default_factory=dict)
    unit: str = ""
    listed: bool = False


@lru_cache
def fields_of(section: type[BaseModel]) -> Mapping[str, Parameter]:
    """The fields of a section that have a title, by name and in order."""
    titled = ((name, info) for name, info in section.model_fields.items() if info.title)
    return MappingProxyType({name: _parameter(name, info) for name, info in titled})


def field_at(root: type[BaseModel], path: str) -> Parameter | None:
    """The field that a path leads to, from `root` or from any section in it; numbers in the path are skipped.

    So both `phases.0.optimiser.learning_rate` and `learning_rate` lead to the rate. None where none has a title.
    """
    *names, last = [name for name in path.split(".") if not name.isdecimal()] or [""]
    for section in _sections(root):
        here: type[BaseModel] | None = section
        for name in names:
            here = _section_in(here.model_fields[name]) if here and name in here.model_fields else None
        if here and last in fields_of(here):
            return fields_of(here)[last]
    return None


@lru_cache
def _sections(root: type[BaseModel]) -> tuple[type[BaseModel], ...]:
    """A section and all within it, the outer ones first."""
    inner = [found for info in root.model_fields.values() if (found := _section_in(info))]
    return (root, *inner, *chain.from_iterable(_sections(section)[1:] for section in inner))


def _section_in(info: FieldInfo) -> type[BaseModel] | None:
    """The section that a field holds, or holds a list of."""
    kinds = (info.annotation, *get_args(info.annotation))
    return next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), None)


def _parameter(name: str, info: FieldInfo) -> Parameter:
    shown = next((one for one in info.metadata if isinstance(one, Shown)), Shown())
    kinds = [kind for kind in get_args(info.annotation) if kind is not NoneType]
    optional = NoneType in get_args(info.annotation)
    kind = kinds[0] if optional else info.annotation
    choices = None
    if get_origin(kind) is Literal:
        choices = {value: shown.words.get(value, str(value)) for value in get_args(kind)}
    elif kind is bool and optional:
        choices = {value: shown.words[value] for value in (True, False)}
    return Parameter(
        name,
        info.title or name,
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


def _bound(info: FieldInfo, *kinds: type) -> float | None:
    """What annotated_types calls ge, gt, le or lt, after the class."""
    return next((getattr(one, type(one).__name__.lower()) for one in info.metadata if isinstance(one, kinds)), None)
