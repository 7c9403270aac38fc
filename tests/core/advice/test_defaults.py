"""The rates of a run that names none: by what learns, and by the encoder's size."""

from __future__ import annotations

from typing import Any, get_args

from core.advice.defaults import RATES, Size, default_rates, size_class
from core.advice.prepare import prepare
from core.config import TrainableConfig, parse_config, peak_rates
from core.config.presets import PRESETS
from core.models.source import BUNDLED, EncoderShape, encoder_shape
from tests.cases import each


def shape(hidden: int, blocks: int) -> EncoderShape:
    return EncoderShape("bert", hidden, blocks, 4 * hidden, 512, 30_000)


@each(
    ("hidden", "blocks", "size"),
    [
        (384, 6, "small"),
        (256, 12, "small"),
        (384, 12, "small"),
        (768, 6, "base"),
        (768, 12, "base"),
        (1024, 24, "large"),
    ],
)
def test_the_size_is_that_of_the_blocks(hidden: int, blocks: int, size: str) -> None:
    assert size_class(shape(hidden, blocks)) == size


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
    ("given", "expected"),
    [
        ({"learning_rate": 3e-5}, lambda rates: (3e-5, rates.classifier)),
        ({"classifier_learning_rate": 1e-2}, lambda rates: (rates.encoder, 1e-2)),
        ({"learning_rate": 3e-5, "classifier_learning_rate": 1e-2}, lambda rates: (3e-5, 1e-2)),
    ],
)
def test_a_rate_that_is_named_stays(given: dict[str, float], expected: Any) -> None:
    config, _ = prepare(parse_config({"phases": [{"steps": 2, "optimiser": given}]}), gpu=False)
    assert peak_rates(config.phases[0].optimiser) == expected(default_rates(TrainableConfig(), encoder_shape(BUNDLED)))


def test_the_classifier_of_a_second_phase_has_its_own_rate() -> None:
    made = PRESETS["scl-classifier"].phases({"steps": 4, "optimiser": {"learning_rate": 3e-5}})
    config, _ = prepare(parse_config({"phases": made}), gpu=False)
    first, second = (peak_rates(phase.optimiser) for phase in config.phases)
    assert first[0] == 3e-5
    assert second == RATES["classifier"]["small"]
