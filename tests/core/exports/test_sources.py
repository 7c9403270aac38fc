"""Definitions are copied with all that they use, each once."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from core.exports.script.sources import SourceError, Sources

FIRST = """
import math
import os.path
from functools import cache as kept
from taken_second import Base, helped as helped

LIMIT = 2 * math.pi

@kept
def again(n: int) -> float:
    return LIMIT if n == 0 else again(n - 1)

class Child(Base):
    def use(self) -> float:
        return again(3) + helped() + len(os.path.sep)

def unused() -> None:
    raise NotImplementedError
"""
SECOND = """
class Base:
    pass

def helped() -> int:
    return 1

LIMIT = 5

def other() -> int:
    return LIMIT
"""


@pytest.fixture(autouse=True)
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    for name, text in (("taken_first", FIRST), ("taken_second", SECOND)):
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)


def taken() -> Sources:
    sources = Sources({})
    sources.packages = {"taken_first", "taken_second"}
    sources.add("taken_first", "Child")
    return sources


def test_what_is_taken_computes_the_same_without_its_modules() -> None:
    sources = taken()
    lines = [f"{origin} {', '.join(names)}" for origin, names in sources.imports.items()]
    made = ModuleType("made")
    exec("\n\n".join([*lines, *sources.texts.values()]), made.__dict__)
    import taken_first

    assert made.Child().use() == taken_first.Child().use()
    assert not hasattr(made, "unused")
    assert "taken" not in "".join(lines)


def test_two_definitions_of_one_name_or_none_are_refused() -> None:
    with pytest.raises(SourceError, match="taken_first and taken_second both define LIMIT"):
        taken().add("taken_second", "other")
    with pytest.raises(SourceError, match="taken_first has no plain definition of nothing"):
        taken().add("taken_first", "nothing")


def test_a_name_that_a_file_defines_in_its_own_way_is_not_taken() -> None:
    sources = Sources({"number": "number = float"})
    sources.add("core.losses.rdrop", "rdrop_term")
    assert sources.texts["number"] == "number = float"


@pytest.mark.parametrize(
    "text",
    [
        "import taken_first as first\ndef loss():\n    return first.again(1)",
        "from .taken_second import helped\ndef loss():\n    return helped()",
        "TABLE = {}\nTABLE['a'] = 1\ndef loss():\n    return TABLE",
        "A = 1\nA += 1\ndef loss():\n    return A",
        "SEED = 7\ndef loss():\n    return SEED",
    ],
)
def test_what_would_mean_something_else_in_one_file_is_refused(text: str, tmp_path: Path) -> None:
    name = f"taken_{abs(hash(text))}"
    (tmp_path / f"{name}.py").write_text(text)
    sources = Sources({}, ["SEED"])
    sources.packages = {name}
    with pytest.raises(SourceError):
        sources.add(name, "loss")
