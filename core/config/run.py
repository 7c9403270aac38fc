"""RunConfig: the complete configuration of a run, frozen and validated, and the files and folders that it names.

The page, the URL, the command line, the store and the worker share this one value and its JSON form.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable
from itertools import accumulate
from pathlib import PureWindowsPath
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from core.catalogue.views import VIEWS, ViewEntry
from core.config.fields import Section, build, not_json, setting
from core.config.objective import ObjectiveConfig
from core.config.sections import (
    CheckpointConfig,
    EncoderConfig,
    OptimiserConfig,
    ProbeConfig,
    ResourcesConfig,
    TaskConfig,
    TrainableConfig,
)
from core.errors import ConfigError
from core.messages import N_, Message

MAX_STEPS = 1_000_000
LARGEST_SEED = 2**32 - 1
RUN_ID = r"^[a-z0-9]{12}$"
Precision = Literal["auto", "float32", "bfloat16"]
ClassifierStart = Literal["auto", "random", "probe"]


class PhaseConfig(Section):
    """One phase of training: the weights that learn, the objective, the optimiser and the length.

    `prepare` converts `epochs` to `steps`. With `micro_batch`, a contrastive batch may exceed memory: the encoder reads
    this many texts at a time, for the same gradients (gradient cache, Gao et al. 2021, arXiv:2101.06983).
    """

    trainable: TrainableConfig = TrainableConfig()
    objective: ObjectiveConfig = ObjectiveConfig()
    optimiser: OptimiserConfig = OptimiserConfig()
    steps: int | None = setting(
        None,
        N_("Steps"),
        N_("Number of optimiser steps."),
        {None: N_("The default")},
        ge=1,
        le=MAX_STEPS,
        unit=N_("steps"),
        listed=True,
    )
    epochs: float | None = setting(
        None,
        N_("Epochs"),
        N_("Number of passes over the training rows, instead of steps."),
        {None: "–"},
        gt=0.0,
        le=1000.0,
        unit=N_("epochs"),
    )
    batch_size: int = setting(16, N_("Batch size"), N_("Texts per step."), ge=1, le=4096, unit=N_("texts"), listed=True)
    micro_batch: int | None = setting(
        None,
        N_("Micro-batch"),
        N_(
            "Texts encoded at a time. Each is encoded twice (gradient cache), and the batch may be larger than memory "
            "allows at once; gradients do not change."
        ),
        {None: N_("The whole batch")},
        ge=1,
        le=4096,
        unit=N_("texts"),
    )
    gradient_checkpointing: bool = setting(
        False,
        N_("Gradient checkpointing"),
        N_("Keeps only the blocks’ inputs and recomputes the rest: less memory, about a third more time."),
    )

    @property
    def effective_micro_batch(self) -> int | None:
        """Number of texts that the encoder reads at a time; None for the whole batch."""
        return self.micro_batch if self.micro_batch is not None and self.micro_batch < self.batch_size else None

    @model_validator(mode="after")
    def _one_length(self) -> PhaseConfig:
        if self.steps is not None and self.epochs is not None:
            raise ConfigError("epochs", self.epochs, "give steps or epochs, not both.")
        return self


class KnobTurn(Section):
    """A setting that was changed during the run; `step` is the first step that used it.

    "learning_rate" multiplies the schedule; the other names are those of `ObjectiveConfig.knobs`. A turn holds until
    its phase ends.
    """

    step: Annotated[int, Field(ge=1)]
    name: Annotated[str, Field(min_length=1, max_length=80)]
    value: float


class Change(Section):
    """Another objective or sampler during the run; `step` is the first step that uses it.

    An objective holds until its phase ends, a sampler until the run ends.
    """

    step: Annotated[int, Field(ge=1)]
    objective: ObjectiveConfig | None = None
    sampler: Literal["random", "class_balanced", "two_classes"] | None = None


class BranchConfig(Section):
    """The run that a branch continues, and the last step that both share."""

    run: Annotated[str, Field(pattern=RUN_ID)]
    step: Annotated[int, Field(ge=0, le=MAX_STEPS)]

    def __str__(self) -> str:
        return f"{self.run}@{self.step}"


class RunConfig(Section):
    """The complete configuration of a run.

    `precision` applies to the encoder's passes; losses, norms and the classifier are always float32. `prepare` replaces
    "auto" with bfloat16 if the hardware computes in it, else with float32. `start` is the id of another run in the same
    store, for transfer from one task to another. A branch has all settings of its parent up to their last shared step,
    so its config alone repeats it. `classifier_start` "auto" becomes "probe" with more than six classes and one phase
    that trains the classifier (Kumar et al. 2022, arXiv:2202.10054, "LP-FT").
    """

    version: Literal[2] = 2
    name: str = setting("", N_("Name"), N_("Shown in the list of runs."), max_length=80)
    task: TaskConfig = TaskConfig()
    encoder: EncoderConfig = EncoderConfig()
    phases: Annotated[tuple[PhaseConfig, ...], Field(min_length=1, max_length=2)] = (PhaseConfig(),)
    probe: ProbeConfig = ProbeConfig()
    checkpoint: CheckpointConfig = CheckpointConfig()
    device: Literal["auto", "cpu", "cuda", "mps"] = setting(
        "auto",
        N_("Device"),
        N_("Automatic uses a GPU if there is one."),
        {"auto": N_("Automatic"), "cpu": "CPU", "cuda": "CUDA", "mps": "MPS"},
    )
    precision: Precision = setting(
        "auto",
        N_("Precision"),
        N_(
            "Precision of the encoder’s passes. Automatic uses bfloat16 if this machine supports it, which is "
            "about twice as fast. Losses, norms and the classifier are always float32."
        ),
        {"auto": N_("Automatic")},
    )
    start: str | None = setting(
        None,
        N_("Starts from"),
        N_("Starts from the encoder of a finished run with the same architecture; the classifier is new."),
        {None: N_("The pre-trained encoder")},
        pattern=RUN_ID,
    )
    branch: BranchConfig | None = setting(
        None,
        N_("Branch of"),
        N_("The run that this run continues with other settings, and the last step that both share."),
        {None: N_("None")},
        exclude_if=lambda point: point is None,
    )
    classifier_start: ClassifierStart = setting(
        "auto",
        N_("Classifier initialisation"),
        N_(
            "Random weights, or a linear probe of the encoder, which helps with many classes. Automatic uses the "
            "probe with more than six classes."
        ),
        {"auto": N_("Automatic"), "random": N_("Random weights"), "probe": N_("Linear probe")},
    )
    executor: Literal["full", "surface"] = setting(
        "full",
        N_("Trained as"),
        N_("A full run, or a cell of a grid whose cells share the outputs of frozen blocks."),
        {"full": N_("Full run"), "surface": N_("Cell on shared blocks")},
        exclude_if=lambda name: name == "full",
    )
    resources: ResourcesConfig = ResourcesConfig()
    processes: int = setting(
        1,
        N_("Processes"),
        N_(
            "Data-parallel training on one machine: each process reads a part of every batch, on its own GPU if "
            "there are several. The contrastive loss sees the whole batch."
        ),
        ge=1,
        le=64,
        unit=N_("processes"),
    )
    seed: int = setting(
        0, N_("Seed"), N_("Seeds sampling, initialisation, batching and dropout."), ge=0, le=LARGEST_SEED
    )
    knob_turns: Annotated[tuple[KnobTurn, ...], Field(max_length=10_000)] = ()
    changes: Annotated[tuple[Change, ...], Field(max_length=100, exclude_if=lambda changes: not changes)] = ()

    @model_validator(mode="before")
    @classmethod
    def _without_classifier_start(cls, given: Any) -> Any:
        """Set "random" for a run that was prepared before this setting existed."""
        task = given.get("task") if isinstance(given, dict) else None
        if not isinstance(task, dict) or task.get("content_hash") is None or "classifier_start" in given:
            return given
        return given | {"classifier_start": "random"}

    @model_validator(mode="after")
    def _check_turns(self) -> RunConfig:
        names = [turn.name for turn in self.knob_turns if turn.name != RATE]
        names += ["objective" for change in self.changes if change.objective is not None]
        if len(self.phases) > 1 and names and any(phase.steps is None for phase in self.phases):
            raise ConfigError(
                "knob_turns",
                ", ".join(names),
                "give the steps of both phases, so that a turn's step determines its phase.",
            )
        _follow(self)
        return self

    @property
    def steps(self) -> int:
        """Total optimiser steps of a prepared run."""
        return sum(phase_steps(phase) for phase in self.phases)

    @property
    def on_shared_trunk(self) -> bool:
        """True for a cell of a surface. It stores no attention over time, and its test split is not scored."""
        return self.executor == "surface"

    @property
    def trunk(self) -> tuple[object, ...]:
        """Cells of a surface with equal values share a trunk, and its probe, which reads the rows of their batches."""
        phase = self.phases[0]
        return (
            self.encoder,
            self.task,
            self.seed,
            phase.trainable,
            phase.batch_size,
            self.device,
            self.precision,
        )

    @property
    def reinitialised_blocks(self) -> int:
        """Number of top blocks that are drawn at random before frame 0."""
        return self.phases[0].trainable.reinitialised_blocks

    @property
    def phase_ends(self) -> tuple[int, ...]:
        """The last step of each phase of a prepared run."""
        return tuple(accumulate(phase_steps(phase) for phase in self.phases))

    def phase_at(self, step: int) -> int:
        """Return the phase, numbered from 0, of step 1, 2, …; steps beyond the end belong to the last phase."""
        if len(self.phases) == 1:
            return 0
        return min(bisect_left(self.phase_ends, step), len(self.phases) - 1)

    @property
    def objectives(self) -> tuple[ObjectiveConfig, ...]:
        """The objective of every phase as launched, and those that replace it later."""
        later = (change.objective for change in self.changes if change.objective is not None)
        return (*(phase.objective for phase in self.phases), *later)

    @property
    def changes_and_turns(self) -> list[Change | KnobTurn]:
        """Changes and knob turns in the order in which the run makes them; within a step, changes come first."""
        every: list[Change | KnobTurn] = [*self.changes, *self.knob_turns]
        return sorted(every, key=lambda one: one.step)

    def repeats(self, step: int) -> bool:
        """Return whether a step is one that this branch shares with its parent."""
        return self.branch is not None and step <= self.branch.step

    def sampler_at(self, step: int) -> str:
        """Return the sampler of step 1, 2, …."""
        later = [one.sampler for one in sorted(self.changes, key=lambda one: one.step) if one.step <= step]
        return next((name for name in reversed(later) if name is not None), self.task.sampler)

    def to_json(self) -> str:
        """Return the canonical JSON form, with sorted keys."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True, ensure_ascii=False)


RATE = "learning_rate"
LEARNING_RATE_FACTOR_MAX = 100.0


def peak_rates(optimiser: OptimiserConfig) -> tuple[float, float]:
    """Return the encoder's and the classifier's rate of a prepared run. Raises: ConfigError if it is not prepared."""
    if optimiser.learning_rate is None or optimiser.classifier_learning_rate is None:
        raise ConfigError("learning_rate", None, "prepare the run first.")
    return optimiser.learning_rate, optimiser.classifier_learning_rate


def phase_steps(phase: PhaseConfig) -> int:
    """Return the steps of a phase of a prepared run. Raises: ConfigError if it is not prepared."""
    if phase.steps is None:
        raise ConfigError("steps", None, "prepare the run first.")
    return phase.steps


def check_turn(config: RunConfig, step: int, name: str, value: float) -> None:
    """Reject a knob turn that this run cannot take after its earlier turns.

    Raises: ConfigError naming the knob, the value and the bounds.
    """
    turn = KnobTurn.model_construct(step=step, name=name, value=value)
    _follow(config.model_copy(update={"knob_turns": (*config.knob_turns, turn)}))


def _follow(config: RunConfig) -> None:
    """Apply changes and turns in order, as the run does. Raises: ConfigError for the first that cannot be applied."""
    objectives = [phase.objective for phase in config.phases]
    for turn in config.changes_and_turns:
        if isinstance(turn, Change):
            if turn.objective is not None:
                phase = config.phase_at(turn.step)
                _check_replacement(config.phases[phase].objective, turn.objective)
                objectives[phase] = turn.objective
        elif turn.name != RATE:
            phase = config.phase_at(turn.step)
            objectives[phase] = objectives[phase].with_knob(turn.name, turn.value)
        elif not 0.0 <= turn.value <= LEARNING_RATE_FACTOR_MAX:
            raise ConfigError(RATE, turn.value, "give a factor from 0 to {most:g}.", most=LEARNING_RATE_FACTOR_MAX)


def _check_replacement(first: ObjectiveConfig, later: ObjectiveConfig) -> None:
    """Reject an objective that needs weights or a queue that its phase did not begin with. Raises: ConfigError."""
    began = {key: term.parameters for key, term in zip(first.keys, first.terms, strict=True)}
    for key, term in zip(later.keys, later.terms, strict=True):
        for name, absent in (("queue", 0), ("projection", "none")):
            value, before = (given.get(name, absent) for given in (term.parameters, began.get(key, {})))
            if value != before:
                remedy = Message("it cannot change during a phase; give {value}.", value=before)
                raise ConfigError(f"{term.loss}.{name}", value, remedy)


WHOLE = N_("give a config as exported from a run.")


def parse_config(given: Any) -> RunConfig:
    """Build a RunConfig from its JSON form (text or dictionary).

    Raises: ConfigError with one sentence about the first error.
    """
    if isinstance(given, str | bytes):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError) as error:
            raise not_json("config", error, Message(WHOLE)) from None
    if not isinstance(given, dict):
        raise ConfigError("config", type(given).__name__, WHOLE)
    return build(RunConfig, given)


def is_path(name: str) -> bool:
    """Return whether the name of a model is a path on disk rather than a name on the Hub."""
    return name.startswith(("/", "~", ".")) or any(sign in name for sign in ("\\", ":", "..")) or name.count("/") > 1


def named_models(config: RunConfig) -> list[str]:
    """Return the encoder and all translation models that a config names, even those that the run does not load."""
    return [config.encoder.id, *config.task.translators, *(model for _field, model in _view_models(config))]


def translation_models(config: RunConfig) -> list[str]:
    """Return the translation models that a run loads, each once: for additional training texts and for views."""
    made_once = config.task.translators if config.task.back_translation is not None else ()
    return list(dict.fromkeys([*made_once, *(model for _field, model in _view_models(config))]))


def named_paths(config: RunConfig) -> list[tuple[str, str]]:
    """Return every file and folder that a config names, with its field."""
    task = config.task
    files = [("task.path", task.path), ("task.test_path", task.test_path)]
    models = [("encoder.id", config.encoder.id), *(("task.translators", name) for name in task.translators)]
    models += _view_models(config)
    found = [(field, path) for field, path in files if path is not None]
    return found + [(field, name) for field, name in models if is_path(name)]


def without_folders(config: RunConfig) -> RunConfig:
    """Return the config with the bare names of local files and models; their folders are private to the machine."""
    # A bare name keeps nothing that `is_path` would take for a path: colons, double dots, leading dots and tildes.
    return with_paths(
        config,
        _last,
        lambda name: _last(name).replace(":", "").replace("..", "").lstrip("~.") if is_path(name) else name,
    )


def with_paths(config: RunConfig, file: Callable[[str], str], model: Callable[[str], str]) -> RunConfig:
    """Return the config with its paths replaced.

    Args:
        file: maps the path of a file.
        model: maps the name of a model.
    """
    given = config.model_dump(mode="json")
    task, encoder = given["task"], given["encoder"]
    for name in ("path", "test_path"):
        task[name] = task[name] and file(task[name])
    task["translators"] = list(map(model, task["translators"]))
    encoder["id"] = model(encoder["id"])
    objectives = [part["objective"] for part in (*given["phases"], *given.get("changes", ()))]
    for term in (term for objective in objectives if objective for term in objective["terms"]):
        for view in term["views"]:
            view |= {name: model(view[name]) for name in _model_parameters(VIEWS.entry(view["view"]))}
    return parse_config(given)


def _view_models(config: RunConfig) -> list[tuple[str, str]]:
    """Return the models of all views, each with its parameter."""
    views = [view for objective in config.objectives for term in objective.terms for view in term.views]
    return [(name, str(view.parameters[name])) for view in views for name in _model_parameters(view.entry)]


def _model_parameters(view: ViewEntry) -> list[str]:
    return [one.name for one in view.parameters if one.kind == "name" and view.by_model]


def _last(path: str) -> str:
    return PureWindowsPath(path).name  # handles both kinds of slash
