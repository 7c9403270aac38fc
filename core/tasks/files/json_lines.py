"""JSON lines: an object on each line, its values as texts; numbers as the file writes them, within other values too."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Verbatim(str):
    """What goes into JSON as it is: a number as the file writes it, of any length and precision."""

    __slots__ = ()


DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)
# Slower, and needed only within lists and objects, where a number differs from a text.
NESTED_DECODER = json.JSONDecoder(parse_int=Verbatim, parse_float=Verbatim, parse_constant=Verbatim)
NESTED = frozenset({list, dict})


class Line(NamedTuple):
    """A line that is not blank.

    Attributes:
        number: from 1.
        values: of its object, numbers as they are written; None for what is no JSON object.
    """

    number: int
    source: str
    values: dict[Any, Any] | None

    def texts(self, keys: Iterable[str | None]) -> tuple[str, ...]:
        """The value of each key as text: lists and objects as JSON, nothing for null or where there is none."""
        found = [(self.values or {}).get(key) for key in keys]
        if not NESTED.isdisjoint(map(type, found)):
            nested = NESTED_DECODER.decode(self.source)
            found = [nested.get(key) for key in keys]
        return tuple(map(_text, found))


@dataclass
class Keys:
    """What one pass over JSON lines finds.

    Attributes:
        first_lines: every key with the line where it comes first.
        preview: the beginnings of the values of the first rows, and of those where another key comes up.
        line: the first one that is not blank.
    """

    first_lines: dict[str, int] = field(default_factory=dict)
    preview: list[dict[str, str]] = field(default_factory=list)
    line: int = 1


def all_keys(lines: Iterable[Line], most: int, rows: int, chars: int) -> Keys:
    """Every key, as one that comes late in the file is a column too; no further than one key more than `most`.

    Args:
        rows, chars: how many rows, and how many characters of each value, a preview has.
    """
    found = Keys()
    for count, line in enumerate(lines):
        if not count:
            found.line = line.number
        keys = (line.values or {}).keys()
        more = not keys <= found.first_lines.keys()
        if more:
            for key in keys:
                found.first_lines.setdefault(key, line.number)
        if more or count < rows:
            found.preview.append({key: text[:chars] for key, text in zip(keys, line.texts(keys), strict=True)})
        if len(found.first_lines) > most:
            break
    return found


def json_lines(lines: Iterable[str]) -> Iterator[Line]:
    """The lines that are not blank, with the object of each."""
    for number, source in enumerate(lines, 1):
        if not source.strip():
            continue
        try:
            found = DECODER.decode(source)
            if "\\u" in source:  # an escaped half of a character is no text
                json.dumps(found, ensure_ascii=False).encode()
        except (ValueError, RecursionError):
            found = None
        yield Line(number, source, found if isinstance(found, dict) else None)


def _text(value: Any) -> str:
    match value:
        case str():
            return value
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case _:
            return _json(value)


def _json(value: Any) -> str:
    """A list or an object as JSON, however deep it is; numbers as they are, characters beyond ASCII unescaped."""
    pieces: list[str] = []
    ahead = [value]  # the next one last
    while ahead:
        match ahead.pop():
            case Verbatim() as text:
                pieces.append(text)
            case list() as items:
                ahead += reversed(_enclosed("[", [[item] for item in items], "]"))
            case dict() as members:
                entries = [[key, Verbatim(": "), member] for key, member in members.items()]
                ahead += reversed(_enclosed("{", entries, "}"))
            case other:
                pieces.append(json.dumps(other, ensure_ascii=False))
    return "".join(pieces)


def _enclosed(start: str, entries: list[list[Any]], end: str) -> list[Any]:
    """Entries with commas between them, in brackets."""
    parts: list[Any] = [Verbatim(start)]
    for number, entry in enumerate(entries):
        parts += [Verbatim(", "), *entry] if number else entry
    return [*parts, Verbatim(end)]
