"""CutMix of texts: a span of a text's tokens is replaced by that of its partner.

Replacing token ids at unchanged positions replaces their word embeddings, because nothing else in the embedding layer
depends on the ids.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from core.encoders.packing import Tokens


def cutmix(
    texts: Sequence[Tokens], special_ids: Collection[int], concentration: float, rng: np.random.Generator
) -> tuple[list[Tokens], list[int], list[float]]:
    """Replace a contiguous span of each text's tokens by the tokens at the same places of another text.

    Special tokens are neither replaced nor copied. The share of the span is drawn once for the batch, its place for
    each text. A span ends at the latest where the shorter of the two texts does.

    Args:
        concentration: a > 0; the replaced share is drawn from Beta(a, a).
    Returns: the mixed texts [B], the row number of each text's partner [B], and the share of each text's own tokens
        among those that are not special [B]; 1 for a text without any.
    Source: Yun et al. 2019, arXiv:1905.04899, for images; λ is the share that is left, and weights the own label.
    """
    partners = [int(row) for row in rng.permutation(len(texts))]
    cut = rng.beta(concentration, concentration)
    movable = [[place for place, token in enumerate(text.ids) if token not in special_ids] for text in texts]
    mixed, shares = [], []
    for own, partner in enumerate(partners):
        ids, size = list(texts[own].ids), len(movable[own])
        both = min(size, len(movable[partner]))
        length = min(both, round(cut * size))
        first = int(rng.integers(both - length + 1))
        for at in range(first, first + length):
            ids[movable[own][at]] = texts[partner].ids[movable[partner][at]]
        mixed.append(Tokens(tuple(ids), texts[own].types))
        shares.append(1 - length / size if size else 1.0)
    return mixed, partners, shares
