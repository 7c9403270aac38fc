"""Sums over all pairs of a batch without storing the matrix of all pairs.

z·zᵀ is symmetric, so a strip of rows needs only the columns from its first row onwards. Each entry counts for its row
and for its column. The backward pass recomputes the strips instead of storing them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

# Up to this exponent, exp(s) and its sums fit float32 without subtracting the maximum first.
SAFE_EXPONENT = 60.0


def others_logsumexp(z: Tensor, temperature: float, groups: Tensor | None = None) -> Tensor:
    """Compute log Σ_{j≠i} exp(z_i·z_j/τ) of every row, without the matrix of all pairs.

    Args:
        z: [M, d], float32 or float64, of any norm.
        temperature: > 0, unitless.
        groups: [M] integers; if given, the sum runs only over the other rows of i's group.
    Returns: [M], exact at any temperature; differentiable once.
    Raises: RuntimeError if its gradient is computed with create_graph=True.
    Edge: a row without candidates gives −inf and no gradient.
    """
    if groups is None:
        return _RowLogSumExp.apply(z, None, temperature)
    order = groups.argsort(stable=True)
    return _RowLogSumExp.apply(z[order], groups[order], temperature)[order.argsort()]


def group_similarity(z: Tensor, groups: Tensor) -> tuple[Tensor, Tensor]:
    """Compute Σ z_i·z_p over the other rows p of i's group, and the number of those rows.

    Args:
        z: [M, d].
        groups: [M] integers from 0.
    Returns: [M] sums and [M] counts.
    Edge: for a row alone in its group the count is 0, and so is the sum up to rounding.
    """
    sizes = groups.bincount()
    sums = z.new_zeros(len(sizes), z.shape[1]).index_add(0, groups, z)  # [groups, d]
    return (z * (sums[groups] - z)).sum(1), sizes[groups] - 1


class _RowLogSumExp(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, groups: Tensor | None, temperature: float) -> Tensor:
        z = z.contiguous()
        bounded = bool((z.square().sum(1) <= SAFE_EXPONENT * temperature).all())
        if bounded:
            sums = z.new_zeros(len(z))
            for start, stop, end, s in _strips(z, groups, temperature):
                s.exp_()
                sums[start:stop] += s.sum(1)
                sums[stop:end] += s[:, stop - start :].sum(0)
            found = sums.log()
        else:
            found = z.new_full((len(z),), -math.inf)
            for start, stop, end, s in _strips(z, groups, temperature):
                found[start:stop] = found[start:stop].logaddexp(s.logsumexp(1))
                found[stop:end] = found[stop:end].logaddexp(s[:, stop - start :].logsumexp(0))
        ctx.save_for_backward(z, groups, found)
        ctx.temperature, ctx.bounded = temperature, bounded
        return found

    @staticmethod
    def backward(ctx: Any, incoming: Tensor) -> tuple[Tensor, None, None]:
        # With create_graph: the code below builds no graph, so a second derivative would silently be 0.
        if torch.is_grad_enabled():
            raise RuntimeError("create_graph = True: expected False, a sum in strips can be differentiated only once")
        z, groups, found = ctx.saved_tensors
        with torch.autocast(z.device.type, enabled=False):
            gradient = torch.zeros_like(z)
            spare: Tensor | None = None
            for start, stop, end, s in _strips(z, groups, ctx.temperature):
                spare = s.new_empty(s.numel()) if spare is None or spare.numel() < s.numel() else spare
                pair = spare[: s.numel()].view_as(s)
                rows, columns = slice(start, stop), slice(start, end)
                weigh = _weigh_bounded if ctx.bounded else _weigh
                weigh(s, pair, found[rows], found[columns], incoming[rows], incoming[columns])
                # s is now g_i p_ij + g_j p_ji: one strip updates its rows and, transposed, its columns.
                gradient[rows].addmm_(s, z[columns], alpha=1 / ctx.temperature)
                gradient[stop:end].addmm_(s[:, stop - start :].T, z[rows], alpha=1 / ctx.temperature)
        return gradient, None, None


def _weigh_bounded(
    s: Tensor, pair: Tensor, row_lse: Tensor, column_lse: Tensor, row_g: Tensor, column_g: Tensor
) -> None:
    """Overwrite s with exp(s_ij)·(g_i/Σ_i + g_j/Σ_j): one exponential serves both directions."""
    row_share = torch.where(row_lse.isinf(), 0.0, row_g * (-row_lse).exp())
    column_share = torch.where(column_lse.isinf(), 0.0, column_g * (-column_lse).exp())
    torch.add(row_share.unsqueeze(1), column_share, out=pair)
    s.exp_().mul_(pair)


def _weigh(s: Tensor, pair: Tensor, row_lse: Tensor, column_lse: Tensor, row_g: Tensor, column_g: Tensor) -> None:
    """Overwrite s with g_i·exp(s_ij − lse_i) + g_j·exp(s_ij − lse_j), for s of any magnitude."""
    # Without candidates, lse and s are −inf: replacing lse by +inf gives exp(−inf) = 0 instead of NaN.
    row_lse = torch.where(row_lse == -math.inf, math.inf, row_lse).unsqueeze(1)
    column_lse = torch.where(column_lse == -math.inf, math.inf, column_lse)
    torch.sub(s, row_lse, out=pair).exp_().mul_(row_g.unsqueeze(1))
    s.sub_(column_lse).exp_().mul_(column_g).add_(pair)


def _strips(z: Tensor, groups: Tensor | None, temperature: float) -> Iterator[tuple[int, int, int, Tensor]]:
    """Yield the upper half of z·zᵀ/τ from top to bottom; every strip reuses the memory of the previous one.

    Equal groups must be adjacent; a strip then ends with the group of its last row.

    Yields: start, stop and end of a strip, and the similarities of rows [start, stop) with columns [start, end), −inf
        for pairs that do not count.
    """
    m = len(z)
    height = strip_height(m)
    ends = [m] * m
    if groups is not None:  # for each row, the first row after its group
        counts = groups.unique_consecutive(return_counts=True)[1]
        ends = counts.cumsum(0).repeat_interleave(counts).tolist()
    memory: Tensor | None = None
    for start in range(0, m, height):
        stop = min(m, start + height)
        end = ends[stop - 1]
        size = (stop - start) * (end - start)
        memory = z.new_empty(size) if memory is None or memory.numel() < size else memory
        s = memory[:size].view(stop - start, end - start)
        torch.mm(z[start:stop] / temperature, z[start:end].T, out=s)
        s.diagonal().fill_(-math.inf)
        if groups is not None and ends[start] != end:
            s.masked_fill_(groups[start:stop].unsqueeze(1) != groups[start:end], -math.inf)
        yield start, stop, end, s


def strip_height(m: int) -> int:
    """Return the number of rows per strip for a batch of m: enough for fast products, few enough to fit the cache."""
    return 512 if m >= 4096 else 256
