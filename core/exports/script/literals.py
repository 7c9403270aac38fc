"""Values as Python literals: plain text, no line longer than the page, nothing in them that could be code.

`repr` escapes quotes, line breaks and everything that cannot be seen, marks that change the direction of text included.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from core.exports.script.line_breaks import INDENT, WIDTH

QUOTES = "'\""
Item = str | int | tuple["Item", ...]


def literal(value: Item) -> str:
    """One line, however long."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, int):
        return repr(value)
    return f"({', '.join(map(literal, value))}{',' if len(value) == 1 else ''})"


def quoted(text: str) -> str:
    """As `repr`, in double quotes unless single ones need fewer escapes."""
    mark = "'" if text.count('"') > text.count("'") else '"'
    return mark + "".join(_escaped(sign, mark) for sign in text) + mark


def _escaped(sign: str, mark: str) -> str:
    if sign in QUOTES:
        return f"\\{sign}" if sign == mark else sign
    return repr(sign)[1:-1]


def lines_of(value: Item, before: str = "", behind: str = ",", indent: str = "") -> Iterator[str]:
    """A value on as few lines as fit: long texts in pieces, one under the other."""
    line = f"{indent}{before}{literal(value)}{behind}"
    if len(line) <= WIDTH:
        yield line
    elif isinstance(value, tuple):
        yield f"{indent}{before}("
        for item in value:
            yield from lines_of(item, indent=indent + INDENT)
        yield f"{indent}){behind}"
    else:
        yield f"{indent}{before}("
        for piece in _pieces(str(value), WIDTH - len(indent) - len(INDENT)):
            yield f"{indent}{INDENT}{piece}"
        yield f"{indent}){behind}"


def mapping_lines(name: str, values: Mapping[int, Item]) -> Iterator[str]:
    """A dictionary with a key on each line."""
    yield f"{name} = {{"
    for key, value in values.items():
        yield from lines_of(value, f"{key}: ", indent=INDENT)
    yield "}"


def number_lines(name: str, numbers: Iterable[int | float]) -> Iterator[str]:
    """A list of numbers, as many on a line as fit; floats to nine digits, which is all of a float32."""
    yield f"{name} = ["
    yield from _filled((str(one) if isinstance(one, int) else f"{one:.9g}" for one in numbers), INDENT)
    yield "]"


def _filled(words: Iterable[str], indent: str) -> Iterator[str]:
    line = indent
    for word in words:
        if len(line) + len(word) + 2 > WIDTH:
            yield line.rstrip()
            line = indent
        line += f"{word}, "
    if line.strip():
        yield line.rstrip()


def _pieces(text: str, width: int) -> Iterator[str]:
    """Literals that give the text when they are joined, broken behind a space where there is one."""
    start = 0
    while start < len(text):
        end, size, space = start, 2, start
        # A quotation mark may be escaped, so it counts as two.
        while end < len(text) and (size := size + max(1 + (text[end] in QUOTES), len(quoted(text[end])) - 2)) <= width:
            end += 1
            if text[end - 1] == " ":
                space = end
        if end < len(text) and space > start:
            end = space
        yield quoted(text[start:end])
        start = end
