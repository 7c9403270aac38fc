"""How a loss or a view of the registry computes, as the plain call that it comes to with the settings of one run.

Its own function is run with pieces of text in the place of tensors, and writes down what it calls: the functions of its
module whose names begin without an underscore are named, the others are followed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType
from typing import Any, cast

from torch import Tensor

from core.config.term import TermConfig
from core.exports.script.literals import quoted
from core.exports.script.source_file import PROJECT, Home
from core.losses.evaluate import TermInput
from core.parameters import Value
from core.registry import load
from core.views.embedding import Embedded

LABELS = "labels"
INTO_ONE = "mean_of"
# Arguments that are said even where they are what a function takes by itself.
ALWAYS_SAID = ("temperature", "alpha")


class Text:
    """A piece of Python in the place of a tensor or a number."""

    def __init__(self, text: str, parts: int = 0) -> None:
        """`parts` is into how many a tensor of this text unbinds."""
        self.text, self.parts = text, parts

    def __repr__(self) -> str:
        return self.text

    def __getitem__(self, place: Any) -> Text:
        places = place if isinstance(place, tuple) else (place,)
        return Text(f"{self.text}[{', '.join(map(_index, places))}]")

    def unbind(self, axis: int) -> Unbound:
        return Unbound(f"{self.text}.unbind({axis})", self.parts)


class Unbound(Text):
    """A tensor in parts, as arguments of a call."""

    def __iter__(self) -> Iterator[Text]:
        yield Text(f"*{self.text}")


def tensor(text: str, parts: int = 0) -> Tensor:
    """Source text that acts as the tensor it names while a loss is traced."""
    return cast("Tensor", Text(text, parts))


def _index(place: Any) -> str:
    if isinstance(place, slice):
        ends = ["" if end is None else str(end) for end in (place.start, place.stop)]
        return ":".join(ends)
    return str(place)


class Traced:
    """A term's value in words.

    Attributes:
        call: the expression.
        total, pieces: what of its value is the loss, and the pieces that are recorded beside it, as texts with
            `{value}` where the value's name goes.
        functions: of the project, that the expression names.
    """

    def __init__(self, call: str, total: str, pieces: Mapping[str, str], functions: frozenset[Home]) -> None:
        self.call, self.total, self.pieces, self.functions = call, total, dict(pieces), functions


def traced(term: TermConfig, given: TermInput, settings: Mapping[str, Value | Text]) -> Traced:
    """What `compute` of the term's loss comes to.

    Args:
        given: its input, of texts.
        settings: its parameters; what is not the same at every step is a text.
    """
    functions: set[Home] = set()
    compute = load(term.entry.compute)
    assert isinstance(compute, FunctionType)
    value = _followed(compute, functions)(given, Text(LABELS), settings)
    if not isinstance(value, tuple):
        return Traced(str(value), "{value}", {}, frozenset(functions))
    total, pieces = value
    call = str(total).rpartition(".")[0]
    inside = {name: str(piece).replace(call, "{value}", 1) for name, piece in pieces.items()}
    return Traced(call, str(total).replace(call, "{value}", 1), inside, frozenset(functions))


def traced_change(change: Callable[..., Any], texts: str, gradient: str, settings: Mapping[str, Value]) -> Traced:
    """What a view makes of embeddings, owners and special tokens; its call is "embeddings" where it changes nothing.

    Args:
        texts: the numbers of the texts to change.
        gradient: of a view that follows one.
    """
    functions: set[Home] = set()
    given = Embedded(
        tensor("embeddings"), tensor("owners"), tensor("special"), cast("Any", Text(texts)), tensor(gradient)
    )
    assert isinstance(change, FunctionType)
    call = str(_followed(change, functions)(given, settings))
    return Traced(call, "{value}", {}, frozenset(functions))


def _followed(function: FunctionType, functions: set[Home]) -> Callable[..., Any]:
    """The function with those that it names replaced."""
    names: dict[str, Any] = dict(function.__globals__)
    for name, one in function.__globals__.items():
        if name in ("number", "whole"):
            names[name] = lambda settings, name: settings[name]
        elif isinstance(one, FunctionType) and one.__module__.startswith(f"{PROJECT}."):
            names[name] = _recorder(one, functions)
    for name, one in function.__globals__.items():
        if isinstance(one, FunctionType) and name.startswith("_") and one.__module__ == function.__module__:
            names[name] = FunctionType(one.__code__, names, name, one.__defaults__, one.__closure__)
    return FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)


def _recorder(function: FunctionType, functions: set[Home]) -> Callable[..., Any]:
    """Writes a call down instead of making it."""

    def record(*given: Any, **settings: Any) -> Any:
        if function.__name__ == INTO_ONE and len(given[0]) == 1:
            return given[0][0]
        functions.add(Home(function.__module__, function.__name__))
        defaults = {name: one.default for name, one in inspect.signature(function).parameters.items()}
        said = [f"{name}={_text(value)}" for name, value in settings.items() if _is_said(name, value, defaults)]
        call = f"{function.__name__}({', '.join([*map(_text, given), *said])})"
        fields = getattr(_returned(function), "_fields", None)
        return Text(call) if fields is None else _returned(function)(*(Text(f"{call}.{name}") for name in fields))

    return record


def _text(value: object) -> str:
    return quoted(value) if isinstance(value, str) else repr(value)


def _is_said(name: str, value: Any, defaults: Mapping[str, Any]) -> bool:
    return name in ALWAYS_SAID or isinstance(value, Text) or value != defaults.get(name, inspect.Parameter.empty)


def _returned(function: FunctionType) -> Any:
    """The class that a function's annotation names, where its module has it."""
    return function.__globals__.get(str(function.__annotations__.get("return")))
