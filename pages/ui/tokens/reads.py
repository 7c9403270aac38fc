"""Cached reads of the attention of [CLS] in one run. A cache key holds everything that its value depends on."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.errors import StoreError
from core.events import FloatArray, Probe, Tokens, TokenText
from core.representation.attention import punctuation, split_attention, top_words, word_attention
from core.representation.word_statistics import WordChange, WordStatistics, selection_changes, word_statistics
from core.store import RunRecord, Store
from pages.ui.reads import cached

Attention = NDArray[np.float16]
Selection = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """A text as a run's encoder reads it, at S steps.

    Attributes:
        key: identifies the text within the run.
        steps: the S steps, in order.
        attention: per step [L, heads, T].
        logits: [S, C].
        label: class of the example; None for the visitor's own text.
    """

    key: str
    read: TokenText
    steps: tuple[int, ...]
    attention: tuple[Attention, ...]
    logits: FloatArray
    label: int | None

    @property
    def words(self) -> list[str]:
        return [self.read.surface(word) for word in self.read.words]

    @property
    def places(self) -> list[tuple[int, ...]]:
        """Token positions of each word."""
        return [word.places for word in self.read.words]

    def at(self, step: int) -> Attention:
        return self.attention[self.steps.index(step)]


@dataclass(frozen=True, slots=True)
class TokenRun:
    """A run and the N examples whose attention its frames hold; N may be 0.

    Attributes:
        frames: steps of the frames, at least one.
        ids: ids of the examples on the map.
        rows: rows of the examples in a frame.
        texts: the examples as the encoder reads them.
        labels: classes of the examples.
    """

    store: Store
    run: RunRecord
    probe: Probe
    frames: tuple[int, ...]
    ids: tuple[int, ...]
    rows: tuple[int, ...]
    texts: tuple[TokenText, ...]
    labels: tuple[int, ...]

    @property
    def key(self) -> tuple[str, str, int]:
        """The cache key of the examples: the store, the run and its attempt."""
        return str(self.store.folder), self.run.id, self.run.begun_attempt

    @property
    def words(self) -> list[list[str]]:
        """The words of each text."""
        return [[text.surface(word) for word in text.words] for text in self.texts]

    @property
    def longest(self) -> int:
        """Number of words in the longest text; 0 without texts."""
        return max((len(text.words) for text in self.texts), default=0)

    @property
    def usual(self) -> float:
        """Median number of words per text; 0 without texts."""
        return median(len(text.words) for text in self.texts) if self.texts else 0


class Rule(NamedTuple):
    """The selection of words: the top k by a layer's attention.

    Attributes:
        head: numbered from 0; None for the mean over heads.
        marks: whether punctuation can be selected.
    """

    layer: int
    head: int | None
    k: int
    marks: bool


def token_run(store: Store, run: RunRecord, probe: Probe, frames: tuple[int, ...]) -> TokenRun:
    """Load the examples of a run that has frames. Raises: StoreError for a damaged file."""
    tokens = _tokens(store, run)
    ids, labels = (tuple(of_all[row] for row in tokens.rows) for of_all in (probe.ids, probe.labels))
    return TokenRun(store, run, probe, frames, ids, tokens.rows, tokens.texts, labels)


@cached(16)
def _tokens(store: Store, run: RunRecord) -> Tokens:
    return store.tokens(run.id)


def example_reading(known: TokenRun, place: int) -> tuple[Reading | None, str | None]:
    """Return an example at the frames that hold its attention, if any, and a sentence on an unreadable frame."""
    found: dict[int, tuple[Attention, FloatArray]] = {}
    problem = None
    for step in known.frames:
        try:
            row = example_row(known, step, place)
        except StoreError as error:
            problem = str(error)
            continue
        if row is not None:
            found[step] = row
    if not found:
        return None, problem
    attention, logits = zip(*found.values(), strict=True)
    key = f"{known.run.id}.{known.ids[place]}"
    reading = Reading(key, known.texts[place], tuple(found), attention, np.stack(logits), known.labels[place])
    return reading, problem


@cached(1_000, TokenRun)
def example_row(known: TokenRun, step: int, place: int) -> tuple[Attention, FloatArray] | None:
    attention = known.store.attention(known.run.id, step)
    if attention is None:
        return None
    mine = split_attention(attention, [text.length for text in known.texts])[place]
    return np.array(mine), np.array(known.store.logits(known.run.id, step)[known.rows[place]])


@cached(4, TokenRun)
def attention_at(known: TokenRun, step: int) -> Attention | None:
    """Return the attention [L, heads, all tokens] of a frame, or None if it holds none. Raises: StoreError."""
    return known.store.attention(known.run.id, step)


@cached(64, TokenRun)
def selected(known: TokenRun, step: int, rule: Rule) -> Selection | None:
    """Return the positions of each example's top k words at a step, or None if the frame holds no attention.

    Raises: StoreError for a frame that is missing or damaged.
    """
    attention = attention_at(known, step)
    if attention is None:
        return None
    rows = split_attention(attention, [text.length for text in known.texts])
    weights = (
        word_attention(row, [word.places for word in text.words], layer=rule.layer, head=rule.head).words
        for row, text in zip(rows, known.texts, strict=True)
    )
    skip = [() if rule.marks else punctuation(of_text) for of_text in known.words]
    return tuple(top_words(of_text, rule.k, out) for of_text, out in zip(weights, skip, strict=True))


@cached(32, TokenRun)
def statistics(known: TokenRun, step: int, rule: Rule, *, at_least: int) -> WordStatistics:
    """Compute `word_statistics` of the words selected at a step, whose frame holds attention."""
    chosen = selected(known, step, rule)
    assert chosen is not None
    return word_statistics(known.words, chosen, known.labels, len(known.probe.classes), at_least=at_least)


@cached(32, TokenRun)
def changes(known: TokenRun, steps: tuple[int, int], rule: Rule, *, at_least: int) -> tuple[WordChange, ...]:
    """Compute `selection_changes` between two steps, whose frames hold attention."""
    before, after = (selected(known, step, rule) for step in steps)
    assert before is not None
    assert after is not None
    return selection_changes(known.words, before, after, at_least=at_least)
