"""Hardware of this machine."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path

import psutil

from core.settings import LOCAL, settings

NVIDIA = Path("/proc/driver/nvidia/gpus")
CPU_FACTS = Path("/proc/cpuinfo")
# Instruction sets for bfloat16 matrix products, as Linux names them.
BFLOAT16_FLAGS = {"avx512_bf16", "amx_bf16"}


@cache
def gpu_ids() -> tuple[str, ...]:
    """Return the NVIDIA devices that a worker may use, as in CUDA_VISIBLE_DEVICES."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return tuple(part.strip() for part in visible.split(",") if part.strip() not in ("", "-1"))
    count = len(list(NVIDIA.iterdir())) if NVIDIA.is_dir() else 0
    return tuple(str(i) for i in range(count))


def visible_gpus() -> dict[str, str]:
    """Return environment variables that make all GPUs visible to a process that starts runs.

    A run itself sees only its own GPUs.
    """
    return {"CUDA_VISIBLE_DEVICES": ",".join(gpu_ids())} if gpu_ids() else {}


def has_gpu() -> bool:
    """Return True if runs will execute on a GPU: NVIDIA, Apple silicon, or one requested from a cluster."""
    if settings().engine != LOCAL:
        return settings().ray_gpus > 0
    return bool(gpu_ids()) or (platform.system() == "Darwin" and platform.machine() == "arm64")


def has_bfloat16(device: str) -> bool:
    """Return True if a run's encoder computes faster in bfloat16 than in float32.

    NVIDIA GPUs do, and so do CPUs with instructions for it.

    Args:
        device: as in RunConfig.
    """
    on_cluster = settings().engine != LOCAL
    if device in ("auto", "cuda") and (has_gpu() if on_cluster else gpu_ids()):
        return True
    if device == "mps" or (device == "auto" and has_gpu()):
        return False
    # This machine is a node of the cluster and taken as typical of the others.
    return bool(BFLOAT16_FLAGS & _cpu_flags())


@cache
def _cpu_flags() -> frozenset[str]:
    """Return the CPU's feature flags; empty on systems other than Linux."""
    try:
        lines = CPU_FACTS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return frozenset()
    return frozenset(next((line for line in lines if line.startswith("flags")), "").split())


def slots() -> range:
    """Return the slots for runs: one per GPU, or one without a GPU."""
    return range(max(1, len(gpu_ids())))


def memory_bytes() -> int:
    return int(psutil.virtual_memory().available)
