"""Views: sources of positives for contrastive learning, in plain torch with one kind per file.

May import: catalogue, errors, parameters, registry, texts, and the modules that define tokens and model files. Training
decides when to draw a view. Views that edit the words of a text are in texts, which needs no torch.
"""

from typing import Any

from core.registry import load


def __getattr__(name: str) -> Any:
    """Load `topk_token_views` on demand: importing it here would load torch with every import of the package."""
    if name != "topk_token_views":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return load(f"core.encoders.taps:{name}")
