"""From a draft to a run that can start: every default filled in and everything checked, before anything is created.

Imports no torch, so that the server can check a form.
"""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

from core.config import PhaseConfig, ProbeConfig, RunConfig
from core.encoders.source import EncoderShape, encoder_shape, is_local
from core.errors import ConfigError, TaskError, shown
from core.tasks import TaskData, load_task
from core.tasks.registry import CSV_TASK
from core.training.schedule import default_frame_steps, frame_steps

DEFAULT_STEPS = 120
PROBE_ON_CPU = 120
PROBE_ON_GPU = 500
# Training rows that the linear probe of the untrained encoder is fitted on.
BASELINE_ROWS = 500
MAX_VECTORS_STORED = 2_000_000


def default_probe_size(gpu: bool) -> int:
    return PROBE_ON_GPU if gpu else PROBE_ON_CPU


def prepare(draft: RunConfig, *, gpu: bool) -> tuple[RunConfig, TaskData]:
    """The draft with every default filled in, and its data.

    Args:
        gpu: whether a GPU is there; it decides the default probe size.
    Returns: a config that says everything (content hash, steps, frame steps, sizes), and the rows.
    Raises: ConfigError, TaskError or EncoderError in one sentence.
    """
    gpu = gpu and draft.device != "cpu"
    shape = encoder_shape(draft.encoder.id)
    _check_encoder(draft, shape)
    encoder = draft.encoder
    if is_local(encoder.id):
        encoder = encoder.model_copy(update={"id": _absolute(encoder.id)})
    task = draft.task
    if task.id == CSV_TASK and task.path:
        task = task.model_copy(update={"path": _absolute(task.path)})
    if task.test_path:
        task = task.model_copy(update={"test_path": _absolute(task.test_path)})
    if task.validation_size is None:
        largest = draft.probe.size or default_probe_size(gpu)
        natural = load_task(task.model_copy(update={"train_size": None, "content_hash": None}), draft.seed)
        task = task.model_copy(update={"validation_size": min(len(natural.validation), largest)})
    data = load_task(task, draft.seed)
    task = task.model_copy(update={"content_hash": data.content_hash, "validation_size": len(data.validation)})
    phase = _phase(draft.phase, data)
    return draft.model_copy(
        update={"task": task, "encoder": encoder, "phases": (phase,), "probe": _probe(draft.probe, phase, data, gpu)}
    ), data


def _absolute(path: str) -> str:
    try:
        return str(Path(path).expanduser().absolute())
    except RuntimeError:
        raise TaskError(f"{shown(path)} is below a home folder that does not exist: check the path.") from None


def _check_encoder(draft: RunConfig, shape: EncoderShape) -> None:
    trainable = draft.phase.trainable
    if trainable.part == "last_blocks" and trainable.blocks > shape.blocks:
        raise ConfigError("trainable.blocks", trainable.blocks, f"{shown(draft.encoder.id)} has {shape.blocks} blocks.")
    if draft.encoder.max_length > shape.positions:
        raise ConfigError(
            "encoder.max_length", draft.encoder.max_length, f"{shown(draft.encoder.id)} reads {shape.positions} tokens."
        )


def _phase(phase: PhaseConfig, data: TaskData) -> PhaseConfig:
    rows = len(data.train)
    if phase.batch_size > rows:
        raise ConfigError("batch_size", phase.batch_size, f"there are {rows:,} training rows; give at most {rows:,}.")
    _check_learning(phase)
    _check_positives(phase, data)
    steps = phase.steps
    if steps is None and phase.epochs is not None:
        steps = max(1, math.ceil(phase.epochs * (rows // phase.batch_size)))
    return phase.model_copy(update={"steps": steps or DEFAULT_STEPS, "epochs": None})


def _check_learning(phase: PhaseConfig) -> None:
    head_alone = phase.trainable.part == "classifier"
    if head_alone and all(t.loss == "supcon" for t in phase.objective.terms if t.weight > 0):
        raise ConfigError(
            "trainable",
            "classifier",
            "the contrastive loss alone does not reach the classifier; lower λ or train blocks.",
        )


def _check_positives(phase: PhaseConfig, data: TaskData) -> None:
    contrast = [t for t in phase.objective.terms if t.loss == "supcon" and t.weight > 0]
    if not contrast:
        return
    if phase.batch_size < 2:
        raise ConfigError("batch_size", phase.batch_size, "a contrastive loss compares texts; give at least 2.")
    if max(Counter(data.train.labels).values()) < 2:
        raise ConfigError(
            "train_size", len(data.train), "no class has two rows, so no anchor has a positive; give more rows."
        )


def _probe(probe: ProbeConfig, phase: PhaseConfig, data: TaskData, gpu: bool) -> ProbeConfig:
    available = len(data.validation)
    if probe.size is not None and probe.size > available:
        raise ConfigError("probe.size", probe.size, f"the validation split has {available:,} rows; give at most that.")
    size = min(available, probe.size or default_probe_size(gpu))
    steps = phase.steps or DEFAULT_STEPS
    frames = default_frame_steps(steps) if probe.frame_steps is None else frame_steps(probe.frame_steps, steps)
    if len(frames) * size > MAX_VECTORS_STORED:
        raise ConfigError(
            "probe.frame_steps",
            f"{len(frames):,} frames of {size:,} points",
            f"at most {MAX_VECTORS_STORED:,} vectors are stored; give fewer of either.",
        )
    return ProbeConfig(size=size, frame_steps=frames)
