"""What this machine has to run on."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path

import psutil

from core.settings import LOCAL, settings

NVIDIA = Path("/proc/driver/nvidia/gpus")
CPU_FACTS = Path("/proc/cpuinfo")
# Instruction sets that multiply matrices of bfloat16, as Linux names them.
BFLOAT16_FLAGS = {"avx512_bf16", "amx_bf16"}


@cache
def gpu_ids() -> tuple[str, ...]:
    """The NVIDIA devices that a worker may use, as CUDA_VISIBLE_DEVICES names them."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return tuple(part.strip() for part in visible.split(",") if part.strip() not in ("", "-1"))
    count = len(list(NVIDIA.iterdir())) if NVIDIA.is_dir() else 0
    return tuple(str(i) for i in range(count))


def visible_gpus() -> dict[str, str]:
    """For the environment of a process that starts runs: a run sees one GPU, and the next one chooses among all."""
    return {"CUDA_VISIBLE_DEVICES": ",".join(gpu_ids())} if gpu_ids() else {}


def has_gpu() -> bool:
    """Whether runs will execute on a GPU: NVIDIA's, Apple's own, or one that they ask a cluster for."""
    if settings().engine != LOCAL:
        return settings().ray_gpus > 0
    return bool(gpu_ids()) or (platform.system() == "Darwin" and platform.machine() == "arm64")


def has_bfloat16(device: str) -> bool:
    """Tell whether a run's encoder computes faster in bfloat16 than in float32.

    NVIDIA's GPUs do, and processors that have instructions for it.

    Args:
        device: as in RunConfig.
    """
    on_cluster = settings().engine != LOCAL
    if device in ("auto", "cuda") and (has_gpu() if on_cluster else gpu_ids()):
        return True
    if device == "mps" or (device == "auto" and has_gpu()):
        return False
    # This machine is a node of the cluster, and speaks for the others.
    return bool(BFLOAT16_FLAGS & _cpu_flags())


@cache
def _cpu_flags() -> frozenset[str]:
    """Where they can be read without running a program: on Linux; none elsewhere."""
    try:
        lines = CPU_FACTS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return frozenset()
    return frozenset(next((line for line in lines if line.startswith("flags")), "").split())


def slots() -> range:
    """One run at a time per GPU; one on a machine without."""
    return range(max(1, len(gpu_ids())))


def memory_bytes() -> int:
    return int(psutil.virtual_memory().available)
