"""Trainable weights. Frozen blocks run without dropout, and those below all trainable weights without autograd."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.models.mpnet.modeling_mpnet import MPNetLayer

from core.config import TrainableConfig
from core.encoders.model import Encoder, Tokenizer
from core.tasks.dataset import Input

FITTED_AT_ONCE = 64
# With short texts this takes about a second on two cores. The first step waits for it.
FITTED_MAX = 1_000


def apply_trainable(encoder: Encoder, trainable: TrainableConfig) -> list[nn.Module]:
    """Freeze the weights that are not trained, and insert adapters if the config asks for them.

    With "lora", query and value of every block get low-rank adapters, which are trained together with the head. New
    adapters change no output; they are drawn from torch's global random state. The model is not wrapped.
    Adapters of an earlier call are merged first.

    Returns: the outermost trained modules, for `Encoder.train_only`. With "lora" these are the blocks, whose dropout is
        active as in any fine-tune, and the head.
    Source: Hu et al. 2022, arXiv:2106.09685.
    """
    merge_adapters(encoder)
    head, learning = _head(encoder), outermost_trained(encoder, trainable)
    encoder.requires_grad_(False)
    if trainable.part == "lora":
        from peft import LoraConfig, inject_adapter_in_model  # takes three seconds

        adapters = LoraConfig(
            r=trainable.lora_rank,
            lora_alpha=trainable.lora_alpha,
            lora_dropout=trainable.lora_dropout,
            target_modules=list(encoder.family.lora_targets),
        )
        inject_adapter_in_model(adapters, encoder.model)
    for module in head if trainable.part == "lora" else learning:
        module.requires_grad_(True)
    return learning


def outermost_trained(encoder: Encoder, trainable: TrainableConfig) -> list[nn.Module]:
    """Return the modules that are in training mode during a step."""
    if trainable.part == "all":
        return [encoder]
    return [*encoder.blocks[trainable.frozen(len(encoder.blocks)) :], *_head(encoder)]


def _head(encoder: Encoder) -> list[nn.Module]:
    """Return the modules after the pooled vector, with the dropout before the classifier."""
    head = [encoder.model.get_submodule(path) for path in encoder.family.head_modules]
    head += [module for name, module in encoder.model.named_children() if name == "dropout"]
    return [*head, encoder.projections]


def merge_adapters(encoder: Encoder) -> None:
    """Merge LoRA adapters into the weights that they adapt, and restore plain linear layers.

    Without adapters, nothing changes. A model must be merged before it is saved. Outputs in evaluation mode stay the
    same up to rounding.
    """
    if not hasattr(encoder.model, "peft_config"):
        return
    from peft.tuners.lora import LoraLayer

    for name, layer in list(encoder.model.named_modules()):
        if isinstance(layer, LoraLayer):
            layer.merge()
            encoder.model.set_submodule(name, layer.get_base_layer())
    del encoder.model.peft_config


def plain_name(name: str) -> str:
    """Return the name of a parameter after adapters are merged."""
    return name.replace(".base_layer.", ".")


def merged_names(names: Collection[str]) -> set[str]:
    """Return the plain names of the weights that change when adapters among `names` are merged."""
    return {plain_name(name.partition(".lora_")[0] + ".weight" if ".lora_" in name else name) for name in names}


@torch.no_grad()
def reinitialise(encoder: Encoder, blocks: int) -> None:
    """Re-initialise the top `blocks` blocks as transformers does, from torch's global random state.

    Call it before `apply_trainable`.

    Source: Zhang et al. 2020, arXiv:2006.05987.
    """
    for block in encoder.blocks[len(encoder.blocks) - blocks :]:
        for parameter in block.parameters():
            # transformers marks loaded parameters, and its initialiser skips them.
            parameter._is_hf_initialized = False  # type: ignore[attr-defined]
        block.apply(encoder.model._init_weights)


def fit_classifier(
    encoder: Encoder, tokenizer: Tokenizer, texts: Sequence[Input], labels: Sequence[int], seed: int
) -> None:
    """Initialise the classifier as a linear probe: a logistic regression (C = 1) on the input of its last layer.

    Fine-tuning from this start preserves what the encoder knows about classes with few rows. The other layers of the
    head are unchanged.

    Args:
        seed: seed of a sample of at most FITTED_MAX texts. A fixed stride would miss classes if rows cycle through the
            classes.
    Source: Kumar et al. 2022 ("LP-FT"), arXiv:2202.10054.
    """
    drawn = torch.randperm(len(texts), generator=torch.Generator().manual_seed(seed))[:FITTED_MAX].tolist()
    tokens = tokenizer([texts[place] for place in drawn])
    encoder.eval()
    read: list[Tensor] = []
    with torch.no_grad():
        for start in range(0, len(tokens), FITTED_AT_ONCE):
            layer, inputs = last_layer(encoder, encoder.pooled(tokens[start : start + FITTED_AT_ONCE]))
            read.append(inputs)
    features, truth = torch.cat(read).double().cpu(), torch.tensor([labels[place] for place in drawn])
    weight = torch.zeros(layer.weight.shape, dtype=torch.float64, requires_grad=True)
    bias = torch.zeros(len(weight), dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([weight, bias], max_iter=200, tolerance_grad=1e-6, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimiser.zero_grad()
        # The penalty on the bias keeps it finite for a class without rows.
        penalty = (weight.square().sum() + bias.square().sum()) / 2
        total = F.cross_entropy(features @ weight.T + bias, truth, reduction="sum") + penalty
        total.backward()
        return total

    optimiser.step(loss)
    with torch.no_grad():
        layer.weight.copy_(weight)
        layer.bias.copy_(bias)


def last_layer(encoder: Encoder, pooled: Tensor) -> tuple[nn.Linear, Tensor]:
    """Return the last linear layer of the classifier, and its inputs [B, d] for pooled vectors [B, H]."""
    layer, read = cast(nn.Linear, encoder.model.get_submodule(encoder.family.head_layers[1])), list[Tensor]()
    hook = layer.register_forward_pre_hook(lambda _layer, inputs: read.append(inputs[0].flatten(0, -2)))
    encoder.logits(pooled)
    hook.remove()
    return layer, read[0]


def set_gradient_checkpointing(encoder: Encoder, on: bool) -> None:
    """Turn gradient checkpointing on or off.

    If on, blocks in training mode store only their inputs, and the backward pass recomputes the rest. Gradients are the
    same, even with dropout. A block restricted by `first_tokens_only` stores its activations: the backward pass begins
    there, so recomputing them would not lower the peak.

    Source: Chen et al. 2016, arXiv:1604.06174.
    """
    model = encoder.model
    for block in encoder.blocks:
        if isinstance(block, MPNetLayer):
            block.__class__ = _CheckpointedMPNetLayer if on else MPNetLayer
            model.supports_gradient_checkpointing = on
    if not on:
        model.activation_checkpointing_disable()
        return
    model.activation_checkpointing_enable({"use_reentrant": False})
    # Only re-entrant checkpointing needs inputs with a gradient. They would add frozen blocks to the graph.
    model.disable_input_require_grads()


class _CheckpointedMPNetLayer(GradientCheckpointingLayer, MPNetLayer):  # type: ignore[misc]
    """A block of MPNet with gradient checkpointing, which transformers lacks for this family only."""
