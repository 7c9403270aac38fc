"""Wording of docstrings and messages, by the first two rules of our style."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

from tests.catalogues import ROOT, code_messages
from tests.structure import statements

FOLDERS = ("core", "pages", "benchmarks", "tests")
OPENER = re.compile(r"(What|Which|Whether|How|Where|Who|Of|As|That|Have)\b(?![^.:;]*\?)")
ACTOR = re.compile(r"\b(somebody|nobody|whoever|people|what is there|the one that)\b", re.IGNORECASE)


@cache
def docstrings() -> list[tuple[str, str]]:
    """Return the file, line and text of every docstring."""
    found = []
    for path in [ROOT / "app.py", *(file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py"))]:
        for node in statements(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node)
                if text is not None:
                    found.append((f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}", text))
    return found


def messages() -> Iterator[tuple[str, str]]:
    """Yield the source file and text of every message that visitors read."""
    for message in code_messages():
        for text in message.id if isinstance(message.id, tuple) else (message.id,):
            if text:
                yield message.locations[0][0], text


def test_docstrings_and_messages_open_with_a_verb_or_a_noun_unless_they_ask() -> None:
    assert [(place, text) for place, text in [*docstrings(), *messages()] if OPENER.match(text)] == []


def test_docstrings_and_messages_name_the_actor() -> None:
    assert [(place, text) for place, text in [*docstrings(), *messages()] if ACTOR.search(text)] == []
