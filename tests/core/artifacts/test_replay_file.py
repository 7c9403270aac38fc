"""Damaged and hostile replays: each is refused in a sentence, and nothing is created."""

from __future__ import annotations

import copy
import io
import json
import re
import struct
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load, save

from core.artifacts.replay import open_replay
from core.artifacts.replay_file import FRAMES, MAPS, MEMBERS, RUN, TOKENS
from core.config import parse_config
from core.errors import StoreError
from core.store import Store

Members = dict[str, bytes]
CHARS_MAX = 400


def _run() -> dict[str, Any]:
    """What `run.json` of a small replay says: 4 texts of 2 classes, 3 frames."""
    steps = (0, 2, 4)
    config = parse_config(
        {"phases": [{"steps": 4}], "probe": {"frame_steps": steps, "size": 2, "train_size": 2}, "name": "small"}
    )
    return {
        "format": 2,
        "title": "Small",
        "config": json.loads(config.to_json()),
        "made_with": {"scl-playground": "0"},
        "status": "finished",
        "device": "cpu",
        "seconds": 1.5,
        "facts": {"train_rows": 12},
        "probe": {
            "ids": [0, 1, 2, 3],
            "texts": ["a film", "dull", "warm", "cold"],
            "labels": [0, 1, 0, 1],
            "classes": ["good", "bad"],
            "splits": ["validation", "validation", "train", "train"],
        },
        "frames": list(steps),
        "steps": [{"step": n, "values": {"loss": 0.5}} for n in (1, 2, 3, 4)],
        "evaluations": [
            {"step": n, "split": "validation", "values": {"accuracy": 0.5, "macro_f1": 0.5}} for n in steps
        ],
    }


def _arrays() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for step in (0, 2, 4):
        found[f"embeddings.{step}"] = np.ones((4, 3), np.float16)
        found[f"logits.{step}"] = np.ones((4, 2), np.float16)
        found[f"attention.{step}"] = np.full((2, 1, 7), 0.25, np.float16)
    found["test.logits"] = np.zeros((5, 2), np.float16)
    found["test.labels"] = np.zeros(5, np.int32)
    return found


def _tokens() -> dict[str, Any]:
    return {
        "rows": [0, 1],
        "texts": [[["a film"], [[0, 0, 1, [1]], [0, 2, 6, [2]]], 4], [["dull"], [[0, 0, 4, [1]]], 3]],
    }


def _members(run: Any = None, maps: Any = None, arrays: Any = None, tokens: Any = None) -> Members:
    """A whole replay's members, but for those that are given."""
    maps = {str(step): np.zeros((4, 2), np.float32) for step in (0, 2, 4)} if maps is None else maps
    return {
        RUN: json.dumps(_run() if run is None else run).encode(),
        MAPS: save(maps),
        FRAMES: save(_arrays() if arrays is None else arrays),
        TOKENS: json.dumps(_tokens() if tokens is None else tokens).encode(),
    }


def _zipped(members: Members) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in members.items():
            file.writestr(name, text)
    return packed.getvalue()


WHOLE = _zipped(_members())
LEFT_OUT = object()
# What a place in `run.json` or `tokens.json` is replaced by: of the wrong type, out of its range, or not there.
RUN_CHANGES: dict[str, tuple[Any, ...]] = {
    "format": (1, 3, "2", None, LEFT_OUT),
    "title": ("", " ", "x" * 81, 7, None, LEFT_OUT),
    "config": ({}, [], None, "x", LEFT_OUT),
    "config.version": (99, "x"),
    "config.seed": (-1, "x", 1e300),
    "config.phases": ([], {}, [{"steps": 0}], [{"steps": 10**12}]),
    "config.phases.0.steps": (None, 3, -4),
    "config.phases.0.objective": ({"terms": [{"loss": "nothing"}]}, {"terms": []}),
    "config.probe.frame_steps": (None, [5, 6]),
    "config.task.path": ("/etc/passwd", "../secret", "C:\\secret", "a/b", "\0"),
    "config.task.test_path": ("/etc/passwd", "..", "."),
    "config.encoder.id": ("/etc", "../../etc", "~/x", "C:\\x", "..", "hub/../../x", "a/b/c", "a\\b"),
    "config.task.translators": (["/etc", "b"], ["a", "../b"]),
    "config.phases.0.objective.terms.0.views": ([{"view": "back_translation", "forward": "/etc"}],),
    "config.no_such_field": (1,),
    "made_with": ([], {"a": 1}, {"a": "x" * 81}, {"x" * 41: "a"}, LEFT_OUT),
    "status": ("running", "queued", "", 1, LEFT_OUT),
    "device": (1, "x" * 41, LEFT_OUT),
    "seconds": (-1.0, "1", float("nan"), float("inf"), None),
    "facts": ([], {"a": "b"}, {"a": float("nan")}, {"x" * 121: 1.0}),
    "probe": ([], {}, None, LEFT_OUT),
    "probe.ids": ([], [0, 0, 1, 2], [0, 1, 2], [0, 1, 2, -1], [0, 1, 2, 2**31], [0, 1, 2, 0.5], [0, 1, 2, True]),
    "probe.texts": ([], ["a"], [1, 2, 3, 4], "abcd", None),
    "probe.labels": ([0, 1, 0], [0, 1, 0, 2], [0, 1, 0, -1], ["a", "b", "a", "b"]),
    "probe.classes": ([], ["good"], ["good", "good"], ["good", ""], [1, 2], ["good", None]),
    "probe.splits": (["train"], ["test"] * 4, ["train", "train", "validation", "validation"], None),
    "probe.surplus": (1,),
    "frames": ([], [0, 2], [0, 4, 2], [0, 2, 2], [0, 2, 5], [-1, 2, 4], [0, 2, "4"], {}, LEFT_OUT),
    "steps": ({}, [1], [{"step": 0, "values": {"loss": 1}}], None),
    "steps.0.step": (5, 2, 9, -1, "1", 1.5, 10**30),
    "steps.0.values": ({}, [], {"loss": "x"}, {"loss": float("nan")}, {"loss": float("inf")}, {"loss": True}, None),
    "evaluations": ({}, [[]], None, LEFT_OUT),
    "evaluations.0.step": (5, 2, -1, "0"),
    "evaluations.0.split": ("train", "../x", "", 1),
    "evaluations.0.values": (
        {},
        {"accuracy": 1.5, "macro_f1": 0.5},
        {"accuracy": 0.5},
        {"accuracy": -0.1, "macro_f1": 0},
    ),
    "surplus": (1,),
}
TOKEN_CHANGES: dict[str, tuple[Any, ...]] = {
    "rows": ([0], [0, 0], [0, 4], [0, -1], [0, "1"], None, LEFT_OUT),
    "texts": ([], [[]], {}, None, LEFT_OUT),
    "texts.0.0": ([], ["a", "b", "c"], [1], "a film"),
    "texts.0.1.0": ([1, 0, 1, [1]], [-1, 0, 1, [1]], [0, 3, 3, [1]], [0, 5, 7, [1]], [0, -1, 1, [1]], [0, 0, 1]),
    "texts.0.1.0.3": ([], [4], [2, 1], [-1], ["1"], 1),
    "texts.0.2": (0, 5, -1, "4"),
    "surplus": (1,),
}
ARRAY_CHANGES: dict[str, tuple[Any, ...]] = {
    "embeddings.0": (
        np.ones((3, 3), np.float16),
        np.ones((4, 4), np.float16),
        np.ones((4, 0), np.float16),
        np.ones(4, np.float16),
        np.ones((4, 3, 1), np.float16),
        np.ones((4, 3), np.float64),
        np.ones((4, 3), np.int32),
        np.full((4, 3), np.nan, np.float16),
        np.full((4, 3), np.inf, np.float32),
        LEFT_OUT,
    ),
    "logits.2": (
        np.ones((4, 3), np.float16),
        np.ones((5, 2), np.float16),
        np.ones((4, 2), np.int64),
        np.full((4, 2), np.nan, np.float32),
        LEFT_OUT,
    ),
    "attention.4": (
        np.full((2, 1, 6), 0.25, np.float16),
        np.full((3, 1, 7), 0.25, np.float16),
        np.full((2, 2, 7), 0.25, np.float16),
        np.full((2, 1, 7), 1.25, np.float16),
        np.full((2, 1, 7), -0.25, np.float16),
        np.full((2, 1, 7), np.nan, np.float16),
        LEFT_OUT,
    ),
    "attention.0": (np.zeros((0, 1, 7), np.float16), np.float16(1)),
    "test.logits": (np.zeros((4, 2), np.float16), np.zeros((5, 3), np.float16), LEFT_OUT),
    "test.labels": (np.full(5, 2, np.int32), np.full(5, -1, np.int32), np.zeros(5, np.float32), LEFT_OUT),
    "embeddings.3": (np.ones((4, 3), np.float16),),
    "../../weights": (np.ones(3, np.float16),),
}
MAP_CHANGES: dict[str, tuple[Any, ...]] = {
    "0": (
        np.zeros((4, 3), np.float32),
        np.zeros((3, 2), np.float32),
        np.zeros((4, 2), np.float64),
        np.full((4, 2), np.nan, np.float32),
        LEFT_OUT,
    ),
    "3": (np.zeros((4, 2), np.float32),),
    "x": (np.zeros((4, 2), np.float32),),
}
# What the refusal of a change says, where that is not the last name of its place.
REASONS = {
    "config": "config",
    "config.phases.0.steps": "steps|its config is a draft",
    "config.phases.0.objective": "objective.terms|loss",
    "config.phases.0.objective.terms.0.views": "'/etc' is a path",
    "config.probe.frame_steps": "frame_steps|its config is a draft",
    "config.encoder.id": "is a path, not a model name",
    "config.task.translators": "is a path, not a model name",
    "probe.ids": "ids|no text is on its map",
    "probe.labels": "label",
    "probe.splits": "splits|training rows come last",
    "frames": "frames|maps.safetensors: one for each frame",
    "steps.0.values": "steps.0.values|one has no loss",
    "evaluations.0.step": "step|one is there twice",
    "evaluations.0.values": "accuracy and macro_f1 are shares",
}


def _changed(given: Any, place: str, value: Any) -> Any:
    """A copy in which another value is at a place."""
    made = copy.deepcopy(given)
    *path, last = (int(part) if part.isdecimal() else part for part in place.split("."))
    here = made
    for part in path:
        here = here[part]
    if value is LEFT_OUT:
        del here[last]
    else:
        here[last] = value
    return made


def _with(given: dict[str, Any], name: str, value: Any) -> dict[str, Any]:
    rest = {key: array for key, array in given.items() if key != name}
    return rest if value is LEFT_OUT else rest | {name: np.asarray(value)}


def _changes() -> Iterator[tuple[str, bytes, str]]:
    """Archives in which one thing is wrong, each with a name, and what is said of it: a regular expression."""
    for place, values in RUN_CHANGES.items():
        for number, value in enumerate(values):
            archive = _zipped(_members(run=_changed(_run(), place, value)))
            yield f"run {place} {number}", archive, REASONS.get(place, place.rpartition(".")[2])
    for place, values in TOKEN_CHANGES.items():
        for number, value in enumerate(values):
            archive = _zipped(_members(tokens=_changed(_tokens(), place, value)))
            yield f"tokens {place} {number}", archive, "tokens.json[,:]|attention of step 0"
    for name, values in ARRAY_CHANGES.items():
        for number, value in enumerate(values):
            archive = _zipped(_members(arrays=_with(_arrays(), name, value)))
            kind = name.partition(".")[0] or "of each frame"
            yield f"frames {name} {number}", archive, f"frames.safetensors: .*({kind}|of each frame)"
    maps = load(_members()[MAPS])
    for name, values in MAP_CHANGES.items():
        for number, value in enumerate(values):
            archive = _zipped(_members(maps=_with(maps, name, value)))
            yield f"maps {name} {number}", archive, "maps.safetensors: (that of step 0|one for each frame)"
    yield from _hostile_texts()
    yield from _hostile_archives()
    yield from _damaged_bytes()


def _hostile_texts() -> Iterator[tuple[str, bytes, str]]:
    """Members that are no JSON, no tensors, or more than a reader bears."""
    for member in (RUN, TOKENS):
        texts = {
            "empty": (b"", "EOF"),
            "deep": (b"[" * 200_000, "recursion"),
            "deep object": (b'{"a":' * 200_000, "recursion"),
            "a number": (b"7", "an object"),
            "no text": (b"\xff\xfe\x00", "expected value"),
            "a lone surrogate": (b'{"title": "\\ud800"}', "escape"),
            "a long number": (b'{"seconds": ' + b"9" * 5_000 + b"}", "out of range"),
            "cut": (_members()[member][:-9], "EOF"),
        }
        for name, (text, why) in texts.items():
            yield f"{member} {name}", _zipped(_members() | {member: text}), f"{member}: .*{why}"
    for member in (MAPS, FRAMES):
        whole = _members()[member]
        tensors = {
            "empty": (b"", "header too small"),
            "cut": (whole[:-1], "incomplete"),
            "longer": (whole + b"x", "incomplete"),
            "header beyond the end": (struct.pack("<Q", 2**62) + whole[8:], "header too large"),
            "header of nothing": (struct.pack("<Q", 0) + whole[8:], "JSON"),
            "no JSON": (struct.pack("<Q", 8) + b"nonsense", "JSON"),
            "a type that NumPy lacks": (
                whole.replace(b'"F16"', b'"F8"  ').replace(b'"F32"', b'"F4"  '),
                "",
            ),
            "offsets apart": (whole.replace(b'"data_offsets":[0,', b'"data_offsets":[1,', 1), "offset"),
        }
        for name, (text, why) in tensors.items():
            yield f"{member} {name}", _zipped(_members() | {member: text}), f"{member}: .*{why}"


def _hostile_archives() -> Iterator[tuple[str, bytes, str]]:
    """Zips that hold other things, or are packed in other ways; `test_packed.py` has those that hold too much."""
    yield "nothing", b"", "not a zip file"
    yield "no zip", b"PK but no zip", "not a zip file"
    yield "an empty zip", _zipped({}), f"it lacks {', '.join(MEMBERS)}"
    for member in MEMBERS:
        rest = {name: text for name, text in _members().items() if name != member}
        yield f"without {member}", _zipped(rest), f"it lacks {member}"
        for name in (f"../{member}", f"/{member}", f"a/{member}", f"{member}/", member.upper()):
            yield f"{name} for {member}", _zipped(rest | {name: _members()[member]}), f"it lacks {member}"
    for name in ("weights.safetensors", "model.pkl", "../../../etc/cron.d/x", "C:\\x"):
        yield f"also {name!r}", _zipped(_members() | {name: b"x"}), "does not belong in it"
    yield "many members", _zipped(_members() | {f"{n}.json": b"" for n in range(2_000)}), "does not belong in it"
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        yield f"damaged, method {method}", _packed_otherwise(method), "compression is not supported"
    at = WHOLE.index(b"PK\x01\x02")
    yield "encrypted", WHOLE[: at + 8] + b"\x01\x00" + WHOLE[at + 10 :], "encrypted"
    yield (
        "packed as nobody packs",
        WHOLE[: at + 10] + b"\x63\x00" + WHOLE[at + 12 :],
        "its compression is not supported",
    )
    yield "a size that is none", WHOLE[: at + 24] + b"\xff\xff\xff\x00" + WHOLE[at + 28 :], "a size is wrong"
    yield "a place beyond the end", WHOLE[: at + 42] + b"\xff\xff\xff\x00" + WHOLE[at + 46 :], "Truncated"


def _packed_otherwise(method: int) -> bytes:
    """Packed by a method that can be read, with a byte of what was packed turned."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as file:
        for name, text in _members().items():
            file.writestr(name, text)
    return _turned(packed.getvalue(), 60)


def _damaged_bytes() -> Iterator[tuple[str, bytes, str]]:
    """A whole archive that was cut, or of which one byte of a member was turned."""
    for share in range(1, 20):
        yield f"cut after {share} twentieths", WHOLE[: len(WHOLE) * share // 20], "not a zip file"
    with zipfile.ZipFile(io.BytesIO(WHOLE)) as file:
        starts = {
            info.filename: (info.header_offset + 30 + len(info.filename), info.compress_size)
            for info in file.infolist()
        }
    for name, (start, size) in starts.items():
        for share in range(1, 10):
            place = start + size * share // 10
            yield f"{name}, a byte at {share} tenths", _turned(WHOLE, place), f"decompressing|CRC-32 .*'{name}'"


def _turned(text: bytes, place: int) -> bytes:
    return text[:place] + bytes([text[place] ^ 0xFF]) + text[place + 1 :]


CHANGES = {name: (archive, why) for name, archive, why in _changes()}


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store that nothing may be put into."""
    opened = Store(tmp_path_factory.mktemp("replays") / "runs")
    yield opened
    opened.close()


def test_there_are_two_hundred_of_them() -> None:
    assert len(CHANGES) == len({archive for archive, _why in CHANGES.values()}) > 200


def test_the_whole_one_opens(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "whole.zip"
    path.write_bytes(WHOLE)
    assert store.run(open_replay(store, path)).title == "Small"


@pytest.mark.parametrize("name", CHANGES)
def test_it_is_refused_in_a_sentence_and_nothing_is_created(name: str, untouched: Store, tmp_path: Path) -> None:
    path = tmp_path / "hostile.zip"
    archive, why = CHANGES[name]
    path.write_bytes(archive)
    before = {*untouched.folder.parent.rglob("*")}
    with pytest.raises(StoreError) as refusal:
        open_replay(untouched, path)
    sentence = str(refusal.value)
    assert re.fullmatch(rf"hostile\.zip is damaged, or not a replay \(.*({why}).*\): take another file\.", sentence)
    assert len(sentence) < CHARS_MAX
    assert untouched.runs() == []
    assert {*untouched.folder.parent.rglob("*")} == before
    assert {*tmp_path.iterdir()} == {path}


def _twice() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, text in [*_members().items(), (RUN, b"{}")]:
            file.writestr(name, text)
    return packed.getvalue()


@pytest.mark.parametrize(
    ("archive", "why"),
    [
        (_zipped({RUN: b"{}", "x.json": b""}), "it lacks maps.safetensors, frames.safetensors, tokens.json"),
        (_zipped(_members() | {"../../x": b"x"}), "'../../x' does not belong in it"),
        (_zipped(_members() | {"x" * 500: b"x"}), r"'x+… does not belong in it"),
        (_twice(), "a file is in it twice"),
    ],
)
def test_what_it_lacks_and_what_does_not_belong_in_it_are_named(
    archive: bytes, why: str, store: Store, tmp_path: Path
) -> None:
    path = tmp_path / "other.zip"
    path.write_bytes(archive)
    with pytest.raises(StoreError, match=rf"^other\.zip is damaged, or not a replay \({why}\): take another file\.$"):
        open_replay(store, path)


@pytest.mark.parametrize("change", [lambda path: path.unlink(), lambda path: (path.unlink(), path.mkdir())])
def test_what_is_no_file_is_refused(change: Callable[[Path], Any], store: Store, tmp_path: Path) -> None:
    path = tmp_path / "gone.zip"
    path.write_bytes(WHOLE)
    change(path)
    with pytest.raises(StoreError, match=r"gone\.zip"):
        open_replay(store, path)
    assert store.runs() == []
