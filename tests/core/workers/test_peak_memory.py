"""Peak memory of runs that follow each other in one process."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
import torch

from core.workers.run_controls import ControlState
from core.workers.run_worker import PeakMemory
from tests.core.workers.test_branches import store, train

__all__ = ["store"]

ALLOCATED = 300 * 2**20
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux reports the peak of a process")


def allocate() -> None:
    np.ones(ALLOCATED, np.uint8).sum()


def test_a_run_records_its_peak_and_the_next_one_does_not_inherit_it(
    store: Any, draft: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(ControlState, "wait_while_paused", lambda self: allocate())
        large = store.run(train(store, draft(steps=2)))
    small = store.run(train(store, draft(steps=2, more={"seed": 1})))
    assert large.peak_memory >= ALLOCATED
    assert 0 < small.peak_memory < large.peak_memory - ALLOCATED / 2


def test_memory_held_before_does_not_count() -> None:
    held = np.ones(ALLOCATED, np.uint8)
    peak = PeakMemory().read_bytes("cpu")
    assert peak is not None
    assert peak < ALLOCATED / 10
    assert held.sum() == ALLOCATED


def test_on_a_gpu_the_peak_is_that_of_the_tensors_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda: 12_345)
    assert PeakMemory().read_bytes("cuda:0") == 12_345
