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

TRAIN, VALIDATION = "train", "validation"
BASELINE, BASELINE_TEST = "baseline", "baseline_test"
# Measures of a whole step, by their names in its values: the loss in nats, the norm of all gradients before clipping,
# and, on the weights of a block that all terms reach, the cosine of the first two terms' gradients and the block.
LOSS, GRADIENT_NORM, SHARED_COSINE, SHARED_BLOCK = "loss", "grad_norm", "shared_cosine", "shared_block"


class OfTerm(StrEnum):
    """Measures of each term of a step, named "<measure>.<the term's key>" in its values.

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
        """Return the terms (and pieces) that have this measure, in the order of the names."""
        return [name.removeprefix(f"{self}.") for name in dict.fromkeys(names) if name.startswith(f"{self}.")]


@dataclass(frozen=True, slots=True)
class Probe:
    """The probe set: the examples on the map, fixed for the whole run.

    Validation rows come first, by their number in that split; the numbers of training rows continue from there.
    `splits` holds the split of each example; it is empty if all are validation rows.
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

    Characters `start` to `end` of one text of a pair (side 0 or 1), and the positions of its tokens.
    """

    side: int
    start: int
    end: int
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TokenText:
    """A text, or both texts of a pair, as an encoder reads it; tokens that belong to no word are special.

    Attributes:
        sides: the one text, or both.
        words: in reading order; truncated text has none.
        length: number of tokens that are read.
    """

    sides: tuple[str, ...]
    words: tuple[Word, ...]
    length: int

    def surface(self, word: Word) -> str:
        """Return a word as it is written."""
        return self.sides[word.side][word.start : word.end]


@dataclass(frozen=True, slots=True)
class Started:
    """The encoder is loaded; the first step comes next (or step `step` + 1 of a resumed run)."""

    step: int
    steps: int
    device: str
    probe: Probe
    facts: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of the examples whose attention the frames hold: probe rows, and one text of each."""

    rows: tuple[int, ...]
    texts: tuple[TokenText, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One optimiser step.

    `values` holds loss, loss.<term>, loss.<term>.<piece>, grad_norm, learning_rate, lambda, temperature,
    collapse_line.<term>, lower_bound.<term>, active_anchors.<term> (a share), phase, step_s, texts and tokens; nats,
    unitless or as named. Some steps add the results of `core.training.gradients`: shared_grad.<term>, shared_cosine and
    shared_block.
    """

    step: int
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Frame:
    """The probe set at one step: embeddings [N, H] (pooled vectors) and logits [N, C], in evaluation mode.

    Logits are the classifier's or, before it has learned anything, a linear probe's log-probabilities.

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

    "validation" comes at frames, "test" once at the end. "baseline" and "baseline_test" come once, from a linear probe
    of the pre-trained encoder on validation and test. Frames also hold the geometry of their vectors: mean_cosine,
    within_cosine, between_cosine and effective_rank. `values["train_rows"]` is present if a linear probe was scored:
    the number of training rows that it was fitted on.
    """

    step: int
    split: str
    values: Mapping[str, float]

    @property
    def probe_rows(self) -> int | None:
        """Number of training rows that the scored linear probe was fitted on; None if the classifier was scored."""
        rows = self.values.get("train_rows")
        return None if rows is None else int(rows)


@dataclass(frozen=True, slots=True)
class Predictions:
    """Predictions of the model for every row of a split at the end: logits [N, C] as in `Frame`, and the labels [N].

    They make it possible to compare two runs row by row.
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
    """The end: status "finished", or "stopped" if a user stopped the run."""

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
