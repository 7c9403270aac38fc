"""RunConfig: everything that is said about a run, frozen and validated.

The page, the URL, the command line, the store and the worker share this one value and its JSON form.
Same config, same seed, same machine: the same curve.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from core.config.objective import ObjectiveConfig
from core.config.validation import Section, build
from core.errors import ConfigError

MAX_STEPS = 1_000_000
LARGEST_SEED = 2**32 - 1
Precision = Literal["auto", "float32", "bfloat16"]
FILE_TASK = "file"


class ReadingConfig(Section):
    """How a file is read; what is None is guessed.

    `text`, `text_b`, `label` and `split` name columns; "" says that there is no second text, or no split column.
    `kind` is what the label column holds: classes, or (for pairs) a similarity score. `quote` encloses a field and
    `escape` makes the next character part of the text ("": nothing does); `skip_initial_space` skips the spaces behind
    a delimiter.
    """

    text: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    text_b: Annotated[str, Field(max_length=200)] | None = None
    label: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    split: Annotated[str, Field(max_length=200)] | None = None
    kind: Literal["classes", "similarity"] | None = None
    encoding: Literal["utf-8", "utf-16", "cp1252", "gb18030", "cp949"] | None = None
    delimiter: Literal[",", "\t", ";", "|"] | None = None
    quote: Literal['"', "'", ""] | None = None
    escape: Literal["\\", ""] | None = None
    skip_initial_space: bool | None = None
    header: bool | None = None


class TaskConfig(Section):
    """What is learned, and from which rows.

    `id` names a bundled task, a task of the library, or is "file" with a `path`, how it is read, and the kinds of
    problems whose rows may be dropped. The content hash ties the run to its exact rows; `name` is what people call the
    task. The settings below touch the training split alone, in this order, and are seeded by the run:

    `imbalance` thins the classes out, exponentially from the first to the last, until the largest has this many times
    the rows of the smallest (long tail: Cui et al. 2019, arXiv:1901.05555); `train_size` takes a stratified few-shot
    sample; `label_noise` ρ gives that share of each class's rows another label, drawn evenly; `text_noise` r changes
    that share of the words of each text (EDA, one operation per text).

    `sampler` draws the batches: "random", or "class_balanced" with at least two rows of each class in a batch.
    "balanced" is what earlier versions called equal shares of all classes; runs that have it keep their curve.
    """

    id: str = "film_reviews"
    name: Annotated[str, Field(max_length=80)] | None = None
    path: str | None = None
    test_path: str | None = None
    reading: ReadingConfig = ReadingConfig()
    drop: tuple[str, ...] = ()
    content_hash: str | None = None
    imbalance: Annotated[float, Field(ge=1.0, le=1000.0)] = 1.0
    train_size: Annotated[int, Field(ge=2)] | None = None
    label_noise: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    text_noise: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    validation_size: Annotated[int, Field(ge=2)] | None = None
    sampler: Literal["random", "class_balanced", "balanced"] = "random"

    @field_validator("id", mode="before")
    @classmethod
    def _former_name(cls, given: Any) -> Any:
        return FILE_TASK if given == "csv" else given  # what it was called when only CSV was read


class EncoderConfig(Section):
    """Which pre-trained encoder, and how a text becomes one vector.

    `pooling` "auto" becomes the encoder's own when the run is prepared: what its sentence-transformers files say, or
    [CLS] for a plain language model.
    """

    id: str = "all-MiniLM-L6-v2"
    pooling: Literal["auto", "cls", "mean"] = "auto"
    max_length: Annotated[int, Field(ge=4, le=8192)] = 128


class TrainableConfig(Section):
    """Which weights learn: all, the last `blocks` blocks and the classifier, low-rank adapters on query and value
    (LoRA) and the classifier, or the classifier alone.

    `reinitialised_blocks` top blocks are drawn at random before the first frame (Zhang et al. 2020, arXiv:2006.05987);
    the first phase says how many, and a later one draws none.
    """

    part: Literal["all", "last_blocks", "lora", "classifier"] = "all"
    blocks: Annotated[int, Field(ge=1, le=100)] = 2
    lora_rank: Annotated[int, Field(ge=1, le=512)] = 8
    lora_alpha: Annotated[float, Field(gt=0.0, le=1024.0)] = 16.0
    lora_dropout: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.05
    reinitialised_blocks: Annotated[int, Field(ge=0, le=100)] = 0

    def frozen(self, blocks: int) -> int:
        """How many of the lowest of `blocks` blocks neither learn nor lie above something that learns."""
        return {"last_blocks": blocks - self.blocks, "classifier": blocks}.get(self.part, 0)


class OptimiserConfig(Section):
    """AdamW or Adafactor with a linear warm-up and a linear decay to zero.

    `layer_decay` multiplies the rate of each block below the last once more (1: the same rate everywhere). A rate that
    is None becomes the default for what learns and for the encoder's size when the run is prepared.
    """

    name: Literal["adamw", "adafactor"] = "adamw"
    learning_rate: Annotated[float, Field(gt=0.0, le=1.0)] | None = None
    classifier_learning_rate: Annotated[float, Field(gt=0.0, le=1.0)] | None = None
    layer_decay: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    bias_correction: bool = True
    weight_decay: Annotated[float, Field(ge=0.0, le=1.0)] = 0.01
    warmup_fraction: Annotated[float, Field(ge=0.0, le=1.0)] = 0.1
    max_gradient_norm: Annotated[float, Field(gt=0.0)] = 1.0


class PhaseConfig(Section):
    """One stretch of training: what learns, from which loss, how long.

    `epochs` is turned into `steps` when the run is prepared. `micro_batch` lets a contrastive batch be larger than
    memory: the encoder reads this many texts at a time, for the same gradients (gradient cache, Gao et al. 2021,
    arXiv:2101.06983).
    """

    trainable: TrainableConfig = TrainableConfig()
    objective: ObjectiveConfig = ObjectiveConfig()
    optimiser: OptimiserConfig = OptimiserConfig()
    batch_size: Annotated[int, Field(ge=1, le=4096)] = 16
    steps: Annotated[int, Field(ge=1, le=MAX_STEPS)] | None = None
    epochs: Annotated[float, Field(gt=0.0, le=1000.0)] | None = None
    micro_batch: Annotated[int, Field(ge=1, le=4096)] | None = None
    gradient_checkpointing: bool = False

    @property
    def effective_micro_batch(self) -> int | None:
        """Texts that the encoder reads at a time; None where that is the whole batch."""
        return self.micro_batch if self.micro_batch is not None and self.micro_batch < self.batch_size else None

    @model_validator(mode="after")
    def _one_length(self) -> PhaseConfig:
        if self.steps is not None and self.epochs is not None:
            raise ConfigError("epochs", self.epochs, "give steps or epochs, not both.")
        return self


class ProbeConfig(Section):
    """The examples on the map, and the steps at which they are encoded (None: the defaults, when prepared).

    `size` counts rows of the validation split, `train_size` rows of the training split beside them.
    """

    size: Annotated[int, Field(ge=2, le=20_000)] | None = None
    train_size: Annotated[int, Field(ge=0, le=20_000)] | None = None
    frame_steps: Annotated[tuple[int, ...], Field(max_length=2_000)] | None = None

    @property
    def train_points(self) -> int | None:
        """Training rows on the map, None for the default. A run that was prepared before there were any has 0."""
        prepared = self.size is not None and self.frame_steps is not None
        return 0 if prepared and self.train_size is None else self.train_size


class CheckpointConfig(Section):
    """When the rolling checkpoint is written: every this many steps, or (None) as often as costs about 2 %.

    `snapshot_steps` are frames at which a copy of the weights is kept for good, so that a text can be looked at as the
    model saw it then (None: a few, as far as they are small, when prepared).
    """

    every_steps: Annotated[int, Field(ge=1)] | None = None
    snapshot_steps: Annotated[tuple[int, ...], Field(max_length=100)] | None = None


class KnobTurn(Section):
    """A setting that was changed while the run was going; `step` is the first step that used it.

    "learning_rate" is a multiplier on the schedule; the others are those of `ObjectiveConfig.knobs`. A turn holds until
    its phase ends.
    """

    step: Annotated[int, Field(ge=1)]
    name: Annotated[str, Field(min_length=1, max_length=80)]
    value: float


class RunConfig(Section):
    """Everything about a run.

    `precision` is that of the encoder's passes; losses, norms and the classifier are always float32. "auto" becomes one
    of the others when the run is prepared: bfloat16 where the hardware computes in it.
    """

    version: Literal[2] = 2
    name: Annotated[str, Field(max_length=80)] = ""
    task: TaskConfig = TaskConfig()
    encoder: EncoderConfig = EncoderConfig()
    phases: Annotated[tuple[PhaseConfig, ...], Field(min_length=1, max_length=2)] = (PhaseConfig(),)
    probe: ProbeConfig = ProbeConfig()
    checkpoint: CheckpointConfig = CheckpointConfig()
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    precision: Precision = "auto"
    seed: Annotated[int, Field(ge=0, le=LARGEST_SEED)] = 0
    knob_turns: Annotated[tuple[KnobTurn, ...], Field(max_length=10_000)] = ()

    @model_validator(mode="before")
    @classmethod
    def _from_version_1(cls, given: Any) -> Any:
        """There, a classifier without a rate had the encoder's."""
        if not isinstance(given, dict) or given.get("version") != 1:
            return given
        phases = given.get("phases", [{}])
        if isinstance(phases, list | tuple):
            phases = [_with_one_rate(phase) for phase in phases]
        return given | {"version": 2, "phases": phases}

    @model_validator(mode="after")
    def _check_turns(self) -> RunConfig:
        objective_turns = [turn for turn in self.knob_turns if turn.name != RATE]
        if len(self.phases) > 1 and objective_turns and any(phase.steps is None for phase in self.phases):
            raise ConfigError(
                "knob_turns",
                ", ".join(turn.name for turn in objective_turns),
                "give both phases their steps, so that the step of a turn determines its phase.",
            )
        _follow(_as_turns(self.knob_turns), self)
        return self

    @property
    def steps(self) -> int:
        """Optimiser steps of a prepared run, all phases together."""
        return sum(phase_steps(phase) for phase in self.phases)

    @property
    def reinitialised_blocks(self) -> int:
        """How many top blocks are drawn at random before frame 0."""
        return self.phases[0].trainable.reinitialised_blocks

    @property
    def phase_ends(self) -> tuple[int, ...]:
        """The last step of each phase of a prepared run."""
        return tuple(accumulate(phase_steps(phase) for phase in self.phases))

    def phase_at(self, step: int) -> int:
        """The number, from 0, of the phase that step 1, 2, … belongs to; steps beyond the end belong to the last."""
        if len(self.phases) == 1:
            return 0
        return min(bisect_left(self.phase_ends, step), len(self.phases) - 1)

    def to_json(self) -> str:
        """The one JSON form, with sorted keys."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True, ensure_ascii=False)


RATE = "learning_rate"
LEARNING_RATE_FACTOR_MAX = 100.0


FORMER_RATE = 5e-5


def _with_one_rate(phase: Any) -> Any:
    """A phase of version 1 with its rates written out; what is no phase is left for validation to refuse."""
    optimiser = phase.get("optimiser", {}) if isinstance(phase, dict) else None
    if not isinstance(optimiser, dict):
        return phase
    rate = optimiser.get("learning_rate", FORMER_RATE)
    written = {"learning_rate": rate, "classifier_learning_rate": optimiser.get("classifier_learning_rate") or rate}
    return phase | {"optimiser": optimiser | written}


def peak_rates(optimiser: OptimiserConfig) -> tuple[float, float]:
    """The encoder's and the classifier's rate of a prepared run. Raises: ConfigError when it was not prepared."""
    if optimiser.learning_rate is None or optimiser.classifier_learning_rate is None:
        raise ConfigError("learning_rate", None, "prepare the run first.")
    return optimiser.learning_rate, optimiser.classifier_learning_rate


def phase_steps(phase: PhaseConfig) -> int:
    """Steps of a phase of a prepared run. Raises: ConfigError when it was not prepared."""
    if phase.steps is None:
        raise ConfigError("steps", None, "prepare the run first.")
    return phase.steps


def check_turn(config: RunConfig, step: int, name: str, value: float) -> None:
    """Refuse a knob turn that this run cannot take, after those that it has.

    Raises: ConfigError naming the knob, the value and the bounds.
    """
    _follow([*_as_turns(config.knob_turns), (step, name, value)], config)


def _as_turns(turns: Sequence[KnobTurn]) -> list[tuple[int, str, float]]:
    return [(turn.step, turn.name, turn.value) for turn in turns]


def _follow(turns: Sequence[tuple[int, str, float]], config: RunConfig) -> None:
    """Take turns one after the other, as the run does. Raises: ConfigError for the first that cannot be taken."""
    objectives = [phase.objective for phase in config.phases]
    for step, name, value in sorted(turns, key=lambda turn: turn[0]):
        if name != RATE:
            phase = config.phase_at(step)
            objectives[phase] = objectives[phase].turned(name, value)
        elif not 0.0 <= value <= LEARNING_RATE_FACTOR_MAX:
            raise ConfigError(RATE, value, f"give a factor from 0 to {LEARNING_RATE_FACTOR_MAX:g}.")


def parse_config(given: Any) -> RunConfig:
    """A RunConfig from its JSON form (text or dictionary).

    Raises: ConfigError with one sentence for the first thing that is wrong.
    """
    if isinstance(given, str | bytes):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError) as error:
            raise ConfigError("config", str(error), "give one JSON object, as `export` writes it.") from None
    if not isinstance(given, dict):
        raise ConfigError("config", type(given).__name__, "give one JSON object, as `export` writes it.")
    return build(RunConfig, given)
