"""Batches larger than memory: the gradients of the whole batch, with the encoder reading a part of it at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from core.training.checkpoints import random_states, restore_random_states
from core.training.gradients import SharedGradients
from core.training.outputs import Outputs, joined


class GradientCache:
    """Encodes without keeping activations, then once more, part by part, with the gradient of the loss in hand.

    Contrast needs all vectors of a batch at once, but the encoder's activations only where gradients pass. Each part
    is read twice with the same random state, so that its dropout masks are the same.

    Source: Gao et al. 2021, arXiv:2101.06983.
    """

    def __init__(self, run: Callable[[int, int], Outputs], size: int, micro_batch: int) -> None:
        """`run(start, end)` encodes the texts start … end − 1 of a batch of `size`, `micro_batch` at a time."""
        self._run = run
        self._spans = [(start, min(start + micro_batch, size)) for start in range(0, size, micro_batch)]
        self._states: list[dict[str, Tensor]] = []

    def encode(self) -> Outputs:
        """Vectors of the whole batch, as leaves that gradients are collected in."""
        parts = []
        with torch.no_grad():
            for span in self._spans:
                self._states.append(random_states())
                parts.append(self._run(*span))
        whole = joined(parts)
        self._leaves = [vectors.requires_grad_() for vectors in whole.vectors]
        return whole

    def take(self, gradients: Sequence[Tensor | None]) -> None:
        """Set the leaves' gradients, where another process computed the loss."""
        for leaf, gradient in zip(self._leaves, gradients, strict=True):
            leaf.grad = gradient

    def backward(self, shared: SharedGradients | None = None, first: int = 0) -> None:
        """Propagate the leaves' gradients into the encoder; `shared` measures each part on the way.

        Args:
            first: which text of the batch is the first here.
        """
        before = random_states()
        for (start, end), state in zip(self._spans, self._states, strict=True):
            restore_random_states(state)
            vectors = self._run(start, end).vectors
            if shared is not None:
                shared.add(vectors, slice(first + start, first + end))
            propagate(vectors, [None if leaf.grad is None else leaf.grad[:, start:end] for leaf in self._leaves])
        restore_random_states(before)


def propagate(vectors: Sequence[Tensor], gradients: Sequence[Tensor | None]) -> None:
    """Propagate the gradients of outputs into the encoder, where some weight lies behind an output."""
    pairs = [
        (vector, gradient)
        for vector, gradient in zip(vectors, gradients, strict=True)
        if vector.requires_grad and gradient is not None
    ]
    if pairs:
        outputs, given = zip(*pairs, strict=True)
        torch.autograd.backward(outputs, given)
