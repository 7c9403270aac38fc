"""Texts and pairs of texts to the tokens that an encoder reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.encoders.packing import Tokens


class Tokenizer:
    """Texts and pairs of texts to tokens, each once."""

    def __init__(self, tokenizer: Any, max_length: int) -> None:
        self._tokenizer = tokenizer
        self._max_length = max_length
        self._seen: dict[str | tuple[str, str], Tokens] = {}

    def __call__(self, texts: Sequence[str | tuple[str, str]], *, keep: bool = True) -> list[Tokens]:
        """A pair gets the tokenizer's own pair template; its longer text is cut first.

        Args:
            keep: whether the tokens of new texts are kept for the next time.
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

    def _tokens(self, *sides: list[str]) -> list[Tokens]:
        found = self._tokenizer(*sides, truncation=True, max_length=self._max_length)
        ids = found["input_ids"]
        types = found.get("token_type_ids") or [()] * len(ids)
        return [Tokens(tuple(i), tuple(t) if any(t) else None) for i, t in zip(ids, types, strict=True)]


def special_ids(tokenizer: Any) -> frozenset[int]:
    """What a tokenizer adds around texts; [UNK] and [MASK] stand for words."""
    names = ("cls", "sep", "pad", "bos", "eos")
    ids = (getattr(tokenizer, f"{name}_token_id", None) for name in names)
    return frozenset(i for i in ids if i is not None)
