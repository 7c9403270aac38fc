"""Which weights learn. What is frozen runs without dropout and without autograd."""

from __future__ import annotations

from torch import nn

from core.config import TrainableConfig
from core.encoders.model import Encoder
from core.errors import ConfigError


def apply_trainable(encoder: Encoder, trainable: TrainableConfig) -> list[nn.Module]:
    """Freeze what does not learn.

    Returns: the outermost modules that learn; `training_mode` switches only these to training.
    Raises: ConfigError when more blocks are asked for than there are.
    """
    learning = _learning_modules(encoder, trainable)
    encoder.requires_grad_(False)
    for module in learning:
        module.requires_grad_(True)
    return learning


def training_mode(encoder: Encoder, learning: list[nn.Module]) -> None:
    """Dropout where weights learn, none where they are frozen."""
    encoder.eval()
    for module in learning:
        module.train()


def _learning_modules(encoder: Encoder, trainable: TrainableConfig) -> list[nn.Module]:
    if trainable.part == "all":
        return [encoder]
    # Dropout in front of the classifier belongs to the head.
    head = [encoder.model.get_submodule(path) for path in encoder.family.head_modules]
    head += [module for name, module in encoder.model.named_children() if name == "dropout"]
    if trainable.part == "classifier":
        return head
    if trainable.blocks > len(encoder.blocks):
        raise ConfigError("trainable.blocks", trainable.blocks, f"the encoder has {len(encoder.blocks)} blocks.")
    return [*encoder.blocks[-trainable.blocks :], *head]
