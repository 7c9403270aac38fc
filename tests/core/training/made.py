"""Helpers for the training tests: phases without the training loop, resumed runs, and a task of sentence pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from core.advice.prepare import prepare
from core.config import RunConfig
from core.config.presets import PRESETS
from core.encoders.model import Encoder, Tokenizer
from core.events import Evaluation, Event, Frame, Step
from core.tasks import TaskData
from core.training.checkpoints import Checkpoints
from core.training.encode import load_encoder_of
from core.training.loop import train
from core.training.passes import Machine, Setup
from core.training.phase import Phase
from core.training.step import commit_step, compute_step
from tests.conftest import FILLERS, WORDS, write_csv

Draft = Callable[..., RunConfig]
CPU = Machine(torch.device("cpu"), torch.autocast("cpu", torch.bfloat16, enabled=False))
# Only the first and the last frame.
NO_FRAMES: dict[str, Any] = {"probe": {"frame_steps": []}}


class Trained(NamedTuple):
    """A run that is trained once for all tests that only read it."""

    config: RunConfig
    data: TaskData
    events: list[Event]
    checkpoint: Path


def load_run_encoder(config: RunConfig, data: TaskData) -> tuple[Encoder, Tokenizer]:
    """Return the encoder of a run before its first step, in evaluation mode, and its tokenizer."""
    torch.manual_seed(config.seed)
    encoder, tokenizer = load_encoder_of(config.encoder, data.classes)
    return encoder.eval(), tokenizer


def build_phase(draft: RunConfig, *, dropout: float | None = None) -> Phase:
    """Return the first phase of the draft's run, ready for its first step, optionally with another dropout rate."""
    config, data = prepare(draft, gpu=False)
    encoder, tokenizer = load_run_encoder(config, data)
    for module in encoder.modules():
        if isinstance(module, torch.nn.Dropout) and dropout is not None:
            module.p = dropout
    torch.manual_seed(config.seed)
    return Phase(config, 0, Setup(data, encoder, tokenizer, CPU, config.seed))


def take_steps(phase: Phase, count: int, first: int = 1) -> list[dict[str, float]]:
    """Take `count` optimiser steps of a phase, starting at step `first`. Returns: the values of each step."""
    values = []
    for step in range(first, first + count):
        computed = compute_step(phase, step)
        commit_step(phase, computed)
        values.append(computed.values)
    return values


def weights(encoder: Encoder) -> dict[str, torch.Tensor]:
    return {name: parameter.detach().clone() for name, parameter in encoder.named_parameters()}


def steps_of(events: Sequence[Event]) -> list[Step]:
    return [event for event in events if isinstance(event, Step)]


def run_draft(draft: RunConfig, **arguments: Any) -> tuple[RunConfig, TaskData, list[Event]]:
    """Run a draft. Returns: the prepared config, the rows and all events."""
    config, data = prepare(draft, gpu=False)
    return config, data, list(train(config, data, **arguments))


def curve(events: Sequence[Event]) -> list[dict[str, float]]:
    """Return the values of each step that must repeat bit for bit: every measure except the time."""
    return [{k: v for k, v in e.values.items() if k != "step_s"} for e in steps_of(events)]


def frames_of(events: Sequence[Event]) -> dict[int, Frame]:
    """Return the frames by step. A later attempt repeats frames bit for bit."""
    found = dict[int, Frame]()
    for event in events:
        if isinstance(event, Frame):
            same = found.setdefault(event.step, event)
            np.testing.assert_array_equal(event.embeddings, same.embeddings)
            np.testing.assert_array_equal(event.logits, same.logits)
    return found


def evaluations(events: Sequence[Event], split: str) -> dict[int, Evaluation]:
    """Return the scores of a split by step. A later attempt repeats scores bit for bit."""
    every = [event for event in events if isinstance(event, Evaluation) and event.split == split]
    found = {event.step: event for event in every}
    assert all(event == found[event.step] for event in every)
    return found


def assert_same_run(events: Sequence[Event], expected: Sequence[Event]) -> None:
    """Compare the curves, the frames and the test scores of two runs bit for bit."""
    assert curve(events) == curve(expected)
    assert evaluations(events, "test") == evaluations(expected, "test")
    ours, theirs = frames_of(events), frames_of(expected)
    assert ours.keys() == theirs.keys()
    for step, frame in ours.items():
        np.testing.assert_array_equal(frame.embeddings, theirs[step].embeddings)
        np.testing.assert_array_equal(frame.logits, theirs[step].logits)


def additive(*terms: dict[str, Any]) -> dict[str, Any]:
    """Return the objective that adds these terms."""
    return {"terms": list(terms), "combine": "additive"}


def preset_phases(name: str, **phase: Any) -> list[dict[str, Any]]:
    """Return the phases of a preset. Keyword arguments set fields of every phase."""
    return PRESETS[name].phases({"steps": 8, "batch_size": 8} | phase)


def two_phases(draft: Draft, *phases: dict[str, Any], **more: Any) -> RunConfig:
    """Return a draft of SimCSE and then a classifier, four steps each, with a high learning rate."""
    made = preset_phases("simcse", optimiser={"learning_rate": 1e-2})
    return draft(more={"phases": [a | b for a, b in zip(made, phases or ({}, {}), strict=True)]} | more)


def nli_csv(path: Path, premises: int = 30) -> Path:
    """Write premises, each with an entailed and a contradicting sentence, in the tiny encoder's vocabulary."""
    rows = []
    for i in range(premises):
        word, filler = WORDS["good"][i % 6], FILLERS[i % len(FILLERS)]
        premise = f"the film was {word} and {filler} story felt {WORDS['good'][i // 6]}"
        rows.append((premise, f"a {word} film", "entailment"))
        rows.append((premise, f"a {WORDS['bad'][i % 6]} film", "contradiction"))
    return write_csv(path, rows, ("text", "text_b", "label"))


def scored_csv(path: Path, pairs: int = 60) -> Path:
    """Write pairs with scores 0 to 4, the number of words that the two texts share besides "film"."""
    words, rows = [*WORDS["good"], *WORDS["bad"]], []
    for i in range(pairs):
        first = [words[(i + 3 * k) % 12] for k in range(4)]
        shared = i % 5
        others = [words[(i + 3 * k + 1) % 12] for k in range(shared, 4)]
        rows.append((f"film {' '.join(first)}", f"film {' '.join([*first[:shared], *others])}", shared))
    return write_csv(path, rows, ("text_a", "text_b", "score"))


class Script:
    """Controls that turn knobs and stop after given steps, counted by calls for turns."""

    def __init__(self, turns: dict[int, tuple[str, float]] | None = None, stop_after: int | None = None) -> None:
        self.asked, self.turns, self.stop_after = 0, turns or {}, stop_after

    def stop_requested(self) -> bool:
        return self.stop_after is not None and self.asked >= self.stop_after

    def take_turns(self) -> list[tuple[str, float]]:
        self.asked += 1
        return [self.turns[self.asked]] if self.asked in self.turns else []


def run_in_attempts(
    config: RunConfig, data: TaskData, folder: Path, stops: Sequence[int], **arguments: Any
) -> list[Event]:
    """Stop a run at the given steps and resume it from its checkpoint each time. Returns: all events."""
    events: list[Event] = []
    for before, at in pairwise((0, *stops, config.steps + 1)):
        arguments |= {"controls": Script(stop_after=at - before), "resume": before > 0}
        events += train(config, data, checkpoints=Checkpoints(folder), **arguments)
    return events
