"""Estimates of a run's cost: at least the direction of each change must be right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.advice.estimate import (
    CHARACTERS_PER_TOKEN,
    LEAST_STEP_S,
    SPECIAL_TOKENS,
    Estimate,
    estimate,
    mean_tokens,
    measured_flops,
    step_operations,
)
from core.advice.prepare import prepare
from core.advice.score_source import PROBE_ROWS
from core.config import RunConfig, TrainableConfig
from core.config.objective import ObjectiveConfig
from core.events import Step
from core.models.source import EncoderShape, encoder_shape
from tests.cases import each
from tests.core.config.made import CE, SCL, views

Estimated = Callable[..., Estimate]
MINI_LM = EncoderShape("bert", hidden_size=384, blocks=6, feed_forward=1536, positions=512, vocabulary=30_522)


@pytest.fixture
def estimated(draft: Callable[..., RunConfig], tiny_encoder: Path) -> Estimated:
    def made(flops: float = 1e9, shape: EncoderShape | None = None, **phase: Any) -> Estimate:
        config, data = prepare(draft(**phase), gpu=False)
        return estimate(config, data, shape or encoder_shape(str(tiny_encoder)), flops, measured=False)

    return made


def test_steps_and_batches_take_time_in_proportion_and_batches_memory(estimated: Estimated) -> None:
    one, longer, wider = (estimated(1e7, steps=n, batch_size=b) for n, b in ((10, 8), (100, 8), (10, 32)))
    assert (longer.steps_s, wider.steps_s) == pytest.approx((10 * one.steps_s, 4 * one.steps_s))
    assert longer.memory_bytes == one.memory_bytes < wider.memory_bytes


def test_a_linear_probe_reads_further_rows_at_every_frame_and_at_the_end(
    draft: Callable[..., RunConfig], tiny_encoder: Path
) -> None:
    shape = encoder_shape(str(tiny_encoder))
    probed, plain = (
        prepare(draft(objective=ObjectiveConfig().with_knob("lambda", weight).model_dump(mode="json")), gpu=False)
        for weight in (1.0, 0.9)
    )
    data, probe = probed[1], probed[0].probe
    read = mean_tokens(data.train.display_texts, 32) * 2 * shape.blocks * shape.block_parameters
    assert len(data.train) < PROBE_ROWS
    more, less = (estimate(*made, shape, 1e9, measured=False) for made in (probed, plain))
    further = len(probe.frame_steps or ()) * (len(data.train) - (probe.train_size or 0))
    assert more.frames_s - less.frames_s == pytest.approx(further * read / 1e9)
    assert more.test_s - less.test_s == pytest.approx(len(data.train) * read / 1e9)
    assert more.steps_s == less.steps_s


def test_a_faster_machine_needs_less_time_in_every_part_and_the_same_memory(estimated: Estimated) -> None:
    slow, fast = estimated(flops=1e4), estimated(flops=1e7)
    parts = [[one.steps_s, one.frames_s, one.probe_s, one.test_s, one.weights_s] for one in (slow, fast)]
    assert parts[1] == pytest.approx([seconds / 1000 for seconds in parts[0]])
    assert min(parts[1]) > 0
    assert [slow.total_s, fast.total_s] == pytest.approx([sum(one) for one in parts])
    assert fast.memory_bytes == slow.memory_bytes


def test_each_file_of_weights_predicts_the_validation_split_at_the_end(estimated: Estimated) -> None:
    last, two = (
        estimated(more={"checkpoint": {"snapshot_steps": steps}, "probe": {"frame_steps": [0, 2, 8]}})
        for steps in ([], [2])
    )
    assert two.weights_s == pytest.approx(2 * last.weights_s)


def test_a_step_takes_time_though_the_encoder_computes_nothing(estimated: Estimated) -> None:
    read = estimated(trainable={"part": "classifier"}, shape=MINI_LM, flops=1e15, steps=120)
    assert read.steps_s == pytest.approx(120 * LEAST_STEP_S)


def test_operations_are_two_forward_and_four_backward_per_weight() -> None:
    weights = MINI_LM.block_parameters
    assert weights == 4 * 384**2 + 2 * 384 * 1536
    assert step_operations(MINI_LM, TrainableConfig(part="all"), 10) == 10 * 6 * 6 * weights
    assert step_operations(MINI_LM, TrainableConfig(part="last_blocks", blocks=2), 10) == 10 * (12 + 8) * weights
    assert step_operations(MINI_LM, TrainableConfig(part="classifier"), 10) == 10 * 12 * weights


def costing(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"objective": {"terms": list(terms), "combine": "additive"}, "shape": MINI_LM}


def seen(*names: str) -> dict[str, Any]:
    return SCL | {"views": views(*names)}


QUEUED = SCL | {"queue": 64}


class TestObjectives:
    @each(
        ("term", "factor"),
        [(seen("head_dropout", "layers"), 1), (seen("dropout", "eda"), 3), (seen("adversarial"), 4), (QUEUED, 2)],
    )
    def test_every_reading_of_the_encoder_costs_once_more(
        self, estimated: Estimated, term: dict[str, Any], factor: int
    ) -> None:
        plain, dearer = estimated(**costing(CE)), estimated(**costing(CE, term))
        assert dearer.steps_s == pytest.approx(factor * plain.steps_s)
        assert (dearer.test_s, dearer.frames_s) == (plain.test_s, plain.frames_s)
        assert dearer.memory_bytes >= plain.memory_bytes
        assert (dearer.memory_bytes == plain.memory_bytes) == (factor == 1)

    def test_a_queue_keeps_a_copy_of_the_encoder(self, estimated: Estimated) -> None:
        two = estimated(**costing(CE, QUEUED))
        same = estimated(**costing(CE, seen("dropout")))
        assert two.memory_bytes - same.memory_bytes == pytest.approx(4 * MINI_LM.parameters)

    def test_phases_add_up_in_time_and_the_larger_one_counts_in_memory(self, estimated: Estimated) -> None:
        given = [{"steps": 4, "batch_size": size, "objective": {"terms": [CE]}} for size in (8, 32)]
        first, second, both = (estimated(more={"phases": phases}) for phases in (given[:1], given[1:], given))
        assert both.steps_s == pytest.approx(first.steps_s + second.steps_s)
        assert both.memory_bytes == max(first.memory_bytes, second.memory_bytes)


class TestWhatIsTrained:
    def test_lora_saves_the_gradients_of_the_weights_and_their_moments(self, estimated: Estimated) -> None:
        full = estimated(**costing(CE))
        lora = estimated(**costing(CE), trainable={"part": "lora", "lora_rank": 8})
        assert lora.steps_s == pytest.approx(full.steps_s * 4 / 6)
        adapters = 4 * 8 * MINI_LM.hidden_size * MINI_LM.blocks
        assert full.memory_bytes - lora.memory_bytes == pytest.approx(12 * (MINI_LM.parameters - adapters))

    def test_adafactor_keeps_no_moments(self, estimated: Estimated) -> None:
        adam, adafactor = (estimated(**costing(CE), optimiser={"name": name}) for name in ("adamw", "adafactor"))
        assert adam.memory_bytes - adafactor.memory_bytes == pytest.approx(8 * MINI_LM.parameters)
        assert adam.steps_s == adafactor.steps_s

    def test_a_micro_batch_bounds_memory_and_costs_a_forward_more(self, estimated: Estimated) -> None:
        whole, micro, equal = (estimated(**costing(CE), batch_size=32, micro_batch=size) for size in (None, 8, 32))
        small = estimated(**costing(CE), batch_size=8)
        assert micro.memory_bytes == small.memory_bytes < whole.memory_bytes
        assert micro.steps_s == pytest.approx(whole.steps_s * 8 / 6)
        assert equal == whole

    def test_checkpointing_saves_memory_and_costs_a_forward_more(self, estimated: Estimated) -> None:
        plain, saving = (estimated(**costing(CE), gradient_checkpointing=on) for on in (False, True))
        assert saving.memory_bytes < plain.memory_bytes
        assert saving.steps_s == pytest.approx(plain.steps_s * 8 / 6)

    def test_frozen_blocks_are_computed_in_the_first_epoch_only(self, estimated: Estimated) -> None:
        def cost(steps: int, **more: Any) -> float:
            part = {"part": "last_blocks", "blocks": 2}
            return estimated(**costing(CE), trainable=part, steps=steps, batch_size=34, **more).steps_s

        first, later = cost(2) / 2, (cost(12) - cost(2)) / 10  # 68 rows make two batches
        assert first / later == pytest.approx((2 * 6 + 4 * 2) / (6 * 2))

    @each(
        "more",
        [
            costing(CE, seen("eda")),
            costing(CE, SCL | {"layers": [1, 2]}),
            costing(CE, SCL | {"level": "token", "layers": [2]}),
            costing(CE) | {"micro_batch": 8},
        ],
    )
    def test_what_keeps_frozen_blocks_from_being_kept_costs_them_every_time(
        self, estimated: Estimated, more: dict[str, Any]
    ) -> None:
        part = {"part": "last_blocks", "blocks": 2}
        one, ten = (estimated(**more, trainable=part, steps=n, batch_size=34).steps_s for n in (2, 20))
        assert ten == pytest.approx(10 * one)

    def test_two_dropout_passes_share_the_frozen_blocks(self, estimated: Estimated) -> None:
        part = {"part": "classifier"}
        one, two = (estimated(**costing(CE, *more), trainable=part).steps_s for more in ([], [seen("dropout")]))
        assert two == pytest.approx(one)


def test_the_second_text_of_a_pair_is_read_too(tmp_path: Path, estimated: Estimated) -> None:
    def cost(header: str, row: str) -> Estimate:
        path = tmp_path / "rows.csv"
        path.write_text(header + "".join(f"{row},{'ab'[i % 2]}\n" for i in range(80)))
        return estimated(shape=MINI_LM, task={"path": str(path)})

    single, pair = cost("text,label\n", "x" * 40), cost("text,text_b,label\n", f"{'x' * 40},{'y' * 40}")
    assert 1.5 < pair.steps_s / single.steps_s < 2
    assert 1.5 < pair.test_s / single.test_s < 2


def test_tokens_follow_the_characters() -> None:
    assert mean_tokens(["x" * 43], 128) == pytest.approx(43 / CHARACTERS_PER_TOKEN + SPECIAL_TOKENS)
    assert mean_tokens(["x" * 10_000], 128) == 128
    assert mean_tokens(["猫" * 20], 128) == 20 + SPECIAL_TOKENS
    many = ["x" * 43] * 1000 + ["x" * 86] * 1000  # the sample spans all texts
    assert mean_tokens(many, 128) == pytest.approx(1.5 * 43 / CHARACTERS_PER_TOKEN + SPECIAL_TOKENS)


class TestMeasured:
    STEPS = tuple(Step(i, {"tokens": 100.0, "step_s": 0.5}) for i in range(10))

    def test_the_speed_is_operations_over_seconds(self) -> None:
        expected = step_operations(MINI_LM, TrainableConfig(), 100) / 0.5
        assert measured_flops(self.STEPS, MINI_LM, TrainableConfig()) == pytest.approx(expected)

    def test_slow_first_steps_and_one_hiccup_do_not_count(self) -> None:
        steps = list(self.STEPS)
        for i in (0, 1, 7):
            steps[i] = replace(steps[i], values={"tokens": 100.0, "step_s": 60.0})
        usual = measured_flops(self.STEPS, MINI_LM, TrainableConfig())
        assert measured_flops(steps, MINI_LM, TrainableConfig()) == usual

    def test_too_few_steps_or_steps_without_a_time_tell_nothing(self) -> None:
        for steps in (self.STEPS[:0], self.STEPS[:4], [Step(i, {"tokens": 100.0}) for i in range(10)]):
            assert measured_flops(steps, MINI_LM, TrainableConfig()) is None
