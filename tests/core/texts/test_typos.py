"""Typing errors: the words that change, and the changes allowed in each."""

from __future__ import annotations

import numpy as np

from core.texts.typos import typos

TEXT = "Wonderful acting and a very clever story, all told"
LONG = [word for word in TEXT.split() if len(word) >= 4]


def edits(word: str) -> set[str]:
    """All words one error away, by brute force."""
    inner = range(1, len(word) - 1)
    dropped = {word[:i] + word[i + 1 :] for i in inner}
    doubled = {word[: i + 1] + word[i:] for i in inner}
    swapped = {word[:i] + word[i + 1] + word[i] + word[i + 2 :] for i in inner if i + 1 < len(word) - 1}
    return dropped | doubled | swapped


def test_a_share_of_the_longer_words_gets_one_error_each() -> None:
    kinds = set()
    for rate in (0.1, 0.2, 0.4, 1.0):
        for seed in range(40):
            found = typos(TEXT, rate=rate, rng=np.random.default_rng(seed)).split()
            pairs = [pair for pair in zip(TEXT.split(), found, strict=True) if pair[0] != pair[1]]
            assert len(pairs) == max(1, round(rate * len(LONG)))
            for before, after in pairs:
                assert before in LONG
                assert after in edits(before)
                assert (after[0], after[-1]) == (before[0], before[-1])
                kinds.add(len(after) - len(before))
    assert kinds == {-1, 0, 1}


def test_some_texts_stay_as_they_are() -> None:
    rng = np.random.default_rng(0)
    assert typos(TEXT, rate=0.0, rng=rng) == TEXT
    for text in ("a tie on it", "我非常喜欢这部电影，演员也很好。", ""):
        assert typos(text, rate=1.0, rng=rng) == text
