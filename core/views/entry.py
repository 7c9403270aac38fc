"""What a view says of itself: how it is called, what it changes, its settings, and the function that changes it.

Readable without importing torch, so that forms, help texts, the command line and previews can be made from it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from core.messages import N_, Message
from core.parameters import Parameter, Value

if TYPE_CHECKING:
    import torch
    from numpy.random import Generator
    from torch import Tensor

    from core.encoders.packing import Tokens
    from core.views.segments import Subject, ViewPreview

Settings = Mapping[str, Value]


class Embedded(NamedTuple):
    """What a view changes between the embedding layer and the first block.

    Attributes:
        embeddings: [R, T, H], the output of the embedding layer.
        owners: [R, T], the number of the text that a token belongs to, -1 for padding.
        special: [R, T] bool, tokens such as [CLS].
        texts: numbers of the texts to change.
        gradient: [R, T, H], of the contrastive loss by the embeddings, for a view that follows it.
    """

    embeddings: Tensor
    owners: Tensor
    special: Tensor
    texts: Sequence[int]
    gradient: Tensor | None = None


class RowChange(Protocol):
    """Texts changed by a model, row by row of a split."""

    def translate_rows(self, texts: Sequence[str], rows: Sequence[int]) -> list[str]:
        """One changed text for each of these rows of the split."""
        ...


# A text, the settings, random numbers → the changed text
TextFunction = Callable[[str, Settings, "Generator"], str]
# Tokens, the ids of special ones, random numbers → the changed tokens
TokensFunction = Callable[["Tokens", Collection[int], "Generator"], "Tokens"]
# What there is, the settings → [R, T, H] that the first block reads instead
EmbeddingFunction = Callable[[Embedded, Settings], "Tensor"]
# The settings, a seed, the file that keeps changed texts (None: in memory), a device → what changes rows
ModelFunction = Callable[[Settings, int, "Path | None", "torch.device"], RowChange]
PreviewFunction = Callable[["ViewEntry", "Subject"], "list[ViewPreview]"]


@dataclass(frozen=True, slots=True)
class ViewEntry:
    """A view as people, forms, the planner and the training loop see it; its texts are marked with `N_`.

    Attributes:
        place: where it comes in lists.
        kind: what it changes, and so what it costs. "pass": nothing, the encoder reads the text again with other
            dropout masks; "text", "tokens" and "embedding": that, on the way into a further pass; "head": a mask on the
            pooled vector of the pass that is there; "layers": other blocks' outputs of that pass.
        text, by_model: one of the two for the kind "text"; the second asks a model for many rows at once.
        tokens, embedding: for the kinds of that name.
        follows_gradient: whether its function needs the gradient of its term's loss, which takes further passes.
        preview: what it makes of a text, for people; None where it has nothing to show.
        notice: a sentence shown while a run uses it; None for none.
        cost: a sentence on what it takes beyond the passes; "" for nothing.
    """

    name: str
    label: str
    place: int
    summary: str
    source: str
    kind: Literal["pass", "text", "tokens", "embedding", "head", "layers"]
    text: TextFunction | None = None
    by_model: ModelFunction | None = None
    tokens: TokensFunction | None = None
    embedding: EmbeddingFunction | None = None
    follows_gradient: bool = False
    preview: PreviewFunction | None = None
    notice: Callable[[], Message | None] | None = None
    cost: str = ""
    parameters: tuple[Parameter, ...] = ()
    others_compute: str = ""

    @property
    def runs_encoder(self) -> bool:
        return self.kind not in ("head", "layers")

    @property
    def changes_input(self) -> bool:
        return self.kind in ("text", "tokens", "embedding")


def rate_parameter(default: float, about: str) -> Parameter:
    """`about` says what it is the share of, in a sentence that is marked with `N_`."""
    return Parameter("rate", N_("Rate r"), default, about, low=0.0, high=1.0, below=True, slider=(0.0, 0.6))


CONSERT = "ConSERT: Yan et al. 2021, arXiv:2105.11741"
