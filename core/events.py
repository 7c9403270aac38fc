"""What a fine-tune tells: the typed events that `train` yields, in the order in which they happen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Probe:
    """The examples on the map, fixed for the whole run.

    `ids` are row numbers in the validation split, so a point keeps its identity across runs of one task.
    """

    ids: tuple[int, ...]
    texts: tuple[str, ...]
    labels: tuple[int, ...]
    classes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Started:
    """The encoder is loaded; the first step comes next (or step `step` + 1 of a resumed run)."""

    step: int
    steps: int
    device: str
    probe: Probe
    facts: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Step:
    """One optimiser step.

    `values` holds loss, loss.<term>, loss.<term>.<piece>, grad_norm, pooled_grad.<term>, pooled_cosine, learning_rate,
    lambda, temperature, collapse_line.<term>, lower_bound.<term>, phase, step_s, texts and tokens; nats, unitless or as
    named.
    """

    step: int
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Frame:
    """The probe at one step: embeddings [N, H] (pooled vectors) and logits [N, C], evaluation mode."""

    step: int
    embeddings: FloatArray
    logits: FloatArray


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Scores of one split at one step ("validation" at frames, "test" once at the end, "baseline" once)."""

    step: int
    split: str
    values: Mapping[str, float]


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
    message: str


@dataclass(frozen=True, slots=True)
class Finished:
    """The end: status "finished", or "stopped" when somebody asked for it."""

    step: int
    status: str
    values: Mapping[str, float] = field(default_factory=dict)


Event = Started | Step | Frame | Evaluation | KnobTurned | Checkpointed | Notice | Finished
