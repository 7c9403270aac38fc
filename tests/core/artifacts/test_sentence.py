"""Files of a typed text: equal after reading, and only the newest are kept. Some texts have no words."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest

from core.artifacts import sentence
from core.artifacts.cache import read, write
from core.artifacts.sentence import (
    Deletions,
    deletions_path,
    drop_old_texts,
    inspected_path,
    read_inspected,
    takes_pairs,
    without_each_word,
)
from core.events import TokenText, Word
from core.store import RunRecord, Store
from core.store.frames import TOKENS
from tests.cases import each


def read_of(*sides: str) -> TokenText:
    """Split a text into words and other characters, one token each, as many tokenizers do."""
    words, place = [], 1
    for side, text in enumerate(sides):
        for found in re.finditer(r"\w+|[^\w\s]", text):
            words.append(Word(side, *found.span(), (place,)))
            place += 1
        place += 1
    return TokenText(sides, tuple(words), place)


def test_a_text_and_a_pair_have_files_of_their_own(tmp_path: Path) -> None:
    names = {inspected_path(tmp_path, *sides) for sides in (("a b",), ("a", "b"), ("b", "a"), ("a", ""), ("a",))}
    assert len(names) == 5
    assert all(re.fullmatch(r"[0-9a-f]{64}\.safetensors", path.name) for path in names)


def test_deletions_are_read_for_their_text_and_step_alone(tmp_path: Path) -> None:
    found = Deletions(read_of("a b", "c"), np.zeros(2, np.float32), np.full((3, 2), 0.5, np.float32), 77)
    write(deletions_path(tmp_path, "a b", "c", 5), found)
    again = read(Deletions, deletions_path(tmp_path, "a b", "c", 5))
    assert (again.read, again.stamp) == (found.read, 77)
    np.testing.assert_array_equal(again.deleted, found.deleted)
    assert read(Deletions, deletions_path(tmp_path, "a b", "c", 6)) is None
    assert read(Deletions, deletions_path(tmp_path, "a b", None, 5)) is None
    assert read_inspected(tmp_path, "a b", "c") is None


def test_only_the_newest_files_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentence, "KEPT", 3)
    paths = [inspected_path(tmp_path, "x" * number) for number in range(6)]
    paths[0].parent.mkdir()
    for number, path in enumerate(paths):
        path.touch()
        os.utime(path, (number, number))
    drop_old_texts(tmp_path)
    assert [path for path in paths if path.exists()] == paths[3:]


def test_whether_a_run_reads_pairs_is_known_with_and_without_its_tokens(
    filled: Store, run: RunRecord, pair_run: RunRecord
) -> None:
    for _ in range(2):
        assert not takes_pairs(filled, run)
        assert takes_pairs(filled, pair_run)
        for one in (run, pair_run):
            (filled.run_folder(one.id) / TOKENS).unlink(missing_ok=True)


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
