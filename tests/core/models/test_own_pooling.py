"""An encoder's own pooling, from its sentence-transformers files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from core.advice.prepare import prepare
from core.config import parse_config
from core.encoders.model import load_encoder
from core.errors import EncoderError
from core.models.own_pooling import known_pooling, own_pooling
from core.models.source import BUNDLED

POOLING = {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}
TRANSFORMER = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}


def files(folder: Path, modules: Any = (TRANSFORMER, POOLING), settings: Any = None) -> str:
    """Write an encoder's sentence-transformers files as that library saves them. Returns: the folder."""
    (folder / "1_Pooling").mkdir(exist_ok=True)
    (folder / "modules.json").write_text(modules if isinstance(modules, str) else json.dumps(modules))
    if settings is not None:
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(settings))
    return str(folder)


def test_the_bundled_encoder_takes_the_mean_and_a_plain_language_model_cls(tiny_encoder: Path) -> None:
    assert own_pooling(BUNDLED) == known_pooling(BUNDLED) == "mean"
    assert own_pooling(str(tiny_encoder)) == "cls"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"word_embedding_dimension": 384, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}, "mean"),
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False, "pooling_mode_max_tokens": False}, "cls"),
        ({"pooling_mode_mean_sqrt_len_tokens": True}, "mean"),
        ({"embedding_dimension": 384, "pooling_mode": "mean"}, "mean"),
        ({"pooling_mode": "cls"}, "cls"),
    ],
)
def test_both_formats_of_the_file_are_read(tmp_path: Path, settings: dict[str, Any], expected: str) -> None:
    assert own_pooling(files(tmp_path, settings=settings)) == expected


@pytest.mark.parametrize(
    "settings",
    [
        {"pooling_mode_max_tokens": True},
        {"pooling_mode": "lasttoken"},
        {},
        [],
        {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True},
    ],
)
def test_another_way_of_pooling_is_refused_with_what_to_do(tmp_path: Path, settings: Any) -> None:
    folder = files(tmp_path, settings=settings)
    with pytest.raises(EncoderError, match="choose \\[CLS\\] or the mean"):
        own_pooling(folder)
    assert known_pooling(folder) is None


@pytest.mark.parametrize(
    "modules", ["{", "[]", "7", "[7]", json.dumps([TRANSFORMER]), json.dumps([POOLING | {"path": "../elsewhere"}])]
)
def test_files_that_name_no_pooling_mean_a_plain_language_model(tmp_path: Path, modules: str) -> None:
    assert own_pooling(files(tmp_path, modules, {"pooling_mode": "mean"})) == "cls"


def test_a_prepared_run_and_a_loaded_encoder_take_it() -> None:
    config, data = prepare(parse_config({"phases": [{"steps": 2}]}), gpu=False)
    assert config.encoder.pooling == "mean"
    encoder, tokenizer = load_encoder(BUNDLED, classes=data.classes)
    chosen, _ = load_encoder(BUNDLED, classes=data.classes, pooling="mean")
    tokens = tokenizer(["a lovely film", "dull"])
    with torch.no_grad():
        assert torch.equal(encoder.eval().pooled(tokens), chosen.eval().pooled(tokens))
