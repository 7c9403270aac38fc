"""Cached values: equal after reading, complete or absent, and computed once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from core.artifacts.cache import load_or_compute, numbered, numbers, read, write, write_arrays
from core.artifacts.measures import SimilarityScores, read_similarity
from core.errors import StoreError
from core.events import TokenText, Word


@dataclass(frozen=True, slots=True)
class Answer:
    """A value with every kind of field that cached values have."""

    read: TokenText
    points: NDArray[np.float32]
    scores: Mapping[int, float | None]
    steps: tuple[int, ...]


PLACES = np.arange(6, dtype=np.float32).reshape(3, 2)
ANSWER = Answer(TokenText(("a", ""), (Word(0, 0, 1, (1, 2)),), 4), PLACES.T, {0: None, 40: 0.1}, (0, 40))


def test_what_was_written_is_read(tmp_path: Path) -> None:
    path = numbered(tmp_path / "answers", 1)
    write(path, ANSWER)
    found = read(Answer, path)
    np.testing.assert_array_equal(found.points, PLACES.T)
    assert (found.read, found.scores, found.steps) == (ANSWER.read, ANSWER.scores, ANSWER.steps)
    assert [kept.name for kept in path.parent.iterdir()] == [path.name]
    assert numbers(path.parent) == (1,)
    assert numbers(tmp_path / "elsewhere") == ()


def test_a_value_is_computed_where_none_is_current(tmp_path: Path) -> None:
    path, asked = tmp_path / "answer.safetensors", list[Answer | None]()

    def compute(known: Answer | None) -> Answer:
        asked.append(known)
        return ANSWER

    for is_current in (lambda known: True, lambda known: known.steps == (0, 40), lambda known: False):
        assert load_or_compute(Answer, path, compute, is_current).steps == (0, 40)
    assert asked[0] is None
    assert len(asked) == 2
    assert asked[1].scores == ANSWER.scores


def test_scores_that_an_earlier_version_kept_are_read(tmp_path: Path) -> None:
    about = {"values": {"0": None, "4": 0.5}, "stamps": {"0": 0, "4": 7}, "pairs": 9}
    write_arrays(tmp_path / "similarity" / "mine.safetensors", {"steps": np.array([0, 4])}, about)
    assert read_similarity(tmp_path, "mine") == SimilarityScores({0: None, 4: 0.5}, {0: 0, 4: 7}, 9)


def test_what_a_killed_process_left_of_a_file_goes_with_its_next_writing(tmp_path: Path) -> None:
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    left = tmp_path / f".0000001.safetensors.{int(gone.stdout)}.0123abcd.partial"
    left.touch()
    write(numbered(tmp_path, 1), ANSWER)
    assert not left.exists()


def test_the_folder_of_a_deleted_run_is_not_made_again(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="could not be written"):
        write(numbered(tmp_path / "gone" / "answers", 1), ANSWER)
    assert not list(tmp_path.iterdir())


def test_a_damaged_file_or_one_of_another_kind_counts_as_none(tmp_path: Path) -> None:
    path = tmp_path / "answer.safetensors"
    for content in (b"", b"damaged", b"\xff" * 64):
        path.write_bytes(content)
        assert read(Answer, path) is None
    write(path, SimilarityScores({}, {}, 3))
    assert read(Answer, path) is None
    write_arrays(path, {"points": PLACES}, {"sides": 3, "words": [], "length": "?", "scores": {}, "steps": []})
    assert read(Answer, path) is None
