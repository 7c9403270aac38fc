"""The settings that all cells of a grid share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from core.config import RunConfig
from core.experiments.design import axis_of
from core.experiments.shared_settings import shared_settings

Draft = Callable[..., RunConfig]
LAMBDA, TAU = "phases.0.objective.lambda", "phases.0.objective.terms.supcon.temperature"


@pytest.mark.parametrize(
    ("varied", "objective"),
    [
        ({}, ["0.1 CE + 0.9 SCL, τ 0.3"]),
        ({LAMBDA: [0.0, 0.9]}, ["CE + SCL, τ 0.3"]),
        ({"lambda": [0.5]}, ["CE + SCL, τ 0.3"]),
        ({TAU: [0.1, 0.3]}, ["0.1 CE + 0.9 SCL"]),
        ({LAMBDA: [0.1, 0.9], "temperature": [0.1, 0.3]}, ["CE + SCL"]),
        ({"preset": ["ce", "ce-scl"]}, []),
        ({"batch_size": [4, 8]}, ["0.1 CE + 0.9 SCL, τ 0.3"]),
    ],
)
def test_an_objective_is_named_without_what_is_varied(
    draft: Draft, varied: dict[str, list[Any]], objective: list[str]
) -> None:
    axes = [axis_of(setting, values) for setting, values in varied.items()]
    assert shared_settings(draft(), axes).objective == objective


def test_rows_encoder_and_length_are_left_out_where_they_are_varied(draft: Draft) -> None:
    base = draft(task={"train_size": 20, "label_noise": 0.2})
    whole = shared_settings(base, [])
    assert whole.rows == ["small.csv", "Training rows: 20", "Label noise ρ: 0.2"]
    assert (whole.encoder, whole.length) == ([base.encoder.id], ["8 steps"])
    axes = [axis_of("task.train_size", [10, 20]), axis_of("encoder.id", ["other"]), axis_of("steps", [8, 16])]
    assert shared_settings(base, axes) == (["small.csv", "Label noise ρ: 0.2"], [], whole.objective, [])
