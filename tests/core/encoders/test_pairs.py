"""Pairs of texts. Families with token types receive those types."""

from __future__ import annotations

import copy
from typing import Any

import torch
from tokenizers import Tokenizer as Words
from tokenizers import models, pre_tokenizers, processors
from transformers import AutoModelForSequenceClassification, PreTrainedTokenizerFast

from core.encoders.model import Encoder, Tokenizer
from core.encoders.packing import Tokens
from tests.cases import each
from tests.core.encoders.test_model import CONFIGS, TEXTS, made
from tests.core.encoders.test_taps import close

PAIRS = [
    Tokens((2, 8, 9, 3, 10, 11, 3), (0, 0, 0, 0, 1, 1, 1)),
    Tokens((2, 7, 3)),
    Tokens((2, 12, 3, 13, 3), (0, 0, 0, 1, 1)),
]
TYPED = [name for name in CONFIGS if name in ("bert", "electra", "deberta", "deberta-v2")]


@each("model_type", TYPED)
@torch.no_grad()
def test_a_batch_of_pairs_gives_what_transformers_computes_for_each(model_type: str) -> None:
    torch.manual_seed(0)
    config = copy.deepcopy(CONFIGS[model_type])
    config.type_vocab_size = 2
    encoder = Encoder(AutoModelForSequenceClassification.from_config(config), "cls").eval()
    found = encoder.logits(encoder.pooled(PAIRS))
    for logits, pair in zip(found, PAIRS, strict=True):
        types = torch.tensor([pair.types or (0,) * len(pair.ids)])
        close(logits, encoder.model(input_ids=torch.tensor([pair.ids]), token_type_ids=types).logits[0])
    untyped = encoder.pooled([Tokens(pair.ids) for pair in PAIRS])
    assert not torch.allclose(encoder.pooled(PAIRS)[0], untyped[0], atol=1e-3)


@each("model_type", [name for name in CONFIGS if name not in ("bert", "electra")])
@torch.no_grad()
def test_families_without_token_types_read_a_pair_all_the_same(model_type: str) -> None:
    encoder = made(model_type)
    torch.testing.assert_close(encoder.pooled(PAIRS), encoder.pooled([Tokens(p.ids) for p in PAIRS]), atol=0, rtol=0)


def tokenizer_of_pairs() -> Any:
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"abcdefgh"]
    tokenizer = Words(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_input_names=["input_ids", "token_type_ids"],
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
    )


def test_pairs_and_single_texts_are_tokenised_side_by_side() -> None:
    tokenizer = Tokenizer(tokenizer_of_pairs(), 8)
    found = tokenizer([("a b", "c"), "a b", ("a b c d e", "f g"), ("a b", "c")])
    assert found == [
        Tokens((2, 4, 5, 3, 6, 3), (0, 0, 0, 0, 1, 1)),
        Tokens((2, 4, 5, 3)),
        Tokens((2, 4, 5, 6, 3, 9, 10, 3), (0, 0, 0, 0, 0, 1, 1, 1)),  # the longer text is cut
        found[0],
    ]


def test_types_lie_where_their_tokens_lie() -> None:
    from core.encoders.packing import pack

    batch = pack([*PAIRS, *TEXTS], padding_id=0)
    for i, text in enumerate([*PAIRS, *TEXTS]):
        places = batch.places[i][batch.real[i]]
        assert batch.input_ids.flatten()[places].tolist() == list(text.ids)
        assert batch.types.flatten()[places].tolist() == list(text.types or [0] * len(text.ids))
    assert int(batch.types.sum()) == 5
