"""Names of visitors, and names and tags of runs."""

from __future__ import annotations

import pytest

from core.errors import ConfigError, RunNotFoundError
from core.store import Store
from core.store.names import NAME_CHARS, TAGS_MAX, checked_name, checked_tags
from tests.core.store.claims import config


@pytest.fixture
def run_id(store: Store) -> str:
    return store.create(config())


def test_a_run_is_called_as_people_want_and_by_its_number_otherwise(store: Store, run_id: str) -> None:
    store.rename(run_id, "  τ 0.1,\n100 rows ")
    assert store.run(run_id).title == store.runs()[0].title == "τ 0.1, 100 rows"
    assert store.run(run_id).config.name == ""
    store.rename(run_id, " ")
    assert store.run(run_id).title == "Run 1"
    for change in (lambda: store.rename("nosuchrunid1", "x"), lambda: store.tag("nosuchrunid1", ["x"])):
        with pytest.raises(RunNotFoundError):
            change()


def test_tags_are_kept_in_their_order_once_each(store: Store, run_id: str) -> None:
    assert store.run(run_id).tags == ()
    store.tag(run_id, ["thesis", "τ", "thesis", " ", "two  words"])
    assert store.run(run_id).tags == store.runs()[0].tags == ("thesis", "τ", "two words")
    store.tag(run_id, [])
    assert store.run(run_id).tags == ()


@pytest.mark.parametrize("wrong", [["x" * 25], ["a,b"], [str(i) for i in range(TAGS_MAX + 1)]])
def test_tags_that_cannot_be_are_refused_and_nothing_changes(store: Store, run_id: str, wrong: list[str]) -> None:
    store.tag(run_id, ["kept"])
    with pytest.raises(ConfigError, match="tags"):
        store.tag(run_id, wrong)
    assert store.run(run_id).tags == ("kept",)


def test_a_name_that_is_too_long_is_refused(store: Store, run_id: str) -> None:
    with pytest.raises(ConfigError, match="at most 80"):
        store.rename(run_id, "x" * 81)
    assert checked_name("x" * 80) == "x" * 80
    assert checked_tags(["x" * 24]) == ("x" * 24,)


def test_a_visitor_has_the_name_that_they_gave_themselves_unless_another_has_it(store: Store) -> None:
    store.name_visitor("abc", "Ada")
    store.create(config(), owner="abc")
    assert store.claim_next() is not None  # a turn keeps the name
    with pytest.raises(ConfigError, match="another visitor uses this name"):
        store.name_visitor("def", " aDA ")
    with pytest.raises(ConfigError):
        store.name_visitor("abc", "x" * (NAME_CHARS + 1))
    store.name_visitor("abc", "ada")  # the visitor's present name
    assert store.visitor_names() == {"abc": "ada"}
    store.name_visitor("abc", "")
    store.name_visitor("def", "Ada")
    assert store.visitor_names() == {"def": "Ada"}
