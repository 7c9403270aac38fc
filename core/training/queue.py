"""A queue of past batches' vectors from a momentum copy of the encoder, as additional candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from core.encoders.model import Encoder
from core.encoders.packing import Tokens
from core.training.outputs import apply_projection


class MomentumQueue:
    """The newest vectors of one term from a momentum copy of the encoder, oldest first, with their labels.

    After each step the copy is set to m·copy + (1 − m)·encoder. It runs in evaluation mode.

    Source: He et al. 2020 (MoCo), arXiv:1911.05722, section 3.2.
    """

    def __init__(self, encoder: Encoder, key: str, size: int, momentum: float) -> None:
        self._encoder, self._key, self._size, self._momentum = encoder, key, size, momentum
        self._copy = encoder.copy().requires_grad_(False).eval()
        # Features [Q, d] and labels [Q]; None if the queue is empty.
        self.held: tuple[Tensor, Tensor] | None = None

    @torch.no_grad()
    def step(self, texts: Sequence[Tokens], labels: Tensor, autocast: torch.autocast) -> None:
        """Update the momentum copy, and append the vectors of a batch."""
        moving = dict(self._copy.named_parameters())
        for name, parameter in self._encoder.named_parameters():
            if parameter.requires_grad:
                moving[name].lerp_(parameter, 1 - self._momentum)
        with autocast:
            pooled = self._copy.pooled(texts)
        vectors = apply_projection(self._copy, self._key, pooled).float()
        if self.held is not None:
            vectors, labels = torch.cat([self.held[0], vectors]), torch.cat([self.held[1], labels])
        self.held = vectors[-self._size :], labels[-self._size :]

    def state(self) -> dict[str, Tensor]:
        """Return the momentum copy's weights that training changes, and the vectors and labels in the queue."""
        learning = [name for name, parameter in self._encoder.named_parameters() if parameter.requires_grad]
        moving = dict(self._copy.named_parameters())
        tensors = {f"copy/{name}": moving[name].contiguous() for name in learning}
        if self.held is not None:
            tensors |= {"vectors": self.held[0].contiguous(), "labels": self.held[1].contiguous()}
        return tensors

    @torch.no_grad()
    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore the result of `state`.

        The encoder must be restored first, because the copy takes its frozen weights from it.
        """
        self._copy.load_state_dict(self._encoder.state_dict())
        moving = dict(self._copy.named_parameters())
        device = next(self._copy.parameters()).device
        for name, tensor in tensors.items():
            if name.startswith("copy/"):
                moving[name.removeprefix("copy/")].copy_(tensor)
        if "vectors" in tensors:
            self.held = tensors["vectors"].to(device), tensors["labels"].to(device)
