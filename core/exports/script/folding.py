"""A definition without what a run never does, given what holds in that run.

Facts are about expressions as `ast.unparse` writes them: True or False for a condition, another expression for one that
comes to less, "" for a statement that does nothing. Further keys, with "": `for x in y` is a loop, `def name` a method,
`(name)` an argument that is never given, `doc item` an item of a docstring that begins so. Conditions are decided and
their dead branches left out; variables that nothing reads any more go with them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from core.exports.script.line_breaks import broken
from core.exports.script.text_edits import Edit, Offsets, edited, first_line, last_line, with_remarks, without_lines

Facts = Mapping[str, bool | str]
ITEM = "doc "
# The end of a docstring of which nothing but its first lines is left.
EMPTY_END = re.compile(r'\n\n *"""')


def folded(text: str, facts: Facts) -> str:
    """The definition as far as these facts leave it. Facts about what is not in it are passed over."""
    return _folded(text, frozenset(facts.items())) if facts else text


@lru_cache(maxsize=1024)
def _folded(text: str, pairs: frozenset[tuple[str, bool | str]]) -> str:
    """Kept, because a definition is folded anew whenever another one turns out to call a further method."""
    facts = dict(pairs)
    text = _without_items(text, [key.removeprefix(ITEM) for key in facts if key.startswith(ITEM)])
    before = _unread(text)
    while True:
        changed = _once(text, facts)
        if changed == text:
            break
        text = changed
    text = _without_unreached(text)
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
            return without_lines(text, [_span(node, text.split("\n"))])
        if isinstance(node, ast.For) and facts.get(f"for {ast.unparse(node.target)} in {ast.unparse(node.iter)}") == "":
            return without_lines(text, [_span(node, text.split("\n"))])
        if isinstance(node, ast.FunctionDef) and facts.get(f"def {node.name}") == "":
            return without_lines(text, [(first_line(node) - 1, last_line(node))])
        if isinstance(node, ast.FunctionDef) and any(facts.get(f"({one.arg})") == "" for one in _arguments(node)):
            return _without_arguments(text, node, facts, offsets)
        if isinstance(node, ast.expr) and (new := _smaller(node, facts, offsets)) is not None:
            return edited(text, [Edit(*offsets.span(node), new)])
    return text


def _arguments(node: ast.FunctionDef) -> list[ast.arg]:
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]


def _without_unreached(text: str) -> str:
    """The text without unreachable statements after a `return` in the same body."""
    lines, spans = text.split("\n"), []
    for node in ast.walk(ast.parse(text)):
        body = getattr(node, "body", [])
        ends = [
            place for place, one in enumerate(body if isinstance(body, list) else []) if isinstance(one, ast.Return)
        ]
        spans += [_span(one, lines) for one in body[ends[0] + 1 :]] if ends else []
    return without_lines(text, spans)


def _without_arguments(text: str, node: ast.FunctionDef, facts: Facts, offsets: Offsets) -> str:
    """The text with a signature that lacks the arguments that are never given, as `"(name)": ""` says."""
    own = node.args
    assert not own.posonlyargs
    assert own.vararg is None
    assert own.kwarg is None
    plain = zip(own.args, [*[None] * (len(own.args) - len(own.defaults)), *own.defaults], strict=True)
    named = zip(own.kwonlyargs, own.kw_defaults, strict=True)
    kept, kept_named = (
        [
            _whole(one, offsets) + ("" if default is None else f" = {offsets.text(default)}")
            for one, default in pairs
            if facts.get(f"({one.arg})") != ""
        ]
        for pairs in (plain, named)
    )
    returned = "" if node.returns is None else f" -> {offsets.text(node.returns)}"
    given = ", ".join([*kept, *(["*"] if kept_named else []), *kept_named])
    head = broken(f"{' ' * node.col_offset}def {node.name}({given})", behind=len(f"{returned}:"))
    head[-1] += f"{returned}:"
    lines = text.split("\n")
    return "\n".join([*lines[: node.lineno - 1], *head, *lines[node.body[0].lineno - 1 :]])


def _whole(one: ast.arg, offsets: Offsets) -> str:
    return one.arg if one.annotation is None else f"{one.arg}: {offsets.text(one.annotation)}"


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


def _span(node: ast.stmt, lines: list[str]) -> tuple[int, int]:
    """First and last line of a statement, with the remarks right above it."""
    return with_remarks(node.lineno, lines), last_line(node)


def _without_items(text: str, items: list[str]) -> str:
    """The text without items of its docstrings, each with the lines that go on with it further in."""
    kept: list[str] = []
    inside: int | None = None
    docstrings = _docstring_lines(text)
    for number, line in enumerate(text.split("\n"), 1):
        indent = len(line) - len(line.lstrip())
        if inside is not None and line.strip() and indent > inside and '"""' not in line:
            continue
        inside = None
        if number in docstrings and any(line.lstrip().startswith(item) for item in items):
            inside = indent
            continue
        kept.append(line)
    return EMPTY_END.sub('"""', "\n".join(kept))


def _docstring_lines(text: str) -> set[int]:
    found: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
            found.update(range(node.body[0].lineno + 1, last_line(node.body[0])))
    return found


def _with_branch(text: str, node: ast.If, branch: list[ast.stmt]) -> str:
    """A branch in the place of its condition."""
    lines = text.split("\n")
    first, last = node.lineno, last_line(node)
    kept: list[str] = []
    if branch:
        begin, end = with_remarks(branch[0].lineno, lines), last_line(branch[-1])
        shift = branch[0].col_offset - node.col_offset
        kept = [line[shift:] if line.strip() else line for line in lines[begin - 1 : end]]
        if kept[0].lstrip().startswith("elif "):
            kept[0] = kept[0].replace("elif ", "if ", 1)
    elif _is_all_of_a_body(text, node):
        kept = [" " * node.col_offset + "pass"]
    is_elif = lines[first - 1].lstrip().startswith("elif")
    if is_elif:
        kept = (
            [" " * node.col_offset + "else:", *(f"    {line}" if line.strip() else line for line in kept)]
            if kept
            else []
        )
    if not kept:
        first = with_remarks(first, lines)  # which are about what is gone
    return "\n".join([*lines[: first - 1], *kept, *lines[last:]])


def _is_all_of_a_body(text: str, node: ast.If) -> bool:
    for parent in ast.walk(ast.parse(text)):
        for body in (getattr(parent, "body", None), getattr(parent, "orelse", None)):
            if isinstance(body, list) and len(body) == 1 and getattr(body[0], "lineno", None) == node.lineno:
                return isinstance(body[0], ast.If)
    return False


def _unread(text: str) -> set[str]:
    """Variables of a definition that are set and never read."""
    read: set[str] = set()
    written: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Name):
            (written if isinstance(node.ctx, ast.Store) else read).add(node.id)
    return written - read


def _without_assignments(text: str, names: set[str]) -> str:
    lines = text.split("\n")
    spans = [
        _span(node, lines)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Assign) and (own := {one.id for one in _targets(node)}) and own <= names
    ]
    return without_lines(text, spans)


def _targets(node: ast.Assign) -> Iterator[ast.Name]:
    for target in node.targets:
        parts = target.elts if isinstance(target, ast.Tuple) else [target]
        yield from (part for part in parts if isinstance(part, ast.Name))
