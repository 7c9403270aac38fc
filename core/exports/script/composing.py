"""The definitions of the project that some lines of Python reach, as one text that imports nothing of the project.

Definitions are taken as they are written, comments and docstrings included. Of a class only the methods are taken that
something calls. Where two modules define the same private name, each gets the name of its module behind it.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from core.exports.script.folding import Facts, folded
from core.exports.script.line_breaks import WIDTH
from core.exports.script.source_file import PROJECT, Home, Meaning, Outside, SourceFile, source_file
from core.exports.script.text_edits import Edit, Offsets, edited, first_line, last_line, without_lines

# What torch calls by itself.
CALLED_BY_TORCH = ("forward", "backward")
FUTURE = "__future__"


class Composed(NamedTuple):
    """What is imported from outside, and each module with its definitions, in an order in which they run."""

    outside: frozenset[Outside]
    parts: tuple[tuple[SourceFile, str], ...]


@dataclass
class Composer:
    """Collects what is reached.

    Attributes:
        facts: of a definition, what holds in this run (see `folding`).
        replaced: the source that replaces a definition; `moved`: the plain definition to use instead.
        taken: names that the lines around the definitions use themselves.
    """

    facts: Mapping[Home, Facts] = field(default_factory=dict)
    replaced: Mapping[Home, str] = field(default_factory=dict)
    moved: Mapping[Home, Home] = field(default_factory=dict)
    taken: frozenset[str] = frozenset()

    def compose(self, roots: Iterable[Home], lines: str) -> Composed:
        """Everything that `lines` reach.

        Args:
            roots: what the lines name of the project.
            lines: Python that is written around the definitions; its attributes say which methods are needed.
        """
        roots = tuple(roots)
        attributes = _attributes(lines)
        while True:
            texts = self._reached(roots, attributes)
            more = attributes.union(*(_attributes(text) for text in texts.values()))
            if more == attributes:
                break
            attributes = more
        names = self._names_of(texts)
        outside: set[Outside] = set()
        found: dict[str, list[str]] = {}
        for home in _in_order(texts):
            text, imported = self._renamed(texts[home], home, names)
            outside |= imported
            found.setdefault(home.module, []).append(text)
        parts = tuple((source_file(module), "\n\n\n".join(pieces)) for module, pieces in found.items())
        return Composed(frozenset(outside), tuple((source, _spaced(text)) for source, text in parts))

    def _reached(self, roots: Iterable[Home], attributes: frozenset[str]) -> dict[Home, str]:
        texts: dict[Home, str] = {}
        waiting = list(roots)
        while waiting:
            home = waiting.pop()
            if home in texts:
                continue
            source = source_file(home.module)
            text = self.replaced.get(home) or folded(source.definitions[home.name], self.facts.get(home, {}))
            texts[home] = _with_methods(text, attributes)
            waiting += [meaning for _, meaning in self._uses(texts[home], home) if isinstance(meaning, Home)]
        return texts

    def _uses(self, text: str, home: Home) -> Iterator[tuple[ast.expr, Home | Outside]]:
        """Names of a definition that are not its own, and what they mean; of a module's the attribute around them."""
        for node, meaning in _uses(ast.parse(text), source_file(home.module), home.name):
            if isinstance(meaning, Outside):
                yield node, meaning
                continue
            own = Home(meaning, node.attr) if isinstance(meaning, str) and isinstance(node, ast.Attribute) else meaning
            assert isinstance(own, Home)
            yield node, self.moved.get(own, own)

    def _renamed(self, text: str, home: Home, names: Mapping[Home, str]) -> tuple[str, set[Outside]]:
        """A definition with the names that it and others have in the composed text, and its imports from outside."""
        offsets, edits = Offsets(text), []
        outside: set[Outside] = set()
        for node, meaning in self._uses(text, home):
            if isinstance(meaning, Outside):
                outside.add(meaning)
                continue
            wanted = f'"{names[meaning]}"' if isinstance(node, ast.Constant) else names[meaning]
            if offsets.text(node) != wanted:
                edits.append(Edit(*offsets.span(node), wanted))
        text = edited(text, edits)
        return (text if names[home] == home.name else _own_renamed(text, home.name, names[home])), outside

    def _names_of(self, texts: Mapping[Home, str]) -> dict[Home, str]:
        names = {home: home.name for home in texts}
        for depth in (1, 2, 3):  # as much of its module behind a name as makes it unique
            counts = Counter(names.values())
            for home, name in names.items():
                if counts[name] > 1 or name in self.taken:
                    names[home] = "_".join([home.name, *home.module.split(".")[-depth:]])
        assert len(set(names.values())) == len(names)
        return names


def import_lines(outside: Iterable[Outside]) -> str:
    """Imports in the order in which ruff sorts them: the standard library first."""
    plain = {one for one in outside if one.name is None}
    named: dict[str, set[str]] = {}
    for one in outside:
        if one.name is not None:
            named.setdefault(one.module, set()).add(f"{one.name} as {one.alias}" if one.alias else one.name)
    lines = [(one.module, 0, f"import {one.module}{one.alias and f' as {one.alias}'}") for one in plain]
    lines += [(module, 1, _from(module, sorted(names, key=_import_order))) for module, names in named.items()]
    known = sys.stdlib_module_names
    groups: list[list[str]] = [[], [], []]
    for module, _, line in sorted(lines, key=lambda entry: (entry[1], entry[0])):
        top = module.split(".")[0]
        groups[0 if top == FUTURE else 1 if top in known else 2].append(line)
    return "\n\n".join("\n".join(group) for group in groups if group)


def _import_order(name: str) -> tuple[int, str]:
    """CONSTANTS, Classes, functions."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2), name


def _from(module: str, names: list[str]) -> str:
    line = f"from {module} import {', '.join(names)}"
    if len(line) <= WIDTH:
        return line
    return f"from {module} import (\n" + "".join(f"    {name},\n" for name in names) + ")"


@lru_cache(maxsize=1024)
def _attributes(text: str) -> frozenset[str]:
    return frozenset(node.attr for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Attribute))


def _with_methods(text: str, attributes: frozenset[str]) -> str:
    """A class with the methods that something calls; anything else as it is."""
    node = ast.parse(text).body[0]
    if not isinstance(node, ast.ClassDef):
        return text
    gone = []
    lines = text.split("\n")
    for member in node.body:
        if not isinstance(member, ast.FunctionDef) or member.name in attributes or _always(member.name):
            continue
        first = first_line(member)
        while not lines[first - 2].strip():
            first -= 1
        gone.append((first, last_line(member)))
    return without_lines(text, gone)


def _always(name: str) -> bool:
    return name in CALLED_BY_TORCH or (name.startswith("__") and name.endswith("__"))


def _uses(tree: ast.Module, source: SourceFile, own: str) -> Iterator[tuple[ast.expr, Meaning]]:
    """Names of a definition that are not its own, with what they mean; of a module's name the attribute around it."""
    parents = {id(child): node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    local = _bound(tree) - {own}
    is_alias = isinstance(tree.body[0], ast.Assign) and isinstance(tree.body[0].value, ast.Subscript)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and is_alias and (named := _known(node.value, source)) is not None:
            yield node, named  # a type in quotation marks, as in tuple["Tensor", "Tensor"]
        if not isinstance(node, ast.Name) or node.id in local:
            continue
        meaning = _meaning(node.id, source)
        if isinstance(meaning, str):
            around = parents[id(node)]
            assert isinstance(around, ast.Attribute), f"{source.name} hands on the module {meaning}"
            yield around, meaning
        elif meaning is not None:
            yield node, meaning


def _known(name: object, source: SourceFile) -> Meaning | None:
    """What a name means in a module; None for one that it does not know."""
    if not isinstance(name, str):
        return None
    return Home(source.name, name) if name in source.definitions else source.meanings.get(name)


def _meaning(name: str, source: SourceFile) -> Meaning | None:
    if (found := _known(name, source)) is not None:
        return found
    assert hasattr(builtins, name) or name in ("__file__", "__name__"), f"{source.name}: {name} is not defined"
    return None


def _bound(tree: ast.Module) -> set[str]:
    """Names that a definition binds itself: arguments, variables, functions within it, errors."""
    members = {id(member) for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for member in node.body}
    bound: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef) and id(node) not in members:
            bound.add(node.name)
        elif isinstance(node, ast.ExceptHandler):
            bound.add(node.name or "")
    return bound


def _own_renamed(text: str, own: str, new: str) -> str:
    node = ast.parse(text).body[0]
    if not isinstance(node, ast.FunctionDef | ast.ClassDef):
        return text  # an assignment: its target is a name like any other
    lines = text.split("\n")
    lines[node.lineno - 1] = lines[node.lineno - 1].replace(f" {own}", f" {new}", 1)
    return "\n".join(lines)


def _in_order(texts: Mapping[Home, str]) -> list[Home]:
    """Modules behind those that they import, definitions as they are written."""
    modules: list[str] = []
    wanted = {home.module for home in texts}

    def visit(module: str, above: tuple[str, ...]) -> None:
        if module in modules or module in above or not module.startswith(PROJECT):
            return
        for other in source_file(module).order:
            visit(other, (*above, module))
        modules.append(module)

    for module in sorted(wanted):
        visit(module, ())
    return [
        Home(module, name)
        for module in modules
        if module in wanted
        for name in source_file(module).definitions
        if Home(module, name) in texts
    ]


def _spaced(text: str) -> str:
    """Definitions two lines apart, and constants of one line beside each other."""
    pieces = text.split("\n\n\n")
    joined = pieces[0]
    for before, piece in pairwise(pieces):
        both = all(isinstance(ast.parse(one).body[0], ast.Assign | ast.AnnAssign) for one in (before, piece))
        joined += ("\n" if both else "\n\n\n") + piece
    return joined
