"""Low-rank adapters for scripts, which do without peft: the same draws in the same order, the same sums and merge.

Source: Hu et al. 2022, arXiv:2106.09685.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from core.encoders.model import Encoder


class LowRankLinear(nn.Module):
    """A frozen linear layer beside which a product of two small matrices learns: W·x + α/r · B·A·x.

    A is drawn as a linear layer's weights are and B is 0, so that a fresh adapter changes nothing.
    """

    def __init__(self, base_layer: nn.Linear, rank: int, alpha: float, dropout: float) -> None:
        super().__init__()
        self.base_layer = base_layer
        self.scale = alpha / rank
        self.dropout = nn.Dropout(dropout) if dropout > 0 else nn.Identity()
        self.lora_A = nn.Linear(base_layer.in_features, rank, bias=False)
        self.lora_B = nn.Linear(rank, base_layer.out_features, bias=False)
        nn.init.kaiming_uniform_(self.lora_A.weight, a=math.sqrt(5))  # drawn a second time, as peft does
        nn.init.zeros_(self.lora_B.weight)
        self.to(base_layer.weight.device)

    def forward(self, x: Tensor) -> Tensor:
        """[..., in] → [..., out]."""
        return self.base_layer(x) + self.lora_B(self.lora_A(self.dropout(x))) * self.scale


def insert_adapters(encoder: Encoder, rank: int, alpha: float, dropout: float) -> None:
    """Put adapters beside query and value of every block, in the order of the modules; nothing else learns."""
    encoder.requires_grad_(False)
    for name, layer in list(encoder.model.named_modules()):
        if isinstance(layer, nn.Linear) and name.endswith(tuple(f".{one}" for one in encoder.family.lora_targets)):
            encoder.model.set_submodule(name, LowRankLinear(layer, rank, alpha, dropout))


@torch.no_grad()
def fold_adapters(encoder: Encoder) -> None:
    """Add what the adapters learned to the weights beside them, and leave plain linear layers."""
    for name, layer in list(encoder.model.named_modules()):
        if isinstance(layer, LowRankLinear):
            layer.base_layer.weight += layer.lora_B.weight @ layer.lora_A.weight * layer.scale
            encoder.model.set_submodule(name, layer.base_layer)
