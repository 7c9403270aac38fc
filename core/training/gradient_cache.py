"""Batches larger than memory: gradients of the whole batch, with the encoder reading one micro-batch at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from core.training.checkpoints import random_states, restore_random_states
from core.training.gradients import SharedGradients
from core.training.outputs import Outputs, concatenate_outputs


class GradientCache:
    """A batch that is encoded twice in micro-batches: without activations for the loss, then for the gradients.

    A contrastive loss needs all vectors of a batch at once, but the backward pass needs the activations of only one
    micro-batch at a time. Each micro-batch is encoded both times with the same random state, so that its dropout masks
    are equal.

    Source: Gao et al. 2021, arXiv:2101.06983.
    """

    def __init__(self, run: Callable[[int, int], Outputs], size: int, micro_batch: int) -> None:
        """Split the batch into micro-batches.

        Args:
            run: `run(start, end)` encodes the texts start … end − 1 of the batch.
            size: number of texts in the batch.
            micro_batch: number of texts encoded at a time.
        """
        self._run = run
        self._spans = [(start, min(start + micro_batch, size)) for start in range(0, size, micro_batch)]
        self._states: list[dict[str, Tensor]] = []

    def encode(self) -> Outputs:
        """Return the vectors of the whole batch, as leaves that collect gradients."""
        parts = []
        with torch.no_grad():
            for span in self._spans:
                self._states.append(random_states())
                parts.append(self._run(*span))
        whole = concatenate_outputs(parts)
        self._leaves = [vectors.requires_grad_() for vectors in whole.vectors]
        return whole

    def backward(
        self,
        shared: SharedGradients | None = None,
        first: int = 0,
        gradients: Sequence[Tensor | None] | None = None,
    ) -> None:
        """Propagate the gradients of the leaves into the encoder, one micro-batch at a time.

        Args:
            shared: adds up the gradient of each term over the micro-batches.
            first: index of the first text within the whole batch.
            gradients: those of the leaves, for a loss that was computed from gathered copies of them.
        """
        whole = [leaf.grad for leaf in self._leaves] if gradients is None else gradients
        before = random_states()
        for (start, end), state in zip(self._spans, self._states, strict=True):
            restore_random_states(state)
            vectors = self._run(start, end).vectors
            if shared is not None:
                shared.add(vectors, slice(first + start, first + end))
            propagate(vectors, [None if one is None else one[:, start:end] for one in whole])
        restore_random_states(before)


def propagate(vectors: Sequence[Tensor], gradients: Sequence[Tensor | None]) -> None:
    """Propagate gradients into the encoder, from the outputs that depend on a trainable weight."""
    pairs = [
        (vector, gradient)
        for vector, gradient in zip(vectors, gradients, strict=True)
        if vector.requires_grad and gradient is not None
    ]
    if pairs:
        outputs, given = zip(*pairs, strict=True)
        torch.autograd.backward(outputs, given)
