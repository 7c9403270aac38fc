"""RunConfig: everything that is said about a run, frozen and validated.

The page, the URL, the command line, the store and the worker share this one value and its JSON form.
Same config, same seed, same machine: the same curve.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from core.errors import ConfigError, PlaygroundError
from core.losses.registry import loss_entry

MAX_STEPS = 1_000_000
CONVEX_TOLERANCE = 1e-6

Model = TypeVar("Model", bound=BaseModel)


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, validate_default=True)


class TaskConfig(_Part):
    """What is learned, and from which rows.

    `id` names a bundled task, or is "csv" with a `path`. The content hash ties the run to its exact rows.
    """

    id: str = "film_reviews"
    path: str | None = None
    test_path: str | None = None
    content_hash: str | None = None
    train_size: Annotated[int, Field(ge=2)] | None = None
    validation_size: Annotated[int, Field(ge=2)] | None = None
    sampler: Literal["random", "balanced"] = "random"


class EncoderConfig(_Part):
    """Which pre-trained encoder, and how a text becomes one vector."""

    id: str = "all-MiniLM-L6-v2"
    pooling: Literal["cls", "mean"] = "cls"
    max_length: Annotated[int, Field(ge=4, le=8192)] = 128


class TermConfig(BaseModel):
    """One weighted loss. Its own parameters (`temperature`, …) stand beside `loss` and `weight`."""

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False)

    loss: str
    weight: Annotated[float, Field(ge=0.0, le=1000.0)] = 1.0

    @model_validator(mode="before")
    @classmethod
    def _check_parameters(cls, given: Any) -> Any:
        if not isinstance(given, dict) or "loss" not in given:
            return given
        entry = loss_entry(given["loss"])
        known = {p.name: p for p in entry.parameters}
        unknown = set(given) - known.keys() - {"loss", "weight"}
        if unknown:
            name = sorted(unknown)[0]
            takes = ", ".join(["weight", *known])
            raise ConfigError(name, given[name], f"{entry.name} takes {takes}.")
        checked = {n: p.check(n, given.get(n, p.default)) for n, p in known.items()}
        return {**given, **checked}

    @property
    def parameters(self) -> dict[str, float | str]:
        return dict(self.model_extra or {})


class ObjectiveConfig(_Part):
    """A list of weighted terms.

    `combine` says how λ is bound to the weights of a cross-entropy and one contrastive term:
    "convex" (1 − λ)·CE + λ·SCL, "additive" CE + λ·SCL.
    """

    terms: Annotated[tuple[TermConfig, ...], Field(min_length=1, max_length=8)] = (
        TermConfig(loss="cross_entropy", weight=0.1),
        TermConfig.model_validate({"loss": "supcon", "weight": 0.9, "temperature": 0.3}),
    )
    combine: Literal["convex", "additive"] = "convex"

    @model_validator(mode="after")
    def _check_weights(self) -> ObjectiveConfig:
        names = [t.loss for t in self.terms]
        if len(set(names)) < len(names):
            raise ConfigError("objective.terms", ", ".join(names), "name each loss once.")
        if all(t.weight == 0 for t in self.terms):
            raise ConfigError("objective.terms", "all weights 0", "give at least one term a weight above 0.")
        total = sum(t.weight for t in self.terms)
        if self.combine == "convex" and len(self.terms) > 1 and abs(total - 1) > CONVEX_TOLERANCE:
            raise ConfigError("objective.terms", f"weights that sum to {total:g}", "make convex weights sum to 1.")
        return self

    @property
    def weight(self) -> float | None:
        """λ, where a cross-entropy and one contrastive term are bound by it."""
        contrastive = [t for t in self.terms if loss_entry(t.loss).contrastive]
        if len(self.terms) == 2 and len(contrastive) == 1:
            return contrastive[0].weight
        return None

    @property
    def temperature(self) -> float | None:
        """τ of the first term that has one."""
        taus = [t.parameters["temperature"] for t in self.terms if "temperature" in t.parameters]
        return float(taus[0]) if taus else None

    def turned(self, name: str, value: float) -> ObjectiveConfig:
        """The objective after a knob was turned.

        Raises: ConfigError for a value out of bounds or a knob that this objective does not have.
        """
        if name == "lambda" and self.weight is not None:
            terms = [t.model_dump() for t in self.terms]
            for term in terms:
                if loss_entry(term["loss"]).contrastive:
                    term["weight"] = value
                elif self.combine == "convex":
                    term["weight"] = _complement(value)
            _check_weight(value, self.combine)
            return build(ObjectiveConfig, {"terms": terms, "combine": self.combine})
        if name == "temperature" and self.temperature is not None:
            terms = [t.model_dump() for t in self.terms]
            for term in terms:
                if "temperature" in term:
                    term["temperature"] = value
            return build(ObjectiveConfig, {"terms": terms, "combine": self.combine})
        raise ConfigError("knob", name, "this objective has no such knob.")


def mixed_objective(
    weight: float, temperature: float = 0.3, combine: Literal["convex", "additive"] = "convex"
) -> ObjectiveConfig:
    """(1 − λ)·CE + λ·SCL, or CE + λ·SCL.

    Args:
        weight: λ, in [0, 1] when convex, ≥ 0 when additive.
        temperature: τ > 0, unitless.
    Raises: ConfigError naming the field and the value.
    Source: Gunel et al. 2021, eq. 1, arXiv:2011.01403.
    """
    _check_weight(weight, combine)
    terms = [
        {"loss": "cross_entropy", "weight": _complement(weight) if combine == "convex" else 1.0},
        {"loss": "supcon", "weight": weight, "temperature": temperature},
    ]
    return build(ObjectiveConfig, {"terms": terms, "combine": combine})


def _complement(weight: float) -> float:
    """1 − λ as a person writes it: 0.1 beside 0.9, not 0.09999999999999998."""
    return round(1.0 - weight, 12)


def _check_weight(weight: float, combine: str) -> None:
    upper = 1.0 if combine == "convex" else 1000.0
    if not 0.0 <= weight <= upper:
        raise ConfigError("lambda", weight, f"give a number from 0 to {upper:g}.")


class TrainableConfig(_Part):
    """Which weights learn: all, the last `blocks` blocks and the classifier, or the classifier alone."""

    part: Literal["all", "last_blocks", "classifier"] = "all"
    blocks: Annotated[int, Field(ge=1, le=100)] = 2


class OptimiserConfig(_Part):
    """AdamW with a linear warm-up and a linear decay to zero."""

    learning_rate: Annotated[float, Field(gt=0.0, le=1.0)] = 5e-5
    weight_decay: Annotated[float, Field(ge=0.0, le=1.0)] = 0.01
    warmup_fraction: Annotated[float, Field(ge=0.0, le=1.0)] = 0.1
    max_gradient_norm: Annotated[float, Field(gt=0.0)] = 1.0


class PhaseConfig(_Part):
    """One stretch of training: what learns, from which loss, how long.

    `epochs` is turned into `steps` when the run is prepared.
    """

    trainable: TrainableConfig = TrainableConfig()
    objective: ObjectiveConfig = ObjectiveConfig()
    optimiser: OptimiserConfig = OptimiserConfig()
    batch_size: Annotated[int, Field(ge=1, le=4096)] = 16
    steps: Annotated[int, Field(ge=1, le=MAX_STEPS)] | None = None
    epochs: Annotated[float, Field(gt=0.0, le=1000.0)] | None = None

    @model_validator(mode="after")
    def _one_length(self) -> PhaseConfig:
        if self.steps is not None and self.epochs is not None:
            raise ConfigError("epochs", self.epochs, "give steps or epochs, not both.")
        return self


class ProbeConfig(_Part):
    """The examples on the map, and the steps at which they are encoded (None: the defaults, when prepared)."""

    size: Annotated[int, Field(ge=2, le=20_000)] | None = None
    frame_steps: Annotated[tuple[int, ...], Field(max_length=2_000)] | None = None


class CheckpointConfig(_Part):
    """When the rolling checkpoint is written: every so many steps, or (None) as often as costs about 2 %."""

    every_steps: Annotated[int, Field(ge=1)] | None = None


class KnobTurn(_Part):
    """A setting that was changed while the run was going; `step` is the first step that used it.

    "learning_rate" is a multiplier on the schedule.
    """

    step: Annotated[int, Field(ge=1)]
    name: Literal["lambda", "temperature", "learning_rate"]
    value: float


class RunConfig(_Part):
    """Everything about a run."""

    version: Literal[1] = 1
    name: Annotated[str, Field(max_length=80)] = ""
    task: TaskConfig = TaskConfig()
    encoder: EncoderConfig = EncoderConfig()
    phases: Annotated[tuple[PhaseConfig, ...], Field(min_length=1, max_length=1)] = (PhaseConfig(),)
    probe: ProbeConfig = ProbeConfig()
    checkpoint: CheckpointConfig = CheckpointConfig()
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] = 0
    knob_turns: Annotated[tuple[KnobTurn, ...], Field(max_length=10_000)] = ()

    @model_validator(mode="after")
    def _check_turns(self) -> RunConfig:
        for turn in self.knob_turns:
            check_turn(self, turn.name, turn.value)
        return self

    @property
    def phase(self) -> PhaseConfig:
        return self.phases[0]

    @property
    def steps(self) -> int:
        """Optimiser steps of a prepared run."""
        if self.phase.steps is None:
            raise ConfigError("steps", None, "prepare the run first.")
        return self.phase.steps

    def to_json(self) -> str:
        """The one JSON form, with sorted keys."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True, ensure_ascii=False)


LEARNING_RATE_FACTOR_MAX = 100.0


def check_turn(config: RunConfig, name: str, value: float) -> None:
    """Refuse a knob turn that this run cannot take.

    Raises: ConfigError naming the knob, the value and the bounds.
    """
    if name == "learning_rate":
        if not 0.0 <= value <= LEARNING_RATE_FACTOR_MAX:
            raise ConfigError("learning_rate", value, f"give a factor from 0 to {LEARNING_RATE_FACTOR_MAX:g}.")
        return
    config.phase.objective.turned(name, value)


def build(model: type[Model], given: Any) -> Model:
    """Validate a part of a configuration.

    Raises: ConfigError with one sentence that names field, value and remedy.
    """
    try:
        return model.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        cause = first.get("ctx", {}).get("error")
        if isinstance(cause, PlaygroundError):
            raise cause from None
        field = ".".join(str(part) for part in first["loc"]) or "config"
        remedy = first["msg"].replace("Input should", "it should")
        if first["type"] == "extra_forbidden":
            remedy = f"there is no such field; {_fields_beside(model, first['loc'])}"
        raise ConfigError(field, first["input"], f"{remedy.rstrip('.')}.") from None


def _fields_beside(model: type[BaseModel], path: tuple[int | str, ...]) -> str:
    """The names that exist where an unknown one was given."""
    here: Any = model
    for part in path[:-1]:
        if isinstance(part, str) and part in getattr(here, "model_fields", {}):
            here = here.model_fields[part].annotation
            here = next((a for a in getattr(here, "__args__", ()) if hasattr(a, "model_fields")), here)
    return f"known are {', '.join(here.model_fields)}" if hasattr(here, "model_fields") else "remove it"


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
