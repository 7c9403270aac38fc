"""Packing of several texts into one row: little padding, without sorting batches by length.

Texts are laid end to end in rows. The row length is the cheapest between one and two times the longest text. The
mask restricts a token to its own text, and positions restart with each text, so every vector equals that of the text
alone (tested per family).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

NO_TEXT = -1

# Number of row lengths tried for a batch. Above SEARCHED_BATCH texts, the shortest already fills rows well.
ROW_LENGTHS_TRIED = 16
SEARCHED_BATCH = 64
# The row length at which attention costs as much as everything else, on a CPU with blocks 384 wide.
ATTENTION_LENGTH = 300


class Tokens(NamedTuple):
    """A tokenised text or pair of texts.

    Attributes:
        ids: token ids, including special tokens.
        types: 0 for the first text of a pair and 1 for the second, per token; None for all 0.
    """

    ids: tuple[int, ...]
    types: tuple[int, ...] | None = None


class PackedBatch(NamedTuple):
    """B texts packed into R rows of T tokens.

    Attributes:
        input_ids, positions: [R, T]; positions count from 0 within each text.
        owners: [R, T] number of the text within the batch, −1 for padding.
        types: [R, T] token types, 0 for padding.
        places: [B, longest text] index of each text's tokens in the flattened [R·T] tokens, −1 beyond its end.
    """

    input_ids: Tensor
    positions: Tensor
    owners: Tensor
    types: Tensor
    places: Tensor

    def to(self, device: torch.device) -> PackedBatch:
        return PackedBatch(*(tensor.to(device, non_blocking=True) for tensor in self))

    @property
    def first(self) -> Tensor:
        """Return the index of each text's first token in the flattened tokens, [B]."""
        return self.places[:, 0]

    @property
    def real(self) -> Tensor:
        """Return the mask [B, longest text] of the entries of `places` that are tokens."""
        return self.places != NO_TEXT

    def by_text(self, values: Tensor) -> Tensor:
        """Reorder values by text, [R, T, …] → [B, longest text, …]; values beyond a text's end are meaningless."""
        return values.flatten(0, 1)[self.places.clamp(min=0)]

    def lay(self, states: Sequence[Tensor]) -> Tensor:
        """Lay B sequences [tokens of the text, H] into rows [R, T, H], zeros at padding."""
        joined = torch.cat(list(states))  # [all tokens, H]
        rows = joined.new_zeros(self.input_ids.numel(), joined.shape[-1])  # [R·T, H]
        return rows.index_copy(0, self.places[self.real], joined).unflatten(0, self.input_ids.shape)


def length_sorted_chunks(texts: Sequence[Tokens], chunks: int) -> list[list[int]]:
    """Split text numbers into `chunks` groups of similar length, shortest first, to reduce padding."""
    by_length = sorted(range(len(texts)), key=lambda i: len(texts[i].ids))
    size = -(-len(texts) // chunks)
    return [by_length[start : start + size] for start in range(0, len(texts), size)]


def pack(
    texts: Sequence[Tokens], padding_id: int, *, share_rows: bool = True, longest_row: int | None = None
) -> PackedBatch:
    """Lay token sequences into rows.

    Args:
        texts: B tokenised texts or pairs, none empty.
        padding_id: id that fills the rest of a row.
        share_rows: False puts one text into each row.
        longest_row: maximum number of tokens per row; None for twice the longest text.
    """
    lengths = tuple(len(text.ids) for text in texts)
    rows = _cheapest_rows(lengths, longest_row or 2 * max(lengths)) if share_rows else [[i] for i in range(len(texts))]
    row_length = max(sum(lengths[i] for i in row) for row in rows)

    shape = (len(rows), row_length)
    # NumPy is several times faster than torch for small slices.
    input_ids = np.full(shape, padding_id, np.int64)
    positions = np.zeros(shape, np.int64)
    owners = np.full(shape, NO_TEXT, np.int64)
    types = np.zeros(shape, np.int64)
    places = np.full((len(texts), max(lengths)), NO_TEXT, np.int64)
    counted = np.arange(max(lengths))
    for r, members in enumerate(rows):
        start = 0
        for text in members:
            length = lengths[text]
            end = start + length
            input_ids[r, start:end] = texts[text].ids
            positions[r, start:end] = counted[:length]
            if (of_pair := texts[text].types) is not None:
                types[r, start:end] = of_pair
            owners[r, start:end] = text
            places[text, :length] = counted[:length] + (r * row_length + start)
            start = end
    arrays = (input_ids, positions, owners, types, places)
    return PackedBatch(*(torch.from_numpy(values) for values in arrays))


@lru_cache(maxsize=256)  # cells of a surface read the same batches, and every frame the same texts
def _cheapest_rows(lengths: tuple[int, ...], longest_row: int) -> Sequence[Sequence[int]]:
    """Return the text numbers of each row, for the cheapest of several row lengths.

    Longer rows reduce padding but increase the cost of attention, which is quadratic in their length.
    """
    shortest = max(lengths)
    span = max(0, min(2 * shortest, longest_row) - shortest)
    tried = ROW_LENGTHS_TRIED if len(lengths) <= SEARCHED_BATCH else 1

    def cost(rows: list[list[int]]) -> float:
        row_length = max(sum(lengths[i] for i in row) for row in rows)
        return len(rows) * row_length * (1 + row_length / ATTENTION_LENGTH)

    capacities = sorted({shortest + span * i // tried for i in range(tried)})
    return min((_first_fit(lengths, capacity) for capacity in capacities), key=cost)


def _first_fit(lengths: Sequence[int], capacity: int) -> list[list[int]]:
    """Place texts, longest first, each into the first row with enough space."""
    rows: list[list[int]] = []
    room: list[int] = []
    for text in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        row = next((r for r, left in enumerate(room) if left >= lengths[text]), len(rows))
        if row == len(rows):
            rows.append([])
            room.append(capacity)
        rows[row].append(text)
        room[row] -= lengths[text]
    return rows
