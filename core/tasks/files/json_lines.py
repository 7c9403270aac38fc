"""JSON lines: one object on each line, its values as texts; numbers as they are written."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

Line = tuple[int, dict[str, str] | None]

DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)


def json_lines(lines: Iterable[str]) -> Iterator[Line]:
    """Yield the number of each line that is not blank, from 1, with its object's values; None for what is no object."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield number, _texts(line)


def _texts(line: str) -> dict[str, str] | None:
    try:
        found = DECODER.decode(line)
        if not isinstance(found, dict):
            return None
        if any(isinstance(value, list | dict) for value in found.values()):
            # Numbers within other values differ from texts.
            found |= {key: value for key, value in json.loads(line).items() if isinstance(value, list | dict)}
        if "\\u" in line:  # an escaped half of a character is no text
            json.dumps(found, ensure_ascii=False).encode()
        return {key: _text(value) for key, value in found.items()}
    except (ValueError, RecursionError):
        return None


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)
