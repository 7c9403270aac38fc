"""A piece of Python whose messages are plain English text, where the project gives them to its catalogues."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from core.exports.script.line_breaks import WIDTH
from core.exports.script.text_edits import Edit, Offsets, edited

MARK, TRANSLATE, LIST, MESSAGE = "N_", "_", "listed", "Message"
# A call of an error with places to be filled.
ERROR = "Error"
STRING = re.compile(r'("(?:[^"\\]|\\.)*")')
REPR = re.compile(r"^repr\((\w+)\)$")
# A place and what is behind its name; doubled braces are none.
PLACE = re.compile(r"(?<!\{)\{(\w+)([:}])")


def in_english(text: str) -> str:
    """The same with `_("{a} is", a=x)` as `("{a} is").format(a=x)` and `N_("a")` as `"a"`.

    `listed(a)` becomes `", ".join(a)`; `ValueError("{a} is", a=x)` is raised with the text.
    """
    while True:
        calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call) and _name(node)]
        if not calls:
            return text
        # An inner one first: what is around it is read again.
        innermost = next(call for call in calls if not any(other in ast.walk(call) for other in calls if other != call))
        line = innermost.args[-1].lineno if _name(innermost) == ERROR else innermost.lineno
        text = _closed_up(edited(text, _edits(text, innermost)), line)


def _closed_up(text: str, number: int) -> str:
    """The text with a line joined to the brackets above and below it, where it is short enough for that now."""
    lines = text.split("\n")
    if not 1 < number < len(lines):
        return text
    above, line, below = lines[number - 2 : number + 1]
    joined = above + line.strip() + below.strip()
    alone = above.endswith("(") and below.strip() in (")", "),") and not line.endswith((",", "("))
    if not alone or len(joined) > WIDTH:
        return text
    return "\n".join([*lines[: number - 2], joined, *lines[number + 1 :]])


def _name(call: ast.Call) -> str:
    """How a call that translates is called; "" for any other."""
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    if name.endswith(ERROR):
        return ERROR if call.keywords and isinstance(call.args[-1], ast.Constant) else ""
    # A message with a plural stays: it is a function of the script.
    return name if name in (MARK, TRANSLATE, LIST) or (name == MESSAGE and len(call.args) == 1) else ""


def _edits(text: str, call: ast.Call) -> list[Edit]:
    offsets = Offsets(text)
    if _name(call) == LIST:
        return [Edit(*offsets.span(call.func), '", ".join')]
    message = call.args[-1]
    of_error = _name(call) == ERROR
    start, end = (offsets.span(message)[0], offsets.span(call.keywords[-1])[1]) if of_error else offsets.span(call)
    if of_error and text.encode()[end : end + 1] == b",":
        end += 1
    first, last = offsets.span(message)
    one_line = message.lineno == message.end_lineno or of_error
    if not call.keywords:
        # Several lines of one text stay in their brackets, without the comma that would make them several texts.
        if one_line:
            return [Edit(start, first, ""), Edit(last, end, "")]
        closing = text.encode()[last:end].decode().replace(",", "", 1)
        return [Edit(*offsets.span(call.func), ""), Edit(last, end, closing)]
    values = {one.arg: REPR.sub(r"\1!r", offsets.text(one.value)) for one in call.keywords}
    if None not in values and not any(sign in value for value in values.values() for sign in '"\\\n'):
        pieces = "".join(
            _with_values(piece, values)
            for piece in _pieces(offsets.text(message) if of_error else _text_of(text, message))
        )
        return [Edit(start, end, pieces if one_line else _bracketed(text, call, pieces))]
    names = ("**" if one.arg is None else f"{one.arg}=" for one in call.keywords)
    given = ", ".join(name + offsets.text(one.value) for name, one in zip(names, call.keywords, strict=True))
    whole = offsets.text(message) if one_line else _bracketed(text, call, _text_of(text, message))
    return [Edit(start, end, f"{whole}.format({given})")]


def _pieces(text: str) -> list[str]:
    """Adjacent string literals, and what is between them."""
    return STRING.split(text)


def _with_values(piece: str, values: Mapping[str | None, str]) -> str:
    """A string with expressions in its places; anything else as it is."""
    filled = PLACE.sub(lambda found: "{" + values.get(found[1], found[1]) + found[2], piece)
    return f"f{filled}" if filled != piece and piece.startswith('"') else piece


def _text_of(text: str, message: ast.expr) -> str:
    """A message as it is written, in whole lines where it has several."""
    if message.lineno == message.end_lineno:
        return Offsets(text).text(message)
    return "\n".join(_lines(text, message))


def _bracketed(text: str, call: ast.Call, lines: str) -> str:
    return f"(\n{lines}\n{' ' * _indent(text, call)})"


def _lines(text: str, message: ast.expr) -> list[str]:
    """The lines of a text that goes over several, as they are."""
    lines = text.split("\n")[message.lineno - 1 : message.end_lineno]
    lines[-1] = lines[-1].rstrip().removesuffix(",")
    return lines


def _indent(text: str, call: ast.Call) -> int:
    line = text.split("\n")[call.lineno - 1]
    return len(line) - len(line.lstrip())
