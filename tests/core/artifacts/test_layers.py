"""Vectors behind every block, read one layer at a time."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from core.artifacts.layers import layer_count, layer_vectors, layers_path, write_layers

LAYERS = np.random.default_rng(0).standard_normal((12, 5, 3)).astype(np.float32)


def test_every_layer_is_read_as_it_was_written(tmp_path: Path) -> None:
    write_layers(tmp_path, 40, LAYERS, stamp=7)
    assert layer_count(tmp_path, 40) == layer_count(tmp_path, 40, 7) == 12
    for layer in range(1, 13):
        np.testing.assert_array_equal(layer_vectors(tmp_path, 40, layer), LAYERS[layer - 1])


def test_what_is_not_there_is_none(tmp_path: Path) -> None:
    write_layers(tmp_path, 40, LAYERS, stamp=7)
    assert layer_count(tmp_path, 40, 8) == 0, "other weights"
    assert layer_count(tmp_path, 41) == 0
    assert layer_vectors(tmp_path, 41, 1) is None
    assert layer_vectors(tmp_path, 40, 0) is None
    assert layer_vectors(tmp_path, 40, 13) is None
    layers_path(tmp_path, 40).write_bytes(b"damaged")
    assert layer_count(tmp_path, 40) == 0
    assert layer_vectors(tmp_path, 40, 1) is None
