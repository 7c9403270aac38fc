"""Data-parallel training: each process encodes a shard of every batch, and the loss sees the whole batch.

Every process holds the whole model. The vectors of all shards are gathered, and each process computes the loss of the
whole batch from them. It then propagates the gradient of its own shard into the encoder, and the gradients of the
encoder are summed over processes. Contrast thus uses the positives and negatives of the whole batch, and a step equals
that of one process with the same batch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor, distributed
from torch.nn import Parameter

from core.errors import TrainingError
from core.training.checkpoints import random_states, restore_random_states
from core.training.gradient_cache import GradientCache, propagate
from core.training.gradients import SharedGradients
from core.training.outputs import Outputs, combine_outputs

# Bytes of a seed. torch's seeds are signed 64-bit integers.
SEED_BYTES = 7
PATIENCE = timedelta(days=30)


class Ranks:
    """The processes of a distributed run, as seen by one of them.

    Rank 0 leads: it alone makes decisions, measures and records.
    """

    def __init__(self, device: str) -> None:
        """Join the other processes.

        The connection is read from torchrun's environment variables RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and
        MASTER_PORT.

        Args:
            device: as in RunConfig. GPUs communicate over NCCL, CPUs over gloo.
        """
        from accelerate import PartialState

        on_cpu = device == "cpu" or not torch.cuda.is_available()
        with _plain_errors():
            # A paused run must not time out.
            self._state = PartialState(cpu=on_cpu, timeout=PATIENCE)
        self.rank, self.count = int(self._state.process_index), int(self._state.num_processes)
        self.device = torch.device(self._state.device)

    def lead(self, turns: Sequence[tuple[str, float]] | None) -> None:
        """Send the knob turns of the next step to the other processes, or None to end the run."""
        with _plain_errors():
            distributed.broadcast_object_list([turns], src=0, device=self.device)

    def follow(self) -> Sequence[tuple[str, float]] | None:
        """Wait for the leader, and return its knob turns for the next step, or None at the end of the run."""
        box: list[Any] = [None]
        with _plain_errors():
            distributed.broadcast_object_list(box, src=0, device=self.device)
        turns: Sequence[tuple[str, float]] | None = box[0]
        return turns

    def span(self, size: int) -> tuple[int, int]:
        """Return start and end of this process's texts in a batch of `size`. Shards differ by at most one text."""
        return size * self.rank // self.count, size * (self.rank + 1) // self.count

    def gather(self, own: Tensor, size: int) -> Tensor:
        """Gather [P, b, …] from every process and concatenate to [P, B, …], detached; equal on every process.

        Args:
            size: B, the number of texts in the batch.
        """
        largest = -(-size // self.count)
        padded = own.detach().new_zeros(own.shape[0], largest, *own.shape[2:])
        padded[:, : own.shape[1]] = own.detach()
        # gloo does not support booleans, so masks are sent as bytes.
        sent = padded.to(torch.uint8) if padded.dtype == torch.bool else padded
        parts = [torch.empty_like(sent) for _ in range(self.count)]
        with _plain_errors():
            distributed.all_gather(parts, sent.contiguous())
        bounds = [size * rank // self.count for rank in range(self.count + 1)]
        trimmed = [part[:, : end - start] for part, start, end in zip(parts, bounds, bounds[1:], strict=False)]
        return torch.cat(trimmed, 1).to(own.dtype)

    def sum_tensors(self, tensors: Sequence[Tensor | None], like: Sequence[Tensor]) -> list[Tensor | None]:
        """Sum tensors over processes in one transfer. None counts as 0; the sum is None if every process has None.

        Args:
            like: tensors with the shapes of the sums.
        """
        if not tensors:
            return []
        there = torch.tensor([tensor is not None for tensor in tensors], dtype=torch.float32, device=like[0].device)
        given = [
            torch.zeros_like(shape) if tensor is None else tensor for tensor, shape in zip(tensors, like, strict=True)
        ]
        packed = torch.cat([there, *(tensor.flatten().float() for tensor in given)])
        with _plain_errors():
            distributed.all_reduce(packed)
        there, *parts = packed.split([len(there), *(shape.numel() for shape in like)])
        return [
            part.view_as(shape) if present else None
            for part, shape, present in zip(parts, like, there.bool().tolist(), strict=True)
        ]

    def leave(self) -> None:
        """Leave the process group, so that this process can join another run."""
        self._state.destroy_process_group()
        self._state._reset_state()


class ShardedBatch:
    """The passes of a batch, of which this process encodes one shard. The gathered vectors are leaves.

    It has the interface of `GradientCache`, which encodes the shard if the shard is larger than a micro-batch.
    """

    def __init__(self, run: Callable[[int, int], Outputs], size: int, ranks: Ranks, micro_batch: int | None) -> None:
        """Determine this process's shard.

        Args:
            run: `run(start, end)` encodes the texts start … end − 1 of the batch.
            size: number of texts in the batch.
            micro_batch: number of texts encoded at a time; None for the whole shard.
        """
        self._run, self._size, self._ranks = run, size, ranks
        self._start, self._end = ranks.span(size)
        share = self._end - self._start
        self._cache = None
        if micro_batch is not None and micro_batch < share:
            self._cache = GradientCache(lambda a, b: run(self._start + a, self._start + b), share, micro_batch)

    def encode(self) -> Outputs:
        """Return the vectors of the whole batch, as leaves that collect gradients."""
        # Each process draws different dropout masks, and all continue with equal random states.
        before = random_states()
        digest = hashlib.sha256(before["random/cpu"].numpy().tobytes()).digest()
        torch.manual_seed(int.from_bytes(digest[:SEED_BYTES]) + self._ranks.rank)
        seeded = random_states()
        self._own = self._cache.encode() if self._cache else self._run(self._start, self._end)
        after = random_states()
        restore_random_states(before)
        # The states advance only if random numbers were drawn. Without dropout, later draws are those of one process.
        if any(not torch.equal(after[name], state) for name, state in seeded.items()):
            torch.rand(())
        whole = combine_outputs(lambda part: self._ranks.gather(part, self._size), self._own)
        self._leaves = [vectors.requires_grad_() for vectors in whole.vectors]
        return whole

    def backward(self, shared: SharedGradients | None, parameters: Sequence[Parameter]) -> None:
        """Propagate the gradients of this process's shard into the encoder, and sum them over processes.

        Args:
            parameters: all trainable parameters. Those that already have a gradient belong to modules behind the
                gathered vectors. Every process computes these gradients from the whole batch, so they are not summed.
        """
        of_encoder = [parameter for parameter in parameters if parameter.grad is None]
        gradients = [None if leaf.grad is None else leaf.grad[:, self._start : self._end] for leaf in self._leaves]
        if self._cache is not None:
            self._cache.backward(shared, self._start, gradients)
        else:
            if shared is not None:
                shared.add(self._own.vectors, slice(self._start, self._end))
            propagate(self._own.vectors, gradients)
        summed = self._ranks.sum_tensors([parameter.grad for parameter in of_encoder], of_encoder)
        for parameter, gradient in zip(of_encoder, summed, strict=True):
            parameter.grad = gradient
        if shared is not None:
            for key, sums in shared.sums.items():
                shared.sums[key] = self._ranks.sum_tensors(sums, shared.weights)


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Convert the errors that torch raises when a process is lost to TrainingError."""
    try:
        yield
    except RuntimeError as error:
        raise TrainingError(
            "The processes of the run lost contact ({problem}): start the run again, perhaps with fewer processes.",
            problem=str(error).splitlines()[0][:120],
        ) from error
