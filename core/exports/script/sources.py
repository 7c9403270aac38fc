"""Definitions of the project as they are written, with all that they use, for a file that cannot import the project."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections import defaultdict
from collections.abc import Mapping
from functools import cache


class SourceError(Exception):
    """What a file should hold does not fit into one."""


class Sources:
    """Collects definitions by module and name, each once, behind those that it uses."""

    def __init__(self, known: Mapping[str, str]) -> None:
        """`known`: names that the file defines in its own way, and how; `packages`: those whose code is taken over."""
        self.imports: dict[str, set[str]] = defaultdict(set)
        self.packages = {"core"}
        self.texts: dict[str, str] = {}
        self._homes: dict[str, str] = {}
        self._known = known

    def add(self, module: str, name: str) -> None:
        """Take a definition over. Raises: SourceError for a name that something else has, or that is a module."""
        node, text = _definitions(module).get(name, (None, ""))
        if name in self._known:
            self.texts[name] = self._known[name]
            return
        if node is None:
            raise SourceError(f"{module} has no definition of {name}")
        if isinstance(node, ast.Import | ast.ImportFrom):
            found = next(alias for alias in node.names if (alias.asname or alias.name).partition(".")[0] == name)
            wanted = ast.unparse(found)
            if isinstance(node, ast.Import):
                self.imports[f"import {wanted}"] |= set()
            elif str(node.module).partition(".")[0] in self.packages:
                self.add(str(node.module), found.name)
            else:
                self.imports[f"from {node.module} import"].add(wanted)
            return
        if (home := self._homes.setdefault(name, module)) != module:
            raise SourceError(f"{home} and {module} both define {name}")
        if name in self.texts:
            return
        self.texts[name] = ""  # on its way: a definition may use itself
        for used in ast.walk(node):
            if isinstance(used, ast.Name) and used.id != name and used.id in _definitions(module):
                self.add(module, used.id)
        del self.texts[name]
        self.texts[name] = text


@cache
def _definitions(module: str) -> dict[str, tuple[ast.stmt, str]]:
    """The names that a module defines or imports at its top, with the statements and their text."""
    source = inspect.getsource(importlib.import_module(module))
    lines, found = source.split("\n"), dict[str, tuple[ast.stmt, str]]()
    for node in ast.parse(source).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [(alias.asname or alias.name).partition(".")[0] for alias in node.names]
        elif isinstance(node, ast.Assign):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        else:
            given = getattr(node, "name", None) or getattr(getattr(node, "target", None), "id", None)
            names = [given] if given else []
        first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])
        found |= dict.fromkeys(names, (node, "\n".join(lines[first - 1 : node.end_lineno])))
    return found
