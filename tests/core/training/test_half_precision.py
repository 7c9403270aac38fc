"""Final weights in half precision: every prediction stays the same, or the file is kept unchanged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from core.advice.prepare import prepare
from core.config import RunConfig
from core.errors import TrainingError
from core.tasks import TaskData
from core.training import fine_tune
from core.training.checkpoints import Checkpoints, TrainedModel, load_learned
from core.training.fine_tune import halve_weights, to_half
from core.training.loop import train
from core.weight_files import checkpoint_path, checkpoint_step, snapshot_path
from tests.core.training.made import Draft, Script, load_run_encoder, run_draft
from tests.core.training.test_probe import alone

MORE: dict[str, Any] = {"checkpoint": {"snapshot_steps": [2, 4]}, "probe": {"frame_steps": [0, 2, 4, 8]}}


def finished(folder: Path, draft: RunConfig) -> tuple[Checkpoints, RunConfig, TaskData, TrainedModel]:
    """Return the files of a finished run, the last weights too, and the model in memory."""
    checkpoints, trained = Checkpoints(folder), TrainedModel()
    config, data, _ = run_draft(draft, checkpoints=checkpoints, trained=trained)
    checkpoints.save(config.steps, trained.weights)
    return checkpoints, config, data, trained


def paths(folder: Path) -> list[Path]:
    return [snapshot_path(folder, 2), snapshot_path(folder, 4), checkpoint_path(folder)]


@torch.no_grad()
def logits(config: RunConfig, data: TaskData, path: Path) -> np.ndarray:
    """Compute logits of the validation split by transformers, one text at a time, with the weights in a file."""
    encoder, tokenizer = load_run_encoder(config, data)
    load_learned(path, encoder)
    vectors = [alone(encoder, tokenizer, str(text))[0] for text in data.validation.inputs]
    return encoder.logits(torch.from_numpy(np.stack(vectors))).numpy()


@pytest.mark.parametrize(
    "phase",
    [
        {},
        {"trainable": {"part": "lora", "lora_rank": 2}, "optimiser": {"learning_rate": 0.02}},
    ],
    ids=["all", "adapters"],
)
def test_weights_take_half_the_bytes_and_predict_the_same(draft: Draft, tmp_path: Path, phase: dict[str, Any]) -> None:
    checkpoints, config, data, trained = finished(tmp_path, draft(more=MORE, **phase))
    whole = {path: (path.stat().st_size, load_file(path), logits(config, data, path)) for path in paths(tmp_path)}
    assert list(halve_weights(checkpoints, config, data, trained)) == []
    for path, (size, tensors, before) in whole.items():
        halves = load_file(path)
        assert halves.keys() == tensors.keys()
        assert {half.dtype for half in halves.values()} == {torch.float16}
        header = sum(len(name) + 100 for name in tensors)
        assert path.stat().st_size < size / 2 + header
        after = logits(config, data, path)
        np.testing.assert_array_equal(after.argmax(1), before.argmax(1))
        np.testing.assert_allclose(after, before, atol=2e-3)
        assert not np.array_equal(after, before), "nothing was rounded, so nothing was tested"
    assert checkpoint_step(tmp_path) == config.steps


def test_a_file_stays_whole_where_a_prediction_would_change(draft: Draft, tmp_path: Path) -> None:
    checkpoints, config, data, trained = finished(tmp_path, draft(more=MORE))
    path, tensors = checkpoint_path(tmp_path), trained.weights
    head = next(name for name, tensor in tensors.items() if name.startswith("weight/") and tensor.shape == (2,))
    matrix = next(name for name, tensor in tensors.items() if tensor.shape == (2, 16) and "classifier" in name)
    tensors[matrix] = tensors[matrix][:1].repeat(2, 1)
    tensors[head] = torch.tensor([1.0, 1.00001])  # equal in float16
    save_file(tensors, path, metadata={"step": str(config.steps)})
    assert (logits(config, data, path).argmax(1) == 1).all()
    (said,) = halve_weights(checkpoints, config, data, trained)
    assert said == "The weights of step 8 stay in full precision, because half precision would change predictions."
    assert all(torch.equal(now, tensors[name]) for name, now in load_file(path).items())
    assert {tensor.dtype for tensor in load_file(snapshot_path(tmp_path, 2)).values()} == {torch.float16}


def test_numbers_beyond_the_range_of_half_precision_stay_as_they_are() -> None:
    tensors = {
        "small": torch.tensor([1.0, -3e-9]),
        "large": torch.tensor([1.0, 1e5]),
        "very negative": torch.tensor([1.0, -1e5]),
        "undefined": torch.tensor([1.0, torch.nan]),
        "none": torch.zeros(0),
    }
    found = to_half(tensors)
    assert all(found[name].dtype == torch.float32 for name in ("very negative", "undefined"))
    assert found["small"].tolist() == [1.0, 0.0]
    assert torch.equal(found["large"], tensors["large"])
    assert found["large"].dtype == torch.float32
    assert found["none"].dtype == torch.float16


def test_projection_heads_are_dropped(draft: Draft, tmp_path: Path) -> None:
    terms = [{"loss": "cross_entropy", "weight": 0.5}, {"loss": "supcon", "weight": 0.5, "projection": "linear"}]
    objective = {"terms": terms}
    run = finished(tmp_path, draft(more=MORE, objective=objective))
    assert any("projections." in name for name in load_file(snapshot_path(tmp_path, 2)))
    list(halve_weights(*run))
    for path in paths(tmp_path):
        assert all(name.startswith("weight/model.") for name in load_file(path))


def test_damaged_weights_raise_a_training_error(draft: Draft, tmp_path: Path) -> None:
    run = finished(tmp_path, draft(more=MORE))
    snapshot_path(tmp_path, 2).write_bytes(b"no weights")
    with pytest.raises(TrainingError, match=r"snapshot-0000002\.safetensors cannot be read"):
        list(halve_weights(*run))


@pytest.mark.parametrize("part", ["last_blocks", "lora"])
def test_weights_in_memory_are_stored_as_those_of_a_file(
    draft: Draft, tmp_path: Path, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is written once, in half precision, and no encoder is loaded."""
    alone_weights = {"checkpoint": {"snapshot_steps": []}}
    config, data = prepare(draft(more=alone_weights, trainable={"part": part}), gpu=False)
    memory, file, trained = Checkpoints(tmp_path / "memory"), Checkpoints(tmp_path / "file"), TrainedModel()
    list(train(config, data, checkpoints=file))
    list(train(config, data, checkpoints=memory, trained=trained))
    assert checkpoint_step(memory.folder) is None
    monkeypatch.setattr(fine_tune, "load_encoder_of", lambda *_, **__: pytest.fail("it loaded an encoder"))
    assert list(halve_weights(memory, config, data, trained)) == []
    stored, expected = load_file(memory.path), to_half(load_file(file.path))
    assert stored.keys() == expected.keys()
    assert all(torch.equal(stored[name], expected[name]) for name in stored)


def test_with_snapshots_an_encoder_is_loaded(draft: Draft, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The encoder in memory has weights of a later step."""
    run, loads = finished(tmp_path, draft(more=MORE)), list[str]()
    load = fine_tune.load_encoder_of
    monkeypatch.setattr(fine_tune, "load_encoder_of", lambda one, classes: loads.append(one.id) or load(one, classes))
    list(halve_weights(*run))
    assert loads == [run[1].encoder.id]


def test_a_run_that_stops_leaves_no_encoder(draft: Draft, tmp_path: Path) -> None:
    trained = TrainedModel()
    run_draft(draft(), controls=Script(stop_after=3), checkpoints=Checkpoints(tmp_path), trained=trained)
    assert not hasattr(trained, "encoder")
