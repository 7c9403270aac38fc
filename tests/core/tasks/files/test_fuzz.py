"""Damaged files. Each is read or refused with one message, without other errors or leftover files."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.config import ReadingConfig
from core.errors import PlaygroundError
from core.tasks.files.reading import CombinedFiles, combine_readings, read_file
from tests.core.tasks.files.test_reading import unusable
from tests.core.tasks.files.test_tables import KINDS, check_sentence, written

FILES_PER_DAMAGE = 30
FILE_MAX_S = 5
WORDS = {
    "english": ["good", "film,", "it's", 'a "classic"', "dull;", "the", "end.", "=)", "1,000", "http://a.b/c?d=e"],
    "german": ["schöne", "Größe", "über", "Straße", "für", "nicht", "“gut”", "€5"],
    "chinese": ["今天", "天气", "很好，", "我们", "不喜欢", "这个", "酒店。"],
    "korean": ["정말", "재미있는", "영화", "이다.", "별로", "ㅋㅋㅋ", "좋아요!"],
}
ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252", "gb18030", "cp949"]
ENCODINGS += ["shift_jis", "big5", "koi8-r", "utf-7", "cp037", "iso2022_kr", "hz"]


def made(rng: random.Random, kind: str, rows: int = 40) -> bytes:
    """Return an undamaged file of one of the four formats."""
    language = rng.choice(list(WORDS))
    texts = [" ".join(rng.choices(WORDS[language], k=rng.randint(1, 12))) for _ in range(rows)]
    return written(kind, {"text": texts, "label": [rng.choice(["good", "bad", "0", "1"]) for _ in range(rows)]})


def truncated(rng: random.Random, kind: str) -> bytes:
    raw = made(rng, kind)
    return raw[: rng.randrange(len(raw))]


def flipped_bytes(rng: random.Random, kind: str) -> bytes:
    raw = bytearray(made(rng, kind))
    for _ in range(rng.choice([1, 2, 5, 50])):
        raw[rng.randrange(len(raw))] = rng.randrange(256)
    if rng.random() < 0.5:  # the metadata of a Parquet file is at its end
        raw[-rng.randrange(1, min(len(raw), 700))] ^= 1 << rng.randrange(8)
    return bytes(raw)


def binary(rng: random.Random, kind: str) -> bytes:
    magic = b"PAR1" if kind == "parquet" and rng.random() < 0.7 else b""
    return magic + rng.randbytes(rng.choice([1, 3, 7, 100, 5_000, 100_000])) + magic


def wrong_encodings(rng: random.Random, kind: str) -> bytes:
    text = made(rng, "csv" if kind == "parquet" else kind).decode()
    raw = text.encode(rng.choice(ENCODINGS), "ignore")
    # Every second file has two encodings, the other one at its end.
    return raw + text.encode(rng.choice(ENCODINGS), "ignore") if rng.random() < 0.5 else raw


def stray_quotes(rng: random.Random, kind: str) -> bytes:
    raw = bytearray(made(rng, kind, rows=200))
    for _ in range(rng.choice([1, 2, 3, 30])):
        raw.insert(rng.randrange(len(raw)), ord('"'))
    return bytes(raw)


def huge_cells(rng: random.Random, kind: str) -> bytes:
    size = rng.choice([20_001, 140_000, 1_000_000])
    huge = rng.choice(["a", "1", "猫", "ab, ", '"', "a\n", "=", "a\t", "1,"]) * size
    texts, labels = ["short"] * 5 + [huge[:size]] + ["text"] * 5, ["x", "y"] * 5 + ["x"]
    if rng.random() < 0.5:
        texts, labels = labels, texts
    return written(kind, {"text": texts, "label": labels})


def odd_json(rng: random.Random, kind: str) -> bytes:
    odd = ["[" * 100_000, '{"a":' * 100_000, "[1, 2]", "3", '"text"', "null", "{", "{}", "'text'"]
    odd += ['{"text": NaN, "label": Infinity}', '{"text": "a", "label": ' + "9" * 10_000 + "}", '{"label": 1e999}']
    odd += ['{"text": "\\ud800", "label": 1}', '{"text": "a\\u0000b", "label": "x"}', '{"": "", "label": 1}']
    odd += ['{"text": ["a", {"b": null}], "label": true}', '{"text": "a", "text": "b", "label": 1}']
    return "\n".join(rng.choices([*odd, '{"text": "fine", "label": 1}'], k=rng.randint(1, 8))).encode()


DAMAGES = [truncated, flipped_bytes, binary, wrong_encodings, stray_quotes, huge_cells, odd_json]


def given(rng: random.Random) -> ReadingConfig:
    """Return reading options. Most are left to detection, the others are given, right or wrong."""
    if rng.random() < 0.6:
        return ReadingConfig()
    offered: dict[str, list[Any]] = {
        "text": ["text", "column 1", "label"],
        "text_b": ["", "text"],
        "label": ["label", "column 2"],
        "split": ["", "label"],
        "kind": ["classes", "similarity"],
        "encoding": ["utf-8", "utf-16", "cp1252", "gb18030", "cp949"],
        "delimiter": [",", "\t", ";", "|"],
        "header": [True, False],
        "quote": ['"', "'", ""],
        "escape": ["\\", ""],
    }
    return ReadingConfig(**{name: rng.choice([None, *values]) for name, values in offered.items()})


def check_reading(together: CombinedFiles) -> None:
    (reading,) = together.readings
    rows = reading.rows
    assert not reading.source.sampled
    assert len(rows) + unusable(together) == reading.source.total
    assert len(rows) == len(rows.texts) == len(rows.labels) == len(reading.lines) > 0
    assert list(reading.lines) == sorted(set(reading.lines))
    assert all(text == text.strip() and 0 < len(text) <= 20_000 for text in rows.texts)
    assert all(0 < len(label) <= 100 for label in rows.labels)
    assert len(together.problems) == sum(min(1_000, count) for count in together.counts.values())
    for problem in together.problems:
        check_sentence(str(problem.message))
    "".join((*rows.texts, *rows.labels)).encode()  # no unpaired surrogates
    assert "\n" not in together.source


def check_file(path: Path, options: ReadingConfig) -> CombinedFiles | None:
    """Return the rows of a file, or None if it is refused, after at most FILE_MAX_S of processor time."""
    start = time.process_time()
    try:
        together = combine_readings([read_file(path, options)])
    except PlaygroundError as error:
        check_sentence(str(error))
        return None
    finally:
        assert time.process_time() - start < FILE_MAX_S
    check_reading(together)
    return together


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_file_is_read_or_refused_in_one_sentence(
    damage: Callable[[random.Random, str], bytes], tmp_path: Path
) -> None:
    for number in range(FILES_PER_DAMAGE):
        rng = random.Random(f"{damage.__name__} {number}")
        kind = KINDS[number % len(KINDS)]
        path = tmp_path / f"rows.{kind}"
        path.write_bytes(damage(rng, kind))
        check_file(path, given(rng))
        assert list(tmp_path.iterdir()) == [path]
        path.unlink()


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_files_are_read_when_nothing_is_damaged(kind: str, tmp_path: Path) -> None:
    for number in range(10):
        path = tmp_path / f"rows.{kind}"
        path.write_bytes(made(random.Random(number), kind))
        together = check_file(path, ReadingConfig())
        assert together is not None
        assert len(together.readings[0].rows) == 40
