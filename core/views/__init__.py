"""Views: sources of positives for contrastive learning, in plain torch with one kind per file.

May import: catalogue, errors, parameters, registry, texts, and the modules that define tokens and model files. Training
decides when to draw a view. Views that edit the words of a text are in texts, which needs no torch.
"""

from typing import Any

from core.registry import load

# Imports are lazy: importing the modules here would load torch with every import of the package.
HOMES = {
    "RoundTrip": "core.views.back_translation",
    "TranslationCache": "core.views.back_translation",
    "cluster_views": "core.views.token_clusters",
    "row_generator": "core.texts.eda",
    "topk_token_views": "core.encoders.taps",
}
__all__ = list(HOMES)


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return load(f"{HOMES[name]}:{name}")
