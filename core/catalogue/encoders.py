"""Encoders that forms list by name; they are known to load and to fit. Users may type any other Hub name or folder."""

from __future__ import annotations

from collections.abc import Mapping

from core.messages import N_
from core.models.source import BUNDLED

ENGLISH, CHINESE, KOREAN, MANY = N_("English"), N_("Chinese"), N_("Korean"), N_("multilingual")
# Hub names, each with the language of the encoder's training texts.
LISTED: Mapping[str, str] = {
    BUNDLED: ENGLISH,
    "distilbert/distilbert-base-uncased": ENGLISH,
    "google/electra-small-discriminator": ENGLISH,
    "microsoft/mpnet-base": ENGLISH,
    "FacebookAI/roberta-base": ENGLISH,
    "FacebookAI/roberta-large": ENGLISH,
    "microsoft/deberta-v3-base": ENGLISH,
    "intfloat/multilingual-e5-small": MANY,
    "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2": MANY,
    "FacebookAI/xlm-roberta-base": MANY,
    "microsoft/mdeberta-v3-base": MANY,
    "hfl/chinese-roberta-wwm-ext": CHINESE,
    "klue/roberta-base": KOREAN,
    "monologg/koelectra-small-v3-discriminator": KOREAN,
}
