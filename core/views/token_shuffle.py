"""Token shuffling: the words of a text in another order."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from core.lazy import lazy
from core.messages import N_, _
from core.views.draws import row_generator, stream
from core.views.entry import CONSERT, ViewEntry
from core.views.segments import Segment, Subject, ViewPreview

if TYPE_CHECKING:
    from core.encoders import packing
    from core.encoders.packing import Tokens
else:
    packing = lazy("core.encoders.packing")


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
    return packing.Tokens(ids, None if tokens.types is None else tuple(tokens.types[place] for place in order))


def _preview(entry: ViewEntry, subject: Subject) -> list[ViewPreview]:
    if subject.tokens is None:
        return []
    movable = subject.movable
    drawn = row_generator(subject.seed, 0, 0, stream(entry.name)).permutation(movable).tolist()
    order = list(range(len(subject.tokens)))
    for place, origin in zip(movable, drawn, strict=True):
        order[place] = int(origin)
    segments = tuple(
        Segment(subject.tokens[origin], "same" if origin == place else "moved") for place, origin in enumerate(order)
    )
    return [ViewPreview(entry.name, _(entry.label), _(entry.summary), "tokens", (segments,), tuple(order))]


ENTRIES = (
    ViewEntry(
        name="token_shuffle",
        label=N_("Token shuffle"),
        summary=N_("The tokens take each other's positions."),
        source=CONSERT,
        kind="tokens",
        others_compute=N_("ConSERT's code moves [CLS] and [SEP] too; here they stay."),
        place=4,
        tokens=shuffle_tokens,
        preview=_preview,
    ),
)
