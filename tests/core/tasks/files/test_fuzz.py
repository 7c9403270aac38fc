"""Four hundred damaged files. Each is read or refused with one message, without other errors or leftover files."""

from __future__ import annotations

import csv
import io
import json
import random
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from core.config import ReadingConfig
from core.errors import PlaygroundError
from core.tasks.files.reading import CombinedFiles, combine_readings, read_rows
from core.tasks.files.tables import open_table

FILES_PER_DAMAGE = 30
SENTENCE_CHARS = 400
FILE_MAX_S = 5
SUFFIXES = {"csv": ".csv", "tsv": ".tsv", "jsonl": ".jsonl", "parquet": ".parquet"}
WORDS = {
    "english": ["good", "film,", "it's", 'a "classic"', "dull;", "the", "end.", "=)", "1,000", "http://a.b/c?d=e"],
    "german": ["schöne", "Größe", "über", "Straße", "für", "nicht", "“gut”", "€5"],
    "chinese": ["今天", "天气", "很好，", "我们", "不喜欢", "这个", "酒店。"],
    "korean": ["정말", "재미있는", "영화", "이다.", "별로", "ㅋㅋㅋ", "좋아요!"],
}
ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252", "gb18030", "cp949"]
ENCODINGS += ["shift_jis", "big5", "koi8-r", "utf-7", "cp037", "iso2022_kr", "hz"]
MARKS = r'1 1. .1 1e -1 1+ 0 " "," \ \" \u [ ] [1] ( { {"a": a. a@ http:// / : _ | a| ; 猫'
REPEATED = [*MARKS.split(), '" ', " ", "\u3000", "a ", "\u0301\u0327", "\U0001d165\u0301"]
RUNS = [(mark, run, end) for mark in ("", "-", "=", "+", '"', " ") for run in REPEATED for end in ("", "x", "1")]


def made(rng: random.Random, kind: str, rows: int = 40) -> bytes:
    """Return an undamaged file of one of the four formats."""
    language = rng.choice(list(WORDS))
    texts = [" ".join(rng.choices(WORDS[language], k=rng.randint(1, 12))) for _ in range(rows)]
    return written(kind, texts, [rng.choice(["good", "bad", "0", "1"]) for _ in range(rows)])


def written(kind: str, texts: list[str], labels: list[str]) -> bytes:
    if kind == "parquet":
        out = io.BytesIO()
        parquet.write_table(pa.table({"text": texts, "label": labels}), out)
        return out.getvalue()
    if kind == "jsonl":
        rows = zip(texts, labels, strict=True)
        return "".join(json.dumps({"text": t, "label": y}, ensure_ascii=False) + "\n" for t, y in rows).encode()
    if kind == "tsv":
        return "".join(f"{t}\t{y}\n" for t, y in zip(["text", *texts], ["label", *labels], strict=True)).encode()
    quoted = ['"' + text.replace('"', '""') + '"' for text in texts]
    return "".join(f"{t},{y}\r\n" for t, y in zip(["text", *quoted], ["label", *labels], strict=True)).encode()


def truncated(rng: random.Random, kind: str) -> bytes:
    raw = made(rng, kind)
    return raw[: rng.randrange(len(raw))]


def flipped_bytes(rng: random.Random, kind: str) -> bytes:
    raw = bytearray(made(rng, kind))
    for _ in range(rng.choice([1, 2, 5, 50])):
        raw[rng.randrange(len(raw))] = rng.randrange(256)
    return bytes(raw)


def flipped_at_the_end(rng: random.Random, kind: str) -> bytes:
    """Flip bits at the end of a Parquet file, where its metadata is."""
    raw = bytearray(made(rng, kind))
    for _ in range(rng.choice([1, 2, 8])):
        raw[-rng.randrange(1, min(len(raw), 700))] ^= 1 << rng.randrange(8)
    return bytes(raw)


def a_block_overwritten(rng: random.Random, kind: str) -> bytes:
    raw, size = made(rng, kind), rng.randint(1, 400)
    at = rng.randrange(len(raw))
    return raw[:at] + rng.randbytes(size) + raw[at + size :]


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
    return written(kind, texts, labels)


def long_runs(rng: random.Random, kind: str) -> bytes:
    """Return cells of repeated characters, on which an ambiguous pattern would take very long."""
    size = rng.choice([300, 6_000, 16_000, 100_000, 1_000_000])
    count = max(2, min(60, 1_000_000 // size))
    cells = [(mark + run * size)[:size] + end for mark, run, end in (rng.choice(RUNS) for _ in range(count))]
    others = [f"{i % 3}" for i in range(count)]
    names = rng.choice([["text", "label"], ["a", "b"], ["premise", "hypothesis", "score"]])
    columns = [cells, others] if rng.random() < 0.5 else [others, cells]
    if len(names) == 3:
        columns.insert(rng.randrange(3), cells)
    return table_of(kind, names, columns)


def table_of(kind: str, names: list[str], columns: list[list[str]]) -> bytes:
    rows = list(zip(*columns, strict=True))
    out = io.StringIO(newline="")
    match kind:
        case "parquet":
            raw = io.BytesIO()
            parquet.write_table(pa.table(dict(zip(names, columns, strict=True))), raw)
            return raw.getvalue()
        case "jsonl":
            out.writelines(json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False) + "\n" for row in rows)
        case _ if len(columns[0]) % 2:
            csv.writer(out, delimiter="\t" if kind == "tsv" else ",").writerows([names, *rows])
        case _:  # no quoting
            out.writelines(("\t" if kind == "tsv" else ",").join(row) + "\n" for row in [names, *rows])
    return out.getvalue().encode()


def next_to_nothing(rng: random.Random, kind: str) -> bytes:
    raw = [
        b"",
        b" ",
        b"\n\n\n",
        b"\xef\xbb\xbf",
        b"\xff\xfe",
        b"\xfe\xff",
        b"\xff\xfe\0\0",
        b"text,label",
        b"text,label\n",
    ]
    raw += [
        b'"',
        b'""',
        b",",
        b"\r",
        b"{}",
        b"[]",
        b"null",
        b"{}\n{}\n",
        b'{"text":"a"}',
        b"PAR1",
        b"PAR1PAR1",
        b"a",
        b"\0",
    ]
    raw += [b"text\tlabel\n\t\n", b"text,label\n,\n,\n", b"\xef\xbb\xbf\n", b"\xff\xfea", b"text,label\na,x", b"\x80"]
    return rng.choice(raw)


def line_ends(rng: random.Random, kind: str) -> bytes:
    raw = made(rng, "csv" if kind == "parquet" else kind).replace(b"\r\n", b"\n")
    return b"".join(line + rng.choice([b"\n", b"\r\n", b"\r", b"\n\r", b"\n\n"]) for line in raw.split(b"\n"))


def odd_json(rng: random.Random, kind: str) -> bytes:
    odd = [
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"[1, 2]",
        b"3",
        b'"text"',
        b"null",
        b"{",
        b'{"text": NaN, "label": Infinity}',
    ]
    odd += [
        b'{"text": "a", "label": ' + b"9" * 10_000 + b"}",
        b'{"text": "\\ud800", "label": 1}',
        b'{"text": {"a": [1]}}',
    ]
    odd += [
        b'{"text": ["a", {"b": null}], "label": true}',
        b'{"text": "a", "text": "b", "label": 1}',
        b'{"": "", "label": 1}',
    ]
    odd += [
        b'{"text": "a\\u0000b", "label": "x"}',
        b'{"label": 1e999}',
        b'{"text": "a", "label": 1.50}',
        b"{}",
        b"'text'",
    ]
    return b"\n".join(rng.choices([*odd, b'{"text": "fine", "label": 1}'], k=rng.randint(1, 8)))


def odd_parquet(rng: random.Random, kind: str) -> bytes:
    """Return undamaged Parquet files with columns of every type."""
    columns = {
        "text": rng.choice(
            [
                pa.array(["a", None, "b " * 30_000]),
                pa.array([b"\xff", b"b", None], pa.binary()),
                pa.array([["a"], [], None]),
                pa.array([{"a": 1}, {"a": 2}, None]),
                pa.array([None, None, None]),
                pa.array(["x" * 10] * 3).dictionary_encode(),
                pa.array([1, 2, None], pa.timestamp("ns")),
            ]
        ),
        "label": rng.choice(
            [
                pa.array([1, 0, None]),
                pa.array([1.0, 0.5, float("nan")]),
                pa.array([True, False, None]),
                pa.array([None, None, None], pa.string()),
                pa.array(["a", "b", "a"], pa.large_string()),
                pa.array([10**18, 1, 2], pa.decimal128(30, 2)),
            ]
        ),
    }
    out = io.BytesIO()
    parquet.write_table(pa.table(columns), out, compression=rng.choice(["none", "snappy", "zstd", "gzip"]))
    raw = bytearray(out.getvalue())
    if rng.random() < 0.5:
        raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
    return bytes(raw)


def wrong_texts_in_parquet(rng: random.Random, kind: str) -> bytes:
    """Return a file whose text column holds bytes of another encoding."""
    raw = pa.array([b"caf\xe9", b"na\xefve", b"x"], pa.binary())
    out = io.BytesIO()
    table = pa.table({"text": pa.Array.from_buffers(pa.string(), 3, raw.buffers()), "label": ["a", "b", "a"]})
    parquet.write_table(table, out, use_dictionary=rng.random() < 0.5)
    return out.getvalue()


DAMAGES: list[Callable[[random.Random, str], bytes]] = [
    truncated,
    flipped_bytes,
    flipped_at_the_end,
    a_block_overwritten,
    binary,
    wrong_encodings,
    stray_quotes,
    huge_cells,
    long_runs,
    next_to_nothing,
    line_ends,
    odd_json,
    odd_parquet,
    wrong_texts_in_parquet,
]


def given(rng: random.Random) -> ReadingConfig:
    """Return reading options. Most are left to detection, the others are given, right or wrong."""
    if rng.random() < 0.6:
        return ReadingConfig()
    return ReadingConfig(
        text=rng.choice([None, "text", "column 1", "label"]),
        text_b=rng.choice([None, "", "text"]),
        label=rng.choice([None, "label", "column 2"]),
        split=rng.choice([None, "", "label"]),
        kind=rng.choice([None, "classes", "similarity"]),
        encoding=rng.choice([None, "utf-8", "utf-16", "cp1252", "gb18030", "cp949"]),
        delimiter=rng.choice([None, ",", "\t", ";", "|"]),
        header=rng.choice([None, True, False]),
        quote=rng.choice([None, None, '"', "'", ""]),
        escape=rng.choice([None, None, "\\", ""]),
        skip_initial_space=rng.choice([None, None, True, False]),
    )


def check_reading(together: CombinedFiles) -> None:
    (reading,) = together.readings
    rows = reading.rows
    assert not reading.sampled
    assert len(rows) + together.dropped == reading.total
    assert len(rows) == len(rows.texts) == len(rows.labels) == len(reading.lines) > 0
    assert list(reading.lines) == sorted(set(reading.lines))
    assert all(text == text.strip() and 0 < len(text) <= 20_000 for text in rows.texts)
    assert all(0 < len(label) <= 100 for label in rows.labels)
    assert len(together.problems) == sum(min(1_000, count) for count in together.counts.values())
    for problem in together.problems:
        check_sentence(str(problem.message))
    "".join((*rows.texts, *rows.labels)).encode()  # no unpaired surrogates
    assert "\n" not in together.source


def check_sentence(message: str) -> None:
    assert len(message.splitlines()) == 1, message
    assert len(message) < SENTENCE_CHARS, message
    assert message.endswith("."), message
    assert "Traceback" not in message
    assert message.isprintable(), message


def check_file(path: Path, options: ReadingConfig, *, opened: bool) -> CombinedFiles | str:
    """Read a file from its path, or as an upload in memory. Returns: the rows or the error message.

    A file of a few megabytes takes at most FILE_MAX_S of processor time.
    """
    source = io.BytesIO(path.read_bytes()) if opened else path
    start = time.process_time()
    try:
        together = combine_readings([read_rows(open_table(source, path.name, options), options)])
    except PlaygroundError as error:
        check_sentence(str(error))
        return str(error)
    finally:
        assert not isinstance(source, io.BytesIO) or not source.closed
        assert time.process_time() - start < FILE_MAX_S
    check_reading(together)
    return together


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_file_is_read_or_refused_in_one_sentence(
    damage: Callable[[random.Random, str], bytes], tmp_path: Path
) -> None:
    for number in range(FILES_PER_DAMAGE):
        rng = random.Random(f"{damage.__name__} {number}")
        kind = list(SUFFIXES)[number % len(SUFFIXES)]
        path = tmp_path / f"rows{SUFFIXES[kind]}"
        path.write_bytes(damage(rng, kind))
        check_file(path, given(rng), opened=rng.random() < 0.3)
        assert list(tmp_path.iterdir()) == [path]
        path.unlink()


@pytest.mark.parametrize("kind", list(SUFFIXES))
def test_the_same_files_are_read_when_nothing_is_damaged(kind: str, tmp_path: Path) -> None:
    for number in range(10):
        path = tmp_path / f"rows{SUFFIXES[kind]}"
        path.write_bytes(made(random.Random(number), kind))
        together = check_file(path, ReadingConfig(), opened=number % 2 == 0)
        assert isinstance(together, CombinedFiles), together
        assert len(together.readings[0].rows) == 40
