"""The tables of names in addresses."""

from __future__ import annotations

import re
from pathlib import Path

from pages.ui import address
from pages.ui.address import Address, Compare, EveryPage, Explore, Item, Tokens
from tests.cases import each

TABLES = Address.__subclasses__()
PAGES = Path(address.__file__).resolve().parents[1]


@each("table", TABLES)
def test_names_are_used_once_on_a_page_and_defaults_are_of_their_kind(table: type[Address]) -> None:
    items = [item for item in vars(table).values() if isinstance(item, Item)]
    assert items
    assert len(table.items()) == len(items)
    assert table is EveryPage or not table.items().keys() & EveryPage.items().keys()
    assert all(item.default is None or isinstance(item.default, item.kind) for item in items)


def test_the_address_is_read_and_written_through_the_tables_alone() -> None:
    """A name outside the tables would not be removed with its run."""
    raw = re.compile(r"state\.(put_in_url|text_in_url|texts_in_url)\(([^)]*)")
    found = {
        (path.relative_to(PAGES).as_posix(), match.group(2))
        for path in PAGES.rglob("*.py")
        for match in raw.finditer(path.read_text(encoding="utf-8"))
        if path.name not in ("address.py", "bound.py")
    }
    assert {name for _, name in found if not name.startswith(("FineTune.SET.name", "Experiments.SET.name"))} == set()


def test_what_belongs_to_a_run_is_forgotten_with_it() -> None:
    of_explore = {item.name for item in Explore.of("run")}
    assert of_explore == {"frame", "sel", "at", "view", "find", "layers", "since"}
    of_tokens = {item.name for item in Tokens.of("run")}
    assert of_tokens == {"example", "source", "text", "second", "layer", "head", "before", "after", "class"}
    assert {item.name for item in Compare.of("runs compared")} == {"a", "b", "twin"}
    assert {item.name for item in Compare.of("twin")} == {"change", "to", "value"}
    assert {item.name for item in Compare.of("first run compared")} == {"sel", "view"}
