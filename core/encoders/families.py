"""What differs between encoder families, as one literal table.

A family says how its own classification head reads a pooled vector, where its blocks are, whether texts may share a
row, and at which number its positions begin.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from torch import Tensor

from core.errors import EncoderError
from core.messages import listed

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
        head_layers: attribute paths of the two linear layers among them, in their order.
        head_activation: what lies between these two.
        blocks: attribute path of the list of blocks below the base model.
        packs: whether several texts may share a row. DeBERTa cannot: its embeddings take a mask of one text per row,
            and the convolution of its larger models looks across neighbours. Its batches run in length-sorted chunks.
        bert_blocks: whether its blocks are built as BERT's, so that `first_tokens_only` fits the last one.
        first_position: "zero", or "after_padding" where positions begin at padding_idx + 1.
        token_types: whether its forward pass takes the token types of a pair.
        query, key: paths of the two projections below a block, whose outputs give the attention of a fused kernel.
        attention_dropout: path below a block of the module that is handed the attention; None where a fused kernel
            keeps it to itself.
        tuple_blocks: whether a block returns its output as the first of several.
        lora_targets: how the names of the layers that get low-rank adapters end: query and value.
    """

    head: Head
    head_modules: tuple[str, ...]
    head_layers: tuple[str, str]
    head_activation: Literal["tanh", "relu", "gelu"]
    blocks: str = "encoder.layer"
    packs: bool = True
    bert_blocks: bool = False
    first_position: Literal["zero", "after_padding"] = "zero"
    token_types: bool = False
    query: str = "attention.self.query"
    key: str = "attention.self.key"
    attention_dropout: str | None = None
    tuple_blocks: bool = False
    lora_targets: tuple[str, ...] = ("query", "value")


CLASSIFIER_LAYERS = ("classifier.dense", "classifier.out_proj")
BERT = Family(
    _bert_head,
    ("bert.pooler", "classifier"),
    ("bert.pooler.dense", "classifier"),
    "tanh",
    bert_blocks=True,
    token_types=True,
)
ROBERTA = Family(
    _first_token_head,
    ("classifier",),
    CLASSIFIER_LAYERS,
    "tanh",
    bert_blocks=True,
    first_position="after_padding",
)
# One layer of DeBERTa's first version makes queries, keys and values: its adapter reaches all three.
DEBERTA = Family(
    _deberta_head,
    ("pooler", "classifier"),
    ("pooler.dense", "classifier"),
    "gelu",
    packs=False,
    token_types=True,
    attention_dropout="attention.self.dropout",
    tuple_blocks=True,
    lora_targets=("in_proj",),
)
DEBERTA_V2 = replace(DEBERTA, lora_targets=("query_proj", "value_proj"))

FAMILIES: Mapping[str, Family] = {
    "bert": BERT,
    "roberta": ROBERTA,
    "xlm-roberta": ROBERTA,
    "camembert": ROBERTA,
    "electra": Family(
        _first_token_head, ("classifier",), CLASSIFIER_LAYERS, "gelu", bert_blocks=True, token_types=True
    ),
    "distilbert": Family(
        _distilbert_head,
        ("pre_classifier", "classifier"),
        ("pre_classifier", "classifier"),
        "relu",
        blocks="transformer.layer",
        query="attention.q_lin",
        key="attention.k_lin",
        lora_targets=("q_lin", "v_lin"),
    ),
    "mpnet": Family(
        _first_token_head,
        ("classifier",),
        CLASSIFIER_LAYERS,
        "tanh",
        first_position="after_padding",
        attention_dropout="attention.attn.dropout",
        tuple_blocks=True,
        lora_targets=("attn.q", "attn.v"),
    ),
    "deberta": DEBERTA,
    "deberta-v2": DEBERTA_V2,
}


def family_of(model_type: str) -> Family:
    """Raises: EncoderError naming the families that exist."""
    if model_type not in FAMILIES:
        names = listed(FAMILIES)
        raise EncoderError(
            "Encoder type {kind} is not supported: choose one of {names}.", kind=repr(model_type), names=names
        )
    return FAMILIES[model_type]
