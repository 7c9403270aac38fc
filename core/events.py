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
# What a step measures as a whole, by name in its values: the loss in nats, the norm of all gradients before clipping,
# and, on the weights of a block that all terms reach, the cosine of the first two terms' gradients and the block.
LOSS, GRADIENT_NORM, SHARED_COSINE, SHARED_BLOCK = "loss", "grad_norm", "shared_cosine", "shared_block"
# What runs recorded before terms were compared on weights.
POOLED_COSINE = "pooled_cosine"


class OfTerm(StrEnum):
    """What a step measures of each term, by "<measure>.<the term's key>" in its values.

    Losses, lines and bounds in nats; the share of a term's anchors that are active, in [0, 1]; the norm of its gradient
    on the weights of a shared block or, in older runs, on the encoder's outputs. Of a loss, the key may be that of a
    piece, "<key>.<piece>".
    """

    LOSS = "loss"
    COLLAPSE_LINE = "collapse_line"
    LOWER_BOUND = "lower_bound"
    ACTIVE_ANCHORS = "active_anchors"
    SHARED_GRADIENT = "shared_grad"
    POOLED_GRADIENT = "pooled_grad"

    def of(self, key: str) -> str:
        """The name under which this is measured of a term."""
        return f"{self}.{key}"

    def keys(self, names: Iterable[str]) -> list[str]:
        """Of which terms (and pieces) it was measured, in the order of the names."""
        return [name.removeprefix(f"{self}.") for name in dict.fromkeys(names) if name.startswith(f"{self}.")]


@dataclass(frozen=True, slots=True)
class Probe:
    """The examples on the map, fixed for the whole run.

    Validation rows come first, by their number in that split; then training rows, numbered on. `splits` says of each
    which it is; it is empty where all are validation rows.
    """

    ids: tuple[int, ...]
    texts: tuple[str, ...]
    labels: tuple[int, ...]
    classes: tuple[str, ...]
    splits: tuple[str, ...] = ()

    @property
    def held_out(self) -> int:
        """How many are validation rows."""
        return self.splits.count(VALIDATION) if self.splits else len(self.ids)


class Word(NamedTuple):
    """A word as the tokenizer finds it.

    Characters `start` to `end` of one text of a pair (side 0 or 1), and the positions of its tokens.
    """

    side: int
    start: int
    end: int
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TokenText:
    """A text, or both of a pair, as an encoder reads it; tokens that belong to no word are special.

    Attributes:
        sides: the one text or both.
        words: in the order of reading; what was cut off has none.
        length: how many tokens are read.
    """

    sides: tuple[str, ...]
    words: tuple[Word, ...]
    length: int

    def surface(self, word: Word) -> str:
        """A word as it is written."""
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
    """How the encoder reads the examples whose attention the frames hold: probe rows, and one text of each."""

    rows: tuple[int, ...]
    texts: tuple[TokenText, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One optimiser step.

    `values` holds loss, loss.<term>, loss.<term>.<piece>, grad_norm, learning_rate, lambda, temperature,
    collapse_line.<term>, lower_bound.<term>, active_anchors.<term> (a share), phase, step_s, texts and tokens; nats,
    unitless or as named. At some steps also what `core.training.gradients` compares: shared_grad.<term>, shared_cosine
    and shared_block. Older runs have pooled_grad.<term> and pooled_cosine, taken on the encoder's outputs, instead.
    """

    step: int
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Frame:
    """The probe at one step: embeddings [N, H] (pooled vectors) and logits [N, C], evaluation mode.

    Logits are the classifier's; where it has learned nothing yet, a linear probe's log-probabilities.
    `attention` [L, heads, tokens] float16 is what [CLS] attends to in every block, the texts of `Tokens` one behind the
    other; None where it was not kept.
    """

    step: int
    embeddings: FloatArray
    logits: FloatArray
    attention: NDArray[np.float16] | None = None


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Scores of one split at one step.

    "validation" comes at frames, "test" once at the end; "baseline" and "baseline_test" once, of a linear probe of the
    pre-trained encoder on validation and test.
    Frames also hold the geometry of their vectors: mean_cosine, within_cosine, between_cosine and effective_rank.
    `values["train_rows"]` says that a linear probe was scored, and how many training rows it was fitted on.
    """

    step: int
    split: str
    values: Mapping[str, float]

    @property
    def probe_rows(self) -> int | None:
        """How many training rows the linear probe that was scored was fitted on; None where it was the classifier."""
        rows = self.values.get("train_rows")
        return None if rows is None else int(rows)


@dataclass(frozen=True, slots=True)
class Predictions:
    """What the model says of every row of a split at the end: logits [N, C] as in `Frame`, and the labels [N].

    So two runs can be compared row by row.
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
    """Something that a person should know and that does not end the run."""

    step: int
    message: Text


@dataclass(frozen=True, slots=True)
class TurnRefused(Notice):
    """A knob was asked to turn, and the step's phase cannot take it."""

    name: str
    value: float


@dataclass(frozen=True, slots=True)
class Finished:
    """The end: status "finished", or "stopped" when somebody asked for it."""

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
