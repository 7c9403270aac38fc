"""Default rates and momentum, by the trained weights, the encoder's size and the steps."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from core.advice.defaults import LARGEST_MOMENTUM, RATES, Size, default_rates, momentum_of, size_class
from core.advice.prepare import prepare
from core.config import TrainableConfig, parse_config, peak_rates
from core.config.presets import PRESETS
from core.errors import ConfigError
from core.models.source import BUNDLED, EncoderShape, encoder_shape
from core.parameters import AUTO
from tests.cases import each
from tests.core.training.made import Draft

# Size class by the width and the number of the blocks.
SIZES = {(384, 6): "small", (256, 12): "small", (384, 12): "small"}
SIZES |= {(768, 6): "base", (768, 12): "base", (1024, 24): "large"}


@each(("hidden", "blocks"), SIZES)
def test_the_size_is_that_of_the_blocks(hidden: int, blocks: int) -> None:
    shape = EncoderShape("bert", hidden, blocks, 4 * hidden, 512, 30_000)
    assert size_class(shape) == SIZES[hidden, blocks]


def test_every_way_of_training_has_rates_for_every_size_that_fall_with_it() -> None:
    assert set(RATES) == set(get_args(TrainableConfig.model_fields["part"].annotation))
    for rates in RATES.values():
        assert set(rates) == set(get_args(Size))
        assert rates["small"].encoder >= rates["base"].encoder >= rates["large"].encoder
        assert all(one.classifier >= one.encoder for one in rates.values())


@each("part", list(RATES))
def test_a_run_that_names_no_rate_takes_them(part: str) -> None:
    config, _ = prepare(parse_config({"phases": [{"steps": 2, **phase(part)}]}), gpu=False)
    trainable = config.phases[0].trainable
    assert peak_rates(config.phases[0].optimiser) == default_rates(trainable, encoder_shape(BUNDLED))


def phase(part: str) -> dict[str, Any]:
    return PRESETS["ce"].phases({"trainable": {"part": part}})[0]


@each(
    "given",
    [
        {"learning_rate": 3e-5},
        {"classifier_learning_rate": 1e-2},
        {"learning_rate": 3e-5, "classifier_learning_rate": 1e-2},
    ],
)
def test_a_rate_that_is_named_stays(given: dict[str, float]) -> None:
    config, _ = prepare(parse_config({"phases": [{"steps": 2, "optimiser": given}]}), gpu=False)
    default = default_rates(TrainableConfig(), encoder_shape(BUNDLED))
    expected = {"learning_rate": default.encoder, "classifier_learning_rate": default.classifier} | given
    assert peak_rates(config.phases[0].optimiser) == tuple(expected.values())


def test_the_classifier_of_a_second_phase_has_its_own_rate() -> None:
    made = PRESETS["scl-classifier"].phases({"steps": 4, "optimiser": {"learning_rate": 3e-5}})
    config, _ = prepare(parse_config({"phases": made}), gpu=False)
    first, second = (peak_rates(phase.optimiser) for phase in config.phases)
    assert first[0] == 3e-5
    assert second == RATES["classifier"]["small"]


def queued(**settings: Any) -> dict[str, Any]:
    terms = [{"loss": "cross_entropy"}, {"loss": "supcon", "queue": 16} | settings]
    return {"terms": terms, "combine": "additive"}


@each("steps", [1, 2, 5, 10, 11, 60, 500, 9_999, 1_000_000])
def test_the_default_momentum_leaves_at_most_a_tenth_of_the_initial_weights(steps: int) -> None:
    momentum = momentum_of(steps)
    assert 0 <= momentum <= LARGEST_MOMENTUM
    assert momentum**steps <= 0.1
    assert momentum == round(momentum, 3)
    assert momentum_of(10_000) == momentum_of(300_000) == 0.999  # that of MoCo
    assert [momentum_of(steps) for steps in (10, 20, 120, 1000)] == [0.0, 0.5, 0.916, 0.99]


@each(
    ("settings", "expected"),
    [({}, [momentum_of(40), momentum_of(200)]), ({"momentum": 0.5}, [0.5, 0.5]), ({"queue": 0}, [AUTO, AUTO])],
)
def test_a_queue_takes_the_momentum_of_its_phase_unless_it_names_one(
    draft: Draft, settings: dict[str, Any], expected: list[object]
) -> None:
    phases = [{"objective": queued(**settings), "steps": steps, "batch_size": 8} for steps in (40, 200)]
    config, _ = prepare(draft(more={"phases": phases}), gpu=False)
    assert [phase.objective.terms[1].parameters["momentum"] for phase in config.phases] == expected
    assert prepare(config, gpu=False)[0] == config


@each("given", ["fast", True, None, 1.0, -0.1])
def test_what_is_neither_auto_nor_a_momentum_is_refused(given: Any) -> None:
    with pytest.raises(ConfigError, match="from 0 and below 1 or auto"):
        parse_config({"phases": [{"objective": queued(momentum=given)}]})
