"""Synonyms: requirements on the bundled list, and the words that it gives."""

from __future__ import annotations

import re
from collections import Counter

from core.texts.eda import STOP_WORDS
from core.texts.synonyms import BUNDLED_LIST, read_groups, synonyms
from tests.cases import each


class TestList:
    def test_every_line_is_a_group_of_different_plain_words(self) -> None:
        groups = read_groups()
        assert 600 <= len(groups) <= 2000
        for group in groups:
            assert len(group) >= 2, group
            assert len(set(group)) == len(group), group
            assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", word) for word in group), group

    def test_no_group_stands_twice(self) -> None:
        counted = Counter(frozenset(group) for group in read_groups())
        assert [sorted(group) for group, count in counted.items() if count > 1] == []

    def test_no_word_stands_in_more_than_two_groups(self) -> None:
        counted = Counter(word for group in read_groups() for word in group)
        assert [word for word, count in counted.items() if count > 2] == []

    def test_no_stop_word_is_put_into_a_text(self) -> None:
        assert {word for group in read_groups() for word in group} & STOP_WORDS == set()

    def test_the_first_line_is_the_licence_and_no_group(self) -> None:
        first = BUNDLED_LIST.read_text(encoding="utf-8").splitlines()[0]
        assert first.startswith("#")
        assert "CC0" in first
        assert "cc0" not in synonyms("words")


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
        assert synonyms(word) == expected

    def test_every_word_finds_the_rest_of_its_group(self) -> None:
        for group in read_groups():
            for word in group:
                assert set(group) - {word} <= set(synonyms(word))
