"""Pairs of texts. Families with token types receive those types."""

from __future__ import annotations

import copy
from pathlib import Path

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from core.encoders.model import Encoder, Tokenizer
from core.encoders.packing import Tokens, pack
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


def test_pairs_and_single_texts_are_tokenised_side_by_side(tiny_encoder: Path) -> None:
    names = ["input_ids", "token_type_ids"]
    tokenizer = Tokenizer(AutoTokenizer.from_pretrained(tiny_encoder, model_input_names=names), 8)
    pair = ("lovely bright", "warm")
    found = tokenizer([pair, "lovely bright", ("lovely bright warm clever funny", "tender dull"), pair])
    assert found == [
        Tokens((2, 4, 5, 3, 6, 3), (0, 0, 0, 0, 1, 1)),
        Tokens((2, 4, 5, 3)),
        Tokens((2, 4, 5, 6, 3, 9, 10, 3), (0, 0, 0, 0, 0, 1, 1, 1)),  # the longer text is cut
        found[0],
    ]


def test_types_lie_where_their_tokens_lie() -> None:
    batch = pack([*PAIRS, *TEXTS], padding_id=0)
    for i, text in enumerate([*PAIRS, *TEXTS]):
        places = batch.places[i][batch.real[i]]
        assert batch.input_ids.flatten()[places].tolist() == list(text.ids)
        assert batch.types.flatten()[places].tolist() == list(text.types or [0] * len(text.ids))
    assert int(batch.types.sum()) == 5
