"""Data-parallel training: each process reads a part of every batch, and the loss sees the whole batch.

Every process holds the whole model. The vectors of all parts are gathered, each process computes the loss of the whole
batch from them, carries the gradient of its own part into the encoder, and the encoder's gradients are summed. So
contrast has the positives and negatives of the whole batch, and a step is that of one process with the same batch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor, distributed
from torch.nn import Parameter

from core.encoders.taps import TokenViews
from core.errors import TrainingError
from core.training.checkpoints import random_states, restore_random_states
from core.training.gradient_cache import GradientCache, propagate
from core.training.gradients import SharedGradients
from core.training.outputs import Outputs

# Of a seed: torch takes eight, with a sign.
SEED_BYTES = 7
PATIENCE = timedelta(days=30)


class Ranks:
    """The processes of a run, as each of them sees it. The first leads: it alone decides, measures and records."""

    def __init__(self, device: str) -> None:
        """Join the other processes by torchrun's variables (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT).

        Args:
            device: as in RunConfig; NCCL connects GPUs, gloo processors.
        """
        from accelerate import PartialState

        on_cpu = device == "cpu" or not torch.cuda.is_available()
        with _plain_errors():
            # A paused run waits as long as it takes.
            self._state = PartialState(cpu=on_cpu, timeout=PATIENCE)
        self.rank, self.count = int(self._state.process_index), int(self._state.num_processes)
        self.device = torch.device(self._state.device)

    @property
    def leads(self) -> bool:
        return self.rank == 0

    def lead(self, turns: Sequence[tuple[str, float]] | None) -> None:
        """Tell the other processes to take the next step with these knobs turned, or, by None, to end."""
        with _plain_errors():
            distributed.broadcast_object_list([turns], src=0, device=self.device)

    def follow(self) -> Sequence[tuple[str, float]] | None:
        """Wait for what the first process says: knobs to turn before the next step, or None for the end."""
        box: list[Any] = [None]
        with _plain_errors():
            distributed.broadcast_object_list(box, src=0, device=self.device)
        turns: Sequence[tuple[str, float]] | None = box[0]
        return turns

    def span(self, size: int) -> tuple[int, int]:
        """Return start and end of this process's texts in a batch of `size`. Parts differ by at most one text."""
        return size * self.rank // self.count, size * (self.rank + 1) // self.count

    def gathered(self, own: Outputs, size: int) -> Outputs:
        """Return the outputs of all processes for a batch of `size` texts, detached; the same on every process."""
        tokens = {
            layer: TokenViews(self._gathered(views.vectors, size), self._gathered(views.mask, size))
            for layer, views in own.tokens.items()
        }
        return Outputs({layer: self._gathered(vectors, size) for layer, vectors in own.pooled.items()}, tokens)

    def _gathered(self, own: Tensor, size: int) -> Tensor:
        """[P, b, …] of each process, one behind the other: [P, B, …]."""
        largest = -(-size // self.count)
        padded = own.detach().new_zeros(own.shape[0], largest, *own.shape[2:])
        padded[:, : own.shape[1]] = own.detach()
        # Masks travel as bytes: gloo knows no booleans.
        sent = padded.to(torch.uint8) if padded.dtype == torch.bool else padded
        parts = [torch.empty_like(sent) for _ in range(self.count)]
        with _plain_errors():
            distributed.all_gather(parts, sent.contiguous())
        bounds = [size * rank // self.count for rank in range(self.count + 1)]
        trimmed = [part[:, : end - start] for part, start, end in zip(parts, bounds, bounds[1:], strict=False)]
        return torch.cat(trimmed, 1).to(own.dtype)

    def sum_gradients(self, parameters: Iterable[Parameter]) -> None:
        """Sum the gradients over processes; a parameter without a gradient on all of them keeps none."""
        wanted = list(parameters)
        summed = self.summed([parameter.grad for parameter in wanted], wanted)
        for parameter, gradient in zip(wanted, summed, strict=True):
            parameter.grad = gradient

    def summed(self, tensors: Sequence[Tensor | None], like: Sequence[Tensor]) -> list[Tensor | None]:
        """Return the sums over processes, in one transfer; None counts as 0, and stays None where all have None.

        Args:
            like: what has the shape of each.
        """
        if not tensors:
            return []
        there = torch.tensor([tensor is not None for tensor in tensors], dtype=torch.float32, device=like[0].device)
        flat = torch.cat(
            [
                (torch.zeros_like(shape) if tensor is None else tensor).flatten().float()
                for tensor, shape in zip(tensors, like, strict=True)
            ]
        )
        packed = torch.cat([there, flat])
        with _plain_errors():
            distributed.all_reduce(packed)
        there, flat = packed[: len(there)], packed[len(there) :]
        parts = flat.split([shape.numel() for shape in like])
        return [
            part.view_as(shape) if present else None
            for part, shape, present in zip(parts, like, there.bool().tolist(), strict=True)
        ]

    def leave(self) -> None:
        """Part from the others; this process may be one of another run."""
        self._state.destroy_process_group()
        self._state._reset_state()


class ShardedBatch:
    """The passes of a batch of which this process reads its part, with the vectors of all as leaves.

    It has the two halves of a `GradientCache`, which reads this process's part where that is read in pieces.
    """

    def __init__(self, run: Callable[[int, int], Outputs], size: int, ranks: Ranks, micro_batch: int | None) -> None:
        """`run(start, end)` encodes the texts start … end − 1 of a batch of `size`."""
        self._run, self._size, self._ranks = run, size, ranks
        self._start, self._end = ranks.span(size)
        share = self._end - self._start
        self._cache = None
        if micro_batch is not None and micro_batch < share:
            self._cache = GradientCache(lambda a, b: run(self._start + a, self._start + b), share, micro_batch)

    def encode(self) -> Outputs:
        """Vectors of the whole batch, as leaves that gradients are collected in."""
        with _own_draws(self._ranks.rank):
            self._own = self._cache.encode() if self._cache else self._run(self._start, self._end)
        whole = self._ranks.gathered(self._own, self._size)
        self._leaves = [vectors.requires_grad_() for vectors in whole.vectors]
        return whole

    def backward(self, shared: SharedGradients | None, parameters: Sequence[Parameter]) -> None:
        """Carry the gradients of this process's part into the encoder, and sum them over processes.

        Args:
            parameters: all that learn. Those that have a gradient already belong to what reads the gathered vectors,
                which is computed from the whole batch everywhere.
        """
        of_encoder = [parameter for parameter in parameters if parameter.grad is None]
        gradients = [None if leaf.grad is None else leaf.grad[:, self._start : self._end] for leaf in self._leaves]
        if self._cache is not None:
            self._cache.take(gradients)
            self._cache.backward(shared, first=self._start)
        else:
            if shared is not None:
                shared.add(self._own.vectors, slice(self._start, self._end))
            propagate(self._own.vectors, gradients)
        self._ranks.sum_gradients(of_encoder)
        if shared is not None:
            shared.sum_over(self._ranks.summed)


@contextmanager
def _own_draws(rank: int) -> Iterator[None]:
    """Draw dropout masks that differ between processes; after the block their random states are equal again.

    They move on only where something was drawn, so that without dropout what follows draws as in one process.
    """
    before = random_states()
    digest = hashlib.sha256(before["random/cpu"].numpy().tobytes()).digest()
    torch.manual_seed(int.from_bytes(digest[:SEED_BYTES]) + rank)
    seeded = random_states()
    try:
        yield
    finally:
        after = random_states()
        restore_random_states(before)
        if any(not torch.equal(after[name], state) for name, state in seeded.items()):
            torch.rand(())


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Turn the errors that torch raises when another process is gone into one sentence."""
    try:
        yield
    except RuntimeError as error:
        raise TrainingError(
            "The processes of the run lost contact ({problem}): start it again, or with fewer processes.",
            problem=str(error).splitlines()[0][:120],
        ) from error
