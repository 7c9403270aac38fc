"""A queue of past batches' vectors from a slowly moving copy of the encoder, as further candidates."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from core.encoders.model import Encoder
from core.encoders.packing import Tokens
from core.training.outputs import projected


class MomentumQueue:
    """The newest vectors of one term from a moving copy of the encoder, oldest first, with their labels.

    The copy is m·copy + (1 − m)·encoder after each step; it reads in evaluation mode.

    Source: He et al. 2020 (MoCo), arXiv:1911.05722, section 3.2.
    """

    def __init__(self, encoder: Encoder, key: str, size: int, momentum: float) -> None:
        self._encoder, self._key, self._size, self._momentum = encoder, key, size, momentum
        self._copy = copy.deepcopy(encoder).requires_grad_(False).eval()
        # Features [Q, d] and labels [Q]; None while there are none.
        self.held: tuple[Tensor, Tensor] | None = None

    @torch.no_grad()
    def step(self, texts: Sequence[Tokens], labels: Tensor, autocast: torch.autocast) -> None:
        """Follow the encoder, and take in a batch."""
        moving = dict(self._copy.named_parameters())
        for name, parameter in self._encoder.named_parameters():
            if parameter.requires_grad:
                moving[name].lerp_(parameter, 1 - self._momentum)
        with autocast:
            pooled = self._copy.pooled(texts)
        vectors = projected(self._copy, self._key, pooled).float()
        if self.held is not None:
            vectors, labels = torch.cat([self.held[0], vectors]), torch.cat([self.held[1], labels])
        self.held = vectors[-self._size :], labels[-self._size :]

    def state(self) -> dict[str, Tensor]:
        """Return the momentum encoder's moved weights, and the vectors and labels in the queue."""
        learning = [name for name, parameter in self._encoder.named_parameters() if parameter.requires_grad]
        moving = dict(self._copy.named_parameters())
        tensors = {f"copy/{name}": moving[name].contiguous() for name in learning}
        if self.held is not None:
            tensors |= {"vectors": self.held[0].contiguous(), "labels": self.held[1].contiguous()}
        return tensors

    @torch.no_grad()
    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Put back what `state` gave, once the encoder's own weights are back: what does not move is as in there."""
        self._copy.load_state_dict(self._encoder.state_dict())
        moving = dict(self._copy.named_parameters())
        device = next(self._copy.parameters()).device
        for name, tensor in tensors.items():
            if name.startswith("copy/"):
                moving[name.removeprefix("copy/")].copy_(tensor)
        if "vectors" in tensors:
            self.held = tensors["vectors"].to(device), tensors["labels"].to(device)
