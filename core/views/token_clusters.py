"""Clusters of the selected tokens of a text. The mean of each cluster is a view."""

from __future__ import annotations

import torch
from torch import Tensor


def cluster_views(vectors: Tensor, mask: Tensor, clusters: int, *, iterations: int = 10) -> tuple[Tensor, Tensor]:
    """Run k-means within each example; a view is the mean of the members of a cluster.

    Directions are clustered (L2-normalised, detached vectors) from a deterministic start: the first token, then
    repeatedly the token farthest from its nearest centre, with ties going to the lowest index. The assignment is
    treated as constant, so gradients are those of plain means of the given vectors. Empty clusters are masked, and so
    are all clusters of an example with fewer tokens than clusters.

    Args:
        vectors: [B, K, H], the most attended token first.
        mask: [B, K] bool; a vector with False belongs to no cluster and gets zero gradient.
        clusters: ≥ 1.
        iterations: ≥ 0 updates of the centres.
    Returns: means [B, clusters, H] in the dtype of `vectors`, zeros where masked, and their mask [B, clusters] bool.
    """
    with torch.autocast(vectors.device.type, enabled=False):
        present = mask.bool()
        vectors = vectors.masked_fill(~present.unsqueeze(-1), 0.0)
        members = cluster_members(vectors.detach(), present, clusters, iterations)  # [B, clusters, K]
        counts = members.sum(2, dtype=vectors.dtype)  # [B, clusters]
        enough = present.sum(1, keepdim=True) >= clusters  # [B, 1]
        weights = members.to(vectors.dtype) / counts.clamp(min=1).unsqueeze(-1)
        weights = weights * enough.unsqueeze(-1)
        return weights @ vectors, (counts > 0) & enough


def cluster_members(vectors: Tensor, present: Tensor, clusters: int, iterations: int = 10) -> Tensor:
    """Assign tokens to clusters as `cluster_views` does: [B, K, H] and [B, K] bool → [B, clusters, K] bool."""
    points = torch.nn.functional.normalize(vectors if vectors.dtype == torch.float64 else vectors.float(), dim=-1)
    centres = _farthest_points(points, present, clusters)  # [B, clusters, H]
    members = _nearest(points, centres, present)
    for _ in range(iterations):
        counts = members.sum(2, keepdim=True)  # [B, clusters, 1]
        means = members.to(points.dtype) @ points / counts.clamp(min=1)
        centres = torch.where(counts > 0, means, centres)  # an empty cluster keeps its centre
        members = _nearest(points, centres, present)
    return members


def _farthest_points(points: Tensor, present: Tensor, clusters: int) -> Tensor:
    chosen = present.int().argmax(1)  # [B], the first token
    nearest = torch.full(present.shape, torch.inf, dtype=points.dtype, device=points.device)  # [B, K]
    centres = []
    for _ in range(clusters):
        centre = points.gather(1, chosen.view(-1, 1, 1).expand(-1, 1, points.shape[-1]))  # [B, 1, H]
        centres.append(centre)
        nearest = torch.minimum(nearest, (points - centre).square().sum(-1))
        # On ties, argmax returns the first.
        chosen = nearest.masked_fill(~present, -torch.inf).argmax(1)
    return torch.cat(centres, dim=1)


def _nearest(points: Tensor, centres: Tensor, present: Tensor) -> Tensor:
    distances = (points.unsqueeze(1) - centres.unsqueeze(2)).square().sum(-1)  # [B, clusters, K]
    nearest = torch.nn.functional.one_hot(distances.argmin(1), centres.shape[1])  # [B, K, clusters]
    return nearest.transpose(1, 2).bool() & present.unsqueeze(1)
