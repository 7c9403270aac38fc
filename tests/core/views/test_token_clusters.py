"""Cluster views, against a slow loop in float64, and by hand."""

from __future__ import annotations

import numpy as np
import torch

from core.views.token_clusters import cluster_views
from tests.cases import each


def slow_clusters(vectors: np.ndarray, clusters: int, iterations: int) -> list[int]:
    """Return the cluster of each token of one example."""
    points = [v / np.linalg.norm(v) for v in vectors.astype(np.float64)]
    centres = [points[0]]
    while len(centres) < clusters:
        nearest = [min(float(((p - c) ** 2).sum()) for c in centres) for p in points]
        centres.append(points[nearest.index(max(nearest))])

    def assigned() -> list[int]:
        found = []
        for point in points:
            distances = [float(((point - c) ** 2).sum()) for c in centres]
            found.append(distances.index(min(distances)))
        return found

    labels = assigned()
    for _ in range(iterations):
        for cluster in range(clusters):
            members = [p for p, label in zip(points, labels, strict=True) if label == cluster]
            if members:
                centres[cluster] = np.mean(members, axis=0)
        labels = assigned()
    return labels


@each("iterations", [0, 1, 10])
@each("clusters", [1, 2, 5])
def test_means_and_gradients_are_those_of_the_loop(clusters: int, iterations: int) -> None:
    torch.manual_seed(clusters)
    lengths = [9, 14, 5, 3, 0, 14]
    given = torch.randn(len(lengths), 14, 6, dtype=torch.float64) * torch.rand(len(lengths), 14, 1) * 5
    mask = torch.arange(14) < torch.tensor(lengths).unsqueeze(1)
    given[~mask] = torch.nan  # masked tokens must not be read
    vectors, plain = given.clone().requires_grad_(), given.clone().requires_grad_()
    means, found = cluster_views(vectors, mask, clusters, iterations=iterations)
    weights = torch.randn(len(lengths), clusters, 6, dtype=torch.float64)

    expected = torch.zeros(len(lengths), clusters, 6, dtype=torch.float64)
    present = torch.zeros(len(lengths), clusters, dtype=torch.bool)
    total = torch.zeros((), dtype=torch.float64)
    for b, length in enumerate(lengths):
        if length < clusters:
            continue
        labels = slow_clusters(given[b, :length].numpy(), clusters, iterations)
        for cluster in set(labels):
            mean = plain[b, [k for k, label in enumerate(labels) if label == cluster]].mean(0)
            expected[b, cluster] = mean.detach()
            present[b, cluster] = True
            total = total + (mean * weights[b, cluster]).sum()
    torch.testing.assert_close(means.detach(), expected)
    assert torch.equal(found, present)
    total.backward()
    (means * weights).sum().backward()
    torch.testing.assert_close(vectors.grad, plain.grad)


def test_a_float32_batch_finds_the_groups_that_are_there() -> None:
    directions = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    labels = torch.tensor([0, 1, 0, 2, 2, 1, 0])
    torch.manual_seed(0)
    # Lengths differ by a factor of a hundred. Only the direction counts.
    vectors = directions[labels] * torch.logspace(-1, 1, 7).unsqueeze(1) + 0.01 * torch.randn(7, 3)
    found, mask = cluster_views(vectors.unsqueeze(0), torch.ones(1, 7, dtype=torch.bool), 3)
    assert mask.all()
    means = {tuple(row) for row in found[0].mul(1e4).round().int().tolist()}
    expected = torch.stack([vectors[labels == c].mean(0) for c in range(3)])
    assert means == {tuple(row) for row in expected.mul(1e4).round().int().tolist()}


def test_equal_tokens_make_one_cluster_and_the_rest_is_masked() -> None:
    means, mask = cluster_views(torch.ones(1, 4, 3), torch.ones(1, 4, dtype=torch.bool), 3)
    assert mask.tolist() == [[True, False, False]]
    assert means.tolist() == [[[1, 1, 1], [0, 0, 0], [0, 0, 0]]]


def test_of_two_equally_far_tokens_the_first_begins_a_cluster() -> None:
    # Tokens 1 and 2 are equally far from token 0. Without iterations the clusters keep their initial order.
    vectors = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [0.0, -1.0], [0.0, -2.0]]])
    means, _ = cluster_views(vectors, torch.ones(1, 4, dtype=torch.bool), 3, iterations=0)
    assert means.tolist() == [[[1.0, 0.0], [0.0, 1.0], [0.0, -1.5]]]
