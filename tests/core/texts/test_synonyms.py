"""Synonyms: requirements on the bundled list, and the words that it gives."""

from __future__ import annotations

import re
from collections import Counter

from core.texts.eda import STOP_WORDS, SYNONYMS, read_synonyms, synonyms

GROUPS = read_synonyms()


def test_every_line_is_a_group_of_different_plain_words() -> None:
    assert 600 <= len(GROUPS) <= 2000
    for group in GROUPS:
        assert len(group) >= 2, group
        assert len(set(group)) == len(group), group
        assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", word) for word in group), group
    counted = Counter(frozenset(group) for group in GROUPS)
    assert [sorted(group) for group, count in counted.items() if count > 1] == []


def test_no_word_stands_in_more_than_two_groups_and_no_stop_word_in_any() -> None:
    counted = Counter(word for group in GROUPS for word in group)
    assert [word for word, count in counted.items() if count > 2] == []
    assert counted.keys() & STOP_WORDS == set()


def test_the_first_line_is_the_licence_and_no_group() -> None:
    first = SYNONYMS.read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith("#")
    assert "CC0" in first
    assert "cc0" not in synonyms("words")


def test_a_word_is_given_the_others_of_its_groups() -> None:
    for group in GROUPS:
        for word in group:
            assert set(group) - {word} <= set(synonyms(word))
    assert synonyms("enjoyed") == ["liked", "loved"]
    assert synonyms("improbable") == ["far-fetched", "implausible", "unlikely"]  # of two groups
    assert synonyms("xyzzy") == []
