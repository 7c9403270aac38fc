"""Supervised contrastive loss, forward and backward: ours against two other implementations.

The peers are pytorch-metric-learning's SupConLoss, and the straightforward dense implementation with full masks,
structured like the SupCon authors' reference code. All three receive the same float32 vectors of width 384, two views
of each example, four classes, and normalise them. Equal losses show that they do the same work. Times are measured in
this process, in turn; each peak memory in a new process, above its level before the call.

Targets at 8,192 vectors, against the faster peer: at most 0.5 of its time and 0.1 of its memory. At 512: at most 1.1 of
its time.
"""

from __future__ import annotations

import gc
import math
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import torch
from torch import Tensor
from torch.nn import functional as F

from benchmarks.measure import ROOT, in_turn, need, options, ratios, repeated, report, take_turns
from core.losses import supcon_loss

WIDTH, VIEWS, CLASSES, TEMPERATURE = 384, 2, 4, 0.07
SIZES = (512, 2048, 8192)
TIME_TARGETS = {512: "≤ 1.1", 8192: "≤ 0.5"}
MEMORY_TARGETS = {8192: "≤ 0.1"}
# Calls of each implementation per repetition: a single call on a small batch is too short to time.
CALLS = {512: 41, 2048: 7, 8192: 1}
STATUS = Path("/proc/self/status")


def metric_learning(features: Tensor, labels: Tensor) -> Tensor:
    """The same loss by pytorch-metric-learning, which takes rows, not views. features [N, V, d], labels [N]."""
    from pytorch_metric_learning.losses import SupConLoss

    return SupConLoss(TEMPERATURE)(features.flatten(0, 1), labels.repeat_interleave(features.shape[1]))


def dense(features: Tensor, labels: Tensor) -> Tensor:
    """The same loss with full matrices of similarities, positives, others and log-probabilities."""
    _, v, _ = features.shape
    z = F.normalize(torch.cat(features.unbind(1)), dim=1)  # [M, d], view-major
    same_class = (labels.unsqueeze(1) == labels.unsqueeze(0)).float().repeat(v, v)  # [M, M]
    others = torch.ones_like(same_class).fill_diagonal_(0)
    positives = same_class * others
    logits = z @ z.T / TEMPERATURE
    logits = logits - logits.max(1, keepdim=True).values.detach()
    log_p = logits - (logits.exp() * others).sum(1, keepdim=True).log()
    return -((positives * log_p).sum(1) / positives.sum(1)).mean()


SIDES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "ours": partial(supcon_loss, temperature=TEMPERATURE),
    "pytorch-metric-learning": metric_learning,
    "dense": dense,
}


def batch(vectors: int, seed: int) -> tuple[Tensor, Tensor]:
    """features [N, V, d] that require a gradient, and labels [N]."""
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(vectors // VIEWS, VIEWS, WIDTH, generator=generator)
    return features.requires_grad_(), torch.arange(vectors // VIEWS) % CLASSES


def timed(vectors: int, repetition: int) -> dict[str, float]:
    """Median milliseconds of a forward and backward pass of each implementation, in turn."""
    features, labels = batch(vectors, repetition)
    found: dict[str, list[float]] = {side: [] for side in SIDES}
    losses = {}
    gc.collect()
    for call in range(CALLS[vectors]):
        for side in in_turn(repetition + call, list(SIDES)):
            features.grad = None
            start = time.perf_counter()
            loss = SIDES[side](features, labels)
            loss.backward()
            found[side].append((time.perf_counter() - start) * 1000)
            losses[side] = loss.item()
    if not all(math.isclose(loss, losses["ours"], rel_tol=1e-4) for loss in losses.values()):
        raise RuntimeError(f"The implementations did different work. Their losses are {losses}.")
    return {side: median(values) for side, values in found.items()}


def peak_mib(side: str, vectors: int) -> float:
    """Peak memory of a forward and backward pass in a new process, above the level before it."""
    command = [sys.executable, "-m", "benchmarks.bench_supcon", "--peak", side, str(vectors)]
    return float(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout)


def print_peak(side: str, vectors: int) -> None:
    """Print the peak memory of this process: a small call first, which loads code, then the measured one."""
    SIDES[side](*batch(512, 0)).backward()
    features, labels = batch(vectors, 1)
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # discards the peak of the imports
    before = _status_kib("VmRSS")
    SIDES[side](features, labels).backward()
    print((_status_kib("VmHWM") - before) / 1024)


def _status_kib(field: str) -> int:
    return next(int(line.split()[1]) for line in STATUS.read_text().splitlines() if line.startswith(field))


def main() -> None:
    need("pytorch_metric_learning")
    given = options(__doc__, repeats=7, peaks=3)
    print(
        f"{torch.get_num_threads()} threads, width {WIDTH}, {VIEWS} views, {CLASSES} classes, τ {TEMPERATURE}",
        flush=True,
    )
    for vectors in SIZES:
        found = repeated(given.repeats, partial(timed, vectors), 1, title="{}, ms")
        faster = min(("pytorch-metric-learning", "dense"), key=lambda side: median(found[side]))
        times = ratios(found, "ours", faster)
        report("ratio", f"time at {vectors:,} vectors, ours / {faster}", times, TIME_TARGETS.get(vectors, "–"))
        if not STATUS.is_file():
            print("peak memory is measured on Linux only", flush=True)
            continue
        peaks = {side: partial(peak_mib, side, vectors) for side in ("ours", faster)}
        found = repeated(given.peaks, partial(take_turns, sides=peaks), 1, warm_up=False, title="{}, MiB")
        memory = ratios(found, "ours", faster)
        report(
            "ratio", f"peak memory at {vectors:,} vectors, ours / {faster}", memory, MEMORY_TARGETS.get(vectors, "–")
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peak"]:
        print_peak(sys.argv[2], int(sys.argv[3]))
    else:
        main()
