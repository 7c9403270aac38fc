"""A zip of known members: equal content gives equal bytes, and a reader stops at the declared size."""

from __future__ import annotations

import io
import struct
import tracemalloc
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

from core.artifacts import packed
from core.artifacts.packed import (
    DamagedError,
    StrictForm,
    are_labels,
    arrays,
    is_whole,
    parse_member,
    read_members,
    write_members,
)
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


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"^made\.zip could not be written \(.+\): choose another location\.$"):
        write_members(tmp_path / "nowhere" / "made.zip", MEMBERS)


def test_a_file_that_takes_or_says_it_takes_too_much_is_not_unpacked(
    archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed, "BYTES_MAX", MEGABYTE)
    archive.write_bytes(archive.read_bytes() + bytes(MEGABYTE))
    with pytest.raises(DamagedError, match=r"^it is larger than 1 MB$"):
        read_members(archive, NAMES)
    write_members(archive, MEMBERS | {"about.json": " " * (MEGABYTE + 1)})
    with pytest.raises(DamagedError, match=r"^it unpacks to more than 1 MB$"):
        read_members(archive, NAMES)


def test_one_that_says_it_is_small_is_unpacked_no_further_than_that(archive: Path) -> None:
    large, said = 200 * MEGABYTE, 1_000
    write_members(archive, MEMBERS | {"about.json": bytes(large)})
    text = archive.read_bytes()
    lying = text.replace(large.to_bytes(4, "little"), said.to_bytes(4, "little"))
    assert lying.count(said.to_bytes(4, "little")) == 2  # in the member's header, and in the central directory
    archive.write_bytes(lying)
    tracemalloc.start()
    try:
        with pytest.raises(DamagedError, match="CRC"):
            read_members(archive, NAMES)
        assert tracemalloc.get_traced_memory()[1] < 10 * MEGABYTE
    finally:
        tracemalloc.stop()


def zipped(members: Mapping[str, str | bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as file:
        for name, text in members.items():
            file.writestr(name, text)
    return made.getvalue()


def turned(text: bytes, place: int) -> bytes:
    """Return the text with the bits of one byte inverted."""
    return text[:place] + bytes([text[place] ^ 0xFF]) + text[place + 1 :]


def hostile() -> Iterator[tuple[bytes, str]]:
    """Return archives with one defect each, and the expected message as a regular expression."""
    whole = zipped(MEMBERS)
    yield b"PK but no zip", "not a zip file"
    yield zipped({}), "it lacks about.json, numbers.bin"
    for name in ("../about.json", "/about.json", "about.json/", "ABOUT.JSON"):
        yield zipped({name: "", "numbers.bin": ""}), "it lacks about.json"
    yield zipped(MEMBERS | {"../../x": b"x"}), r"'\.\./\.\./x' does not belong in it"
    yield zipped(MEMBERS | {"x" * 500: b"x"}), r"'x+… does not belong in it"
    twice = io.BytesIO(whole)
    with zipfile.ZipFile(twice, "a") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        file.writestr("about.json", "{}")
    yield twice.getvalue(), "it contains a file twice"
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        yield turned(zipped(MEMBERS, method), 60), "its compression is not supported"
    at = whole.index(b"PK\x01\x02")
    yield whole[: at + 8] + b"\x01\x00" + whole[at + 10 :], "encrypted"
    yield whole[: at + 10] + b"\x63\x00" + whole[at + 12 :], "its compression is not supported"
    yield whole[: at + 24] + b"\xff\xff\xff\x00" + whole[at + 28 :], "it states a wrong size"
    yield whole[: at + 42] + b"\xff\xff\xff\x00" + whole[at + 46 :], "Truncated"
    for tenths in (1, 5, 9):
        yield whole[: len(whole) * tenths // 10], "not a zip file"
    with zipfile.ZipFile(io.BytesIO(whole)) as file:
        for info in file.infolist():
            place = info.header_offset + 30 + len(info.filename) + info.compress_size // 2
            yield turned(whole, place), f"decompressing|CRC-32 .*'{info.filename}'"


@each(("text", "why"), hostile())
def test_what_is_no_archive_of_these_members_is_refused(archive: Path, text: bytes, why: str) -> None:
    archive.write_bytes(text)
    with pytest.raises(DamagedError, match=why):
        read_members(archive, NAMES)


class Form(StrictForm):
    """A form with one number and one text."""

    seconds: float
    title: str = ""


@each(
    ("text", "why"),
    [
        (b'{"a":' * 200_000, "recursion"),
        (b"7", "an object"),
        (b"\xff\xfe\x00", "expected value"),
        (b'{"title": "\\ud800"}', "escape"),
        (b'{"seconds": ' + b"9" * 5_000 + b"}", "out of range"),
        (b'{"seconds": 1', "EOF"),
        (b'{"seconds": NaN}', "finite"),
        (b'{"seconds": "1"}', "seconds: Input should be a valid number"),
        (b'{"seconds": 1, "surplus": 2}', "surplus: Extra"),
        (b"{}", "seconds: Field required"),
    ],
)
def test_text_that_is_no_such_form_is_refused(text: bytes, why: str) -> None:
    with pytest.raises(DamagedError, match=f"^about.json[,:].*{why}"):
        parse_member(Form, text, "about.json")


TENSORS = save({"a": np.ones(2, np.float16), "b": np.ones(2, np.float32)})


@each(
    ("text", "why"),
    [
        (b"", "header too small"),
        (TENSORS[:-1], "incomplete"),
        (struct.pack("<Q", 2**62) + TENSORS[8:], "header too large"),
        (struct.pack("<Q", 8) + b"nonsense", "JSON"),
        (TENSORS.replace(b'"F16"', b'"F8"  ').replace(b'"F32"', b'"F4"  '), ""),
        (TENSORS.replace(b'"data_offsets":[0,', b'"data_offsets":[1,', 1), "offset"),
    ],
)
def test_what_holds_no_arrays_is_refused(text: bytes, why: str) -> None:
    with pytest.raises(DamagedError, match=f"^numbers.bin: .*{why}"):
        arrays(text, "numbers.bin")


def test_whole_arrays_are_finite_and_of_their_shape_and_labels_numbers_of_classes() -> None:
    for kind in (np.float16, np.float32):
        assert is_whole(np.ones((2, 3), kind), (2, 3))
    nan, infinity = np.full((2, 3), np.nan, np.float32), np.full((2, 3), np.inf, np.float16)
    for array in (np.ones((2, 3), np.float64), np.ones((3, 2), np.float32), nan, infinity):
        assert not is_whole(array, (2, 3))
    assert are_labels(np.array([0, 1], np.int32), 2)
    wrong = (np.array(labels, np.int32) for labels in ([], [0, 2], [0, -1], [[0, 1]]))
    for array in (*wrong, np.array([0, 1], np.int64)):
        assert not are_labels(array, 2)
