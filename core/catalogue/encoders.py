"""Encoders that forms list by name; they are known to load and to fit. Users may type any other Hub name or folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.messages import N_
from core.models.source import BUNDLED

ENGLISH, CHINESE, KOREAN, MANY = N_("English"), N_("Chinese"), N_("Korean"), N_("multilingual")


@dataclass(frozen=True, slots=True)
class Listed:
    """A Hub name, and the language of the encoder's training texts, marked with `N_`."""

    name: str
    language: str = ENGLISH

    def knows(self, language: str) -> bool:
        return self.language in (language, MANY)


_LISTED = (
    Listed(BUNDLED),
    Listed("distilbert/distilbert-base-uncased"),
    Listed("google/electra-small-discriminator"),
    Listed("microsoft/mpnet-base"),
    Listed("FacebookAI/roberta-base"),
    Listed("FacebookAI/roberta-large"),
    Listed("microsoft/deberta-v3-base"),
    Listed("intfloat/multilingual-e5-small", MANY),
    Listed("sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2", MANY),
    Listed("FacebookAI/xlm-roberta-base", MANY),
    Listed("microsoft/mdeberta-v3-base", MANY),
    Listed("hfl/chinese-roberta-wwm-ext", CHINESE),
    Listed("klue/roberta-base", KOREAN),
    Listed("monologg/koelectra-small-v3-discriminator", KOREAN),
)
LISTED: Mapping[str, Listed] = {encoder.name: encoder for encoder in _LISTED}


def find_encoders(language: str) -> list[str]:
    """Return the listed encoders that know a language; those of that language alone come first."""
    return sorted(
        (name for name, encoder in LISTED.items() if encoder.knows(language)),
        key=lambda name: LISTED[name].language != language,
    )
