"""Previews of the registered views of a text, word by word.

The random numbers are not those of a run, which depend on its steps and rows: a preview is one example of many.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.catalogue.views import VIEWS, ViewEntry
from core.messages import _
from core.registry import load
from core.texts.eda import eda, row_generator, stream
from core.texts.paraphrases import paraphrase
from core.texts.segments import Segment, Subject, ViewPreview, segments_of


def text_views(
    text: str | tuple[str, str],
    *,
    seed: int,
    rate: float,
    tokens: Sequence[str] | None = None,
) -> list[ViewPreview]:
    """Return previews of all registered views of a text, in the registry's order.

    Args:
        seed: ≥ 0; same arguments, same previews.
        rate: share of the words or tokens that change, in [0, 1), for views with a rate.
        tokens: tokens of the text by the selected encoder, with special tokens; None describes token views in words.
    """
    texts = (text,) if isinstance(text, str) else tuple(text)
    subject = Subject(texts, None if tokens is None else tuple(tokens), seed, rate)
    found: list[ViewPreview] = []
    for entry in VIEWS.values():
        shown = load(entry.preview)(entry, subject) if entry.preview else []
        on_request = bool(entry.by_model)
        found += shown or [ViewPreview(entry.name, _(entry.label), _sentence(entry), on_request=on_request)]
    return found


def _sentence(entry: ViewEntry) -> str:
    """Describe the effect of a view that has no preview of the text."""
    summary = _(entry.summary)
    if entry.by_model:
        return _("{summary} Generated on request.", summary=summary)
    if entry.kind == "text":
        return summary
    if entry.kind == "tokens" or entry.preview:
        return _("{summary} Shown on the encoder's tokens.", summary=summary)
    return _("{summary}; the words do not change.", summary=summary.rstrip(".。"))


def eda_previews(entry: ViewEntry, subject: Subject) -> list[ViewPreview]:
    """Return one preview for each operation."""
    (operations,) = [p.choices for p in entry.parameters if p.name == "operation"]
    found = []
    for operation, label in (operations or {}).items():
        # One generator for both texts of a pair, as in a run.
        rng = row_generator(subject.seed, 0, 0, stream(entry.name, operation))
        views = [eda(text, operation=operation, rate=subject.rate, rng=rng) for text in subject.texts]
        segments = tuple(segments_of(*both) for both in zip(subject.texts, views, strict=True))
        named = _("{view}: {operation}", view=_(entry.label), operation=_(label))
        found.append(ViewPreview(entry.name, named, _(entry.summary), "text", segments))
    return found


def paraphrase_previews(entry: ViewEntry, subject: Subject) -> list[ViewPreview]:
    """Return one preview for each strength."""
    found = []
    for strength, label in (entry.parameters[0].choices or {}).items():
        segments = tuple(segments_of(text, paraphrase(text, strength)) for text in subject.texts)
        named = _("{view}: {operation}", view=_(entry.label), operation=_(label))
        found.append(ViewPreview(entry.name, named, _(entry.summary), "text", segments))
    return found


def shuffle_previews(entry: ViewEntry, subject: Subject) -> list[ViewPreview]:
    if subject.tokens is None:
        return []
    movable = subject.movable
    drawn = row_generator(subject.seed, 0, 0, stream(entry.name)).permutation(movable).tolist()
    order = list(range(len(subject.tokens)))
    for place, origin in zip(movable, drawn, strict=True):
        order[place] = int(origin)
    segments = tuple(
        Segment(subject.tokens[origin], "same" if origin == place else "moved") for place, origin in enumerate(order)
    )
    return [ViewPreview(entry.name, _(entry.label), _(entry.summary), "tokens", (segments,))]


def cutoff_previews(entry: ViewEntry, subject: Subject) -> list[ViewPreview]:
    if subject.tokens is None:
        return []
    movable = subject.movable
    count = max(1, round(subject.rate * len(movable))) if subject.rate and movable else 0
    cut = set(row_generator(subject.seed, 0, 0, stream(entry.name)).permutation(movable)[:count].tolist())
    segments = tuple(
        Segment(token, "removed" if place in cut else "same") for place, token in enumerate(subject.tokens)
    )
    return [ViewPreview(entry.name, _(entry.label), _(entry.summary), "tokens", (segments,))]
