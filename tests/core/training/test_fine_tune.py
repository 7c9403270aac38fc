"""A run's last weights are stored before it reports its end, even if halving them fails."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from core.advice.prepare import prepare
from core.errors import StaleAttemptError, TrainingError
from core.events import Checkpointed, Event, Finished, Notice
from core.messages import Message
from core.training import fine_tune as module
from core.training.checkpoints import Checkpoints
from core.training.fine_tune import fine_tune
from core.training.loop import NoControls
from core.weight_files import checkpoint_path, checkpoint_step
from tests.core.training.made import Draft, run_draft


def events(draft: Draft, folder: Path, log: list[str], **more: Any) -> list[Event]:
    config, data = prepare(draft(more=more), gpu=False)
    return list(
        fine_tune(
            config,
            data,
            Checkpoints(folder),
            controls=NoControls(),
            cache={},
            translations=None,
            start=None,
            log=log.append,
        )
    )


def test_the_last_weights_are_written_once_and_before_the_end(
    draft: Draft, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[int] = []
    write = Checkpoints.write

    def noted(self: Checkpoints, path: Path, step: int, tensors: Mapping[str, Tensor]) -> None:
        if path == checkpoint_path(tmp_path):  # not the states that are kept at frames
            written.append(step)
        write(self, path, step, tensors)

    monkeypatch.setattr(Checkpoints, "write", noted)
    log: list[str] = []
    seen = events(draft, tmp_path, log, checkpoint={"snapshot_steps": []})
    assert written == [8]
    assert [type(event) for event in seen[-2:]] == [Checkpointed, Finished]
    assert checkpoint_step(tmp_path) == 8
    assert {tensor.dtype for tensor in load_file(checkpoint_path(tmp_path)).values()} == {torch.float16}
    assert log == []


def test_weights_that_cannot_be_halved_are_stored_whole(
    draft: Draft, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_draft(draft(), checkpoints=Checkpoints(tmp_path / "plain"))
    monkeypatch.setattr(module, "halve_weights", lambda *_: (_ for _ in ()).throw(RuntimeError("no memory left")))
    log: list[str] = []
    seen = events(draft, tmp_path / "kept", log)
    assert [type(event) for event in seen[-2:]] == [Checkpointed, Finished]
    assert "no memory left" in log[0]
    ends = [load_file(checkpoint_path(tmp_path / name)) for name in ("plain", "kept")]
    assert ends[0].keys() == ends[1].keys()
    assert all(torch.equal(ends[0][name], ends[1][name]) for name in ends[0])


def test_a_full_disk_is_reported_and_the_run_finishes(
    draft: Draft, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise TrainingError("The disk has 3 MB free: make room.")

    monkeypatch.setattr(Checkpoints, "write", full)
    log: list[str] = []
    *_, notice, finished = events(draft, tmp_path, log)
    assert notice == Notice(8, Message("The disk has 3 MB free: make room."))
    assert finished == Finished(8, "finished")


def test_an_attempt_that_is_no_longer_current_stores_nothing(
    draft: Draft, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stale(*_: object) -> None:
        raise StaleAttemptError("The run has another attempt.")

    monkeypatch.setattr(Checkpoints, "write", stale)
    with pytest.raises(StaleAttemptError):
        events(draft, tmp_path, [])
    assert checkpoint_step(tmp_path) is None
