"""A run's model at a step gives back the frame that the run recorded there, bit by bit."""

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
from core.store import Status, Store
from core.store.budget import keep_within
from core.training.checkpoints import Checkpoints
from core.training.fine_tune import halve_weights
from core.weight_files import CHECKPOINT_NAME, snapshot_path
from core.workers.run_rows import TaskSource
from tests.core.artifacts.made import MORE, frame_again, recorded
from tests.core.training.made import Draft

ROOT = Path(__file__).resolve().parents[3]
FAST = {"optimiser": {"learning_rate": 1e-2}}


@pytest.mark.parametrize(
    "trainable",
    [{"part": "all"}, {"part": "last_blocks", "blocks": 1}, {"part": "all", "reinitialised_blocks": 1}],
    ids=["all", "last block", "reinitialised"],
)
def test_every_frame_with_weights_is_reproduced_bit_by_bit(
    store: Store, draft: Draft, trainable: dict[str, Any]
) -> None:
    run = recorded(store, draft(trainable=trainable, more=MORE | {"seed": 3}, **FAST))
    assert weight_steps(store, run) == (0, 2, 4, 8)
    for step in weight_steps(store, run):
        vectors, logits = frame_again(store, run, *load_at(store, run, step), untrained=step == 0)
        np.testing.assert_array_equal(vectors, store.embeddings(run.id, step))
        np.testing.assert_array_equal(logits, store.logits(run.id, step))
    assert np.abs(store.embeddings(run.id, 8) - store.embeddings(run.id, 0)).max() > 0.05


def test_adapters_are_reproduced_up_to_the_rounding_of_their_merging(store: Store, draft: Draft) -> None:
    run = recorded(store, draft(trainable={"part": "lora", "lora_rank": 2}, more=MORE, **FAST))
    assert weight_steps(store, run) == (0, 2, 4, 8)
    for step in (2, 4, 8):
        vectors, logits = frame_again(store, run, *load_at(store, run, step))
        np.testing.assert_allclose(vectors, store.embeddings(run.id, step), rtol=0, atol=1e-5)
        np.testing.assert_allclose(logits, store.logits(run.id, step), rtol=0, atol=1e-5)
    assert np.abs(store.embeddings(run.id, 8) - store.embeddings(run.id, 4)).max() > 1e-3


def test_both_phases_of_a_run_are_reproduced(store: Store, draft: Draft) -> None:
    half: dict[str, Any] = {"steps": 4, "batch_size": 8} | FAST
    phases = [half | {"trainable": {"part": "last_blocks", "blocks": 1}}, half | {"trainable": {"part": "classifier"}}]
    run = recorded(store, draft(more=MORE | {"phases": phases}))
    for step in (2, 4, 8):
        vectors, logits = frame_again(store, run, *load_at(store, run, step))
        np.testing.assert_array_equal(vectors, store.embeddings(run.id, step))
        np.testing.assert_array_equal(logits, store.logits(run.id, step))


def test_a_stopped_run_has_its_last_step_from_the_snapshot(store: Store, draft: Draft) -> None:
    run = recorded(store, draft(more=MORE), stop_at=6)
    assert run.status == Status.STOPPED
    assert weight_steps(store, run) == (0, 2, 4, 6)
    whole = recorded(store, draft(more=MORE))
    vectors, _ = frame_again(store, run, *load_at(store, run, 6))
    np.testing.assert_array_equal(vectors, store.embeddings(whole.id, 6))
    snapshot_path(store.run_folder(run.id), 6).unlink()
    assert weight_steps(store, run) == (0, 2, 4), "the rolling checkpoint counts for nothing"


def test_an_older_checkpoint_of_a_finished_run_is_not_taken_for_its_last_step(store: Store, draft: Draft) -> None:
    run = recorded(store, draft(more=MORE))
    Checkpoints(store.run_folder(run.id)).save(6, {"weight/x": torch.zeros(1)})
    assert weight_steps(store, run) == (0, 2, 4)


def test_what_a_cut_attempt_left_behind_the_last_step_is_not_there(store: Store, draft: Draft) -> None:
    run = recorded(store, draft(more=MORE), stop_at=6)
    folder = store.run_folder(run.id)
    shutil.copy(snapshot_path(folder, 2), snapshot_path(folder, 7))
    assert weight_steps(store, run) == (0, 2, 4, 6)


def test_models_stay_loaded_until_their_file_is_written_anew(store: Store, draft: Draft) -> None:
    run = recorded(store, draft(more=MORE))
    first, _ = load_at(store, run, 2)
    assert load_at(store, run, 2)[0] is first
    before = weight_stamps(store, run)
    folder = store.run_folder(run.id)
    snapshot_path(folder, 2).write_bytes(snapshot_path(folder, 4).read_bytes())
    after = weight_stamps(store, run)
    assert before[0] == after[0] == 0
    assert before[2] != after[2]
    assert before[4] == after[4]
    again, _ = load_at(store, run, 2)
    vectors, _ = frame_again(store, run, again, load_at(store, run, 4)[1])
    np.testing.assert_array_equal(vectors, store.embeddings(run.id, 4))


def test_weights_that_a_run_did_not_change_are_in_memory_once(store: Store, draft: Draft) -> None:
    run = recorded(store, draft(trainable={"part": "last_blocks", "blocks": 1}, more=MORE))
    untrained = dict(load_at(store, run, 0)[0].named_parameters())
    trained = dict(load_at(store, run, 8)[0].named_parameters())
    shared = {name for name in untrained if trained[name] is untrained[name]}
    changed = {name for name in untrained if not torch.equal(trained[name], untrained[name])}
    assert any("embeddings" in name for name in shared)
    assert any("layer.1." in name for name in changed)
    assert not shared & changed
    assert not any(parameter.requires_grad for parameter in (*untrained.values(), *trained.values()))


def test_loading_leaves_the_random_state_alone_and_the_model_in_evaluation_mode(store: Store, draft: Draft) -> None:
    run = recorded(store, draft(more=MORE | {"seed": 5}))
    state = torch.get_rng_state()
    for step in (0, 4):
        encoder, _ = load_at(store, run, step)
        assert not any(module.training for module in encoder.modules())
    assert torch.equal(torch.get_rng_state(), state)


def test_a_step_without_weights_is_refused_by_name(store: Store, draft: Draft) -> None:
    run = recorded(store, draft(more=MORE))
    with pytest.raises(StoreError, match="keeps no weights of step 6: choose one of 0, 2, 4, 8"):
        load_at(store, run, 6)


def test_a_run_that_has_not_started_has_no_model_yet(store: Store, draft: Draft) -> None:
    run = store.run(store.create(draft()))
    with pytest.raises(StoreError, match="has not started"):
        load_at(store, run, 0)


def test_a_damaged_snapshot_is_said_in_a_sentence(store: Store, draft: Draft) -> None:
    run = recorded(store, draft(more=MORE))
    (store.run_folder(run.id) / "snapshot-0000004.safetensors").write_bytes(b"no weights")
    with pytest.raises(TrainingError, match="cannot be read"):
        load_at(store, run, 4)


def test_a_damaged_checkpoint_costs_the_last_step_alone(store: Store, draft: Draft) -> None:
    run = recorded(store, draft(more=MORE))
    (store.run_folder(run.id) / CHECKPOINT_NAME).write_bytes(b"no weights")
    assert weight_steps(store, run) == (0, 2, 4)
    load_at(store, run, 4)


def test_an_encoder_that_is_gone_is_said_in_a_sentence(
    store: Store, draft: Draft, tiny_encoder: Path, tmp_path: Path
) -> None:
    moved = shutil.copytree(tiny_encoder, tmp_path / "encoder")
    run = recorded(store, draft(more=MORE | {"encoder": {"id": str(moved), "max_length": 32}}))
    shutil.rmtree(moved)
    with pytest.raises(EncoderError, match="is not a folder"):
        load_at(store, run, 0)


# The disk budget


def test_weights_that_were_dropped_are_said_with_the_remedy(store: Store, draft: Draft) -> None:
    run = recorded(store, draft(more=MORE))
    keep_within(store, 1e-9)
    run = store.run(run.id)
    assert weight_steps(store, run) == (0,)
    load_at(store, run, 0)
    with pytest.raises(
        StoreError, match=r"keeps no weights of step 8: choose one of 0\. Its weights were dropped on"
    ) as reported:
        load_at(store, run, 8)
    assert "raise SCL_DISK_GB and run the same settings again, which gives the same curve." in str(reported.value)


def test_weights_that_go_while_they_are_being_loaded_are_a_sentence(
    store: Store, draft: Draft, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = recorded(store, draft(more=MORE))
    encoder, tokenizer = load_at(store, run, 0)

    def dropped_meanwhile(*_: Any) -> Any:
        keep_within(store, 1e-9)
        return encoder, tokenizer

    monkeypatch.setattr(weights, "_untrained", dropped_meanwhile)
    with pytest.raises(StoreError, match=r"keeps no weights of step 4: choose one of 0\. Its weights were dropped on"):
        load_at(store, run, 4)


def test_what_was_computed_of_dropped_weights_stays_known(store: Store, draft: Draft) -> None:
    run = recorded(store, draft(more=MORE))
    known = weight_stamps(store, run)
    assert all_known(run, known, known)
    fewer = {step: known[step] for step in (0, 2)}
    assert not all_known(run, known, fewer)
    assert not all_known(run, fewer, known), "a step too many is of an attempt that was cut"
    keep_within(store, 1e-9)
    run = store.run(run.id)
    assert all_known(run, weight_stamps(store, run), known)
    assert not all_known(run, weight_stamps(store, run), {2: known[2]})


def test_halved_weights_give_the_frame_up_to_their_rounding(store: Store, draft: Draft) -> None:
    run = recorded(store, draft(more=MORE, **FAST))
    data = TaskSource(store.folder).rows_of(run.config.task, run.config.seed)
    before = weight_stamps(store, run)
    list(halve_weights(Checkpoints(store.run_folder(run.id)), run.config, data, "cpu"))
    assert all(weight_stamps(store, run)[step] != before[step] for step in (2, 4, 8))
    for step in (2, 4, 8):
        vectors, logits = frame_again(store, run, *load_at(store, run, step))
        np.testing.assert_allclose(vectors, store.embeddings(run.id, step), atol=5e-3)
        np.testing.assert_array_equal(logits.argmax(1), store.logits(run.id, step).argmax(1))
