"""Differences between encoder families, as one literal table.

A family defines its classification head on a pooled vector, the path of its blocks, whether texts may share a row, and
the number of the first position.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

# Tensors are Any here, because the server reads this table without importing torch.
Head = Callable[[Any, Any], Any]


def _bert_head(model: Any, pooled: Any) -> Any:
    return model.classifier(model.dropout(model.bert.pooler(pooled.unsqueeze(1))))


def _first_token_head(model: Any, pooled: Any) -> Any:
    return model.classifier(pooled.unsqueeze(1))


def _distilbert_head(model: Any, pooled: Any) -> Any:
    return model.classifier(model.dropout(model.pre_classifier(pooled).relu()))


def _deberta_head(model: Any, pooled: Any) -> Any:
    return model.classifier(model.dropout(model.pooler(pooled.unsqueeze(1))))


@dataclass(frozen=True, slots=True)
class Family:
    """One family of encoders.

    Attributes:
        head: (model, pooled [B, H]) → logits [B, C], the layers after the pooled vector.
        head_modules: attribute paths of those layers.
        head_layers: attribute paths of the two linear layers among them, in order.
        head_activation: the activation between these two.
        blocks: attribute path of the list of blocks, relative to the base model.
        packs: True if several texts may share a row. DeBERTa does not allow it: its embeddings take a mask of one text
            per row, and the convolution of its larger models mixes neighbours. Its batches run in length-sorted chunks.
        bert_blocks: True if the blocks have BERT's structure, so that `first_tokens_only` applies to the last one.
        first_position: "zero", or "after_padding" if positions begin at padding_idx + 1.
        token_types: True if the forward pass takes the token types of a pair.
        query, key: paths of the two projections, relative to a block; with a fused kernel, attention is computed from
            their outputs.
        attention_dropout: path, relative to a block, of the module that receives the attention; None for a fused
            kernel, which does not expose it.
        tuple_blocks: True if a block returns a tuple whose first item is its output.
        lora_targets: name suffixes of the layers that get low-rank adapters: query and value.
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
# In DeBERTa's first version one layer computes queries, keys and values, so its adapter affects all three.
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
