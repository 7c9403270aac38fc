"""The choice of tokens, against a slow loop and by hand."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from core.views import topk_token_views
from tests.cases import each


def by_hand(attention: Tensor, mask: Tensor, special: Tensor, k: int) -> tuple[list[list[int]], list[list[bool]]]:
    indices, view_mask = [], []
    for row, real, added in zip(attention.double(), mask, special, strict=True):
        means = (row.mean(0) if row.ndim == 2 else row).tolist()
        left = [t for t in range(len(means)) if real[t] and not added[t]]
        chosen = []
        while left and len(chosen) < k:
            best = left[0]
            for t in left:
                if means[t] > means[best]:
                    best = t
            chosen.append(best)
            left.remove(best)
        missing = k - len(chosen)
        indices.append(chosen + [0] * missing)
        view_mask.append([True] * len(chosen) + [False] * missing)
    return indices, view_mask


@each("k", [1, 3, 7, 12])
@each("heads", [None, 1, 4])
def test_random_rows_match_the_loop(heads: int | None, k: int) -> None:
    generator = torch.Generator().manual_seed(k)
    shape = (6, 7) if heads is None else (6, heads, 7)
    # Few levels, so that ties are common; exact in float32.
    attention = torch.randint(0, 4, shape, generator=generator) / 8
    mask = torch.arange(7) < torch.tensor([[7], [5], [3], [2], [7], [1]])
    special = torch.rand(6, 7, generator=generator) < 0.3
    special[:, 0] = True
    found = topk_token_views(attention, mask, special, k)
    indices, view_mask = by_hand(attention, mask, special, k)
    assert found.indices.tolist() == indices
    assert found.view_mask.tolist() == view_mask


def test_of_many_equal_tokens_the_first_are_chosen_without_gradient() -> None:
    attention = torch.full((1, 300), 1 / 300, requires_grad=True)
    none = torch.zeros(1, 300, dtype=torch.bool)
    found = topk_token_views(attention, ~none, none, 50)
    assert found.indices.tolist() == [list(range(50))]
    assert not any(tensor.requires_grad for tensor in found)


def test_a_row_without_words_is_masked_and_finite() -> None:
    attention = torch.full((2, 3, 4), torch.nan)
    mask = torch.tensor([[1, 1, 0, 0], [0, 0, 0, 0]])
    found = topk_token_views(attention, mask, torch.ones(2, 4), 2)
    assert not found.view_mask.any()
    assert not found.indices.any()


@each(
    ("shapes", "k", "message"),
    [
        (((2, 5), (2, 5), (2, 5)), 0, r"k = 0: expected at least 1"),
        (((5,), (2, 5), (2, 5)), 1, r"cls_attention = \[5\]: expected a shape"),
        (((2, 3, 5, 5), (2, 5), (2, 5)), 1, r"cls_attention = \[2, 3, 5, 5\]: expected a shape"),
        (((2, 3, 5), (2, 4), (2, 5)), 1, r"attention_mask = \[2, 4\]: expected the shape \[2, 5\]"),
        (((2, 3, 5), (2, 5), (3, 5)), 1, r"special_tokens_mask = \[3, 5\]: expected the shape \[2, 5\]"),
    ],
)
def test_what_does_not_fit_is_refused(shapes: tuple[tuple[int, ...], ...], k: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        topk_token_views(*(torch.zeros(shape) for shape in shapes), k)
