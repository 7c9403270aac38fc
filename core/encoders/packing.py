"""Several texts in one row: no padding inside a batch, and the batch itself stays random.

A row is as long as the batch's longest text; the others are laid end to end in as few rows as first-fit needs. The
mask lets a token see its own text only and positions start anew with each text, so every vector equals the one that
the text would have alone (tested per family).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

NO_TEXT = -1


@dataclass(frozen=True, slots=True)
class PackedBatch:
    """B texts laid into R rows of T tokens.

    Attributes:
        input_ids, positions: [R, T]; positions count from 0 within each text.
        segments: [R, T] number of the text within its row, −1 for padding.
        owners: [R, T] number of the text within the batch, −1 for padding.
        first: [B] index into the flattened [R·T] tokens of each text's first token, in the order of the batch.
    """

    input_ids: Tensor
    positions: Tensor
    segments: Tensor
    owners: Tensor
    first: Tensor

    def to(self, device: torch.device) -> PackedBatch:
        tensors = (self.input_ids, self.positions, self.segments, self.owners, self.first)
        return PackedBatch(*(tensor.to(device, non_blocking=True) for tensor in tensors))


def length_sorted_chunks(texts: Sequence[Sequence[int]], chunks: int) -> list[list[int]]:
    """Text numbers in `chunks` groups of like length, shortest first: little padding where texts cannot share rows."""
    by_length = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    size = -(-len(texts) // chunks)
    return [by_length[start : start + size] for start in range(0, len(texts), size)]


def pack(texts: Sequence[Sequence[int]], padding_id: int, *, share_rows: bool = True) -> PackedBatch:
    """Lay token sequences into rows, longest first, each into the first row with room.

    Args:
        texts: B sequences of token ids, none empty.
        padding_id: fills what is left of a row.
        share_rows: False lays one text into each row.
    """
    row_length = max(len(tokens) for tokens in texts)
    rows: list[list[int]] = []
    room: list[int] = []
    for text in sorted(range(len(texts)), key=lambda i: -len(texts[i])):
        length = len(texts[text])
        row = next((r for r, left in enumerate(room) if share_rows and left >= length), len(rows))
        if row == len(rows):
            rows.append([])
            room.append(row_length)
        rows[row].append(text)
        room[row] -= length

    shape = (len(rows), row_length)
    input_ids = torch.full(shape, padding_id, dtype=torch.long)
    positions = torch.zeros(shape, dtype=torch.long)
    segments = torch.full(shape, NO_TEXT, dtype=torch.long)
    owners = torch.full(shape, NO_TEXT, dtype=torch.long)
    first = torch.empty(len(texts), dtype=torch.long)
    for r, members in enumerate(rows):
        start = 0
        for segment, text in enumerate(members):
            end = start + len(texts[text])
            input_ids[r, start:end] = torch.tensor(texts[text])
            positions[r, start:end] = torch.arange(end - start)
            segments[r, start:end] = segment
            owners[r, start:end] = text
            first[text] = r * row_length + start
            start = end
    return PackedBatch(input_ids, positions, segments, owners, first)
