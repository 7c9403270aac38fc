"""Lines of Python that fit the page."""

from __future__ import annotations

from collections.abc import Iterator

INDENT = "    "
WIDTH = 120
REMARK = "  # "


def broken(line: str, *, depth: int = 0, behind: int = 0) -> list[str]:
    """A line as it is, or in several where it is too long: what its first bracket holds one under the other.

    Args:
        depth: how many times it will be indented; behind: characters that will follow it.
    """
    return _broken(line, WIDTH - depth * len(INDENT) - behind)


def _broken(line: str, width: int) -> list[str]:
    if len(line) <= width:
        return [line]
    indent = line[: len(line) - len(line.lstrip())]
    code, _, remark = line.partition(REMARK)
    if remark:
        return [f"{indent}# {remark}", *_broken(code, width)]
    openings = [place for place in (code.find(sign) for sign in "([{") if place >= 0]
    comma = "," if code.endswith(",") else ""
    if not openings:
        return [code]
    opening, inside = min(openings), code.removesuffix(",")
    if " for " in inside and inside.endswith("]"):  # a comprehension: what it makes, and from what
        made, _, source = inside[opening + 1 : -1].rpartition(" for ")
        lines = [f"{indent}{INDENT}{made}", f"{indent}{INDENT}for {source}"]
        return [code[: opening + 1], *(piece for part in lines for piece in _broken(part, width)), indent + "]" + comma]
    parts = list(split_at_commas(inside[opening + 1 : -1]))
    parts = [f"{indent}{INDENT}{part}{',' if len(parts) > 1 else ''}" for part in parts]
    lines = [piece for part in parts for piece in _broken(part, width)]
    return [code[: opening + 1], *lines, indent + inside[-1] + comma]


def indented(lines: list[str]) -> list[str]:
    return [INDENT + line if line else line for line in lines]


def split_at_commas(text: str) -> Iterator[str]:
    """What lies between the commas of the outermost level."""
    depth, start, quoted = 0, 0, False
    for place, sign in enumerate(text):
        quoted ^= sign == '"'
        if quoted:
            continue
        depth += (sign in "([{") - (sign in ")]}")
        if sign == "," and depth == 0:
            yield text[start:place].strip()
            start = place + 1
    if text[start:].strip():
        yield text[start:].strip()
