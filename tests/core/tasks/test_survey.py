"""Classes, lengths, duplicates, scripts and search, against slow loops."""

from __future__ import annotations

import random
import time
import unicodedata
from itertools import combinations

from core.tasks.survey import DuplicateGroup, duplicates, folded, language_of, search, word_counts
from tests.cases import each

CHINESE = "我非常喜欢这部电影，演员也很好。"
KOREAN = "영화가 정말 좋았어요, 배우도 훌륭했어요."
JAPANESE = "この映画はとても面白かったです。"
THAI = "ฉันชอบหนังเรื่องนี้มาก"
PIECES = [*["film", "Ça", "e\u0301te\u0301", "电影", "影", "영화가", "の", "ที่", "\u0e34"], " ", "\t\n"]
PIECES += ["iPhone12", "9", "…", "²", "🙂"]


def made_texts(count: int, seed: int = 0) -> list[str]:
    rng = random.Random(seed)
    return ["".join(rng.choices(PIECES, k=rng.randint(0, 9))) for _ in range(count)]


class TestLengths:
    @each(
        ("text", "count"),
        [
            ("two  words\n", 2),
            ("", 0),
            (" \t", 0),
            ("…", 1),
            (KOREAN, 5),
            ("我非常喜欢这个 iPhone12。", 9),
            ("กี่ข้", 2),
            ("das Wort 电影 hier", 4),
            (("two words", CHINESE), 2 + 16),
        ],
    )
    def test_words_and_characters(self, text: str | tuple[str, str], count: int) -> None:
        assert word_counts([text]) == [count]


class TestFolding:
    @each(
        ("one", "other"),
        [
            ("Good  film\n", "good film"),
            ("ＦＩＬＭ", "film"),
            ("cafe\u0301", "CAFÉ"),
            ("Straße", "STRASSE"),
            ("\u1112\u1161\u11ab", "한"),
            ("a\u00a0b\u3000c", "A B C"),
            ("\u0345\u03b1", "\u0399\u03b1"),
        ],
    )
    def test_texts_that_look_the_same_are_the_same(self, one: str, other: str) -> None:
        assert folded(one) == folded(other)

    def test_folding_again_changes_nothing(self) -> None:
        for text in made_texts(500):
            assert folded(str(folded(text))) == folded(text)
            assert unicodedata.is_normalized("NFKC", str(folded(text)))


def slow_groups(texts: list[str], labels: list[int]) -> list[DuplicateGroup]:
    found, seen = [], set[int]()
    for row in range(len(texts)):
        same = [other for other in range(len(texts)) if folded(texts[other]) == folded(texts[row])]
        if row not in seen and len(same) > 1:
            found.append(DuplicateGroup(tuple(same), any(labels[a] != labels[b] for a, b in combinations(same, 2))))
        seen.update(same)
    return found


class TestDuplicates:
    @each("seed", range(5))
    def test_groups_are_those_of_all_comparisons(self, seed: int) -> None:
        rng = random.Random(seed)
        texts = rng.choices([*made_texts(40, seed), "Good film", "good  FILM"], k=150)
        labels = rng.choices([0, 1], k=150)
        assert duplicates(texts, labels) == slow_groups(texts, labels)

    def test_a_pair_the_other_way_round_is_another(self) -> None:
        assert duplicates([("a", "b"), ("b", "a"), ("a b", ""), ("", "a b")], [0] * 4) == []
        assert duplicates([("a", "b"), ("A", "b ")], [0, 0]) == [DuplicateGroup((0, 1), labels_differ=False)]


class TestLanguage:
    @each(
        ("texts", "language"),
        [
            (["I enjoyed the film.", "Ça c’était très émouvant"], "latin"),
            ([CHINESE], "zh"),
            ([KOREAN], "ko"),
            ([unicodedata.normalize("NFD", KOREAN)], "ko"),
            ([JAPANESE, "映画"], "ja"),
            ([THAI], "other"),
            (["фильм был хорош"], "other"),
            ([], "other"),
            (["12 … 🙂", ""], "other"),
            (["我很喜欢 my new MacBook Pro，因为它很快"], "zh"),
            (["이 BTS 노래 정말 좋아요 really"], "ko"),
            ([CHINESE + "の", CHINESE], "zh"),
            (["I liked 千と千尋 a lot, it is a great film"], "latin"),
            ([(KOREAN, "배우도 좋았어요"), (KOREAN, "ok")], "ko"),
        ],
    )
    def test_the_script_of_most_words_decides(self, texts: list[str], language: str) -> None:
        assert language_of(texts) == language

    def test_rows_of_the_whole_task_are_looked_at_and_no_long_text_decides_for_all(self) -> None:
        assert language_of(["a film"] * 4_000 + [CHINESE] * 6_000) == "zh"
        assert language_of(["a film " * 3] * 9_000 + [CHINESE] * 1_000) == "latin"
        assert language_of([CHINESE * 1_000, *["a fine film, all in all"] * 300]) == "latin"


ROWS = [
    "A Good film",
    "not good, not bad",
    "ＧＯＯＤ music",
    "bad film",
    "这部电影很好",
    "좋은 영화",
    "good\n film  again",
]


class TestSearch:
    @each(
        ("words", "rows"),
        [
            ("", [0, 1, 2, 3, 4, 5, 6]),
            ("  ", [0, 1, 2, 3, 4, 5, 6]),
            ("GOOD", [0, 1, 2, 6]),
            ("good film", [0, 6]),
            ("film good", [0, 6]),
            ('"film good"', []),
            ('"good film"', [0, 6]),
            ("“good  FILM”", [0, 6]),
            ("「good film」", [0, 6]),
            ('"good film" again', [6]),
            ('"not bad', [1]),
            ('again"good film"', [6]),
            ('""', [0, 1, 2, 3, 4, 5, 6]),
            ("oo", [0, 1, 2, 6]),
            ("电影", [4]),
            ("电影 很", [4]),
            ("영화", [5]),
            (unicodedata.normalize("NFD", "영화"), [5]),
            ("ｆｉｌｍ", [0, 3, 6]),
            ("absent", []),
            ("good absent", []),
            (".*", []),
        ],
    )
    def test_every_word_occurs(self, words: str, rows: list[int]) -> None:
        assert search(ROWS, words) == rows

    def test_a_pair_is_searched_on_both_sides_and_a_phrase_within_one(self) -> None:
        pairs = [("a good", "film here"), ("good film", "there"), ("x", "y")]
        assert search(pairs, "good film") == [0, 1]
        assert search(pairs, '"good film"') == [1]
        assert search([("a", "b", "c film")], "a film") == [0]

    def test_labels_and_splits_narrow_it_down(self) -> None:
        labels, splits = [0, 1, 2, 0, 1, 2, 0], ["train"] * 4 + ["test"] * 3
        for in_labels in (None, [0], {0, 2}, []):
            for in_splits in (None, ["test"], ["train", "test"]):
                for words in ("", "film"):
                    expected = [
                        row
                        for row in range(len(ROWS))
                        if (in_labels is None or labels[row] in in_labels)
                        and (in_splits is None or splits[row] in in_splits)
                        and row in search(ROWS, words)
                    ]
                    found = search(ROWS, words, labels=labels, splits=splits, in_labels=in_labels, in_splits=in_splits)
                    assert found == expected


def test_a_large_task_is_surveyed_at_once() -> None:
    texts = [f"the film {i} was lovely and its music felt warm" for i in range(100_000)]
    labels = [i % 2 for i in range(100_000)]
    started = time.process_time()
    assert word_counts(texts)[-1] == 10
    assert duplicates(texts, labels) == []
    assert language_of(texts) == "latin"
    assert len(search(texts, "lovely 99999")) == 1
    assert time.process_time() - started < 10
