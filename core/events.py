"""The typed events that `train` yields, in the order in which they happen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.messages import Text

FloatArray = NDArray[np.float32]

TRAIN, VALIDATION, TEST = "train", "validation", "test"
BASELINE, BASELINE_TEST = "baseline", "baseline_test"
# Names of a step's measures: the loss in nats, and the norm of all gradients before clipping. The shared block is one
# that all terms reach; the cosine is that of the first two terms' gradients on its weights.
LOSS, GRADIENT_NORM, SHARED_COSINE, SHARED_BLOCK = "loss", "grad_norm", "shared_cosine", "shared_block"
# The score of a task with similarity scores, and the fact with the number of its training pairs.
SPEARMAN, SCORED_PAIRS = "spearman", "scored_pairs"


class OfTerm(StrEnum):
    """Measures of each term in a step, named "<measure>.<key of the term>" in the step's values.

    Losses, lines and bounds are in nats. Active anchors are a share of a term's anchors, in [0, 1]. Gradients are norms
    on the weights of a shared block. For a loss, the key may be that of a piece, "<key>.<piece>".
    """

    LOSS = "loss"
    COLLAPSE_LINE = "collapse_line"
    LOWER_BOUND = "lower_bound"
    ACTIVE_ANCHORS = "active_anchors"
    SHARED_GRADIENT = "shared_grad"

    def of(self, key: str) -> str:
        """Return the name of this measure for a term."""
        return f"{self}.{key}"

    def keys(self, names: Iterable[str]) -> list[str]:
        """Return the keys of the terms and pieces that have this measure, in the order of `names`."""
        return [name.removeprefix(f"{self}.") for name in dict.fromkeys(names) if name.startswith(f"{self}.")]


@dataclass(frozen=True, slots=True)
class Probe:
    """The probe set: the examples on the map, fixed for the whole run.

    Validation rows come first. `ids` numbers them by their position in that split; training rows continue the
    numbering. `splits` holds the split of each example; it is empty if all are validation rows.
    """

    ids: tuple[int, ...]
    texts: tuple[str, ...]
    labels: tuple[int, ...]
    classes: tuple[str, ...]
    splits: tuple[str, ...] = ()

    @property
    def held_out(self) -> int:
        """Number of validation rows."""
        return self.splits.count(VALIDATION) if self.splits else len(self.ids)


class Word(NamedTuple):
    """A word as the tokenizer splits it.

    It consists of characters `start` to `end` of one text of a pair (side 0 or 1). `places` holds the positions of its
    tokens.
    """

    side: int
    start: int
    end: int
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TokenText:
    """A text, or both texts of a pair, as an encoder reads it; tokens that belong to no word are special.

    Attributes:
        sides: the text, or both texts of a pair.
        words: words in reading order, without those that were truncated.
        length: number of tokens that the encoder reads.
    """

    sides: tuple[str, ...]
    words: tuple[Word, ...]
    length: int

    def surface(self, word: Word) -> str:
        """Return the characters of a word."""
        return self.sides[word.side][word.start : word.end]


@dataclass(frozen=True, slots=True)
class Started:
    """The encoder is loaded. Step 1 comes next, or step `step` + 1 of a resumed run."""

    step: int
    steps: int
    device: str
    probe: Probe
    facts: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of the examples whose attention is stored: their rows in the probe set, and one text for each."""

    rows: tuple[int, ...]
    texts: tuple[TokenText, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One optimiser step.

    `values` holds loss, loss.<term>, loss.<term>.<piece>, grad_norm, learning_rate, lambda, temperature,
    collapse_line.<term>, lower_bound.<term>, active_anchors.<term> (a share), phase, step_s, texts and tokens. Losses,
    lines and bounds are in nats, step_s is in seconds, and the other values are unitless. Some steps add the results of
    `core.training.gradients`: shared_grad.<term>, shared_cosine and shared_block.
    """

    step: int
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Frame:
    """The probe set at one step: embeddings [N, H] (pooled vectors) and logits [N, C], in evaluation mode.

    `logits` are those of the classifier. Until the classifier is trained, they are the log-probabilities of a linear
    probe.

    `attention` [L, heads, tokens] float16 is the attention of [CLS] in every block, with the texts of `Tokens`
    concatenated; None if it was not stored.
    """

    step: int
    embeddings: FloatArray
    logits: FloatArray
    attention: NDArray[np.float16] | None = None


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Scores of one split at one step.

    "validation" is scored at every frame, "test" once at the end. "baseline" and "baseline_test" are the scores of a
    linear probe of the pre-trained encoder on validation and test, computed once. Scores at frames include the geometry
    of the vectors: mean_cosine, within_cosine, between_cosine and effective_rank, and the measures of neural collapse
    nc1, nc2_norms, nc2_angles, nc3 and nc4. within_cosine_logits is within_cosine of the logits; view_cosine and
    view_cosine_logits compare two dropout passes over a few texts, if the run trains on such passes. If a linear probe
    was scored, `values["train_rows"]` is the number of training rows that it was fitted on. In a task with similarity
    scores, "spearman" is the rank correlation of cosine and score; the probe then predicts the level of the score.
    """

    step: int
    split: str
    values: Mapping[str, float]

    @property
    def probe_rows(self) -> int | None:
        """Number of training rows that the scored linear probe was fitted on; None if the classifier was scored."""
        rows = self.values.get("train_rows")
        return None if rows is None else int(rows)

    @property
    def spearman(self) -> float | None:
        """Spearman's ρ between cosine and similarity score; None for a task with classes."""
        return self.values.get(SPEARMAN)


@dataclass(frozen=True, slots=True)
class Predictions:
    """Predictions for every row of a split at the end of a run: logits [N, C] as in `Frame`, and the labels [N].

    They allow two runs to be compared row by row.
    """

    split: str
    logits: FloatArray
    labels: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class KnobTurned:
    """A knob was turned; `step` is the first step that uses the value."""

    step: int
    name: str
    value: float


@dataclass(frozen=True, slots=True)
class Checkpointed:
    """The rolling checkpoint now holds this step."""

    step: int


@dataclass(frozen=True, slots=True)
class Notice:
    """A message for the user that does not end the run."""

    step: int
    message: Text


@dataclass(frozen=True, slots=True)
class TurnRefused(Notice):
    """A requested knob turn that the step's phase does not allow."""

    name: str
    value: float


@dataclass(frozen=True, slots=True)
class Finished:
    """The run ended, with status "finished", or "stopped" if a user stopped it.

    A worker adds `values["peak_memory"]` in bytes, if it was measured.
    """

    step: int
    status: str
    values: Mapping[str, float] = field(default_factory=dict)


Event = (
    Started
    | Tokens
    | Step
    | Frame
    | Evaluation
    | Predictions
    | KnobTurned
    | TurnRefused
    | Checkpointed
    | Notice
    | Finished
)
