"""Damaged and hostile replays: each is refused with one sentence and creates nothing."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load, save

from core.artifacts.replay import open_replay
from core.artifacts.replay_file import FRAMES, MAPS, RUN, TOKENS
from core.config import parse_config
from core.errors import StoreError
from core.store import Store
from tests.cases import each
from tests.core.artifacts.test_packed import zipped

Members = dict[str, bytes]
CHARS_MAX = 400
SCORES = {"accuracy": 0.5, "macro_f1": 0.5, "accuracy_low": 0.25, "accuracy_high": 0.75}


def _run() -> dict[str, Any]:
    """Return the `run.json` of a small replay with 4 texts of 2 classes and 3 frames."""
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
        "evaluations": [{"step": n, "split": "validation", "values": SCORES} for n in steps],
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
    """Return the members of a complete replay, with those given replaced."""
    maps = {str(step): np.zeros((4, 2), np.float32) for step in (0, 2, 4)} if maps is None else maps
    return {
        RUN: json.dumps(_run() if run is None else run).encode(),
        MAPS: save(maps),
        FRAMES: save(_arrays() if arrays is None else arrays),
        TOKENS: json.dumps(_tokens() if tokens is None else tokens).encode(),
    }


LEFT_OUT = object()
# Replacements of a value in `run.json` or `tokens.json`: of the wrong type, out of range, or missing.
RUN_CHANGES: dict[str, tuple[Any, ...]] = {
    "format": (1, 3, "2", LEFT_OUT),
    "title": ("", " ", "x" * 81, 7),
    "config": ({}, []),
    "config.version": (99,),
    "config.seed": (-1, 1e300),
    "config.phases": ([], [{"steps": 10**12}]),
    "config.phases.0.steps": (None, 3),
    "config.probe.frame_steps": (None, [5, 6]),
    "config.task.path": ("/etc/passwd", "../secret", "C:\\secret", "a/b", "\0"),
    "config.task.test_path": ("..", "."),
    "config.encoder.id": ("/etc", "../../etc", "~/x", "C:\\x", "..", "hub/../../x", "a/b/c", "a\\b"),
    "config.task.translators": (["a", "../b"],),
    "config.phases.0.objective.terms.0.views": ([{"view": "back_translation", "forward": "/etc"}],),
    "config.no_such_field": (1,),
    "made_with": ({"a": 1}, {"a": "x" * 81}, {"x" * 41: "a"}),
    "status": ("running", LEFT_OUT),
    "device": ("x" * 41,),
    "seconds": (-1.0, float("nan"), float("inf"), None),
    "facts": ({"a": "b"}, {"a": float("nan")}, {"x" * 121: 1.0}),
    "probe": ({}, LEFT_OUT),
    "probe.ids": ([], [0, 0, 1, 2], [0, 1, 2], [0, 1, 2, -1], [0, 1, 2, 2**31], [0, 1, 2, 0.5], [0, 1, 2, True]),
    "probe.texts": (["a"], [1, 2, 3, 4], "abcd"),
    "probe.labels": ([0, 1, 0], [0, 1, 0, 2], [0, 1, 0, -1]),
    "probe.classes": (["good"], ["good", "good"], ["good", ""], ["good", None], [str(i) for i in range(255)]),
    "probe.splits": (["train"], ["test"] * 4, ["train", "train", "validation", "validation"]),
    "frames": ([], [0, 2], [0, 4, 2], [0, 2, 2], [0, 2, 5], [-1, 2, 4]),
    "steps.0.step": (0, 5, 2, 9, 1.5, 10**30),
    "steps.0.values": ({}, {"loss": float("nan")}, {"loss": True}, {"loss": 1e39}, {"loss": -1e39}),
    "evaluations.0.step": (5, 2, -1),
    "evaluations.0.split": ("train", "../x"),
    "evaluations.0.values": (
        {},
        SCORES | {"accuracy": 1.5},
        SCORES | {"accuracy": -0.1},
        {"accuracy": 0.5, "macro_f1": 0.5},  # without its interval
        SCORES | {"accuracy_high": 7.0},
    ),
    "surplus": (1,),
}
TOKEN_CHANGES: dict[str, tuple[Any, ...]] = {
    "rows": ([0], [0, 0], [0, 4], [0, -1], LEFT_OUT),
    "texts": ([], [[]]),
    "texts.0.0": ([], ["a", "b", "c"], [1]),
    "texts.0.1.0": ([1, 0, 1, [1]], [-1, 0, 1, [1]], [0, 3, 3, [1]], [0, 5, 7, [1]], [0, -1, 1, [1]], [0, 0, 1]),
    "texts.0.1.0.3": ([], [4], [2, 1], [-1]),
    "texts.0.2": (0, 5),
}
ARRAY_CHANGES: dict[str, tuple[Any, ...]] = {
    "embeddings.0": (
        np.ones((3, 3), np.float16),
        np.ones((4, 4), np.float16),
        np.ones((4, 0), np.float16),
        np.ones(4, np.float16),
        np.ones((4, 3), np.float64),
        np.full((4, 3), np.nan, np.float16),
        LEFT_OUT,
    ),
    "logits.2": (np.ones((4, 3), np.float16), np.full((4, 2), np.inf, np.float32), LEFT_OUT),
    "attention.4": (
        np.full((2, 1, 6), 0.25, np.float16),
        np.full((3, 1, 7), 0.25, np.float16),
        np.full((2, 2, 7), 0.25, np.float16),
        np.full((2, 1, 7), 1.25, np.float16),
        np.full((2, 1, 7), -0.25, np.float16),
        LEFT_OUT,
    ),
    "attention.0": (np.zeros((0, 1, 7), np.float16), np.float16(1)),
    "test.logits": (np.zeros((4, 2), np.float16), np.zeros((5, 3), np.float16), LEFT_OUT),
    "test.labels": (np.full(5, 2, np.int32), np.zeros(5, np.float32), LEFT_OUT),
    "embeddings.3": (np.ones((4, 3), np.float16),),
}
MAP_CHANGES: dict[str, tuple[Any, ...]] = {
    "0": (
        np.zeros((4, 3), np.float32),
        np.zeros((4, 2), np.float64),
        np.full((4, 2), np.nan, np.float32),
        LEFT_OUT,
    ),
    "3": (np.zeros((4, 2), np.float32),),
}
# Patterns of error messages that do not contain the last name of the changed path.
REASONS = {
    "config": "config",
    "config.phases.0.steps": "steps|its config is a draft",
    "config.phases.0.objective.terms.0.views": "'/etc' is a path",
    "config.probe.frame_steps": "frame_steps|its config is a draft",
    "config.encoder.id": "is a path, not a model name",
    "config.task.translators": "is a path, not a model name",
    "probe.ids": "ids|its map has no texts",
    "probe.labels": "label",
    "probe.splits": "splits|training rows must come last",
    "frames": "frames|maps.safetensors: one for each frame",
    "steps.0.values": "steps.0.values|one has no loss",
    "evaluations.0.step": "step|one occurs twice",
    "evaluations.0.values": "accuracy, macro_f1, accuracy_low, accuracy_high are fractions",
}


def _changed(given: Any, place: str, value: Any) -> Any:
    """Return a copy with another value at a path."""
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
    """Return archives with one defect each, with a name and the expected message as a regular expression."""
    for place, values in RUN_CHANGES.items():
        for number, value in enumerate(values):
            archive = zipped(_members(run=_changed(_run(), place, value)))
            yield f"run {place} {number}", archive, REASONS.get(place, place.rpartition(".")[2])
    for place, values in TOKEN_CHANGES.items():
        for number, value in enumerate(values):
            archive = zipped(_members(tokens=_changed(_tokens(), place, value)))
            yield f"tokens {place} {number}", archive, "tokens.json[,:]|attention of step 0"
    for name, values in ARRAY_CHANGES.items():
        for number, value in enumerate(values):
            archive = zipped(_members(arrays=_with(_arrays(), name, value)))
            kind = name.partition(".")[0] or "of each frame"
            yield f"frames {name} {number}", archive, f"frames.safetensors: .*({kind}|of each frame)"
    maps = load(_members()[MAPS])
    for name, values in MAP_CHANGES.items():
        for number, value in enumerate(values):
            archive = zipped(_members(maps=_with(maps, name, value)))
            yield f"maps {name} {number}", archive, "maps.safetensors: (the map of step 0|one for each frame)"
    # `test_packed` has other archives, texts and arrays that cannot be read.
    yield "no members", zipped({}), "it lacks"
    yield "no tensors", zipped(_members() | {FRAMES: b"nonsense"}), "frames.safetensors: "


def test_the_whole_one_opens(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "whole.zip"
    path.write_bytes(zipped(_members()))
    assert store.run(open_replay(store, path)).title == "Small"


@each(("name", "archive", "why"), _changes())
def test_it_is_refused_in_a_sentence_and_nothing_is_created(
    name: str, archive: bytes, why: str, store: Store, tmp_path: Path
) -> None:
    path = tmp_path / "hostile.zip"
    path.write_bytes(archive)
    before = {*tmp_path.rglob("*")}
    with pytest.raises(StoreError) as refusal:
        open_replay(store, path)
    sentence = str(refusal.value)
    assert re.fullmatch(rf"hostile\.zip is damaged, or not a replay \(.*({why}).*\): choose another file\.", sentence)
    assert len(sentence) < CHARS_MAX
    assert store.runs() == []
    assert {*tmp_path.rglob("*")} == before


def test_what_is_no_file_is_refused(store: Store, tmp_path: Path) -> None:
    (tmp_path / "folder.zip").mkdir()
    for name in ("folder.zip", "gone.zip"):
        with pytest.raises(StoreError, match=name):
            open_replay(store, tmp_path / name)
    assert store.runs() == []
