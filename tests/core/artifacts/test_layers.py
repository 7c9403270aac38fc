"""Vectors after every block, read one layer at a time."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from core.artifacts.layers import layer_numbers, layer_vectors, layers_path, write_layers


def test_what_is_not_there_is_none(tmp_path: Path) -> None:
    layers = np.random.default_rng(0).standard_normal((12, 5, 3)).astype(np.float32)
    write_layers(tmp_path, 40, layers, stamp=7)
    assert layer_numbers(tmp_path, 40) == layer_numbers(tmp_path, 40, 7) == tuple(range(1, 13))
    np.testing.assert_array_equal(layer_vectors(tmp_path, 40, 12), layers[11])
    assert layer_numbers(tmp_path, 40, 8) == layer_numbers(tmp_path, 41) == (), "other weights, another step"
    for step, layer in ((41, 1), (40, 0), (40, 13)):
        assert layer_vectors(tmp_path, step, layer) is None
    write_layers(tmp_path, 40, layers, stamp=7, first=0)
    assert layer_numbers(tmp_path, 40) == tuple(range(12))
    np.testing.assert_array_equal(layer_vectors(tmp_path, 40, 0), layers[0])
    layers_path(tmp_path, 40).write_bytes(b"damaged")
    assert layer_numbers(tmp_path, 40) == ()
    assert layer_vectors(tmp_path, 40, 1) is None
