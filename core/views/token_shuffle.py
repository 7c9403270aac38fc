"""Token shuffling: the words of a text in another order."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from core.encoders.packing import Tokens


def shuffle_tokens(tokens: Tokens, special_ids: Collection[int], rng: np.random.Generator) -> Tokens:
    """The tokens that are not special, with their types, in a random order; special ones keep their places.

    ConSERT permutes position ids under tokens that stay. To attention that knows order from positions only, permuted
    tokens under positions that stay are the same set of pairs (tested), and they also serve encoders with relative
    positions. ConSERT's code moves [CLS] too; here it stays, because its vector is the text's.

    Source: Yan et al. 2021, arXiv:2105.11741, section 3.2.
    """
    movable = np.array([place for place, token in enumerate(tokens.ids) if token not in special_ids], dtype=np.int64)
    order = np.arange(len(tokens.ids))
    order[movable] = rng.permutation(movable)
    ids = tuple(tokens.ids[place] for place in order)
    return Tokens(ids, None if tokens.types is None else tuple(tokens.types[place] for place in order))
