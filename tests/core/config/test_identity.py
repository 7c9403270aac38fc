"""Which configs are one."""

from __future__ import annotations

import json
from typing import Any

from core.config import RunConfig, parse_config
from core.config.compare import config_hash
from core.config.edit import changed
from tests.cases import each


def hashed(**more: Any) -> str:
    return config_hash(changed(RunConfig(), more).to_json())


@each(
    "more",
    [{"name": "another"}, {"task.name": "Mine"}, {"checkpoint.every_steps": 7}, {"probe.frame_steps": [0, 3]}],
)
def test_names_frames_and_saved_weights_do_not_count(more: dict[str, Any]) -> None:
    assert hashed(**more) == hashed()


@each("more", [{"seed": 1}, {"lambda": 0.5}, {"task.train_size": 20}, {"device": "cpu"}, {"probe.size": 20}])
def test_everything_else_counts(more: dict[str, Any]) -> None:
    assert hashed(**more) != hashed()


def test_the_order_of_keys_does_not_count() -> None:
    text = RunConfig().to_json()
    backwards = json.dumps(dict(reversed(json.loads(text).items())))
    assert config_hash(backwards) == config_hash(text)


def test_a_config_hashes_alike_before_and_after_it_was_kept() -> None:
    text = changed(RunConfig(), {"preset": "simcse"}).to_json()
    assert config_hash(parse_config(text).to_json()) == config_hash(text)
