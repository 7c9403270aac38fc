"""A visitor's text and the test texts as encoded by a run's model, computed by `inspect_job`.

A visitor's files are named by a hash of the text, in `inspected/` of the run's folder; only the newest KEPT remain.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.artifacts.cache import read
from core.errors import StoreError, TaskError, quote_value
from core.events import FloatArray, TokenText
from core.messages import N_
from core.store import RunSummary, Store
from core.workers.run_rows import TaskSource

INSPECTED = "inspected"
KEPT = 200
END_TEXTS = "test-texts.safetensors"
# Maximum number of test texts on a map, spaced evenly over the split.
END_TEXTS_MAX = 500
# Characters that follow the preceding word without a space.
CLOSING = tuple(",.;:!?…)]}»”，。；：！？、）」』")

# Error texts for a text that is empty, too long or damaged.
OF_TEXT = (
    N_("The text {text} is empty: type at least one character."),
    N_("The text has {count:,} characters: give at most {most:,}."),
    N_("The text {text} has an incomplete character: type it again."),
)
OF_SECOND_TEXT = (
    N_("The second text {text} is empty: type at least one character."),
    N_("The second text has {count:,} characters: give at most {most:,}."),
    N_("The second text {text} has an incomplete character: type it again."),
)


@dataclass(frozen=True, slots=True)
class Inspected:
    """A text at the S steps with stored weights.

    Attributes:
        read: words and tokens of the text, or of both texts of a pair.
        steps: in order; 0 is the untrained encoder.
        stamps: one per step, identifying its weights.
        vectors: [S, H] pooled vectors.
        logits: [S, C].
        attention: [S, L, heads, T] float16, attention of [CLS] in every block.
    """

    read: TokenText
    steps: tuple[int, ...]
    stamps: tuple[int, ...]
    vectors: FloatArray
    logits: FloatArray
    attention: NDArray[np.float16]

    @property
    def weights(self) -> dict[int, int]:
        """Stamps by step."""
        return dict(zip(self.steps, self.stamps, strict=True))


@dataclass(frozen=True, slots=True)
class EndTexts:
    """M test texts at the end of a run: their pooled vectors [M, H] and logits [M, C].

    `rows` counts the rows of the test split, and `stamp` identifies the weights.
    """

    texts: tuple[str, ...]
    labels: tuple[int, ...]
    rows: int
    stamp: int
    vectors: FloatArray
    logits: FloatArray


@dataclass(frozen=True, slots=True)
class Deletions:
    """Class probabilities of a text with each of its W words deleted in turn.

    Attributes:
        read: the words of the text.
        base: [C] probabilities of the whole text.
        deleted: [W, C] probabilities without word w. In a truncated text, deletion may bring in a word from beyond the
            limit.
        stamp: identifies the weights.
    """

    read: TokenText
    base: FloatArray
    deleted: FloatArray
    stamp: int


class TokenTerm(NamedTuple):
    """A term on the tokens of one block: its symbol, their number k, and the number of clusters or 0."""

    name: str
    layer: int
    k: int
    clusters: int


@dataclass(frozen=True, slots=True)
class TokenChoice:
    """The tokens of a text that the objective contrasts at a step.

    Attributes:
        read: the text, each token as a word.
        terms: M pairs of a term and a block.
        candidates: number of tokens that can be chosen.
        attention: [M, T] attention of [CLS] in the block, the mean over heads.
        chosen: [M, T] 0 for a token that is left out; otherwise its cluster from 1, or 1 without clusters.
        stamp: identifies the weights.
    """

    read: TokenText
    terms: tuple[TokenTerm, ...]
    candidates: int
    attention: FloatArray
    chosen: NDArray[np.int64]
    stamp: int


def check_text(text: object, second: object, *, pair: bool, most_chars: int) -> str | tuple[str, str]:
    """Validate a text, or both texts for a task on pairs, and return the encoder's input.

    Args:
        second: None for a task on single texts.
        most_chars: longer texts are rejected.
    Raises: TaskError.
    """
    if pair and second is None:
        raise TaskError("The second text is missing: this task needs pairs.")
    if not pair and second is not None:
        raise TaskError("This task needs a single text: leave out the second text {text}.", text=quote_value(second))
    first = _checked(text, most_chars, OF_TEXT)
    return first if second is None else (first, _checked(second, most_chars, OF_SECOND_TEXT))


def _checked(text: object, most_chars: int, refusals: tuple[str, str, str]) -> str:
    empty, long, damaged = refusals
    if not isinstance(text, str) or not text.strip():
        raise TaskError(empty, text=quote_value(text))
    if len(text) > most_chars:
        raise TaskError(long, count=len(text), most=most_chars)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise TaskError(damaged, text=quote_value(text)) from None
    return text


def takes_pairs(store: Store, run: RunSummary) -> bool:
    """Return whether a run's task is on pairs of texts. Raises: TaskError or ConfigError if it has no rows."""
    texts = store.tokens(run.id).texts
    if texts:
        return len(texts[0].sides) > 1
    # Some tokenizers do not report the positions of words.
    return TaskSource(store.folder).rows_of(run.config.task, run.config.seed).train.seconds is not None


def read_inspected(folder: Path, text: str, second: str | None = None) -> Inspected | None:
    """Return an inspected text, or None before `inspect_job` has run. Args: folder: the run's folder."""
    return read(Inspected, inspected_path(folder, text, second))


def inspected_path(folder: Path, text: str, second: str | None = None) -> Path:
    """Return the file of a text in a run's folder."""
    return folder / INSPECTED / f"{_key(text, second)}.safetensors"


def deletions_path(folder: Path, text: str, second: str | None, step: int) -> Path:
    """Return the file of a text's deletions in a run's folder."""
    return folder / INSPECTED / f"{_key(text, second)}-deletions-{step:07d}.safetensors"


def token_choice_path(folder: Path, text: str, second: str | None, step: int) -> Path:
    """Return the file of a text's contrasted tokens in a run's folder."""
    return folder / INSPECTED / f"{_key(text, second)}-choice-{step:07d}.safetensors"


def drop_old_texts(folder: Path) -> None:
    """Delete all but the newest KEPT files of a run's texts. Raises: StoreError."""
    try:
        paths = sorted((folder / INSPECTED).glob("*.safetensors"), key=lambda path: path.stat().st_mtime_ns)
        for path in paths[:-KEPT]:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(
            "The folder {folder} cannot be read ({error}): check its permissions.",
            folder=INSPECTED,
            error=error.strerror,
        ) from error


def without_each_word(read: TokenText) -> Iterator[str | tuple[str, str]]:
    """Yield a text or pair with each word deleted in turn, together with one space."""
    for word in read.words:
        sides = list(read.sides)
        before, after = sides[word.side][: word.start], sides[word.side][word.end :]
        if not after.strip() or (before[-1:].isspace() and after.startswith(CLOSING)):
            before, after = before.rstrip(), after.lstrip(" ")
        elif not before or (before[-1].isspace() and after[0].isspace()):
            after = after[after[0].isspace() :]
        sides[word.side] = before + after
        yield sides[0] if len(sides) == 1 else (sides[0], sides[1])


def _key(text: str, second: str | None) -> str:
    return hashlib.sha256(json.dumps([text, second]).encode()).hexdigest()
