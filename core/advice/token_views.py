"""The number of vectors that represent a text when its tokens are contrasted, known before a run.

k is a maximum, and a text may have fewer tokens, so the audit counts the actual tokens.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from core.advice.counting import token_counter
from core.advice.estimate import SPECIAL_TOKENS, estimated_tokens
from core.advice.positives import ClassViews, class_views
from core.config.plan import TermPlan
from core.models.source import tokenizer_file
from core.parameters import whole
from core.tasks import Split

# Texts that are counted, spread over the training rows.
COUNTED_TEXTS = 2_000


class TokenCounts(NamedTuple):
    """Tokens that the encoder reads of some training texts, without special ones, with the labels of these texts.

    `exact` is False if they are estimated from characters because the tokenizer is not on this machine yet.
    """

    labels: tuple[int, ...]
    tokens: tuple[int, ...]
    exact: bool


def count_tokens(encoder_id: str, train: Split, max_length: int) -> TokenCounts:
    """Count the tokens of up to COUNTED_TEXTS training texts.

    Raises: EncoderError or ConfigError for an encoder that cannot be read.
    """
    rows = np.linspace(0, len(train) - 1, min(COUNTED_TEXTS, len(train))).astype(int)
    chosen = train.take([int(row) for row in rows])
    exact = tokenizer_file(encoder_id) is not None
    if exact:
        empty = "" if chosen.seconds is None else ("", "")
        special, *counts = token_counter(encoder_id)([empty, *chosen.inputs]).counts
    else:
        special, counts = SPECIAL_TOKENS, [int(count) for count in estimated_tokens(chosen.shown, len(chosen))]
    tokens = tuple(max(0, min(max_length, count) - special) for count in counts)
    return TokenCounts(tuple(chosen.labels), tokens, exact)


def vectors_of(tokens: int, term: TermPlan) -> int:
    """Return the number of vectors that represent a text of this length: at most k per pass, or its clusters.

    A text with fewer tokens than clusters has none.
    """
    chosen, clusters = min(tokens, whole(term.term.parameters, "k")), whole(term.term.parameters, "clusters")
    of_a_pass = chosen if not clusters else clusters if chosen >= clusters else 0
    return of_a_pass * len(term.groups[0])


def token_class_views(counted: TokenCounts, term: TermPlan, classes: int) -> list[ClassViews]:
    """Return the ClassViews of each class; a class without counted texts uses the texts of all classes."""
    vectors = [vectors_of(tokens, term) for tokens in counted.tokens]
    of_class: list[list[int]] = [[] for _ in range(classes)]
    for label, found in zip(counted.labels, vectors, strict=True):
        of_class[label].append(found)
    return [class_views(found or vectors) for found in of_class]
