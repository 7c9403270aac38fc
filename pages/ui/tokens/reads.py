"""Cached reads of what [CLS] attends to in one run. A key names everything that a value depends on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from core.artifacts.sentence import Inspected, takes_pairs
from core.errors import StoreError
from core.events import FloatArray, Probe, Tokens, TokenText
from core.representation.attention import punctuation, split_attention, top_words, word_attention
from core.representation.word_statistics import WordChange, WordStatistics, selection_changes, word_statistics
from core.store import RunRecord, Store

Attention = NDArray[np.float16]
Selection = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """A text as a run's encoder reads it, at S steps.

    Attributes:
        key: what tells it from other texts of the run.
        steps: in order.
        attention: of each step [L, heads, T].
        logits: [S, C].
        label: its class, None for a text of one's own.
    """

    key: str
    read: TokenText
    steps: tuple[int, ...]
    attention: tuple[Attention, ...]
    logits: FloatArray
    label: int | None

    @property
    def shape(self) -> tuple[int, int]:
        """How many layers and heads there are."""
        return self.attention[0].shape[0], self.attention[0].shape[1]

    @property
    def words(self) -> list[str]:
        return [self.read.surface(word) for word in self.read.words]

    @property
    def places(self) -> list[tuple[int, ...]]:
        """Of each word the positions of its tokens."""
        return [word.places for word in self.read.words]

    def at(self, step: int) -> Attention:
        return self.attention[self.steps.index(step)]


@dataclass(frozen=True, slots=True)
class Examples:
    """The examples of a run whose attention its frames hold: N texts.

    Attributes:
        ids: on the map.
        rows: of them in a frame.
        texts: as the encoder reads them.
        labels: their classes.
        key: what tells them from those of another run, or of another attempt at this one.
    """

    store: Store
    run_id: str
    ids: tuple[int, ...]
    rows: tuple[int, ...]
    texts: tuple[TokenText, ...]
    labels: tuple[int, ...]
    key: tuple[str, str, int]

    @property
    def longest(self) -> int:
        """Words of the text that has most."""
        return max((len(text.words) for text in self.texts), default=0)

    @property
    def usual(self) -> float:
        """Words of the middle text; 0 where none is kept."""
        return median(len(text.words) for text in self.texts) if self.texts else 0


def examples(store: Store, run: RunRecord, probe: Probe) -> Examples:
    """Those of a run that has frames. Raises: StoreError for a damaged file."""
    key = (str(store.folder), run.id, run.begun_attempt)
    tokens = _tokens(*key, store)
    ids = tuple(probe.ids[row] for row in tokens.rows)
    labels = tuple(probe.labels[row] for row in tokens.rows)
    return Examples(store, run.id, ids, tokens.rows, tokens.texts, labels, key)


@st.cache_resource(show_spinner=False, max_entries=16)
def _tokens(folder: str, run_id: str, attempt: int, _store: Store) -> Tokens:
    return _store.tokens(run_id)


@st.cache_data(show_spinner=False, max_entries=64)
def pairs(folder: str, run_id: str, _store: Store, _run: RunRecord) -> bool:
    """Whether a run reads two texts at once. Raises: TaskError or ConfigError where its rows cannot be had."""
    return takes_pairs(_store, _run)


def example_reading(known: Examples, place: int, steps: Iterable[int]) -> tuple[Reading | None, str | None]:
    """An example at the frames that hold attention, and a sentence where one cannot be read; None where none does."""
    found: dict[int, tuple[Attention, FloatArray]] = {}
    problem = None
    for step in steps:
        try:
            row = _example_row(*known.key, step, place, known)
        except StoreError as error:
            problem = str(error)
            continue
        if row is not None:
            found[step] = row
    if not found:
        return None, problem
    attention, logits = zip(*found.values(), strict=True)
    key = f"{known.run_id}.{known.ids[place]}"
    reading = Reading(key, known.texts[place], tuple(found), attention, np.stack(logits), known.labels[place])
    return reading, problem


@st.cache_resource(show_spinner=False, max_entries=1_000)
def _example_row(
    folder: str, run_id: str, attempt: int, step: int, place: int, _known: Examples
) -> tuple[Attention, FloatArray] | None:
    attention = _known.store.attention(run_id, step)
    if attention is None:
        return None
    mine = split_attention(attention, [text.length for text in _known.texts])[place]
    return np.array(mine), np.array(_known.store.logits(run_id, step)[_known.rows[place]])


def own_reading(found: Inspected, key: str) -> Reading:
    """A text of one's own at the steps whose weights are kept."""
    return Reading(key, found.read, found.steps, tuple(found.attention), found.logits, None)


@st.cache_resource(show_spinner=False, max_entries=4)
def _attention(folder: str, run_id: str, attempt: int, step: int, _store: Store) -> Attention | None:
    return _store.attention(run_id, step)


def selected(known: Examples, step: int, layer: int, head: int | None, k: int, *, marks: bool) -> Selection | None:
    """Of each example the positions of its top k words at a step; None where that frame holds no attention.

    Raises: StoreError for a frame that is missing or damaged.
    """
    return _selected(*known.key, step, layer, head, k, marks, known)


@st.cache_resource(show_spinner=False, max_entries=64)
def _selected(
    folder: str,
    run_id: str,
    attempt: int,
    step: int,
    layer: int,
    head: int | None,
    k: int,
    marks: bool,
    _known: Examples,
) -> Selection | None:
    attention = _attention(folder, run_id, attempt, step, _known.store)
    if attention is None:
        return None
    rows = split_attention(attention, [text.length for text in _known.texts])
    weights = (
        word_attention(row, [word.places for word in text.words], layer=layer, head=head).words
        for row, text in zip(rows, _known.texts, strict=True)
    )
    words = _words(folder, run_id, attempt, _known)
    skip = [() if marks else punctuation(of_text) for of_text in words]
    return tuple(top_words(of_text, k, out).words for of_text, out in zip(weights, skip, strict=True))


def shape(known: Examples, step: int) -> tuple[int, int] | None:
    """How many layers and heads a frame tells of; None where it holds no attention. Raises: StoreError."""
    attention = _attention(*known.key, step, known.store)
    return None if attention is None else (attention.shape[0], attention.shape[1])


@st.cache_resource(show_spinner=False, max_entries=64)
def _words(folder: str, run_id: str, attempt: int, _known: Examples) -> list[list[str]]:
    return [[text.surface(word) for word in text.words] for text in _known.texts]


@st.cache_resource(show_spinner=False, max_entries=32)
def statistics(
    key: tuple[str, str, int],
    step: int,
    layer: int,
    head: int | None,
    k: int,
    marks: bool,
    at_least: int,
    classes: int,
    _known: Examples,
    _selection: Selection,
) -> WordStatistics:
    """`word_statistics` of what is selected at a step."""
    return word_statistics(_words(*key, _known), _selection, _known.labels, classes, at_least=at_least)


@st.cache_resource(show_spinner=False, max_entries=32)
def changes(
    key: tuple[str, str, int],
    steps: tuple[int, int],
    layer: int,
    head: int | None,
    k: int,
    marks: bool,
    at_least: int,
    _known: Examples,
    _selections: tuple[Selection, Selection],
) -> tuple[WordChange, ...]:
    """`selection_changes` between what is selected at two steps."""
    return selection_changes(_words(*key, _known), *_selections, at_least=at_least)
