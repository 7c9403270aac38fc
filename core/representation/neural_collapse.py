"""Measures of neural collapse: how close classes are to single points at the corners of a simplex."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from core.messages import N_
from core.representation.geometry import Array, Whole, one_blas_thread

# Translators: keep a colon after the symbol, which alone labels a line.
COLLAPSE: Mapping[str, str] = {
    "nc1": N_("NC1: variance within classes"),
    "nc2_norms": N_("NC2 norms: variation among class means"),
    "nc2_angles": N_("NC2 angles: deviation from a simplex"),
    "nc3": N_("NC3: distance between classifier weights and class means"),
    "nc4": N_(
        "NC4: share of texts whose predicted class is not the class with the nearest mean (where it is 0, the "
        "line breaks, because a log axis has no 0)"
    ),
}


def neural_collapse(
    features: Array, labels: Sequence[int], weights: Array | None = None, predicted: Whole | None = None
) -> dict[str, float]:
    """Compute NC1 to NC4, which all fall to 0 as the features of each class collapse.

    With μ_c the mean of class c, μ the mean of the K class means, and M the matrix of the μ_c − μ:
    nc1 = tr(Σ_W Σ_B⁺) / K; nc2_norms is the coefficient of variation (n − 1) of the ‖μ_c − μ‖; nc2_angles is the mean
    of |cos(μ_c − μ, μ_d − μ) + 1/(K − 1)| over pairs of classes; nc3 = ‖W/‖W‖ − M/‖M‖‖², with Frobenius norms; nc4 is
    the share of rows whose prediction is not the class of the nearest μ_c.

    Args:
        features: [N, d], the inputs of the last linear layer; labels: [N].
        weights, predicted: W [C, d] of that layer, and the predictions [N]; None if no classifier is trained.
    Returns: measures by name. All are left out with fewer than two classes, a class with a single row, or equal class
        means. The nc2 measures are left out for two classes, where they are always 0, and nc3 if W has further classes.
    Source: Papyan, Han & Donoho 2020, doi:10.1073/pnas.2015509117, measured there on training rows.
    """
    rows, given = np.asarray(features, np.float64), np.asarray(labels)
    classes, places, counts = np.unique(given, return_inverse=True, return_counts=True)
    if len(classes) < 2 or counts.min() < 2:
        return {}
    means = np.stack([rows[given == label].mean(0) for label in classes])  # [K, d]
    centred = means - means.mean(0)
    with one_blas_thread():
        _left, spreads, axes = np.linalg.svd(centred / np.sqrt(len(classes)), full_matrices=False)
    kept = spreads > np.abs(means).max() * max(means.shape) * np.finfo(np.float32).eps
    if not kept.any():
        return {}
    within = (rows - means[places]) @ axes[kept].T / spreads[kept]
    found = {"nc1": float(np.square(within).sum() / len(rows) / len(classes))}
    norms = np.linalg.norm(centred, axis=1)
    if len(classes) > 2 and norms.min() > 0:
        cosines = (centred @ centred.T / np.outer(norms, norms))[np.triu_indices(len(classes), 1)]
        found["nc2_norms"] = float(norms.std(ddof=1) / norms.mean())
        found["nc2_angles"] = float(np.abs(cosines + 1 / (len(classes) - 1)).mean())
    if weights is not None and len(weights) == len(classes):
        gap = weights / np.linalg.norm(weights) - centred / np.linalg.norm(centred)
        found["nc3"] = float(np.square(gap).sum())
    if predicted is not None:
        nearest = (np.square(means).sum(1) - 2 * rows @ means.T).argmin(1)
        found["nc4"] = float((classes[nearest] != predicted).mean())
    return found
