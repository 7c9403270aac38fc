"""Copy definitions of the project and their dependencies into a file that cannot import the project."""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache

INSTALLED = {*sys.stdlib_module_names, "torch", "transformers", "numpy"}


class SourceError(Exception):
    """A definition cannot be copied into a single file."""


class Sources:
    """Definitions by name, each once and after its dependencies."""

    def __init__(self, known: Mapping[str, str], own: Iterable[str] = ()) -> None:
        """Start an empty collection.

        Args:
            known: names in core that the file redefines → their definitions.
            own: names that the file itself assigns.
        """
        self.imports: dict[str, set[str]] = defaultdict(set)
        self.packages = {"core"}
        self.texts: dict[str, str] = {}
        self._homes: dict[str, str] = dict.fromkeys(own, "the file")
        self._known = known

    def add(self, module: str, name: str) -> None:
        """Add a definition with its dependencies. Raises: SourceError if it cannot be copied."""
        if name in self._known and module.startswith("core."):
            self.texts[name] = self._known[name]
            return
        node, text = _definitions(module).get(name, (None, ""))
        home = module
        if isinstance(node, ast.Import | ast.ImportFrom):
            found = next(one for one in node.names if (one.asname or one.name).partition(".")[0] == name)
            home = found.name if isinstance(node, ast.Import) else "." * node.level + str(node.module)
            if isinstance(node, ast.ImportFrom) and home.partition(".")[0] in self.packages:
                self.add(home, found.name)
                return
            if home.partition(".")[0] not in INSTALLED:
                raise SourceError(f"{module} imports {name} from {home}")
            if isinstance(node, ast.Import):
                self.imports[f"import {ast.unparse(found)}"] |= set()
            else:
                self.imports[f"from {home} import"].add(ast.unparse(found))
        elif node is None:
            raise SourceError(f"{module} has no plain definition of {name}")
        if self._homes.setdefault(name, home) != home:
            raise SourceError(f"{self._homes[name]} and {home} both define {name}")
        if name in self.texts or isinstance(node, ast.Import | ast.ImportFrom):
            return
        self.texts[name] = ""  # mark as in progress, because definitions may refer to each other
        for used in ast.walk(node):
            if isinstance(used, ast.Name) and used.id != name and used.id in _definitions(module):
                self.add(module, used.id)
        del self.texts[name]
        self.texts[name] = text


@cache
def _definitions(module: str) -> dict[str, tuple[ast.stmt | None, str]]:
    """Return the names that a module binds at top level, with their statements and source text.

    The statement is None for a name that is bound twice, or not by a definition, an import or a plain assignment.
    """
    try:
        source = inspect.getsource(importlib.import_module(module))
    except (OSError, TypeError, ImportError) as error:
        raise SourceError(f"{module} has no source") from error
    lines, found = source.split("\n"), dict[str, tuple[ast.stmt | None, str]]()
    for node in ast.parse(source).body:
        plain = True
        if isinstance(node, ast.Import | ast.ImportFrom):
            bound = {(one.asname or one.name).partition(".")[0] for one in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            bound = {node.name}
        else:  # a statement that is no plain assignment may change every name in it
            targets = node.targets if isinstance(node, ast.Assign) else ()
            plain = isinstance(node, ast.AnnAssign) or (bool(targets) and all(isinstance(t, ast.Name) for t in targets))
            names = (one for one in ast.walk(node) if isinstance(one, ast.Name))
            bound = {one.id for one in names if not plain or isinstance(one.ctx, ast.Store)}
        first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])
        text = "\n".join(lines[first - 1 : node.end_lineno])
        for name in bound:
            found[name] = (node if plain and name not in found else None, text)
    return found
