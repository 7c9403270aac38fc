"""Re-initialised blocks are drawn once, before frame 0, and every score belongs to a known encoder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.advice.prepare import prepare
from core.config import RunConfig
from core.errors import ConfigError
from core.events import Event, Notice
from core.training.loop import train
from core.training.untrained import FolderCache, VectorCache
from tests.cases import slow_but
from tests.core.training.made import (
    NO_FRAMES,
    Draft,
    assert_same_run,
    curve,
    evaluations,
    frames_of,
    run_draft,
    run_in_attempts,
    steps_of,
    two_phases,
)

# A rate so low that no float32 weight moves, so training explains no change.
STILL: dict[str, Any] = {"optimiser": {"learning_rate": 1e-30, "classifier_learning_rate": 1e-30, "weight_decay": 0.0}}
DRAWN: dict[str, Any] = {"trainable": {"reinitialised_blocks": 1}}


def events_of(draft: RunConfig, cache: VectorCache | None = None) -> list[Event]:
    return run_draft(draft, cache=cache)[2]


def test_frame_0_shows_the_model_that_starts(draft: Draft) -> None:
    frames = frames_of(events_of(draft(**DRAWN, **STILL)))
    assert len(frames) > 1
    for frame in frames.values():
        np.testing.assert_allclose(frames[0].embeddings, frame.embeddings, atol=1e-5)
        np.testing.assert_allclose(frames[0].logits, frame.logits, atol=1e-5)
    plain = frames_of(events_of(draft(**STILL)))
    assert np.abs(frames[0].embeddings - plain[0].embeddings).max() > 1e-3


def test_a_second_phase_reinitialises_nothing(draft: Draft) -> None:
    made = two_phases(draft, DRAWN | STILL, STILL, probe={"frame_steps": [2, 4, 6]})
    frames = frames_of(events_of(made))
    assert sorted(frames) == [0, 2, 4, 6, 8]
    for frame in frames.values():
        np.testing.assert_allclose(frames[0].embeddings, frame.embeddings, atol=1e-5)


def test_a_second_phase_that_asks_for_new_blocks_is_refused(draft: Draft) -> None:
    for first in ({}, DRAWN):
        with pytest.raises(
            ConfigError, match="re-initialised once, before the first step; set this in the first phase"
        ) as caught:
            prepare(two_phases(draft, first, DRAWN), gpu=False)
        assert caught.value.field == "phases.1.trainable.reinitialised_blocks"


def test_a_stored_run_whose_second_phase_asks_for_new_blocks_goes_on_without(draft: Draft) -> None:
    config, data = prepare(two_phases(draft, DRAWN, {}, **NO_FRAMES), gpu=False)
    first, second = config.phases
    old = second.model_copy(update={"trainable": first.trainable})
    events = list(train(config.model_copy(update={"phases": (first, old)}), data))
    assert curve(events) == curve(list(train(config, data)))
    notices = [str(e.message) for e in events if isinstance(e, Notice)]
    assert notices[-1] == "Blocks are re-initialised once, before the first step; this phase re-initialises none."


@pytest.mark.parametrize(("drawn_first", "in_files"), slow_but([(True, True)], [(True, True), (False, False)]))
def test_runs_with_and_without_new_blocks_share_a_cache_and_no_vectors(
    draft: Draft, tmp_path: Path, drawn_first: bool, in_files: bool
) -> None:
    cache: VectorCache = FolderCache(tmp_path) if in_files else {}
    two, other_seed = {"trainable": {"reinitialised_blocks": 2}}, NO_FRAMES | {"seed": 1}
    drafts = [draft(**given, more=NO_FRAMES) for given in (DRAWN, {}, two)] + [draft(**DRAWN, more=other_seed)]
    alone = [events_of(one) for one in drafts]
    order = list(range(len(drafts)))
    for number in [*order, *order] if drawn_first else [*reversed(order), *order]:
        events = events_of(drafts[number], cache)
        assert curve(events) == curve(alone[number])
        found, computed = frames_of(events)[0], frames_of(alone[number])[0]
        assert found.attention is not None
        np.testing.assert_array_equal(found.embeddings, computed.embeddings)
        np.testing.assert_array_equal(found.logits, computed.logits)
        np.testing.assert_array_equal(found.attention, computed.attention)
        assert evaluations(events, "baseline") == evaluations(alone[number], "baseline")


def test_the_linear_probe_to_beat_is_that_of_the_pre_trained_encoder(draft: Draft) -> None:
    drawn, plain = (events_of(draft(**given, more=NO_FRAMES)) for given in (DRAWN, {}))
    assert evaluations(drawn, "baseline") == evaluations(plain, "baseline")


def test_a_run_with_new_blocks_goes_on_bit_for_bit_wherever_it_stopped(draft: Draft, tmp_path: Path) -> None:
    """Stop within a phase and at its end. Without a cache, frame 0 is computed again."""
    made = two_phases(draft, DRAWN, {"trainable": {"part": "classifier"}}, probe={"frame_steps": [1, 3, 4, 7]})
    config, data, whole = run_draft(made)
    parts = run_in_attempts(config, data, tmp_path, (2, 4, 6))
    assert_same_run(parts, whole)


def test_a_stop_before_the_first_frame_leaves_it_to_the_next_attempt(draft: Draft, tmp_path: Path) -> None:
    config, data = prepare(draft(**DRAWN, more=NO_FRAMES), gpu=False)
    parts = run_in_attempts(config, data, tmp_path, (1,))
    assert 0 in frames_of(parts)
    assert len(steps_of(parts)) == config.steps
