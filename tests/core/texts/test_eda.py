"""Easy data augmentation: the allowed changes of each operation, and their number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from core.texts.eda import STOP_WORDS, eda, row_generator
from tests.cases import each

OPERATIONS = ["replace", "delete", "duplicate", "swap"]
LETTERS = [chr(code) * 2 for code in range(ord("a"), ord("u"))]
TWENTY = " ".join(LETTERS)
MADE_UP = {"good": ["great", "decent"], "film": ["movie"], "cats": ["kittens"], "the": ["le"], "don't": ["do"]}
CHINESE = "我非常喜欢这部电影，演员也很好。"


def known(word: str) -> list[str]:
    return MADE_UP.get(word, [])


def doubled(word: str) -> list[str]:
    return [word + "x"]


def view(
    text: str,
    operation: str = "mixed",
    rate: float = 0.3,
    seed: int = 0,
    synonyms: Callable[[str], list[str]] = known,
) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("core.texts.eda.synonyms", synonyms)
        return eda(text, operation=operation, rate=rate, rng=np.random.default_rng(seed))


@each("seed", range(20))
@each("rate", [0.05, 0.1, 0.25, 0.5, 1.0])
class TestWords:
    def test_delete_leaves_a_part_in_order(self, rate: float, seed: int) -> None:
        kept = view(TWENTY, "delete", rate, seed).split()
        assert kept == [word for word in LETTERS if word in kept]
        assert len(kept) == max(1, 20 - round(20 * rate))

    def test_duplicate_adds_copies_in_place_and_nothing_else(self, rate: float, seed: int) -> None:
        words = view(TWENTY, "duplicate", rate, seed).split()
        assert list(dict.fromkeys(words)) == LETTERS
        assert words == sorted(words)
        assert max(Counter(words).values()) == 2
        assert len(words) == 20 + round(20 * rate)

    def test_swap_keeps_the_words_and_moves_the_share_by_pairs(self, rate: float, seed: int) -> None:
        words = view(TWENTY, "swap", rate, seed).split()
        assert sorted(words) == LETTERS
        moved = [i for i in range(20) if words[i] != LETTERS[i]]
        assert len(moved) == 2 * max(1, round(10 * rate))
        assert all(words[LETTERS.index(words[i])] == LETTERS[i] for i in moved)

    def test_replace_changes_the_share_in_place(self, rate: float, seed: int) -> None:
        words = view(TWENTY, "replace", rate, seed, doubled).split()
        changed = [i for i in range(20) if words[i] != LETTERS[i]]
        assert len(changed) == round(20 * rate)
        assert all(words[i] == LETTERS[i] + "x" for i in changed)

    def test_a_rate_is_a_share_of_all_words_also_where_few_have_synonyms(self, rate: float, seed: int) -> None:
        text = "cats xx film yy good zz ww vv uu tt"
        words = view(text, "replace", rate, seed).split()
        assert sum(a != b for a, b in zip(words, text.split(), strict=True)) == min(3, max(1, round(10 * rate)))


@each(("rate", "left"), [(0.001, 9), (0.14, 9), (0.27, 7), (0.96, 1)])
def test_the_share_is_rounded_to_the_nearest_count_but_one(rate: float, left: int) -> None:
    assert len(view(" ".join(LETTERS[:10]), "delete", rate).split()) == left


class TestReplace:
    def test_only_words_with_synonyms_change(self) -> None:
        words = view("a good dog saw the film twice", "replace", 1.0).split()
        assert [words[i] for i in (0, 2, 3, 4, 6)] == ["a", "dog", "saw", "the", "twice"]
        assert words[1] in MADE_UP["good"]
        assert words[5] == "movie"

    def test_every_synonym_is_drawn_sometimes(self) -> None:
        assert {view("good", "replace", 1.0, seed) for seed in range(40)} == {"great", "decent"}

    @each("stop_word", ["the", "The", "(the)", "don't"])
    def test_stop_words_never_change(self, stop_word: str) -> None:
        assert known(stop_word.strip("()").lower())
        assert view(stop_word, "replace", 1.0) == stop_word

    @each(
        ("word", "expected"),
        [
            ("Film", "Movie"),
            ("FILM", "MOVIE"),
            ("film!", "movie!"),
            ("(“film”),", "(“movie”),"),
            ("...Film?!", "...Movie?!"),
            ("film's", "film's"),
        ],
    )
    def test_punctuation_and_capitals_stay(self, word: str, expected: str) -> None:
        assert view(word, "replace", 1.0) == expected

    @each("seed", range(10))
    def test_a_synonym_that_is_the_word_itself_is_no_change(self, seed: int) -> None:
        given = {"paris": ["paris"], "film": ["movie"]}
        assert view("Paris film", "replace", 0.5, seed, lambda word: given[word]) == "Paris movie"

    def test_synonyms_come_from_the_bundled_list(self) -> None:
        changed = eda("I enjoyed it", operation="replace", rate=0.1, rng=np.random.default_rng(0))
        assert changed.startswith("I ")
        assert changed.endswith(" it")
        assert changed != "I enjoyed it"


@each("seed", range(20))
def test_a_swap_is_made_wherever_two_words_differ_and_equal_words_stay(seed: int) -> None:
    changed = view("la la la la la lo", "swap", 0.01, seed).split()
    assert sorted(changed) == ["la"] * 5 + ["lo"]
    assert changed[-1] == "la"
    assert view("la la  la", "swap", 1.0, seed) == "la la  la"


class TestMixed:
    def test_it_is_the_default_and_draws_every_operation(self) -> None:
        text = "good dogs chase cats"
        seen = set()
        for seed in range(60):
            words = view(text, rate=0.25, seed=seed).split()
            if len(words) != 4:
                seen.add("delete" if len(words) < 4 else "duplicate")
            else:
                seen.add("swap" if sorted(words) == sorted(text.split()) else "replace")
        assert seen == set(OPERATIONS)

    @each("seed", range(20))
    def test_an_operation_that_can_do_nothing_gives_way(self, seed: int) -> None:
        assert view("wonderment", "mixed", 0.1, seed) == "wonderment wonderment"


class TestLittleText:
    @each("operation", [*OPERATIONS, "mixed"])
    def test_no_words_stay_no_words_and_rate_0_gives_the_text_back(self, operation: str) -> None:
        for text in ("", " ", "\n\t "):
            assert view(text, operation, 1.0) == text
        assert view(" good  film\n", operation, 0.0) == " good  film\n"

    @each("text", ["wonderment", "!", "…", "🙂", "一", "  indented "])
    def test_the_only_word_is_never_deleted_nor_swapped(self, text: str) -> None:
        assert view(text, "delete", 1.0) == text
        assert view(text, "swap", 1.0) == text


class TestScripts:
    @each("seed", range(10))
    @each("text", [CHINESE, "この映画はとても面白かったです。", "ฉันชอบหนังเรื่องนี้มาก"])
    def test_texts_without_spaces_change_by_characters(self, text: str, seed: int) -> None:
        deleted = view(text, "delete", 0.2, seed)
        assert " " not in deleted
        assert 0.5 * len(text) < len(deleted) < len(text)
        assert Counter(deleted) <= Counter(text)
        swapped = view(text, "swap", 0.2, seed)
        assert swapped != text
        assert Counter(swapped) == Counter(text)
        duplicated = view(text, "duplicate", 0.2, seed)
        assert len(duplicated) > len(text)
        assert set(duplicated) == set(text)

    @each("seed", range(10))
    def test_thai_marks_and_latin_words_stay_whole(self, seed: int) -> None:
        text = "กี่ iPhone ข้า บ้าน"
        assert "iPhone" in view(text, "swap", 1.0, seed)
        assert Counter(view("กี่ข้า", "swap", 1.0, seed)) == Counter("กี่ข้า")
        assert view("กี่ข้", "swap", 1.0, seed) == "ข้กี่"
        text = "das Wort 电影 hier"  # most letters decide
        assert sorted(view(text, "swap", 1.0, seed).split()) == sorted(text.split())
        assert view("电影院 ab", "delete", 0.25, seed) in ("影院 ab", "电院 ab", "电影ab", "电影院")

    @each("text", ["Ça c’était très émouvant", "фильм был хорош", "영화가 정말 좋았어요", "cafe\u0301 noir"])
    @each("operation", ["delete", "duplicate", "swap"])
    def test_words_of_other_alphabets_stay_whole(self, text: str, operation: str) -> None:
        assert set(view(text, operation, 0.5).split()) <= set(text.split())


class TestRandomness:
    @each("operation", [*OPERATIONS, "mixed"])
    def test_a_view_is_a_function_of_text_and_generator(self, operation: str) -> None:
        views = [view(TWENTY, operation, 0.3, seed, doubled) for seed in range(6)]
        assert views == [view(TWENTY, operation, 0.3, seed, doubled) for seed in range(6)]
        assert len(set(views)) > 1

    def test_seed_step_row_and_draw_all_count(self) -> None:
        first = row_generator(1, 2, 3, 4).random(4).tolist()
        assert row_generator(1, 2, 3, 4).random(4).tolist() == first
        others = [(0, 2, 3, 4), (1, 0, 3, 4), (1, 2, 0, 4), (1, 2, 3, 0), (2, 1, 3, 4), (1, 2, 4, 3)]
        assert all(row_generator(*numbers).random(4).tolist() != first for numbers in others)
        # Nor is it the generator of the order of rows.
        assert row_generator(7, 3, 0, 0).random() != np.random.default_rng([7, 3]).random()


def test_a_rate_that_is_no_share_and_an_unknown_operation_are_refused() -> None:
    for rate in (-0.1, 1.1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="give a share of the words"):
            view("a text", rate=rate)
    for operation in ("", "insert", "Replace"):
        with pytest.raises(ValueError, match="choose one of replace, delete, duplicate, swap, mixed"):
            view("a text", operation)


def test_words_that_turn_a_sentence_round_are_stop_words() -> None:
    assert {"not", "no", "never", "without", "can't", "but"} <= STOP_WORDS
