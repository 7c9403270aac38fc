"""Messages of the code and the catalogues that translate them.

`python -m tests.catalogues` updates the catalogues: it adds new messages untranslated and drops unused ones.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Collection, Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po, write_po

from core import errors
from core.messages import ENGLISH, FOLDER, LANGUAGES

ROOT = Path(__file__).resolve().parents[1]
TRANSLATED = [code for code in LANGUAGES if code != ENGLISH]
COMMENT = "# Translators:"


def python_messages(
    file: BinaryIO, keywords: Collection[str], comment_tags: Collection[str], options: Mapping[str, Any]
) -> Iterator[tuple[int, str, Any, list[str]]]:
    """Extract translating calls in Babel's format. Babel's own extraction misses calls within f-strings."""
    source = file.read().decode()
    lines = source.splitlines()
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    for call in sorted(calls, key=lambda call: (call.lineno, call.col_offset)):
        if isinstance(call.func, ast.Name) and call.func.id in keywords:
            texts = [one.value if isinstance(one, ast.Constant) else None for one in call.args]
            above = lines[call.lineno - 2].strip() if call.lineno > 1 else ""
            said = [above.removeprefix(COMMENT).strip()] if above.startswith(COMMENT) else []
            yield call.lineno, call.func.id, texts[0] if len(texts) == 1 else tuple(texts), said


METHODS: list[tuple[str, Any]] = [
    ("app.py", python_messages),
    ("core/**.py", python_messages),
    ("pages/**.py", python_messages),
    ("pages/**.js", "javascript"),
    ("assets/**.js", "javascript"),
    ("assets/**.html", "jinja2.ext:babel_extract"),
]
FOLDERS = [("core",), ("pages",), ("assets",)]
# One template, or a singular and a plural template.
MESSAGE: Mapping[int, tuple[int, ...]] = {1: (1,), 2: (1, 2)}
KEYWORDS: Mapping[str, Any] = {
    "_": None,
    "N_": None,
    "ngettext": (1, 2),
    "pgettext": ((1, "c"), 2),
    "Message": MESSAGE,
    **{name: MESSAGE for name, one in vars(errors).items() if isinstance(one, type)},
    # The third argument, after the field and its value.
    "ConfigError": (3,),
}
HEADER = "# {language} messages of SCL Playground.\n"
WIDTH = 120


@functools.cache
def code_messages(*functions: str) -> Catalog:
    """Return the English messages that the code passes to these functions, or to every translating function."""
    found = Catalog(project="SCL Playground", charset="utf-8", fuzzy=False)
    for path, _line, message, comments, context in extract_from_dir(
        ROOT,
        METHODS,
        keywords={name: KEYWORDS[name] for name in functions or KEYWORDS},
        directory_filter=lambda place: Path(place).relative_to(ROOT).parts[:1] in ((), *FOLDERS),
    ):
        found.add(message, None, [(path, None)], auto_comments=comments, context=context)
    return found


def updated(code: str) -> Catalog:
    """Return the catalogue of a language with exactly the messages of the code."""
    path = FOLDER / f"{code}.po"
    if path.is_file():
        with path.open("rb") as file:
            catalogue = read_po(file, locale=code)
    else:
        catalogue = Catalog(locale=code, project="SCL Playground", charset="utf-8", fuzzy=False)
    catalogue.update(code_messages(), no_fuzzy_matching=True)
    catalogue.obsolete.clear()
    catalogue.header_comment = HEADER.format(language=LANGUAGES[code]).rstrip()
    return catalogue


def written(catalogue: Catalog) -> str:
    """Return the text of a catalogue's file. It omits dates and line numbers, which every edit would change."""
    out = BytesIO()
    write_po(out, catalogue, width=WIDTH, sort_by_file=True, omit_header=False, include_lineno=False)
    dated = ("POT-Creation-Date", "PO-Revision-Date", "Last-Translator", "Generated-By", "Report-Msgid-Bugs-To")
    lines = out.getvalue().decode().splitlines()
    return "\n".join(line for line in lines if not line.startswith(tuple(f'"{name}' for name in dated))) + "\n"


def main() -> None:
    for code in TRANSLATED:
        catalogue = updated(code)
        (FOLDER / f"{code}.po").write_text(written(catalogue), encoding="utf-8")
        missing = [message for message in catalogue if message.id and not message.string]
        print(f"{code}: {len(catalogue)} messages, {len(missing)} to translate")


if __name__ == "__main__":
    main()
