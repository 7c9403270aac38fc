"""umap-learn, the peer of our UMAP; what it says while it is imported is not about us."""

from __future__ import annotations

import warnings
from types import ModuleType


def umap_learn() -> ModuleType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import umap.umap_ as module
    return module
