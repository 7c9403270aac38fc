"""Synonyms: requirements on the bundled list, and WordNet as its replacement if nltk and its corpus are installed."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from core.texts.eda import STOP_WORDS
from tests.cases import each

# `core.views` may contain a function of the same name.
module: Any = import_module("core.texts.synonyms")


@pytest.fixture(autouse=True)
def _asked_anew(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Reload the source in each test, by default as if nltk were not installed."""
    forget()
    monkeypatch.setitem(sys.modules, "nltk", None)
    monkeypatch.setitem(sys.modules, "nltk.corpus", None)
    yield
    forget()


def forget() -> None:
    for function in (module._wordnet, module._found, module._bundled):
        function.cache_clear()


class Wordnet:
    """A stand-in for nltk's reader. Without synsets it behaves as if the corpus had never been downloaded."""

    def __init__(self, synsets: Mapping[str, list[list[str]]] | None) -> None:
        self._synsets = synsets

    def ensure_loaded(self) -> None:
        if self._synsets is None:
            raise LookupError("Resource wordnet not found.")

    def synsets(self, word: str) -> list[SimpleNamespace]:
        assert self._synsets is not None
        return [SimpleNamespace(lemma_names=lambda names=names: names) for names in self._synsets.get(word, [])]


def install(monkeypatch: pytest.MonkeyPatch, wordnet: Wordnet) -> None:
    corpus = ModuleType("nltk.corpus")
    corpus.wordnet = wordnet  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "nltk", ModuleType("nltk"))
    monkeypatch.setitem(sys.modules, "nltk.corpus", corpus)


class TestList:
    def test_every_line_is_a_group_of_different_plain_words(self) -> None:
        groups = module.read_groups()
        assert 600 <= len(groups) <= 2000
        for group in groups:
            assert len(group) >= 2, group
            assert len(set(group)) == len(group), group
            assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", word) for word in group), group

    def test_no_group_stands_twice(self) -> None:
        counted = Counter(frozenset(group) for group in module.read_groups())
        assert [sorted(group) for group, count in counted.items() if count > 1] == []

    def test_no_word_stands_in_more_than_two_groups(self) -> None:
        counted = Counter(word for group in module.read_groups() for word in group)
        assert [word for word, count in counted.items() if count > 2] == []

    def test_no_stop_word_is_put_into_a_text(self) -> None:
        assert {word for group in module.read_groups() for word in group} & STOP_WORDS == set()

    def test_the_first_line_is_the_licence_and_no_group(self) -> None:
        first = module.BUNDLED_LIST.read_text(encoding="utf-8").splitlines()[0]
        assert first.startswith("#")
        assert "CC0" in first
        assert "cc0" not in module.synonyms("words")


class TestBundled:
    @each(
        ("word", "expected"),
        [
            ("film", ("movie",)),
            ("Films", ("movies",)),
            ("GLAD", ("happy", "pleased")),
            ("enjoyed", ("liked", "loved")),
            # A word in two groups has the words of both.
            ("improbable", ("far-fetched", "implausible", "unlikely")),
            ("the", ()),
            ("", ()),
            ("xyzzy", ()),
        ],
    )
    def test_a_words_others_are_given(self, word: str, expected: tuple[str, ...]) -> None:
        assert module.synonyms(word) == expected

    def test_every_word_finds_the_rest_of_its_group(self) -> None:
        for group in module.read_groups():
            for word in group:
                assert set(group) - {word} <= set(module.synonyms(word))

    def test_without_nltk_the_list_is_the_source(self) -> None:
        assert module.synonym_source() == "bundled"

    def test_without_the_corpus_the_list_is_the_source(self, monkeypatch: pytest.MonkeyPatch) -> None:
        install(monkeypatch, Wordnet(None))
        assert module.synonym_source() == "bundled"
        assert module.synonyms("film") == ("movie",)


class TestWordnet:
    def test_it_is_used_where_it_is_installed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        synsets = {"film": [["movie", "film", "motion_picture"], ["Cinema", "movie"], ["film"]]}
        install(monkeypatch, Wordnet(synsets))
        assert module.synonym_source() == "wordnet"
        assert module.synonyms("Film") == ("cinema", "movie")

    def test_the_list_adds_nothing_to_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        install(monkeypatch, Wordnet({}))
        assert module.synonyms("glad") == ()
