"""A text's files: read as they were written, the newest kept; and texts without one word."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest

from core.artifacts import sentence
from core.artifacts.cache import write
from core.artifacts.sentence import (
    Deletions,
    Inspected,
    deletions,
    deletions_path,
    drop_old_texts,
    inspected,
    inspected_path,
    takes_pairs,
    without_each_word,
)
from core.events import TokenText, Word
from core.store import Store
from core.store.frames import TOKENS
from tests.cases import each
from tests.core.artifacts.made import MORE, recorded
from tests.core.training.made import Draft


def read_of(*sides: str) -> TokenText:
    """Words and single other characters, one token each, as many tokenizers find them."""
    words, place = [], 1
    for side, text in enumerate(sides):
        for found in re.finditer(r"\w+|[^\w\s]", text):
            words.append(Word(side, *found.span(), (place,)))
            place += 1
        place += 1
    return TokenText(sides, tuple(words), place)


def made(text: str, second: str | None = None, steps: tuple[int, ...] = (0, 5)) -> Inspected:
    rng = np.random.default_rng(len(text))
    read = read_of(text) if second is None else read_of(text, second)
    s, t = len(steps), read.length
    return Inspected(
        read,
        steps,
        tuple(range(s)),
        rng.standard_normal((s, 4)).astype(np.float32),
        rng.standard_normal((s, 3)).astype(np.float32),
        rng.random((s, 2, 2, t)).astype(np.float16),
    )


@pytest.mark.parametrize("sides", [("a film",), ("a film", "another"), ("<b>'\"\\\0\n 👩‍👩‍👧",)])
def test_what_is_written_is_read(tmp_path: Path, sides: tuple[str, ...]) -> None:
    found = made(*sides)
    write(inspected_path(tmp_path, *sides), found)
    again = inspected(tmp_path, *sides)
    assert again is not None
    assert (again.read, again.steps, again.stamps) == (found.read, found.steps, found.stamps)
    for name in ("vectors", "logits", "attention"):
        np.testing.assert_array_equal(getattr(again, name), getattr(found, name))
        assert getattr(again, name).dtype == getattr(found, name).dtype


def test_a_text_and_a_pair_have_files_of_their_own(tmp_path: Path) -> None:
    names = {inspected_path(tmp_path, *sides) for sides in (("a b",), ("a", "b"), ("b", "a"), ("a", ""), ("a",))}
    assert len(names) == 5
    assert all(re.fullmatch(r"[0-9a-f]{64}\.safetensors", path.name) for path in names)


def test_deletions_are_read_for_their_step_and_weights_alone(tmp_path: Path) -> None:
    read = read_of("a b", "c")
    found = Deletions(read, np.array([0.25, 0.75], np.float32), np.full((3, 2), 0.5, np.float32), 77)
    write(deletions_path(tmp_path, "a b", "c", 5), found)
    again = deletions(tmp_path, "a b", "c", 5, 77)
    assert again is not None
    assert again.read == read
    np.testing.assert_array_equal(again.base, found.base)
    np.testing.assert_array_equal(again.deleted, found.deleted)
    assert deletions(tmp_path, "a b", "c", 5, 78) is None
    assert deletions(tmp_path, "a b", "c", 6, 77) is None
    assert deletions(tmp_path, "a b", None, 5, 77) is None
    assert inspected(tmp_path, "a b", "c") is None


def test_only_the_newest_files_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentence, "KEPT", 3)
    for number in range(6):
        path = inspected_path(tmp_path, "x" * (number + 1))
        write(path, made("x" * (number + 1)))
        os.utime(path, (number + 1, number + 1))
    drop_old_texts(tmp_path)
    assert [n for n in range(6) if inspected(tmp_path, "x" * (n + 1))] == [3, 4, 5]


def test_whether_a_run_reads_pairs_is_known_with_and_without_its_tokens(store: Store, draft: Draft) -> None:
    run = recorded(store, draft(more=MORE))
    assert not takes_pairs(store, run)
    (store.run_folder(run.id) / TOKENS).unlink()
    assert not takes_pairs(store, run)


@each(
    ("text", "expected"),
    [
        ("a good film", ["good film", "a film", "a good"]),
        ("good  film", [" film", "good"]),
        ("so good.", ["good.", "so.", "so good"]),
        ("well, a film", [", a film", "well a film", "well, film", "well, a"]),
        ("(a) film", ["a) film", "() film", "(a film", "(a)"]),
        ("x", [""]),
        ("电影好", [""]),
        (" padded word ", [" word ", " padded"]),
    ],
)
def test_one_space_goes_with_a_word(text: str, expected: list[str]) -> None:
    found = list(without_each_word(read_of(text)))
    assert found == expected
    for one, word in zip(found, read_of(text).words, strict=True):
        rest = text[: word.start] + text[word.end :]
        assert "".join(str(one).split()) == "".join(rest.split()), "nothing but white space goes with the word"


def test_a_word_is_taken_from_its_own_side() -> None:
    assert list(without_each_word(read_of("a b", "b a"))) == [("b", "b a"), ("a", "b a"), ("a b", "a"), ("a b", "b")]
