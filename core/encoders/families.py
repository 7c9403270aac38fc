"""What differs between encoder families, as one literal table.

A family says how its own classification head reads a pooled vector, where its blocks are, whether texts may share a
row, and at which number its positions begin.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from torch import Tensor

from core.errors import EncoderError

Head = Callable[[Any, Tensor], Tensor]


def _bert_head(model: Any, pooled: Tensor) -> Tensor:
    return model.classifier(model.dropout(model.bert.pooler(pooled.unsqueeze(1))))


def _first_token_head(model: Any, pooled: Tensor) -> Tensor:
    return model.classifier(pooled.unsqueeze(1))


def _distilbert_head(model: Any, pooled: Tensor) -> Tensor:
    return model.classifier(model.dropout(model.pre_classifier(pooled).relu()))


def _deberta_head(model: Any, pooled: Tensor) -> Tensor:
    return model.classifier(model.dropout(model.pooler(pooled.unsqueeze(1))))


@dataclass(frozen=True, slots=True)
class Family:
    """One family of encoders.

    Attributes:
        head: (model, pooled [B, H]) → logits [B, C], the layers behind the pooled vector.
        head_modules: attribute paths of those layers.
        blocks: attribute path of the list of blocks below the base model.
        packs: whether several texts may share a row. DeBERTa cannot: its embeddings take a mask of one text per row,
            and the convolution of its larger models looks across neighbours. Its batches run in length-sorted chunks.
        bert_blocks: whether its blocks are built as BERT's, so that `first_tokens_only` fits the last one.
        first_position: "zero", or "after_padding" where positions begin at padding_idx + 1.
    """

    head: Head
    head_modules: tuple[str, ...]
    blocks: str = "encoder.layer"
    packs: bool = True
    bert_blocks: bool = False
    first_position: Literal["zero", "after_padding"] = "zero"


BERT = Family(_bert_head, ("bert.pooler", "classifier"), bert_blocks=True)
ROBERTA = Family(_first_token_head, ("classifier",), bert_blocks=True, first_position="after_padding")
DEBERTA = Family(_deberta_head, ("pooler", "classifier"), packs=False)

FAMILIES: Mapping[str, Family] = {
    "bert": BERT,
    "roberta": ROBERTA,
    "xlm-roberta": ROBERTA,
    "camembert": ROBERTA,
    "electra": Family(_first_token_head, ("classifier",), bert_blocks=True),
    "distilbert": Family(_distilbert_head, ("pre_classifier", "classifier"), blocks="transformer.layer"),
    "mpnet": Family(_first_token_head, ("classifier",), first_position="after_padding"),
    "deberta": DEBERTA,
    "deberta-v2": DEBERTA,
}


def family_of(model_type: str) -> Family:
    """Raises: EncoderError naming the families that exist."""
    if model_type not in FAMILIES:
        raise EncoderError(f"Encoder type {model_type!r} is not supported: choose one of {', '.join(FAMILIES)}.")
    return FAMILIES[model_type]
