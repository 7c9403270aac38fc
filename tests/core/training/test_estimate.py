"""What a run will cost: the arithmetic must at least point the right way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.config import RunConfig, TrainableConfig
from core.encoders.source import EncoderShape, encoder_shape
from core.events import Step
from core.training.estimate import (
    CHARACTERS_PER_TOKEN,
    SPECIAL_TOKENS,
    Estimate,
    assumed_flops,
    estimate,
    mean_tokens,
    measured_flops,
    step_operations,
)
from core.training.prepare import prepare

Estimated = Callable[..., Estimate]
MINI_LM = EncoderShape("bert", hidden_size=384, blocks=6, feed_forward=1536, positions=512, vocabulary=30_522)


@pytest.fixture
def estimated(draft: Callable[..., RunConfig], tiny_encoder: Path) -> Estimated:
    def made(flops: float = 1e9, shape: EncoderShape | None = None, **phase: Any) -> Estimate:
        config, data = prepare(draft(**phase), gpu=False)
        return estimate(config, data, shape or encoder_shape(str(tiny_encoder)), flops, measured=False)

    return made


def test_more_steps_take_longer_in_proportion(estimated: Estimated) -> None:
    one, ten = estimated(steps=10), estimated(steps=100)
    assert ten.steps_s == pytest.approx(10 * one.steps_s)
    assert ten.memory_bytes == one.memory_bytes


def test_a_larger_batch_takes_longer_and_more_memory(estimated: Estimated) -> None:
    small, large = estimated(batch_size=8), estimated(batch_size=32)
    assert large.steps_s == pytest.approx(4 * small.steps_s)
    assert large.memory_bytes > small.memory_bytes


def test_the_less_learns_the_less_it_costs(estimated: Estimated) -> None:
    parts = [{"part": "all"}, {"part": "last_blocks", "blocks": 1}, {"part": "classifier"}]
    costs = [estimated(trainable=part, shape=MINI_LM) for part in parts]
    assert costs[0].steps_s > costs[1].steps_s > costs[2].steps_s
    assert costs[0].memory_bytes > costs[1].memory_bytes > costs[2].memory_bytes
    assert costs[0].test_s == costs[2].test_s


def test_a_faster_machine_needs_less_time_and_the_same_memory(estimated: Estimated) -> None:
    slow, fast = estimated(flops=1e9), estimated(flops=1e12)
    assert fast.total_s == pytest.approx(slow.total_s / 1000)
    assert fast.memory_bytes == slow.memory_bytes


def test_more_frames_take_longer(estimated: Estimated) -> None:
    few = estimated(more={"probe": {"frame_steps": []}}, steps=30)
    many = estimated(more={"probe": {"frame_steps": list(range(30))}}, steps=30)
    assert many.frames_s > 5 * few.frames_s
    assert many.steps_s == few.steps_s


def test_a_larger_encoder_costs_more(estimated: Estimated) -> None:
    small, large = estimated(), estimated(shape=MINI_LM)
    assert large.total_s > 100 * small.total_s
    assert large.memory_bytes > small.memory_bytes


def test_the_total_is_the_sum_of_its_parts(estimated: Estimated) -> None:
    cost = estimated()
    assert cost.total_s == cost.steps_s + cost.frames_s + cost.test_s
    assert min(cost.steps_s, cost.frames_s, cost.test_s) > 0


def test_operations_are_two_forward_and_four_backward_per_weight() -> None:
    weights = MINI_LM.block_parameters
    assert weights == 4 * 384**2 + 2 * 384 * 1536
    assert step_operations(MINI_LM, TrainableConfig(part="all"), 10) == 10 * 6 * 6 * weights
    assert step_operations(MINI_LM, TrainableConfig(part="last_blocks", blocks=2), 10) == 10 * (12 + 8) * weights
    assert step_operations(MINI_LM, TrainableConfig(part="classifier"), 10) == 10 * 12 * weights


def test_tokens_follow_the_characters() -> None:
    assert mean_tokens(["x" * 43], 128) == pytest.approx(43 / CHARACTERS_PER_TOKEN + SPECIAL_TOKENS)
    assert mean_tokens(["x" * 10_000], 128) == 128
    assert mean_tokens(["猫" * 20], 128) == 20 + SPECIAL_TOKENS
    assert mean_tokens(["x" * 43, "x" * 86], 128) == pytest.approx(1.5 * 43 / CHARACTERS_PER_TOKEN + SPECIAL_TOKENS)


def test_tokens_of_many_texts_come_from_a_sample_over_all_of_them() -> None:
    assert mean_tokens(["x" * 43] * 1000 + ["x" * 86] * 1000, 128) == pytest.approx(
        1.5 * 43 / CHARACTERS_PER_TOKEN + SPECIAL_TOKENS
    )


class TestMeasured:
    STEPS = tuple(Step(i, {"tokens": 100.0, "step_s": 0.5}) for i in range(10))

    def test_the_speed_is_operations_over_seconds(self) -> None:
        expected = step_operations(MINI_LM, TrainableConfig(), 100) / 0.5
        assert measured_flops(self.STEPS, MINI_LM, TrainableConfig()) == pytest.approx(expected)

    def test_slow_first_steps_and_one_hiccup_do_not_count(self) -> None:
        steps = list(self.STEPS)
        for i in (0, 1, 7):
            steps[i] = replace(steps[i], values={"tokens": 100.0, "step_s": 60.0})
        assert measured_flops(steps, MINI_LM, TrainableConfig()) == measured_flops(
            self.STEPS, MINI_LM, TrainableConfig()
        )

    @pytest.mark.parametrize("count", [0, 2, 4])
    def test_too_few_steps_tell_nothing(self, count: int) -> None:
        assert measured_flops(self.STEPS[:count], MINI_LM, TrainableConfig()) is None

    def test_steps_without_a_time_tell_nothing(self) -> None:
        assert measured_flops([Step(i, {"tokens": 100.0}) for i in range(10)], MINI_LM, TrainableConfig()) is None


def test_a_gpu_is_assumed_to_be_faster() -> None:
    assert assumed_flops(gpu=True) > assumed_flops(gpu=False) > 0
