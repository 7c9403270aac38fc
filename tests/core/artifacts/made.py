"""Helpers of the analysis tests: short real runs in a store."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from core.advice.prepare import prepare
from core.config import RunConfig
from core.encoders.model import Encoder, Tokenizer
from core.events import FloatArray
from core.store import RunRecord, Store
from core.training.checkpoints import Checkpoints
from core.training.encode import encode
from core.training.loop import train
from core.training.probe import ProbeFrames
from core.workers.recorder import Recorder
from core.workers.run_rows import TaskSource, store_rows
from tests.core.training.made import Script

FRAMES = (0, 2, 4, 6, 8)
MORE: dict[str, Any] = {
    "probe": {"train_size": 12, "frame_steps": list(FRAMES)},
    "checkpoint": {"snapshot_steps": [2, 4], "every_steps": 3},
}
WHOLE = torch.autocast("cpu", torch.bfloat16, enabled=False)


def recorded(store: Store, draft: RunConfig, *, stop_at: int | None = None) -> RunRecord:
    """Train a run in this process as a worker does. Stops after step `stop_at`, if given."""
    config, data = prepare(draft, gpu=False)
    store_rows(store.folder, data)
    run_id = store.create(config)
    claimed = store.claim_next(range(50))  # enough slots, however many other runs there are
    assert claimed is not None
    assert claimed[0] == run_id
    attempt = store.attempt(run_id, claimed[1])
    attempt.register()
    recorder, controls = Recorder(store, attempt), Script(stop_after=stop_at)
    checkpoints = Checkpoints(attempt.folder, config.checkpoint.every_steps)
    for event in train(config, data, controls=controls, checkpoints=checkpoints):
        recorder.record(event)
    return store.run(run_id)


def silent(_done: int, _total: int | None, _message: str) -> None:
    """Ignore progress."""


def frame_again(
    store: Store, run: RunRecord, encoder: Encoder, tokenizer: Tokenizer, *, untrained: bool = False
) -> tuple[FloatArray, FloatArray]:
    """Compute vectors and logits of the probe in the same batches as the run's frames."""
    data = TaskSource(store.folder).rows_of(run.config.task, run.config.seed)
    frames = ProbeFrames(run.config, data, encoder, tokenizer)
    assert run.probe is not None
    held_out = len(data.validation)
    places = [*range(run.probe.held_out), *range(held_out, len(frames.texts))]
    found = encode(encoder, tokenizer, frames.texts, autocast=WHOLE, attended=frames.attended)
    if untrained:
        with torch.inference_mode():
            return np.asarray(found.pooled)[places], encoder.logits(found.pooled).numpy()[places]
    return np.asarray(found.pooled)[places], np.asarray(found.logits)[places]
