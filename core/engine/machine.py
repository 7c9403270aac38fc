"""What this machine has to run on. Imports no torch, so that the server may ask."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path

import psutil

NVIDIA = Path("/proc/driver/nvidia/gpus")


@cache
def gpu_ids() -> tuple[str, ...]:
    """The NVIDIA devices that a worker may use, as CUDA_VISIBLE_DEVICES names them."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return tuple(part.strip() for part in visible.split(",") if part.strip() not in ("", "-1"))
    count = len(list(NVIDIA.iterdir())) if NVIDIA.is_dir() else 0
    return tuple(str(i) for i in range(count))


def has_gpu() -> bool:
    """Whether runs will execute on a GPU: NVIDIA's, or Apple's own."""
    return bool(gpu_ids()) or (platform.system() == "Darwin" and platform.machine() == "arm64")


def slots() -> range:
    """One run at a time per GPU; one on a machine without."""
    return range(max(1, len(gpu_ids())))


def memory_bytes() -> int:
    return int(psutil.virtual_memory().available)
