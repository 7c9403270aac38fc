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


class TestSettings:
    """What presets leave as it is."""

    def test_knobs_that_were_turned(self, repeats: Repeats) -> None:
        turns = [
            {"step": 3, "name": "temperature", "value": 0.1},
            {"step": 3, "name": "lambda", "value": 0.2},
            {"step": 5, "name": "learning_rate", "value": 0.5},
        ]
        repeats({"objective": objective(SCL, CE, combine="convex"), "steps": 6}, knob_turns=turns)

    def test_a_term_that_is_turned_off_and_on_changes_what_is_read(self, repeats: Repeats) -> None:
        views = [{"view": "dropout"}, {"view": "adversarial"}]
        scl = SCL | {"views": views, "projection": "mlp"}
        turns = [{"step": 3, "name": "lambda", "value": 0.0}, {"step": 5, "name": "lambda", "value": 0.7}]
        repeats({"objective": objective(scl, CE, combine="convex"), "steps": 6}, knob_turns=turns)

    def test_knobs_of_a_second_phase(self, repeats: Repeats) -> None:
        turns = [{"step": 4, "name": "learning_rate", "value": 3.0}]
        first = {"objective": objective(SCL), "steps": 2}
        repeats(first, {"objective": objective(CE), "steps": 3}, knob_turns=turns)

    @pytest.mark.parametrize("sampler", ["class_balanced", "balanced"])
    def test_balanced_batches(self, repeats: Repeats, sampler: str) -> None:
        repeats({"objective": objective(SCL, CE)}, task={"sampler": sampler, "imbalance": 3.0})

    @pytest.mark.parametrize("part", ["last_blocks", "lora", "classifier"])
    def test_what_learns(self, repeats: Repeats, part: str) -> None:
        trainable = {"part": part, "blocks": 1, "lora_rank": 3}
        repeats({"objective": objective(SCL, CE), "trainable": trainable, "optimiser": {"layer_decay": 0.8}})

    def test_adapters_become_weights_before_the_next_phase(self, repeats: Repeats) -> None:
        views = [{"view": "dropout"}]
        first = {"objective": objective({"loss": "simcse", "views": views}), "trainable": {"part": "lora"}}
        second = {"objective": objective(CE), "trainable": {"part": "lora", "lora_dropout": 0.0}}
        repeats(first, second, encoder={"pooling": "cls"})

    def test_blocks_that_are_drawn_afresh(self, repeats: Repeats) -> None:
        repeats({"objective": objective(CE), "trainable": {"reinitialised_blocks": 1}})

    def test_a_batch_in_parts(self, repeats: Repeats) -> None:
        views = [{"view": "dropout"}, {"view": "feature_cutoff"}]
        repeats({"objective": objective(SCL | {"views": views}, CE), "micro_batch": 3})

    def test_a_batch_in_parts_of_a_frozen_encoder(self, repeats: Repeats) -> None:
        repeats({"objective": objective(CE), "micro_batch": 3, "trainable": {"part": "classifier"}})

    def test_gradient_checkpointing(self, repeats: Repeats) -> None:
        repeats({"objective": objective(CE), "gradient_checkpointing": True}, {"objective": objective(CE)})

    def test_other_optimisers(self, repeats: Repeats) -> None:
        first = {"objective": objective(CE), "optimiser": {"name": "adafactor", "learning_rate": 1e-3}}
        second = {"objective": objective(CE), "optimiser": {"bias_correction": False, "warmup_fraction": 0.5}}
        repeats(first, second)

    def test_a_queue(self, repeats: Repeats) -> None:
        scl = SCL | {"queue": 20, "momentum": 0.5, "projection": "linear"}
        turns = [{"step": 2, "name": "lambda", "value": 0.0}, {"step": 4, "name": "lambda", "value": 0.5}]
        repeats({"objective": objective(scl, CE, combine="convex")}, knob_turns=turns)

    def test_layers_tokens_and_logits_in_one_objective(self, repeats: Repeats) -> None:
        layers = SCL | {"layers": [1, 2], "variant": "in"}
        tokens = SCL | {"level": "token", "k": 4, "layers": [1], "views": [{"view": "dropout"}]}
        clusters = SCL | {"level": "token", "k": 6, "clusters": 2, "layers": [1, 2], "projection": "mlp"}
        logits = SCL | {"level": "logits", "views": [{"view": "head_dropout"}]}
        dscl = {"loss": "dscl", "weight": 0.3, "views": [{"view": "dropout"}], "uniform": True}
        unweighted = SCL | {"weight": 0.0, "normalize": False}
        terms = (layers, tokens, clusters, logits, dscl, unweighted, CE | {"views": [{"view": "head_dropout"}]})
        with pytest.warns(UserWarning, match="without normalisation"):
            repeats({"objective": objective(*terms)})

    def test_only_lower_layers(self, repeats: Repeats) -> None:
        repeats({"objective": objective(SCL | {"layers": [1]})}, {"objective": objective(CE)})

    def test_every_view(self, repeats: Repeats) -> None:
        names = ["eda", "token_shuffle", "token_cutoff", "feature_cutoff", "embedding_dropout", "adversarial"]
        views = [{"view": name} for name in names] + [{"view": "eda", "operation": "swap", "rate": 0.3}]
        repeats({"objective": objective(SCL | {"views": views}, CE)}, {"objective": objective(CE)})

    def test_an_adversarial_step_up_a_loss_on_logits(self, repeats: Repeats) -> None:
        rdrop = {"loss": "rdrop", "alpha": 2.0, "views": [{"view": "adversarial"}]}
        repeats({"objective": objective(rdrop)})

    def test_more_vectors_than_one_matrix_holds(self, repeats: Repeats) -> None:
        scl = SCL | {"views": [{"view": "dropout"}] * 4}
        repeats({"objective": objective(scl), "batch_size": 80, "steps": 2}, {"objective": objective(CE), "steps": 1})

    def test_bfloat16(self, repeats: Repeats) -> None:
        scl = SCL | {"views": [{"view": "adversarial"}], "queue": 10}
        repeats({"objective": objective(scl, CE)}, precision="bfloat16")

    def test_pairs(self, repeats: Repeats, nli: Path) -> None:
        views = [{"view": "eda"}, {"view": "token_shuffle"}]
        repeats({"objective": objective(SCL | {"views": views}, CE)}, task={"path": str(nli)})

    def test_triplets_beside_rows(self, repeats: Repeats, nli: Path) -> None:
        repeats(
            {"objective": objective({"loss": "simcse_supervised", "hard_negative_weight": 1.0}, CE)},
            task={"path": str(nli), "sampler": "class_balanced"},
        )

    def test_noisy_rows_and_their_back_translations(self, repeats: Repeats, translators: dict[str, str]) -> None:
        models = [translators["Helsinki-NLP/opus-mt-en-de"], translators["Helsinki-NLP/opus-mt-de-en"]]
        task = {"train_size": 20, "label_noise": 0.2, "text_noise": 0.2}
        repeats({"objective": objective(CE)}, task=task | {"back_translation": 0.7, "translators": models})
