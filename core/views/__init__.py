"""Views: where the positives of contrastive learning come from, one kind per file.

May import: errors, lazy, parameters, registry, and what tokens and model files are. When a view is drawn belongs to
training. torch is loaded when a view is first drawn. `eda` and `synonyms` are named as their modules, which would take
the names' place here: take those two from their modules.
"""

from core.encoders.topk_tokens import topk_token_views
from core.views.back_translation import RoundTrip, TranslationCache
from core.views.draws import row_generator
from core.views.synonyms import synonym_source
from core.views.token_clusters import cluster_views

__all__ = [
    "RoundTrip",
    "TranslationCache",
    "cluster_views",
    "row_generator",
    "synonym_source",
    "topk_token_views",
]
