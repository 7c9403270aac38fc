"""Whether a run fits into the memory there is, and with which batch it would."""

from __future__ import annotations

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

# What a container may use; "max" where nothing limits it.
CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")
GB = 2**30


def check_memory(config: RunConfig, data: TaskData) -> None:
    """Refuse a prepared run that can never fit here, with the batch size that would.

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
        raise ConfigError(f"{where}{name}", given, _remedy(needed / GB, limit / GB, fits))


def _remedy(needed: float, there: float, fits: int) -> Message:
    """Args: needed, there: gigabytes; fits: how many texts would fit."""
    if fits:
        return Message(
            "it needs about {needed:.1f} GB, and there are {there:.1f} GB: {fits} would fit; micro_batch {fits} keeps "
            "the batch and reads that many texts at a time.",
            needed=needed,
            there=there,
            fits=fits,
        )
    return Message(
        "it needs about {needed:.1f} GB, and there are {there:.1f} GB: not even one text would fit: train fewer "
        "blocks, read fewer tokens, or take a smaller encoder.",
        needed=needed,
        there=there,
    )


def fitting_texts(config: RunConfig, number: int, data: TaskData, shape: EncoderShape, limit: float) -> int:
    """The largest number of texts, read at a time in a phase, that fits into `limit` bytes; 0 where none does."""
    phase = config.phases[number]
    low, high = 0, phase.batch_size
    while low < high:
        middle = (low + high + 1) // 2
        smaller = phase.model_copy(update={"batch_size": middle, "micro_batch": None})
        fits = phase_memory(smaller, data, shape, config.encoder.max_length) <= limit
        low, high = (middle, high) if fits else (low, middle - 1)
    return low


def limit_bytes(device: str) -> float | None:
    """What a run may use in all, on the GPUs where it runs there; None where nobody knows: on another machine."""
    if settings().engine != LOCAL:
        return None
    if device in ("auto", "cuda") and gpu_ids():
        return _gpu_bytes()
    return min(float(psutil.virtual_memory().total), _container_bytes())


def _container_bytes() -> float:
    try:
        return float(CONTAINER_LIMIT.read_text().replace("max", "inf"))
    except (OSError, ValueError):
        return float("inf")


@cache
def _gpu_bytes() -> float | None:
    """Of the smallest GPU here; None where the driver does not say."""
    try:
        pynvml.nvmlInit()
        count = pynvml.nvmlDeviceGetCount()
        handles = [pynvml.nvmlDeviceGetHandleByIndex(number) for number in range(count)]
        return min((float(pynvml.nvmlDeviceGetMemoryInfo(handle).total) for handle in handles), default=None)
    except pynvml.NVMLError:
        return None
