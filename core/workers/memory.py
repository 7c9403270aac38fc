"""Check that a run fits into memory, and find the batch size that would."""

from __future__ import annotations

from bisect import bisect_right
from functools import cache
from pathlib import Path

import psutil
import pynvml

from core.advice.estimate import phase_memory
from core.config import RunConfig
from core.errors import ConfigError
from core.messages import Message
from core.models.source import EncoderShape, encoder_shape
from core.settings import LOCAL, settings
from core.tasks import TaskData
from core.workers.machine import gpu_ids

# Memory limit of the container; "max" for none.
CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")
GB = 2**30


def check_memory(config: RunConfig, data: TaskData) -> None:
    """Refuse a prepared run that can never fit into memory here, and name the batch size that would.

    Raises: ConfigError.
    """
    limit = limit_bytes(config.device)
    if limit is None:
        return
    shape = encoder_shape(config.encoder.id)
    for number, phase in enumerate(config.phases):
        needed = phase_memory(phase, data, shape, config.encoder.max_length)
        if needed <= limit:
            continue
        name = "batch_size" if phase.effective_micro_batch is None else "micro_batch"
        given = phase.effective_micro_batch or phase.batch_size
        where = f"phases.{number}." if len(config.phases) > 1 else ""
        fits = fitting_texts(config, number, data, shape, limit)
        if fits:
            remedy = Message(
                "it needs about {needed:.1f} GB, but {there:.1f} GB are available. A batch of {fits} would fit; "
                "micro_batch {fits} keeps the batch and reads that many texts at a time.",
                needed=needed / GB,
                there=limit / GB,
                fits=fits,
            )
        else:
            remedy = Message(
                "it needs about {needed:.1f} GB, but {there:.1f} GB are available, and not even one text would "
                "fit: train fewer blocks, read fewer tokens, or choose a smaller encoder.",
                needed=needed / GB,
                there=limit / GB,
            )
        raise ConfigError(f"{where}{name}", given, remedy)


def fitting_texts(config: RunConfig, number: int, data: TaskData, shape: EncoderShape, limit: float) -> int:
    """Return the largest micro-batch of a phase that fits into `limit` bytes; 0 if none does."""
    phase = config.phases[number]

    def needed(texts: int) -> float:
        smaller = phase.model_copy(update={"batch_size": texts, "micro_batch": None})
        return phase_memory(smaller, data, shape, config.encoder.max_length)

    return bisect_right(range(1, phase.batch_size + 1), limit, key=needed)


def limit_bytes(device: str) -> float | None:
    """Return the memory limit of a run in bytes, on its GPU or this machine; None if unknown, as on a cluster."""
    if settings().engine != LOCAL:
        return None
    if device in ("auto", "cuda") and gpu_ids():
        return _gpu_bytes()
    total = float(psutil.virtual_memory().total)
    try:
        return min(total, float(CONTAINER_LIMIT.read_text().replace("max", "inf")))
    except (OSError, ValueError):
        return total


@cache
def _gpu_bytes() -> float | None:
    """Return the memory of the smallest GPU here; None if the driver does not report it."""
    try:
        pynvml.nvmlInit()
        count = pynvml.nvmlDeviceGetCount()
        handles = [pynvml.nvmlDeviceGetHandleByIndex(number) for number in range(count)]
        return min((float(pynvml.nvmlDeviceGetMemoryInfo(handle).total) for handle in handles), default=None)
    except pynvml.NVMLError:
        return None
