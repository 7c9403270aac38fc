"""A run's script repeats it step by step in a Python that has torch and transformers, and nothing of this project."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.config import RunConfig, parse_config
from core.config.presets import PRESETS
from core.errors import StoreError
from core.exports.entry import write_export
from core.exports.registry import EXPORTS
from core.store import RunRecord, Store
from tests.conftest import write_csv
from tests.core.artifacts.made import recorded
from tests.core.exports.scripted import Interpreter, differences, interpreter, repeated, written
from tests.core.training.made import nli_csv, preset_phases
from tests.core.views.test_back_translation import make_marian

__all__ = ["interpreter"]

Make = Callable[..., RunRecord]
Repeats = Callable[..., dict[str, float]]
SCL = {"loss": "supcon", "weight": 0.5, "temperature": 0.3}
CE = {"loss": "cross_entropy", "weight": 0.5}
FAST = {"optimiser": {"learning_rate": 5e-3, "classifier_learning_rate": 1e-2}}


def objective(*terms: dict[str, Any], combine: str = "additive") -> dict[str, Any]:
    return {"terms": list(terms), "combine": combine}


@pytest.fixture(scope="session")
def nli(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return nli_csv(tmp_path_factory.mktemp("nli") / "nli.csv")


@pytest.fixture(scope="session")
def translators(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Tiny translation models under the names of those that CERT takes."""
    folder = tmp_path_factory.mktemp("marian")
    return {
        f"Helsinki-NLP/opus-mt-{name}": str(make_marian(folder / name, seed))
        for seed, name in enumerate(("en-de", "de-en", "en-zh", "zh-en"))
    }


@pytest.fixture
def run_of(store: Store, tiny_encoder: Path, small_csv: Path) -> Make:
    """Carries out a run of these phases on the tiny encoder."""

    def make(*phases: dict[str, Any], task: dict[str, Any] | None = None, **more: Any) -> RunRecord:
        given = {
            "task": {"id": "file", "path": str(small_csv), "validation_size": 4} | (task or {}),
            "encoder": {"id": str(tiny_encoder), "max_length": 32, "pooling": "mean"} | more.pop("encoder", {}),
            "phases": [{"steps": 5, "batch_size": 8, **FAST} | phase for phase in phases],
            "probe": {"frame_steps": []},
            "device": "cpu",
        }
        return recorded(store, parse_config(given | more))

    return make


@pytest.fixture
def repeats(
    store: Store, run_of: Make, interpreter: Interpreter, tiny_encoder: Path, tmp_path: Path
) -> Repeats:
    """Carries out a run, writes its script and lets it repeat the run."""

    def check(*phases: dict[str, Any], **more: Any) -> dict[str, float]:
        return repeated(store, run_of(*phases, **more), interpreter, tiny_encoder, tmp_path)

    return check


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset(repeats: Repeats, nli: Path, translators: dict[str, str], name: str) -> None:
    text = json.dumps(preset_phases(name, steps=6, **FAST))
    for hub, folder in translators.items():
        text = text.replace(json.dumps(hub), json.dumps(folder))
    # [CLS] has a shorter way through the last block, so every other preset takes that.
    pooling = "cls" if sorted(PRESETS).index(name) % 2 else "mean"
    task = {"path": str(nli)} if name == "simcse-supervised" else {"train_size": 40}
    found = repeats(*json.loads(text), task=task, encoder={"pooling": pooling})
    print(f"{name}: {max(found.values()):.1e}")
