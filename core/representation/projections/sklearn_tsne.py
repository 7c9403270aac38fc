"""t-SNE as scikit-learn lays it out, so that our still maps can be compared with the reference on any run.

Source: van der Maaten & Hinton 2008; van der Maaten 2014 (Barnes-Hut), as in scikit-learn.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from core.messages import N_
from core.parameters import Value, number
from core.representation.geometry import Array, normalised
from core.representation.projections.alignment import Points, centred, settled
from core.representation.projections.before import Before
from core.representation.projections.copies import find_copies
from core.representation.projections.entry import Projection
from core.representation.projections.pca import pca_map
from core.representation.projections.tsne import CAUTION, PARAMETERS

# As the library scales its own start.
START_WIDTH = 1e-4


def fit(embeddings: Array, dims: int, settings: Mapping[str, Value], seed: int, before: Before | None) -> Points:
    """Lay out the normalised rows [N, H] by the library, from their PCA or from the map before.

    Args:
        settings: perplexity; at most (N − 1)/3 is taken.
    Returns: [N, D], centred, turned onto the map before; fewer than D + 3 different vectors, too few for the library,
        are laid out by their PCA.
    """
    if len(find_copies(embeddings).first) < dims + 3:
        return pca_map(embeddings, dims=dims)
    from sklearn.manifold import TSNE

    rows = normalised(embeddings)
    model = TSNE(
        n_components=dims,
        perplexity=max(1.0, min(number(settings, "perplexity"), (len(rows) - 1) / 3)),
        init=_start(before, narrow=rows.shape[1] < dims),
        random_state=seed,
        n_jobs=1,
    )
    points = model.fit_transform(rows.astype(np.float32))
    return centred(points if before is None else settled(points, before.points))


def _start(before: Before | None, *, narrow: bool) -> str | Array:
    """The map before, as small as the library's own start. Args: narrow: vectors have too few columns for their PCA."""
    if before is None or not np.ptp(before.points):
        return "random" if narrow else "pca"
    points = np.asarray(before.points, np.float32)
    width = np.float32(max(np.std(points[:, 0]), np.finfo(np.float32).tiny))
    return points / width * np.float32(START_WIDTH)


ENTRIES = (
    Projection(
        "tsne-sklearn",
        "t-SNE (scikit-learn)",
        3,
        "scikit-learn; van der Maaten & Hinton 2008",
        N_("By scikit-learn itself, each fitted frame from the one before: to compare with ours, which holds still."),
        fit,
        caution=CAUTION,
        parameters=PARAMETERS,
        library="scikit-learn",
        same_as="tsne",
    ),
)
