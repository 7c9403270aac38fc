"""Views: where the positives of contrastive learning come from; plain torch, one kind per file.

May import: catalogue, errors, parameters, registry, texts, and what tokens and model files are. When a view is drawn
belongs to training. Views of a text's words are in texts, which needs no torch.
"""

from typing import Any

from core.registry import load

# A package that imported its modules would load torch wherever one of them is named.
HOMES = {
    "RoundTrip": "core.views.back_translation",
    "TranslationCache": "core.views.back_translation",
    "cluster_views": "core.views.token_clusters",
    "row_generator": "core.texts.eda",
    "synonym_source": "core.texts.synonyms",
    "topk_token_views": "core.encoders.readout",
}
__all__ = list(HOMES)


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return load(f"{HOMES[name]}:{name}")
