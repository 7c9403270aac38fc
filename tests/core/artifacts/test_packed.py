"""A zip of known members: the same content gives the same bytes, and no more is read than the file declares."""

from __future__ import annotations

import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from core.artifacts import packed
from core.artifacts.packed import DamagedError, are_labels, is_whole, read_members, write_members
from core.errors import StoreError
from tests.cases import each

NAMES = ("about.json", "numbers.bin")
MEMBERS: dict[str, str | bytes] = {"about.json": '{"title": "naïve"}', "numbers.bin": bytes(range(256)) * 40}
MEGABYTE = 2**20


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    write_members(tmp_path / "made.zip", MEMBERS)
    return tmp_path / "made.zip"


def test_what_is_written_is_read_back(archive: Path) -> None:
    assert read_members(archive, NAMES) == {
        "about.json": '{"title": "naïve"}'.encode(),
        "numbers.bin": bytes(range(256)) * 40,
    }


def test_nothing_in_it_says_when_it_was_written(archive: Path) -> None:
    with zipfile.ZipFile(archive) as file:
        assert {info.date_time for info in file.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"^made\.zip could not be written \(.+\): give another place\.$"):
        write_members(tmp_path / "nowhere" / "made.zip", MEMBERS)


def test_a_file_that_takes_too_much_is_not_opened(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "BYTES_MAX", MEGABYTE)
    archive.write_bytes(archive.read_bytes() + bytes(MEGABYTE))
    with pytest.raises(DamagedError, match=r"^it takes more than 1 MB$"):
        read_members(archive, NAMES)


def test_one_that_says_it_unpacks_to_too_much_is_not_unpacked(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_members(archive, MEMBERS | {"about.json": " " * (MEGABYTE + 1)})
    monkeypatch.setattr(packed, "BYTES_MAX", MEGABYTE)
    with pytest.raises(DamagedError, match=r"^it unpacks to more than 1 MB$"):
        read_members(archive, NAMES)


def test_one_that_says_it_is_small_is_unpacked_no_further_than_that(archive: Path) -> None:
    large, said = 200 * MEGABYTE, 1_000
    write_members(archive, MEMBERS | {"about.json": bytes(large)})
    text = archive.read_bytes()
    lying = text.replace(large.to_bytes(4, "little"), said.to_bytes(4, "little"))
    assert lying.count(said.to_bytes(4, "little")) == 2  # beside the member, and in the list at the end
    archive.write_bytes(lying)
    tracemalloc.start()
    try:
        with pytest.raises(DamagedError, match="CRC"):
            read_members(archive, NAMES)
        assert tracemalloc.get_traced_memory()[1] < 10 * MEGABYTE
    finally:
        tracemalloc.stop()


@each(
    ("array", "whole"),
    [
        (np.ones((2, 3), np.float16), True),
        (np.ones((2, 3), np.float32), True),
        (np.ones((2, 3), np.float64), False),
        (np.ones((3, 2), np.float32), False),
        (np.full((2, 3), np.nan, np.float32), False),
        (np.full((2, 3), np.inf, np.float16), False),
    ],
)
def test_whole_arrays_are_finite_and_of_their_shape(array: packed.Array, whole: bool) -> None:
    assert is_whole(array, (2, 3)) is whole


@each(
    ("array", "known"),
    [
        (np.array([0, 1], np.int32), True),
        (np.array([0, 2], np.int32), False),
        (np.array([0, -1], np.int32), False),
        (np.array([0, 1], np.int64), False),
        (np.array([[0, 1]], np.int32), False),
        (np.zeros(0, np.int32), True),
    ],
)
def test_labels_are_numbers_of_classes(array: packed.Array, known: bool) -> None:
    assert are_labels(array, 2) is known
