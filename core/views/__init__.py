"""Views: where the positives of contrastive learning come from, one kind per file.

May import: errors, lazy, parameters, registry, and what tokens and model files are. When a view is drawn belongs to
training. Names are loaded when first used, so that reading the registry does not import torch. `eda` and `synonyms`
are named as their modules, which would take the names' place here once they are imported: take those two from their
modules.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "RoundTrip": "core.views.back_translation",
    "TranslationCache": "core.views.back_translation",
    "cluster_views": "core.views.token_clusters",
    "row_generator": "core.views.draws",
    "synonym_source": "core.views.synonyms",
    "topk_token_views": "core.views.topk_tokens",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it exports {', '.join(__all__)}")
    return getattr(import_module(_HOMES[name]), name)
