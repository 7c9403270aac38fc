"""UMAP by umap-learn itself, so that our own maps can be compared with the reference on any run.

Source: McInnes et al. 2018, arXiv:1802.03426; the library: github.com/lmcinnes/umap.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import numpy as np

from core.messages import N_
from core.parameters import Value, number, whole
from core.representation.geometry import Array, normalised
from core.representation.projections.alignment import Points, centred, settled
from core.representation.projections.copies import find_copies
from core.representation.projections.entry import PreviousMap, Projection
from core.representation.projections.pca import pca_map
from core.representation.projections.umap import CAUTION, PARAMETERS


def fit(embeddings: Array, dims: int, settings: Mapping[str, Value], seed: int, before: PreviousMap | None) -> Points:
    """Lay out the normalised rows [N, H] with the library, from its spectral start or from the previous map.

    Args:
        settings: neighbours (including the point itself, limited to N − 1) and min_dist.
    Returns: [N, D], centred, aligned with the previous map. Fewer than D + 3 distinct vectors, too few for the library,
        are laid out by PCA.
    """
    if len(find_copies(embeddings).first) < dims + 3:
        return pca_map(embeddings, dims=dims)
    rows = normalised(embeddings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about imports, threads and disconnected graphs
        from umap import UMAP

        model = UMAP(
            n_components=dims,
            n_neighbors=max(2, min(whole(settings, "neighbours"), len(rows) - 1)),
            min_dist=number(settings, "min_dist"),
            init="spectral" if before is None else np.array(before.points, np.float32),
            random_state=seed,
            n_jobs=1,
        )
        points = model.fit_transform(rows.astype(np.float32))
    return centred(points if before is None else settled(points, before.points))


ENTRIES = (
    Projection(
        "umap-learn",
        "UMAP (umap-learn)",
        4,
        "umap-learn; McInnes et al. 2018, arXiv:1802.03426",
        N_("By umap-learn itself, each fitted frame from the one before: to compare with ours, which holds still."),
        fit,
        caution=CAUTION,
        parameters=PARAMETERS,
        library="umap-learn",
        same_as="umap",
    ),
)
