"""What each view of the registry makes of a text, word by word, for people to see. Imports no torch.

The random numbers are not those of a run, which depend on its steps and rows: a preview is one example of many.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from core.errors import ConfigError
from core.messages import _
from core.views.entry import ViewEntry
from core.views.registry import VIEWS
from core.views.segments import Subject, ViewPreview

# What the tokenizers of the supported families put around texts; these tokens keep their places.
SPECIAL_TOKENS = frozenset(["[CLS]", "[SEP]", "[PAD]", "<s>", "</s>", "<pad>"])


def text_views(
    text: str | tuple[str, str],
    *,
    seed: int,
    rate: float,
    tokens: Sequence[str] | None = None,
    special: Collection[str] = SPECIAL_TOKENS,
) -> list[ViewPreview]:
    """What every view of the registry makes of a text, in the registry's order.

    Args:
        seed: ≥ 0; same arguments, same previews.
        rate: share of the words or tokens that change, in [0, 1), for the views that have one.
        tokens: of the text under the chosen encoder, special ones included; without them token views are described.
        special: tokens that no view touches.
    Raises: ConfigError for a rate outside [0, 1) or a negative seed.
    """
    if not 0 <= rate < 1:
        raise ConfigError("rate", rate, "give a share from 0 to below 1.")
    if seed < 0:
        raise ConfigError("seed", seed, "give a whole number from 0.")
    texts = (text,) if isinstance(text, str) else tuple(text)
    subject = Subject(texts, None if tokens is None else tuple(tokens), special, seed, rate)
    return [preview for entry in VIEWS.values() for preview in _previews(entry, subject)]


def _previews(entry: ViewEntry, subject: Subject) -> list[ViewPreview]:
    shown = entry.preview(entry, subject) if entry.preview is not None else []
    on_request = entry.by_model is not None
    return shown or [ViewPreview(entry.name, _(entry.label), _sentence(entry), on_request=on_request)]


def _sentence(entry: ViewEntry) -> str:
    """What a view changes where the text does not show it."""
    summary = _(entry.summary)
    if entry.by_model is not None:
        return _("{summary} It is made when asked for.", summary=summary)
    if entry.kind == "text":
        return summary
    if entry.kind == "tokens" or entry.preview is not None:
        return _("{summary} The encoder's tokens show it.", summary=summary)
    return _("{summary}; the words stay.", summary=summary.rstrip(".。"))
