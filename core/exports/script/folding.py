"""A definition without what a run never does, given what holds in that run.

Facts are about expressions as `ast.unparse` writes them: True or False for a condition, another expression for one that
comes to less, "" for a statement that does nothing. Conditions are decided and their dead branches left out; variables
that nothing reads any more go with them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from core.exports.script.text_edits import Edit, Offsets, edited, without_lines

Facts = Mapping[str, bool | str]


def folded(text: str, facts: Facts) -> str:
    """The definition as far as these facts leave it. Facts about what is not in it are passed over."""
    if not facts:
        return text
    before = _unread(text)
    while True:
        changed = _once(text, facts)
        if changed == text:
            break
        text = changed
    while (gone := _unread(text) - before) and (changed := _without_assignments(text, gone)) != text:
        text = changed
    return text


def known(test: ast.expr, facts: Facts) -> bool | None:
    """What a condition is; None where the facts do not say."""
    found = facts.get(ast.unparse(test))
    if isinstance(found, bool):
        return found
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = known(test.operand, facts)
        return None if inner is None else not inner
    if isinstance(test, ast.BoolOp):
        values = [known(value, facts) for value in test.values]
        decisive = isinstance(test.op, ast.Or)
        if decisive in values:
            return decisive
        return None if None in values else not decisive
    return None


def _once(text: str, facts: Facts) -> str:
    """The text after the first change that the facts ask for."""
    tree, offsets = ast.parse(text), Offsets(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and (value := known(node.test, facts)) is not None:
            return _with_branch(text, node, node.body if value else node.orelse)
        if isinstance(node, ast.Expr | ast.Assign | ast.Assert) and facts.get(ast.unparse(node)) == "":
            return without_lines(text, [(node.lineno, int(node.end_lineno or 0))])
        if isinstance(node, ast.For) and facts.get(f"for {ast.unparse(node.target)} in {ast.unparse(node.iter)}") == "":
            return without_lines(text, [(node.lineno, int(node.end_lineno or 0))])
        if isinstance(node, ast.arguments) and (gone := _dropped_argument(node, facts, offsets)) is not None:
            return edited(text, [gone])
        if isinstance(node, ast.expr) and (new := _smaller(node, facts, offsets)) is not None:
            return edited(text, [Edit(*offsets.span(node), new)])
    return text


def _dropped_argument(node: ast.arguments, facts: Facts, offsets: Offsets) -> Edit | None:
    """The first argument that is never given, as `"(name)": ""` says, with the comma before it."""
    given = [*node.posonlyargs, *node.args, *node.kwonlyargs]
    defaults = [*[None] * (len(node.posonlyargs) + len(node.args) - len(node.defaults)), *node.defaults]
    defaults += node.kw_defaults
    for before, one, default in zip(given, given[1:], defaults[1:], strict=False):
        if facts.get(f"({one.arg})") == "":
            return Edit(_end(before, given, defaults, offsets), offsets.span(default or one)[1], "")
    return None


def _end(one: ast.arg, given: list[ast.arg], defaults: list[ast.expr | None], offsets: Offsets) -> int:
    return offsets.span(defaults[given.index(one)] or one)[1]


def _smaller(node: ast.expr, facts: Facts, offsets: Offsets) -> str | None:
    """A shorter expression for the same; None where there is none."""
    found = facts.get(ast.unparse(node))
    if isinstance(found, str) and found != offsets.text(node):
        return found
    if isinstance(node, ast.IfExp) and (value := known(node.test, facts)) is not None:
        return offsets.text(node.body if value else node.orelse)
    if isinstance(node, ast.BoolOp):
        neutral = isinstance(node.op, ast.And)
        kept = [value for value in node.values if known(value, facts) is not neutral]
        if 0 < len(kept) < len(node.values):
            word = " and " if neutral else " or "
            return word.join(offsets.text(value) for value in kept)
    return None


def _with_branch(text: str, node: ast.If, branch: list[ast.stmt]) -> str:
    """A branch in the place of its condition."""
    lines = text.split("\n")
    first, last = node.lineno, int(node.end_lineno or 0)
    kept: list[str] = []
    if branch:
        begin, end = _lines_of(branch, lines)
        shift = branch[0].col_offset - node.col_offset
        kept = [line[shift:] if line.strip() else line for line in lines[begin - 1 : end]]
    elif _is_all_of_a_body(text, node):
        kept = [" " * node.col_offset + "pass"]
    is_elif = lines[first - 1].lstrip().startswith("elif")
    if is_elif:
        kept = [" " * node.col_offset + "else:", *(f"    {line}" if line.strip() else line for line in kept)] if kept else []
    if not kept:
        while first > 1 and lines[first - 2].lstrip().startswith("#"):  # a remark about what is gone
            first -= 1
    return "\n".join([*lines[: first - 1], *kept, *lines[last:]])


def _lines_of(branch: list[ast.stmt], lines: list[str]) -> tuple[int, int]:
    begin = branch[0].lineno
    while lines[begin - 2].lstrip().startswith("#"):
        begin -= 1
    return begin, int(branch[-1].end_lineno or 0)


def _is_all_of_a_body(text: str, node: ast.If) -> bool:
    for parent in ast.walk(ast.parse(text)):
        for body in (getattr(parent, "body", None), getattr(parent, "orelse", None)):
            if isinstance(body, list) and len(body) == 1 and getattr(body[0], "lineno", None) == node.lineno:
                return isinstance(body[0], ast.If)
    return False


def _unread(text: str) -> set[str]:
    """Variables of a definition that are set and never read."""
    read, written = set(), set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Name):
            (written if isinstance(node.ctx, ast.Store) else read).add(node.id)
    return written - read


def _without_assignments(text: str, names: set[str]) -> str:
    spans = [
        (node.lineno, int(node.end_lineno or 0))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Assign) and (own := {one.id for one in _targets(node)}) and own <= names
    ]
    return without_lines(text, spans)


def _targets(node: ast.Assign) -> Iterator[ast.Name]:
    for target in node.targets:
        parts = target.elts if isinstance(target, ast.Tuple) else [target]
        yield from (part for part in parts if isinstance(part, ast.Name))
