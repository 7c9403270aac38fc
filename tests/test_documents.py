"""Files, folders, tests and modules that documents name exist."""

from __future__ import annotations

import re
from pathlib import Path
from pkgutil import resolve_name

from tests.cases import each

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "assets").glob("*/README.md")]
# The history names former paths. NAME stands for a name that the reader chooses.
HISTORY, EXAMPLE = "CHANGELOG.md", "NAME"
PATH = re.compile(r"\b(?:core|pages|tests|benchmarks|assets|docs|deploy)/[\w/.-]*\w")
TEST = re.compile(r"\b(tests/[\w/]+\.py)::(\w+)")
MODULE = re.compile(r"`(core(?:\.\w+)+)`")


@each("document", [path for path in DOCUMENTS if path.name != HISTORY])
def test_every_path_and_module_that_a_document_names_exists(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    paths = {path for path in PATH.findall(text) if EXAMPLE not in path}
    assert sorted(path for path in paths if not (ROOT / path).exists()) == []
    tests = {
        (path, name) for path, name in TEST.findall(text) if f"def {name}(" not in (ROOT / path).read_text("utf-8")
    }
    assert tests == set()
    for name in MODULE.findall(text):
        resolve_name(name)
