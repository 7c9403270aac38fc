"""Encoders whose weights are incomplete, damaged or replaced."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from core.encoders.model import load_encoder
from core.errors import EncoderError
from tests.cases import each

NORM = "encoder.layer.1.output.LayerNorm.weight"


@pytest.fixture
def copied(tiny_encoder: Path, tmp_path: Path) -> Path:
    """Return a copy of the tiny encoder, to be damaged."""
    return Path(shutil.copytree(tiny_encoder, tmp_path / "copied"))


def change(folder: Path, name: str, value: float | None) -> None:
    """Replace the first number of a weight; None removes the weight."""
    weights = load_file(folder / "model.safetensors")
    if value is None:
        del weights[name]
    else:
        weights[name].flatten()[0] = value
    save_file(weights, folder / "model.safetensors", {"format": "pt"})


class TestWeights:
    @each("name", ["encoder.layer.1.attention.self.query.weight", NORM, "embeddings.word_embeddings.weight"])
    def test_an_encoder_that_lacks_a_weight_is_refused(self, copied: Path, tiny_encoder: Path, name: str) -> None:
        shutil.copy(tiny_encoder / "model.safetensors", copied)
        change(copied, name, None)
        with pytest.raises(EncoderError, match=rf"lacks the weight bert\.{name}: fetch or save its files again"):
            load_encoder(str(copied), classes=("a", "b"), max_length=16)

    @each("value", [float("nan"), float("inf"), -float("inf")])
    def test_an_encoder_with_a_number_that_is_not_finite_is_refused(self, copied: Path, value: float) -> None:
        change(copied, NORM, value)
        with pytest.raises(EncoderError, match=rf"has NaN or infinite numbers in the weight bert\.{NORM}: "):
            load_encoder(str(copied), classes=("a", "b"), max_length=16)

    def test_a_pooler_that_is_not_used_may_be_absent(self, copied: Path) -> None:
        for name in ("weight", "bias"):
            change(copied, f"pooler.dense.{name}", None)
        load_encoder(str(copied), classes=("a", "b"), max_length=16)

    def test_weights_named_by_an_early_version_of_transformers_are_read(self, copied: Path) -> None:
        weights = load_file(copied / "model.safetensors")
        renamed = {
            name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): weight
            for name, weight in weights.items()
        }
        assert renamed.keys() != weights.keys()
        save_file(renamed, copied / "model.safetensors", {"format": "pt"})
        encoder, _ = load_encoder(str(copied), classes=("a", "b"), max_length=16)
        assert torch.equal(encoder.base.get_parameter(NORM), weights[NORM])
