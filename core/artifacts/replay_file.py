"""The file format of a replay, and the checks of a file before use.

A replay is a zip of `run.json` (config, versions, steps, scores, probe), `maps.safetensors`, `frames.safetensors`
(vectors and logits in half precision, attention as the mean over heads, the test split's logits) and `tokens.json`. It
holds no weights and no path of the machine that wrote it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from core.artifacts import packed
from core.artifacts.packed import Array, DamagedError, StrictForm, are_labels, demand, is_whole, parse_member
from core.config import RunConfig, parse_config
from core.config.run import is_path, named_models, without_folders
from core.errors import PlaygroundError, StoreError, quote_value
from core.events import BASELINE, BASELINE_TEST, TEST, TRAIN, VALIDATION, Probe, Tokens, TokenText, Word
from core.messages import N_, join_list
from core.store.names import NAME_CHARS

FORMAT = 2
RUN, MAPS, FRAMES, TOKENS = "run.json", "maps.safetensors", "frames.safetensors", "tokens.json"
MEMBERS = (RUN, MAPS, FRAMES, TOKENS)
# The fields of `run.json` in format 1, which version 0.1.0 wrote.
FORMER_FIELDS = frozenset(
    ("format", "id", "title", "config", "device", "seconds", "facts", "probe", "frames", "steps", "evaluations")
)
SPLITS = (VALIDATION, TEST, BASELINE, BASELINE_TEST)
SCORES = ("accuracy", "macro_f1", "accuracy_low", "accuracy_high")
# Bounds of a run's numbers, which are of single precision, and of its classes, which the map colours.
LARGEST, MOST_CLASSES = float(np.finfo(np.float32).max), 254
# Error text for one array.
OF_STEP = N_("{file}: {array} of step {step}")
# Error texts for missing or unexpected arrays in the frames file.
WITH_ATTENTION = N_("{file}: embeddings and logits and attention of each frame")
WITHOUT_ATTENTION = N_("{file}: embeddings and logits of each frame")

Value = Annotated[float, Field(ge=-LARGEST, le=LARGEST)]
Values = dict[Annotated[str, Field(max_length=120)], Value]
Seconds = Annotated[float, Field(ge=0, le=LARGEST)]
Step = Annotated[int, Field(ge=0)]
Row = Annotated[int, Field(ge=0, lt=2**31)]


class StepForm(StrictForm):
    """Values recorded at one step."""

    step: Annotated[int, Field(ge=1)]
    values: Values


class ScoresForm(StrictForm):
    """Scores of one split at one step."""

    step: Step
    split: str
    values: Values


class ProbeForm(StrictForm):
    """The examples on the map, with the fields of `Probe`."""

    ids: tuple[Row, ...]
    texts: tuple[str, ...]
    labels: tuple[Row, ...]
    classes: Annotated[tuple[str, ...], Field(min_length=2, max_length=MOST_CLASSES)]
    splits: tuple[Literal["train", "validation"], ...]


class RunForm(StrictForm):
    """The contents of `run.json`."""

    format: Literal[2]
    title: Annotated[str, Field(min_length=1, max_length=NAME_CHARS)]
    config: dict[str, Any]
    made_with: dict[Annotated[str, Field(max_length=40)], Annotated[str, Field(max_length=80)]]
    status: Literal["finished", "stopped", "failed", "interrupted"]
    device: Annotated[str, Field(max_length=40)]
    seconds: Seconds
    facts: Values
    probe: ProbeForm
    frames: Annotated[tuple[Step, ...], Field(min_length=1)]
    steps: tuple[StepForm, ...]
    evaluations: tuple[ScoresForm, ...]


class TokensForm(StrictForm):
    """The contents of `tokens.json`, as written by `core.store.frames`."""

    rows: tuple[Row, ...]
    texts: tuple[tuple[tuple[str, ...], tuple[tuple[int, int, int, tuple[Row, ...]], ...], Row], ...]


@dataclass(frozen=True, slots=True)
class Contents:
    """A replay whose members are valid and consistent with each other.

    Attributes:
        config: prepared, with the run's knob turns.
        maps: [N, 2] by step.
        arrays: embeddings [N, H], logits [N, C] and, if stored, attention [L, 1, tokens], each named "<name>.<step>";
            also the logits and labels of the test split, "test.logits" and "test.labels", if stored.
    """

    run: RunForm
    config: RunConfig
    probe: Probe
    maps: Mapping[int, Array]
    arrays: Mapping[str, Array]
    tokens: Tokens


def read(path: Path) -> Contents:
    """Read and check a replay. Raises: StoreError if the file is damaged or not a replay."""
    try:
        members = packed.read_members(path, MEMBERS)
        run = parse_member(RunForm, _from_format_1(members[RUN]), RUN)
        demand(not run.title.isspace(), N_("title is empty"))
        config, probe = complete_config(run.config), _probe(run)
        _check_order(run, config)
        maps, arrays = (packed.arrays(members[name], name) for name in (MAPS, FRAMES))
        tokens = _tokens(members, probe)
        demand(set(maps) == {str(step) for step in run.frames}, N_("{file}: one for each frame"), file=MAPS)
        for step, points in maps.items():
            whole = points.dtype == np.float32 and is_whole(points, (len(probe.ids), 2))
            demand(whole, N_("{file}: the map of step {step}"), file=MAPS, step=step)
        _check_frames(run, probe, arrays, tokens)
    except DamagedError as error:
        raise StoreError(
            "{file} is damaged, or not a replay ({why}): choose another file.", file=path.name, why=error.why
        ) from error
    return Contents(run, config, probe, {int(step): points for step, points in maps.items()}, arrays, tokens)


def _from_format_1(text: bytes) -> bytes:
    """Convert `run.json` from format 1 to format 2; return any other text unchanged.

    Version 0.1.0 wrote only finished runs, did not record library versions, and left folders in the config.
    """
    with suppress(ValueError, RecursionError):  # invalid JSON is rejected later, with its own message
        given = json.loads(text)
        if isinstance(given, dict) and given.keys() == FORMER_FIELDS and given["format"] == 1:
            del given["id"]
            with suppress(PlaygroundError):  # as is an invalid config
                given["config"] = json.loads(without_folders(parse_config(given["config"])).to_json())
            return json.dumps(given | {"format": FORMAT, "status": "finished", "made_with": {}}).encode()
    return text


def complete_config(given: dict[str, Any]) -> RunConfig:
    """Return the config of an imported run. Raises: DamagedError for a draft, or for one that names a folder."""
    try:
        config = parse_config(given)
    except (PlaygroundError, RecursionError) as error:
        raise DamagedError(str(error).rstrip(".")) from error
    ready = all(phase.steps is not None for phase in config.phases) and config.probe.frame_steps is not None
    demand(ready, N_("its config is a draft"))
    demand(max(config.probe.frame_steps or (0,)) <= config.steps, N_("config.probe.frame_steps: steps of the run"))
    for field, value in (("task.path", config.task.path), ("task.test_path", config.task.test_path)):
        is_name = value not in ("", ".", "..") and not set("/\\:\0") & set(value or "")
        demand(is_name, N_("{field} names a folder"), field=field)
    for name in named_models(config):
        demand(not is_path(name), N_("{name} is a path, not a model name"), name=quote_value(name))
    return config


def _probe(run: RunForm) -> Probe:
    probe = run.probe
    points = len(probe.ids)
    demand(points > 0, N_("its map has no texts"))
    demand(len(probe.texts) == len(probe.labels) == points, N_("probe: different numbers of ids, texts and labels"))
    demand(len(probe.splits) in (0, points), N_("probe: different numbers of splits and ids"))
    demand(len(set(probe.ids)) == points, N_("probe: ids repeat"))
    demand(
        len(set(probe.classes)) == len(probe.classes) and all(probe.classes), N_("probe: classes repeat or are empty")
    )
    demand(max(probe.labels) < len(probe.classes), N_("probe: a label is not one of the classes"))
    held_out = probe.splits.count(VALIDATION)
    demand(
        probe.splits[held_out:].count(TRAIN) == len(probe.splits) - held_out, N_("probe: training rows must come last")
    )
    return Probe(probe.ids, probe.texts, probe.labels, probe.classes, probe.splits)


def _check_order(run: RunForm, config: RunConfig) -> None:
    last = config.steps
    demand(_ascends(run.frames) and run.frames[-1] <= last, N_("frames: steps of the run, in order"))
    steps = [one.step for one in run.steps]
    demand(_ascends(steps) and max(steps, default=0) <= last, N_("steps: steps of the run, in order"))
    demand(all("loss" in one.values for one in run.steps), N_("steps: one has no loss"))
    check_evaluations(run.evaluations, last)


def check_evaluations(evaluations: Sequence[ScoresForm], last: int) -> None:
    """Check the scores of an imported run of `last` steps. Raises: DamagedError."""
    demand(all(one.step <= last for one in evaluations), N_("evaluations: a step is not a step of the run"))
    demand(
        all(one.split in SPLITS for one in evaluations),
        N_("evaluations: splits are {splits}"),
        splits=join_list(SPLITS),
    )
    places = [(one.step, one.split) for one in evaluations]
    demand(len(set(places)) == len(places), N_("evaluations: one occurs twice"))
    for one in evaluations:
        there = all(0 <= one.values.get(name, -1.0) <= 1 for name in SCORES)
        demand(there, N_("evaluations: {names} are fractions"), names=join_list(SCORES))


def _ascends(steps: Sequence[int]) -> bool:
    return all(one < other for one, other in pairwise(steps))


def _check_frames(run: RunForm, probe: Probe, arrays: Mapping[str, Array], tokens: Tokens) -> None:
    kinds = ("embeddings", "logits", "attention") if tokens.rows else ("embeddings", "logits")
    names = {f"{kind}.{step}" for kind in kinds for step in run.frames}
    test = {f"{TEST}.logits", f"{TEST}.labels"}
    demand(set(arrays) in (names, names | test), WITH_ATTENTION if tokens.rows else WITHOUT_ATTENTION, file=FRAMES)
    points, classes, first = len(probe.ids), len(probe.classes), run.frames[0]
    read = sum(text.length for text in tokens.texts)
    for step in run.frames:
        vectors = arrays[f"embeddings.{step}"]
        demand(vectors.ndim == 2 and vectors.shape[1] > 0, OF_STEP, file=FRAMES, array="embeddings", step=step)
        width = arrays[f"embeddings.{first}"].shape[1]
        _check_array(arrays, f"embeddings.{step}", (points, width))
        _check_array(arrays, f"logits.{step}", (points, classes))
        if tokens.rows:
            weights, shape = arrays[f"attention.{step}"], arrays[f"attention.{first}"].shape
            demand(len(shape) == 3 and shape[0] > 0, OF_STEP, file=FRAMES, array="attention", step=step)
            _check_array(arrays, f"attention.{step}", (shape[0], 1, read))
            shares = bool((weights >= 0).all() and (weights <= 1).all())
            demand(shares, OF_STEP, file=FRAMES, array="attention", step=step)
    if test <= set(arrays):
        labels = arrays[f"{TEST}.labels"]
        demand(are_labels(labels, classes), N_("{file}: labels of the test split"), file=FRAMES)
        _check_array(arrays, f"{TEST}.logits", (len(labels), classes))


def _check_array(arrays: Mapping[str, Array], name: str, shape: tuple[int, ...]) -> None:
    kind, _dot, step = name.partition(".")
    wrong = "{file}: {name}" if kind == TEST else OF_STEP
    demand(is_whole(arrays[name], shape), wrong, file=FRAMES, name=name, array=kind, step=step)


def _tokens(members: Mapping[str, bytes], probe: Probe) -> Tokens:
    form = parse_member(TokensForm, members[TOKENS], TOKENS)
    demand(len(form.rows) == len(form.texts), N_("{file}: different numbers of rows and texts"), file=TOKENS)
    demand(len(set(form.rows)) == len(form.rows), N_("{file}: rows repeat"), file=TOKENS)
    demand(all(row < len(probe.ids) for row in form.rows), N_("{file}: a row is not one of the examples"), file=TOKENS)
    texts = []
    for sides, words, length in form.texts:
        demand(len(sides) in (1, 2) and length > 0, N_("{file}: a text is empty, or more than a pair"), file=TOKENS)
        for side, start, end, places in words:
            inside = 0 <= side < len(sides) and 0 <= start < end <= len(sides[side])
            demand(inside and bool(places), N_("{file}: a word lies outside its text"), file=TOKENS)
            demand(
                _ascends(places) and places[-1] < length,
                N_("{file}: a word has tokens beyond the encoder's limit"),
                file=TOKENS,
            )
        texts.append(TokenText(sides, tuple(Word(*word) for word in words), length))
    return Tokens(form.rows, tuple(texts))
