"""A module of the project as its definitions, each with its own text, and what its names mean."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from core.exports.script.english import in_english
from core.exports.script.text_edits import first_line, with_remarks

PROJECT = "core"


class Home(NamedTuple):
    """Where something is defined."""

    module: str
    name: str


class Outside(NamedTuple):
    """An import from another project: a module, or a name of it."""

    module: str
    name: str | None
    alias: str


# What a name of a module means: a definition of the project, one of its modules, or something from outside.
Meaning = Home | str | Outside


@dataclass(frozen=True)
class SourceFile:
    """One module.

    Attributes:
        about: the first sentence of its docstring.
        definitions: text of functions, classes and assignments at the top level, with the comments above them.
        meanings: what its imported names mean.
        order: the modules of the project that it imports.
    """

    name: str
    about: str
    definitions: Mapping[str, str]
    meanings: Mapping[str, Meaning]
    order: tuple[str, ...]


@lru_cache(maxsize=256)
def source_file(module: str) -> SourceFile:
    """Read a module without importing it. Raises: ImportError for one that is not there."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise ImportError(f"{module} has no source")
    text = Path(spec.origin).read_text(encoding="utf-8")
    tree = ast.parse(text)
    lines = text.splitlines()
    definitions: dict[str, str] = {}
    meanings: dict[str, Meaning] = {}
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            meanings |= _imported(node)
        else:
            definitions |= dict.fromkeys(_names(node), _text(node, lines))
    docstring = (ast.get_docstring(tree) or "").split("\n\n", maxsplit=1)[0].replace("\n", " ")
    order = [one.module if isinstance(one, Home) else one for one in meanings.values() if not isinstance(one, Outside)]
    return SourceFile(module, docstring, definitions, meanings, tuple(dict.fromkeys(order)))


def _imported(node: ast.Import | ast.ImportFrom) -> dict[str, Meaning]:
    found: dict[str, Meaning] = {}
    for alias in node.names:
        name = alias.asname or alias.name.split(".")[0]
        if isinstance(node, ast.Import):
            found[name] = Outside(alias.name, None, alias.asname or "")
        elif not (node.module or "").startswith(PROJECT):
            found[name] = Outside(node.module or "", alias.name, alias.asname or "")
        else:
            found[name] = _of_project(str(node.module), alias.name)
    return found


@lru_cache(maxsize=1024)
def _of_project(module: str, name: str) -> Meaning:
    """A module, or a definition where it is written: a package hands on what its modules define."""
    if _is_module(f"{module}.{name}"):
        return f"{module}.{name}"
    if _is_package(module) and name not in source_file(module).definitions:
        return source_file(module).meanings.get(name, Home(module, name))
    source = source_file(module)
    if name not in source.definitions and name in source.meanings:
        return source.meanings[name]
    return Home(module, name)


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _is_package(name: str) -> bool:
    spec = importlib.util.find_spec(name)
    return spec is not None and spec.submodule_search_locations is not None


def _names(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    return []


def _text(node: ast.stmt, lines: list[str]) -> str:
    """A statement with its decorators and the comment lines right above it, its messages in English."""
    first = with_remarks(first_line(node), lines)
    return in_english("\n".join(lines[first - 1 : node.end_lineno]))
