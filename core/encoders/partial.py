"""A forward pass through some of the blocks: what lies below is given, what lies above is left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from torch import Tensor, nn

from core.encoders.families import Family


@contextmanager
def replaced_forward(module: nn.Module, forward: Callable[..., Any]) -> Iterator[None]:
    """Inside, `module` runs `forward`; its hooks stay in force.

    Gradient checkpointing wraps a class's own forward, so a replaced one is neither checkpointed nor run again.
    """
    module.forward = forward
    try:
        yield
    finally:
        del module.forward


def convolution(base: nn.Module, family: Family) -> nn.Module | None:
    """The layer behind the first block of the larger DeBERTa-v2 models; the output of their layer 1 is its output."""
    parent = base.get_submodule(family.blocks.rpartition(".")[0])
    return getattr(parent, "conv", None)


def output_module(base: nn.Module, family: Family, layer: int) -> nn.Module:
    """The module whose (first) output is that of layer 1..L, `hidden_states[layer]` of transformers."""
    behind = convolution(base, family) if layer == 1 else None
    return behind or base.get_submodule(f"{family.blocks}.{layer - 1}")


@contextmanager
def only_blocks(base: Any, family: Family, start: int, top: int, states: Tensor | None) -> Iterator[None]:
    """Inside, `base` computes its blocks start + 1 to top only.

    Args:
        start: the block whose outputs are `states`; 0 computes the embeddings too.
        top: the last block that is computed; its output comes out as the last hidden state.
        states: [R, T, H], where start > 0.
    """
    blocks = base.get_submodule(family.blocks)

    def untouched(hidden: Tensor, *_: Any, **__: Any) -> Any:
        return (hidden, None) if family.tuple_blocks else hidden

    with ExitStack() as stack:
        for block in [*blocks[:start], *blocks[top:]]:
            stack.enter_context(replaced_forward(block, untouched))
        if start > 0:
            stack.enter_context(replaced_forward(base.embeddings, lambda *_, **__: states))
            if hasattr(base, "embeddings_project"):  # ELECTRA's, between its embeddings and its first block
                stack.enter_context(replaced_forward(base.embeddings_project, lambda hidden: hidden))
            if (behind := convolution(base, family)) is not None:
                stack.enter_context(replaced_forward(behind, lambda _embedded, hidden, _mask: hidden))
        yield


def check_start(lengths: Sequence[int], lower: Sequence[Tensor] | None, start: int, blocks: int) -> None:
    """Whether hidden states `lower` of texts of these lengths can begin a pass behind block `start` of `blocks`.

    Raises: ValueError.
    """
    if not 0 <= start < blocks:
        raise ValueError(f"start = {start}: expected 0 to {blocks - 1}")
    if (lower is None) != (start == 0):
        raise ValueError(f"start = {start}: expected 0 without `lower`, and with it the block that it comes from")
    if lower is not None and [len(states) for states in lower] != list(lengths):
        raise ValueError(f"lower = {len(lower)} stacks: expected one row per token of each of {len(lengths)} texts")
