"""A run's model at a step reproduces the frame recorded there bit by bit."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from core.artifacts import weights
from core.artifacts.weights import all_known, load_at, weight_stamps, weight_steps
from core.errors import EncoderError, StoreError, TrainingError
from core.store import RunRecord, Status, Store
from core.store.budget import keep_within
from core.training.checkpoints import Checkpoints
from core.weight_files import snapshot_path
from tests.core.artifacts.made import MORE, frame_again, recorded
from tests.core.training.made import Draft

FAST = {"optimiser": {"learning_rate": 1e-2}}
LAST_BLOCK = {"part": "last_blocks", "blocks": 1}
HALF: dict[str, Any] = {"steps": 4, "batch_size": 8} | FAST
PHASES = [HALF | {"trainable": LAST_BLOCK}, HALF | {"trainable": {"part": "classifier"}}]


@pytest.mark.parametrize(
    ("more", "phase", "tolerance", "moved"),
    [
        ({"seed": 3}, {"trainable": {"part": "all"}}, 0, 0.05),
        ({}, {"trainable": LAST_BLOCK}, 0, 0.05),
        ({}, {"trainable": {"part": "all", "reinitialised_blocks": 1}}, 0, 0.05),
        ({"phases": PHASES}, {}, 0, 0.05),
        ({}, {"trainable": {"part": "lora", "lora_rank": 2}}, 1e-5, 1e-3),  # rounded when adapters are merged
    ],
    ids=["all", "last block", "reinitialised", "two phases", "adapters"],
)
def test_every_frame_with_weights_is_reproduced(
    store: Store, draft: Draft, more: dict[str, Any], phase: dict[str, Any], tolerance: float, moved: float
) -> None:
    run = recorded(store, draft(more=MORE | more, **FAST, **phase))
    assert weight_steps(store, run) == (0, 2, 4, 8)
    for step in weight_steps(store, run):
        vectors, logits = frame_again(store, run, *load_at(store, run, step), untrained=step == 0)
        np.testing.assert_allclose(vectors, store.embeddings(run.id, step), rtol=0, atol=tolerance)
        np.testing.assert_allclose(logits, store.logits(run.id, step), rtol=0, atol=tolerance)
    assert np.abs(store.embeddings(run.id, 4) - store.embeddings(run.id, 2)).max() > 1e-3
    assert np.abs(store.embeddings(run.id, 8) - store.embeddings(run.id, 0)).max() > moved


def test_a_stopped_run_has_its_last_step_from_the_snapshot(store: Store, draft: Draft, filled: Store) -> None:
    run = recorded(store, draft(more=MORE, **FAST), stop_at=6)
    assert run.status == Status.STOPPED
    assert weight_steps(store, run) == (0, 2, 4, 6)
    folder, whole = store.run_folder(run.id), filled.find("1")
    shutil.copy(snapshot_path(folder, 2), snapshot_path(folder, 7))
    assert weight_steps(store, run) == (0, 2, 4, 6), "what a cut attempt left behind the last step counts for nothing"
    vectors, _ = frame_again(store, run, *load_at(store, run, 6))
    np.testing.assert_array_equal(vectors, filled.embeddings(whole, 6))
    snapshot_path(folder, 6).unlink()
    assert weight_steps(store, run) == (0, 2, 4), "the rolling checkpoint counts for nothing"


def test_an_older_or_a_damaged_checkpoint_costs_the_last_step_alone(filled: Store, run: RunRecord) -> None:
    assert weight_steps(filled, run) == (0, 2, 4, 8)
    checkpoints = Checkpoints(filled.run_folder(run.id))
    checkpoints.save(6, {"weight/x": torch.zeros(1)})
    assert weight_steps(filled, run) == (0, 2, 4)
    checkpoints.path.write_bytes(b"no weights")
    assert weight_steps(filled, run) == (0, 2, 4)


def test_models_stay_loaded_until_their_file_is_written_anew(filled: Store, run: RunRecord) -> None:
    first, tokenizer = load_at(filled, run, 2)
    assert load_at(filled, run, 2)[0] is first
    before = weight_stamps(filled, run)
    folder = filled.run_folder(run.id)
    snapshot_path(folder, 2).write_bytes(snapshot_path(folder, 4).read_bytes())
    after = weight_stamps(filled, run)
    assert before[0] == after[0] == 0
    assert before[2] != after[2]
    assert before[4] == after[4]
    vectors, _ = frame_again(filled, run, load_at(filled, run, 2)[0], tokenizer)
    np.testing.assert_array_equal(vectors, filled.embeddings(run.id, 4))


def test_weights_that_a_run_did_not_change_are_in_memory_once_in_evaluation_mode(store: Store, draft: Draft) -> None:
    run = recorded(store, draft(trainable=LAST_BLOCK, more=MORE))
    state, encoders = torch.get_rng_state(), [load_at(store, run, step)[0] for step in (0, 8)]
    assert torch.equal(torch.get_rng_state(), state), "loading leaves the random state alone"
    assert not any(module.training for encoder in encoders for module in encoder.modules())
    untrained, trained = (dict(encoder.named_parameters()) for encoder in encoders)
    shared = {name for name in untrained if trained[name] is untrained[name]}
    changed = {name for name in untrained if not torch.equal(trained[name], untrained[name])}
    assert any("embeddings" in name for name in shared)
    assert any("layer.1." in name for name in changed)
    assert not shared & changed
    assert not any(parameter.requires_grad for parameter in (*untrained.values(), *trained.values()))


def test_weights_that_cannot_be_loaded_are_a_sentence(
    filled: Store, run: RunRecord, draft: Draft, tiny_encoder: Path, tmp_path: Path
) -> None:
    moved = shutil.copytree(tiny_encoder, tmp_path / "encoder")
    of_moved = recorded(filled, draft(more=MORE | {"encoder": {"id": str(moved), "max_length": 32}}))
    shutil.rmtree(moved)
    with pytest.raises(EncoderError, match="is not a folder"):
        load_at(filled, of_moved, 0)
    with pytest.raises(StoreError, match="has no weights of step 6: choose one of 0, 2, 4, 8"):
        load_at(filled, run, 6)
    with pytest.raises(StoreError, match="has not started"):
        load_at(filled, filled.run(filled.create(draft())), 0)
    snapshot_path(filled.run_folder(run.id), 4).write_bytes(b"no weights")
    with pytest.raises(TrainingError, match="cannot be read"):
        load_at(filled, run, 4)


# The disk budget


def test_weights_that_were_dropped_are_said_with_the_remedy(filled: Store, run: RunRecord) -> None:
    known = weight_stamps(filled, run)
    assert all_known(run, known, known)
    fewer = {step: known[step] for step in (0, 2)}
    assert not all_known(run, known, fewer)
    assert not all_known(run, fewer, known), "a step too many is of an attempt that was cut"
    keep_within(filled, 1e-9)
    run = filled.run(run.id)
    assert weight_steps(filled, run) == (0,)
    load_at(filled, run, 0)
    dropped = r"has no weights of step 8: choose one of 0\. Its weights were dropped on .* get them back, "
    remedy = "raise SCL_DISK_GB and run the same settings again, which gives the same curve."
    with pytest.raises(StoreError, match=f"{dropped}{remedy}"):
        load_at(filled, run, 8)
    assert all_known(run, weight_stamps(filled, run), known), "what was computed of them stays known"
    assert not all_known(run, weight_stamps(filled, run), {2: known[2]})


def test_weights_that_go_while_they_are_being_loaded_are_a_sentence(
    filled: Store, run: RunRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder, tokenizer = load_at(filled, run, 0)

    def dropped_meanwhile(*_: Any) -> Any:
        keep_within(filled, 1e-9)
        return encoder, tokenizer

    monkeypatch.setattr(weights, "_untrained", dropped_meanwhile)
    with pytest.raises(StoreError, match=r"has no weights of step 4: choose one of 0\. Its weights were dropped on"):
        load_at(filled, run, 4)
