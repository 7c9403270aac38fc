"""Cells of a surface: trained at once on one trunk, each as if it were alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from core.advice.prepare import prepare
from core.config import RunConfig
from core.config.edit import apply_settings
from core.encoders.model import Trunk, load_encoder
from core.errors import TrainingError
from core.events import BASELINE, Evaluation, Event, Finished, Predictions, Step
from core.tasks import TaskData
from core.training.loop import train
from core.training.shared_trunk import Cell, Surface
from tests.core.training.made import Draft, Script, assert_same_run, curve, evaluations, frames_of

SMALL: dict[str, Any] = {
    "executor": "surface",
    "trainable.part": "last_blocks",
    "trainable.blocks": 1,
    "steps": 6,
    "batch_size": 4,
    "probe.frame_steps": [3, 6],
    "checkpoint.snapshot_steps": [],
}
TEMPERATURES = (0.05, 0.3, 1.0)


@pytest.fixture(scope="module")
def prepared(draft: Draft) -> list[tuple[RunConfig, TaskData]]:
    """Three cells that differ in τ only."""
    base = apply_settings(draft(), {"preset": "ce-scl", **SMALL})
    return [prepare(apply_settings(base, {"temperature": one}), gpu=False) for one in TEMPERATURES]


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def trained(cells: list[Cell]) -> list[list[Event | Exception]]:
    found: list[list[Event | Exception]] = [[] for _ in cells]
    for number, event in Surface(cells, {}).events():
        found[number].append(event)
    return found


def cells_of(prepared: list[tuple[RunConfig, TaskData]]) -> list[Cell]:
    return [Cell(config, data) for config, data in prepared]


@pytest.fixture(scope="module")
def together(prepared: list[tuple[RunConfig, TaskData]]) -> list[list[Event | Exception]]:
    """Return the events of the three cells, trained once for all tests that only read them."""
    return trained(cells_of(prepared))


@pytest.mark.parametrize("blocks", [1, 2])  # the last, and all of the tiny encoder
def test_cells_learn_as_each_does_alone(
    prepared: list[tuple[RunConfig, TaskData]], two_threads: None, blocks: int
) -> None:
    """The run alone computes the frozen blocks in other groups, so the last bits differ."""
    prepared = [(apply_settings(config, {"trainable.blocks": blocks}), data) for config, data in prepared]
    together = trained(cells_of(prepared))
    for (config, data), events in zip(prepared, together, strict=True):
        alone = list(train(config, data))
        for ours, theirs in zip(curve(events), curve(alone), strict=True):
            assert ours == pytest.approx(theirs, rel=1e-4, abs=1e-5)
        assert frames_of(events).keys() == frames_of(alone).keys()
        for step, frame in frames_of(alone).items():
            np.testing.assert_allclose(frames_of(events)[step].embeddings, frame.embeddings, atol=1e-4)
        assert isinstance(events[-1], Finished)


@pytest.mark.parametrize("micro_batch", [None, 2])  # a cell that lacked memory is trained in micro-batches
def test_threads_and_neighbours_change_no_bit(
    prepared: list[tuple[RunConfig, TaskData]], two_threads: None, micro_batch: int | None
) -> None:
    prepared = [(apply_settings(config, {"micro_batch": micro_batch}), data) for config, data in prepared]
    both = trained(cells_of(prepared))
    torch.set_num_threads(1)
    [alone] = trained(cells_of(prepared[2:]))
    assert_same_run(both[2], alone)


def test_cells_begin_equal_and_see_the_same_batches(together: list[list[Event | Exception]]) -> None:
    first = [next(event for event in events if isinstance(event, Step)).values for events in together]
    # τ does not enter the cross-entropy, so equal weights, batches and dropout give equal first values.
    assert len({values["loss.cross_entropy"] for values in first}) == 1
    starts, ends = ([frames_of(events)[step].embeddings for events in together] for step in (0, 6))
    assert not np.array_equal(ends[0], ends[1])
    assert all(np.array_equal(starts[0], one) for one in starts)


def test_a_cell_trains_at_the_dropout_rate_of_its_config(draft: Draft, still_encoder: Path) -> None:
    """The classifier's dropout is that of the tiny encoder, so only the contrast is compared."""
    given = {"preset": "dropout-nt-xent-encoder", **SMALL, "steps": 1, "probe.frame_steps": []}
    still = apply_settings(draft(), {**given, "encoder.id": str(still_encoder), "encoder.dropout": None})
    drafts = [still, *(apply_settings(draft(), {**given, "encoder.dropout": rate}) for rate in (0.0, 0.3))]
    cells = [Cell(*prepare(one, gpu=False)) for one in drafts]
    without, at_0, at_03 = (curve(events)[0]["loss.simcse"] for events in trained(cells))
    assert without == at_0 != at_03


def test_cells_move_in_turn(prepared: list[tuple[RunConfig, TaskData]]) -> None:
    steps = [0, 0, 0]
    for number, event in Surface(cells_of(prepared), {}).events():
        if isinstance(event, Step):
            steps[number] = event.step
            assert max(steps) - min(steps) <= 2


def test_every_cell_gets_the_probe_of_the_untrained_encoder_and_no_test_score(
    prepared: list[tuple[RunConfig, TaskData]], together: list[list[Event | Exception]]
) -> None:
    for (_config, data), events in zip(prepared, together, strict=True):
        scores = [event for event in events if isinstance(event, Evaluation)]
        assert [event.split for event in scores].count(BASELINE) == 1
        assert {event.split for event in scores} == {BASELINE, "validation"}
        predicted = {event.split: event for event in events if isinstance(event, Predictions)}
        assert set(predicted) == {BASELINE, "validation"}
        assert predicted["validation"].labels == predicted[BASELINE].labels == data.validation.labels
        last = [event for event in scores if event.split == "validation"][-1]
        right = predicted["validation"].logits.argmax(1) == np.array(data.validation.labels)
        assert right.mean() == pytest.approx(last.values["accuracy"])


def test_the_probe_of_a_cell_reads_the_rows_that_its_batches_reach(draft: Draft) -> None:
    base = apply_settings(draft(), {"preset": "ce", **SMALL, "steps": 2, "probe.frame_steps": [2]})
    sizes = [4, 6]
    cells = [Cell(*prepare(apply_settings(base, {"batch_size": size}), gpu=False)) for size in sizes]
    probes = [evaluations(events, BASELINE) for events in trained(cells)]
    assert [probe[0].values["train_rows"] for probe in probes] == [2 * size for size in sizes]


def test_a_cell_that_fails_leaves_the_others_alone(prepared: list[tuple[RunConfig, TaskData]]) -> None:
    config, data = prepared[0]
    together = trained([Cell(config, data, Broken()), *cells_of(prepared[1:])])
    assert isinstance(together[0][-1], TrainingError)
    assert [type(events[-1]) for events in together[1:]] == [Finished, Finished]


class Broken(Script):
    def take_turns(self) -> Sequence[tuple[str, float]]:
        raise TrainingError("broken")


def test_dropped_and_stopped_cells_end(prepared: list[tuple[RunConfig, TaskData]]) -> None:
    dropped: set[int] = set()
    cells = [*cells_of(prepared[:2]), Cell(*prepared[2], Script(stop_after=2))]
    found: list[list[Any]] = [[], [], []]
    for number, event in Surface(cells, {}, dropped).events():
        found[number].append(event)
        if isinstance(event, Step) and number == 0:
            dropped.add(0)
    assert len(curve(found[0])) <= 2
    assert found[1][-1] == Finished(6, "finished")
    assert found[2][-1].status == "stopped"


def test_a_paused_cell_waits_and_goes_on(prepared: list[tuple[RunConfig, TaskData]]) -> None:
    seen = [0, 0]
    cells = cells_of(prepared[:2])
    cells[0].paused = lambda: 0 < seen[1] < 6  # until the other has ended
    for number, event in Surface(cells, {}).events():
        if isinstance(event, Step):
            seen[number] = event.step
            if number == 0 and event.step > 3:
                assert seen[1] == 6
    assert seen == [6, 6]


class TestTrunk:
    @pytest.fixture
    def trunk(self, prepared: list[tuple[RunConfig, TaskData]]) -> Trunk:
        config, data = prepared[0]
        torch.manual_seed(0)
        encoder, tokenizer = load_encoder(config.encoder.id, classes=data.classes, max_length=32)
        return Trunk(encoder, tokenizer, len(encoder.blocks) - 1)

    def test_copies_share_frozen_weights_and_no_others(self, trunk: Trunk) -> None:
        first, second = trunk.encoder_copy(), trunk.encoder_copy()
        ours, theirs = dict(first.named_parameters()), dict(second.named_parameters())
        shared = {name for name in ours if ours[name] is theirs[name]}
        own = set(ours) - shared
        upper = f"encoder.layer.{trunk.blocks}."
        assert all(upper in name or "classifier" in name or "pooler" in name for name in own)
        assert any(upper in name for name in own)
        assert any("embeddings" in name for name in shared)
        assert not any(upper in name for name in shared)

    def test_states_do_not_depend_on_the_order_of_requests(self, trunk: Trunk) -> None:
        texts = trunk.tokenizer(["a good film", "bad", "the story felt long and bad and good"])
        groups = [texts[:2], texts[2:]]
        encoder = trunk.encoder_copy()
        one = Trunk(encoder.copy(), trunk.tokenizer, trunk.blocks, groups)
        other = Trunk(encoder.copy(), trunk.tokenizer, trunk.blocks, groups)
        at_once = one.states(texts)
        in_turn = [other.states([text])[0] for text in reversed(texts)][::-1]
        for ours, theirs in zip(at_once, in_turn, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=0, atol=0)


def test_the_probe_of_a_trunk_is_fitted_on_added_paraphrases_as_that_of_a_run(draft: Draft) -> None:
    task = {"task.id": "nli", "task.path": None, "task.train_size": 24, "task.paraphrases": "strong"}
    config, data = prepare(apply_settings(draft(), {"preset": "ce-scl", **SMALL, **task}), gpu=False)
    [together], alone = trained([Cell(config, data)]), list(train(config, data))
    ours, theirs = (evaluations(events, BASELINE)[0].values for events in (together, alone))
    assert ours == pytest.approx(theirs, abs=1e-4)
