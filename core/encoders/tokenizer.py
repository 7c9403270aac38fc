"""Tokenisation of texts and pairs of texts for an encoder."""

from __future__ import annotations

import copy
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from core.encoders.packing import Tokens
from core.events import TokenText, Word


class Tokenizer:
    """A tokenizer for texts and pairs that caches its results."""

    # A fast tokenizer refuses a second thread. Copies share the lock, because a lock cannot be copied.
    _lock = threading.Lock()

    def __init__(self, tokenizer: Any, max_length: int) -> None:
        self._tokenizer = tokenizer
        self._max_length = max_length
        self._seen: dict[str | tuple[str, str], Tokens] = {}

    def __call__(self, texts: Sequence[str | tuple[str, str]], *, keep: bool = True) -> list[Tokens]:
        """Tokenise texts. Pairs use the tokenizer's pair template, which truncates the longer text first.

        Args:
            keep: cache the tokens of new texts.
        """
        new = [text for text in dict.fromkeys(texts) if text not in self._seen]
        singles = [text for text in new if isinstance(text, str)]
        pairs = [text for text in new if not isinstance(text, str)]
        fresh: dict[str | tuple[str, str], Tokens] = {}
        if singles:
            fresh.update(zip(singles, self._tokens(singles), strict=True))
        if pairs:
            fresh.update(zip(pairs, self._tokens(*(list(side) for side in zip(*pairs, strict=True))), strict=True))
        if keep:
            self._seen |= fresh
        return [fresh[text] if text in fresh else self._seen[text] for text in texts]

    def save(self, folder: Path) -> None:
        """Save the tokenizer in the format of transformers, with the same maximum length."""
        tokenizer = copy.deepcopy(self._tokenizer)
        tokenizer.model_max_length = self._max_length
        tokenizer.save_pretrained(folder)

    def words(self, texts: Sequence[str | tuple[str, str]], *, each_token: bool = False) -> list[TokenText] | None:
        """Return each text split into words with their tokens; None for a tokenizer without word offsets.

        Args:
            each_token: treat every token as a word.
        """
        if not self._tokenizer.is_fast:
            return None
        pairs = [(text,) if isinstance(text, str) else text for text in texts]
        found = self._tokenizer(
            *(list(side) for side in zip(*pairs, strict=True)),
            truncation=True,
            max_length=self._max_length,
            return_offsets_mapping=True,
        )
        read = []
        for sides, encoding in zip(pairs, found.encodings, strict=True):
            owners = range(len(encoding)) if each_token else encoding.word_ids
            read.append(TokenText(sides, _words(sides, owners, encoding.sequence_ids, encoding.offsets), len(encoding)))
        return read

    def _tokens(self, *sides: list[str]) -> list[Tokens]:
        with self._lock:
            found = self._tokenizer(*sides, truncation=True, max_length=self._max_length)
        ids = found["input_ids"]
        types = found.get("token_type_ids") or [()] * len(ids)
        return [Tokens(tuple(i), tuple(t) if any(t) else None) for i, t in zip(ids, types, strict=True)]


def _words(
    sides: Sequence[str],
    words: Sequence[int | None],
    sequences: Sequence[int | None],
    spans: Sequence[tuple[int, int]],
) -> tuple[Word, ...]:
    """Join word pieces into words. A leading space in a span is not part of the word."""
    found: dict[tuple[int, int], list[int]] = {}
    for place, (word, side) in enumerate(zip(words, sequences, strict=True)):
        if word is not None and side is not None:
            found.setdefault((side, word), []).append(place)
    joined = []
    for (side, _), places in found.items():
        start, end = min(spans[place][0] for place in places), max(spans[place][1] for place in places)
        start += len(sides[side][start:end]) - len(sides[side][start:end].lstrip())
        if start < end:  # some tokenizers create tokens for invisible characters
            joined.append(Word(side, start, end, tuple(places)))
    return tuple(joined)


def special_ids(tokenizer: Any) -> frozenset[int]:
    """Return the ids of tokens that a tokenizer adds to texts. [UNK] and [MASK] are left out: they replace words."""
    names = ("cls", "sep", "pad", "bos", "eos")
    ids = (getattr(tokenizer, f"{name}_token_id", None) for name in names)
    return frozenset(i for i in ids if i is not None)
