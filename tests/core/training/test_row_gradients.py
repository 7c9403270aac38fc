"""Sparse gradients of a table against torch's dense ones."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from core.advice.prepare import prepare
from core.training.checkpoints import Checkpoints
from core.training.loop import train
from core.training.row_gradients import LEAST_ROWS, RowGradients
from core.training.untrained import VectorCache
from tests.cases import each
from tests.core.training.made import NO_FRAMES, Draft, curve, run_in_attempts

ROWS, WIDTH = LEAST_ROWS, 3


def table() -> nn.Embedding:
    torch.manual_seed(0)
    return nn.Embedding(ROWS, WIDTH, padding_idx=0)


def backward(of: nn.Embedding, step: int, passes: int) -> None:
    for one in range(passes):
        ids = torch.randint(0, 40, (5, 7), generator=torch.Generator().manual_seed(10 * step + one))
        (of(ids) * torch.linspace(-1, 1, WIDTH)).square().sum().backward()


@each("passes", [1, 3])
def test_gradients_are_those_of_a_dense_table_at_every_step(passes: int) -> None:
    dense, ours = table(), table()
    gradients = RowGradients([ours])
    held = set()
    for step in range(4):
        for one in (dense, ours):
            one.zero_grad(set_to_none=True)
            backward(one, step, passes)
        gradients.gather()
        assert ours.weight.grad is not None
        assert not ours.weight.grad.is_sparse
        torch.testing.assert_close(ours.weight.grad, dense.weight.grad, atol=1e-6, rtol=1e-6)
        assert torch.equal(ours.weight.grad != 0, dense.weight.grad != 0)
        held.add(ours.weight.grad.data_ptr())
    assert len(held) == 1  # no new table is allocated


def test_rows_of_a_step_that_was_not_taken_do_not_stay() -> None:
    dense, ours = table(), table()
    gradients = RowGradients([ours])
    backward(ours, 0, 1)
    gradients.gather()
    ours.zero_grad(set_to_none=True)
    gradients.gather()  # a step that does not reach the table
    assert ours.weight.grad is None
    for one in (dense, ours):
        backward(one, 1, 1)
    gradients.gather()
    torch.testing.assert_close(ours.weight.grad, dense.weight.grad)


def test_what_does_not_learn_and_small_tables_stay_as_they_are() -> None:
    frozen, small = table(), nn.Embedding(LEAST_ROWS - 1, WIDTH)
    frozen.weight.requires_grad_(False)
    frozen.sparse = True  # of a phase before
    RowGradients([frozen, small])
    assert not frozen.sparse
    assert not small.sparse


@pytest.mark.parametrize("phase", [{}, {"micro_batch": 3}], ids=["whole", "in parts"])
def test_a_run_takes_the_steps_of_dense_gradients_and_resumes_bit_for_bit(
    draft: Draft, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, phase: dict[str, int]
) -> None:
    config, data = prepare(draft(**phase, more=NO_FRAMES), gpu=False)
    cache: VectorCache = {}
    dense = curve(list(train(config, data, cache=cache)))
    monkeypatch.setattr("core.training.row_gradients.LEAST_ROWS", 1)  # the tests' encoder has a small vocabulary
    straight = curve(list(train(config, data, checkpoints=Checkpoints(tmp_path / "straight"), cache=cache)))
    assert curve(run_in_attempts(config, data, tmp_path / "resumed", [3, 6], cache=cache)) == straight
    for one, other in zip(dense, straight, strict=True):
        assert one == pytest.approx(other, rel=1e-4, abs=1e-6)
