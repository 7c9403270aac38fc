"""Fixtures shared by the training tests."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def still_encoder(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the tiny encoder without dropout."""
    folder = tmp_path_factory.mktemp("still") / "encoder"
    shutil.copytree(tiny_encoder, folder)
    config = json.loads((folder / "config.json").read_text())
    rates = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "classifier_dropout": 0.0}
    (folder / "config.json").write_text(json.dumps(config | rates))
    return folder
