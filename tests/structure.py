"""Print the size of the project and how spread out its code is: `python -m tests.structure`.

It prints the files and lines of each folder, the share of private functions that are called once, and how many files
take a `config` below the training loop, or a `draft` below the engine.
"""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from tabulate import tabulate

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("core", "pages", "assets", "tests", "benchmarks")
CODE = {".py", ".js", ".css"}
WALKED = {"core/training/loop.py": "config", "core/workers/engine.py": "draft"}


def sources(*folders: str) -> Iterator[tuple[str, ast.Module]]:
    """Parse the Python files of these folders. Yields: path and tree."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a module and every statement in it. Expressions, most of its nodes, are left out."""
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield from statements(child)


def sizes() -> list[tuple[str, int, int]]:
    """Return folder, files and lines of code, for the top folders and their direct subfolders."""
    found: dict[str, list[int]] = defaultdict(list)
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in CODE and "__pycache__" not in path.parts:
                parts = path.relative_to(ROOT).parts[:-1]
                for depth in range(1, min(2, len(parts)) + 1):
                    found["/".join(parts[:depth])].append(len(path.read_text(encoding="utf-8").splitlines()))
    return [(folder, len(lines), sum(lines)) for folder, lines in sorted(found.items())]


def called_once(folder: str) -> tuple[int, int]:
    """Count the functions of a folder, and the private ones that their file mentions only once.

    Special methods such as `__init__` are called by Python and not counted.
    """
    every = once = 0
    for _, tree in sources(folder):
        named = Counter(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
        named += Counter(node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute))
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("__"):
                every += 1
                once += node.name.startswith("_") and named[node.name] == 1
    return every, once


def takers(start: str, parameter: str) -> list[str]:
    """Search a file and its direct and indirect imports. Returns: the files that have a parameter of this name."""
    trees = dict(sources("core"))
    seen, ahead = {start}, [start]
    while ahead:
        for node in ast.walk(trees[ahead.pop()]):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("core."):
                names = [str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)]
                paths = [f"{name.replace('.', '/')}{end}" for name in names for end in (".py", "/__init__.py")]
                found = {path for path in paths if path in trees} - seen
                seen |= found
                ahead += found
    return [path for path in sorted(seen) if parameter in _parameters(trees[path])]


def _parameters(tree: ast.Module) -> set[str]:
    return {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}


def table(rows: Iterable[Iterable[object]], *headers: str) -> str:
    return str(tabulate(rows, headers, tablefmt="github", intfmt=","))


def main() -> None:
    print(table(sizes(), "folder", "files", "lines"))
    shares = [(folder, *called_once(folder)) for folder in ("core", "pages")]
    rows = [(folder, every, once, f"{once / every:.1%}") for folder, every, once in shares]
    print(f"\n{table(rows, 'folder', 'functions', 'private, called once', 'share')}")
    for path, parameter in WALKED.items():
        print(f"\nOf the files that {path} imports, {len(takers(path, parameter))} take a `{parameter}`.")


if __name__ == "__main__":
    main()
