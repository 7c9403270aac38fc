"""Settings that can be varied: what a twin is offered, and what a grid varies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from core.config import EncoderConfig, OptimiserConfig, PhaseConfig, RunConfig, TaskConfig, TrainableConfig
from core.config.describe import in_phase, term_names, value_text
from core.config.edit import PRESET, twin
from core.config.fields import Section, fields_of
from core.config.objective import Knob, ObjectiveConfig, setting_of
from core.config.presets import PRESETS, SHOWING
from core.config.term import WEIGHT_MAX
from core.errors import ConfigError
from core.messages import N_, _, language
from core.parameters import Parameter, Value

# Gunel et al. 2021 search λ and τ over such values.
LAMBDAS = (0.1, 0.5, 0.9)
TEMPERATURES = (0.05, 0.1, 0.3, 0.5, 0.7, 1.0)
# And few-shot sizes as they report them.
TRAIN_SIZES = (20, 100)
BASELINE, MIX, MIX_TERM = "ce", "ce-scl", "supcon"


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A value worth a try, valid in the run's config; None for all training rows."""

    value: Value | None
    text: str


@dataclass(frozen=True, slots=True)
class TwinSetting:
    """A setting that a twin can change.

    Attributes:
        path: for `twin`.
        parameter: its label, help, kind, bounds and choices, as a widget takes them.
        value, text: its value in the run; None where no value of the parameter says it (all training rows, an objective
            that is no preset).
        suggestions: for one click each, the present value not among them.
    """

    path: str
    parameter: Parameter
    value: Value | None
    text: str
    suggestions: tuple[Suggestion, ...]

    @property
    def label(self) -> str:
        return _(self.parameter.label)


# A path, its parameter, its value (None as above) and its text, and values worth a try.
Offer = tuple[str, Parameter, Value | None, str, Sequence[Value | None]]


def twin_settings(config: RunConfig) -> tuple[TwinSetting, ...]:
    """What one click can change: objective, λ, weights, τ and other knobs, what learns, rate, batch, rows, pooling.

    Only values that the config's own validation takes are suggested; `prepare` looks at what they ask of the encoder
    and the data. A run of two phases keeps its objectives as a whole.
    """
    found = []
    for path, parameter, value, text, candidates in _offers(config):
        kept = [one for one in dict.fromkeys(candidates) if one != value and _valid(config, path, one)]
        suggestions = tuple(Suggestion(one, value_text(one, parameter)) for one in kept)
        found.append(TwinSetting(path, parameter, value, text, suggestions))
    return tuple(found)


def _offers(config: RunConfig) -> Iterator[Offer]:
    two = len(config.phases) > 1
    if not two:
        yield _presets(config.phases[0].objective)
    for number, phase in enumerate(config.phases):
        for path, parameter, value, text, candidates in _of_phase(phase, f"phases.{number}", config.task.train_size):
            label = in_phase(_(parameter.label), number if two else None)
            yield path, replace(parameter, label=label), value, text, candidates
    largest = max(phase.batch_size for phase in config.phases)
    yield _train_size(config.task.train_size, largest)
    pooling = fields_of(EncoderConfig)["pooling"]
    named = [name for name in pooling.options if name != "auto"]  # a run that was prepared has one of these
    yield _offer("encoder.pooling", pooling, config.encoder.pooling, named)


def _presets(objective: ObjectiveConfig) -> Offer:
    """Cross-entropy alone against the mix, for one click; any preset of one phase to choose."""
    single = {name: entry for name, entry in PRESETS.items() if len(entry.objectives) == 1 and entry.group != SHOWING}
    made = {name: ObjectiveConfig.model_validate(entry.objectives[0]) for name, entry in single.items()}
    now = next((name for name, one in made.items() if _sorted_terms(one) == _sorted_terms(objective)), None)
    mix = " + ".join(term_names(objective).values())
    names = {name: entry.label for name, entry in single.items()}
    about = N_("Another objective as a whole, with its own weights and temperature.")
    parameter = Parameter("objective", N_("Objective"), now or BASELINE, about, kind="choice", choices=names)
    # A mix is offered its baseline, the baseline the mix.
    contrasts = any(term.loss == MIX_TERM for term in objective.terms)
    candidates = [name for name in (BASELINE, MIX) if name != MIX or not contrasts]
    return ("phases.0.objective", parameter, now, _(names[now]) if now else mix, candidates)


def _sorted_terms(objective: ObjectiveConfig) -> list[str]:
    """What an objective minimises, whatever the order of its terms."""
    return sorted(term.model_dump_json() for term in objective.terms)


def _of_phase(phase: PhaseConfig, path: str, rows: int | None) -> Iterator[Offer]:
    for name, knob in phase.objective.knobs.items():
        yield _knob(phase.objective, f"{path}.objective", name, knob)
    yield from _trainable(phase, f"{path}.trainable")
    rate = phase.optimiser.learning_rate
    if rate is not None:
        rates = [float(f"{rate / 3:.0e}"), float(f"{rate * 3:.0e}")]
        yield _offer(f"{path}.optimiser.learning_rate", fields_of(OptimiserConfig)["learning_rate"], rate, rates)
    fewest = 2 if phase.objective.contrastive else 1
    sizes = [size for size in (phase.batch_size // 2, phase.batch_size * 2) if fewest <= size <= (rows or size)]
    yield _offer(f"{path}.batch_size", fields_of(PhaseConfig)["batch_size"], phase.batch_size, sizes)


def _knob(objective: ObjectiveConfig, path: str, name: str, knob: Knob) -> Offer:
    """A knob of the running objective, here turned before the first step."""
    if name == "lambda":
        most = 1.0 if objective.combine == "convex" else WEIGHT_MAX
        parameter = _weight("lambda", knob, most)
        return _offer(f"{path}.lambda", parameter, knob.value, LAMBDAS)
    key, _, setting = name.rpartition(".")
    if setting == "weight":
        return _offer(f"{path}.terms.{key}.weight", _weight("weight", knob, WEIGHT_MAX), knob.value, _around(knob))
    key = key or next(k for k, term in objective.as_written if setting in term.parameters)
    entry = dict(objective.as_written)[key].entry
    parameter = replace(next(p for p in entry.parameters if p.name == setting), label=knob.label)
    candidates = _neighbours(knob.value, TEMPERATURES) if setting == "temperature" else _around(knob)
    return _offer(f"{path}.terms.{key}.{setting}", parameter, knob.value, candidates)


def _weight(name: str, knob: Knob, most: float) -> Parameter:
    about = N_("How much of the loss it is.")
    return Parameter(name, knob.label, knob.value, about, low=0.0, high=most, slider=knob.slider)


def _trainable(phase: PhaseConfig, path: str) -> Iterator[Offer]:
    trainable = phase.trainable
    choices = ["all", "last_blocks"]
    if trainable.reinitialised_blocks == 0:  # a block that is drawn again has to learn
        choices += ["lora", *(["classifier"] if phase.objective.classifies else [])]
    yield _offer(f"{path}.part", fields_of(TrainableConfig)["part"], trainable.part, choices)
    names = {"last_blocks": "blocks", "lora": "lora_rank"}
    if (name := names.get(trainable.part)) is not None:
        value = getattr(trainable, name)
        yield _offer(f"{path}.{name}", fields_of(TrainableConfig)[name], value, (value // 2, value * 2))


def _train_size(size: int | None, largest_batch: int) -> Offer:
    """Fewer rows than now, or all; how many there are beyond is not said by a config."""
    fewer: list[Value | None] = [n for n in TRAIN_SIZES if largest_batch <= n < (size or n + 1)]
    return _offer("task.train_size", fields_of(TaskConfig)["train_size"], size, [*fewer, None])


def _offer(path: str, parameter: Parameter, value: Value | None, candidates: Iterable[Value | None]) -> Offer:
    return (path, parameter, value, value_text(value, parameter), list(candidates))


def _neighbours(value: float, grid: Sequence[float]) -> list[float]:
    """The next smaller and the next larger value of a grid."""
    smaller, larger = [g for g in grid if g < value], [g for g in grid if g > value]
    return smaller[-1:] + larger[:1]


def _around(knob: Knob) -> list[float]:
    """Half and double; from 0, a fifth of what a slider shows."""
    return [knob.value / 2, knob.value * 2] if knob.value else [knob.slider[1] / 5]


def _valid(config: RunConfig, path: str, value: Value | None) -> bool:
    try:
        twin(config, path, value)
    except ConfigError:
        return False
    return True


# Of a task, what says which texts there are, and of a run, where it is carried out.
NOT_VARIED = frozenset({"test_path", "drop", "translators"})
# The objective as a whole is varied by its preset, also one of two phases.
OBJECTIVE_PATH = "phases.0.objective"
OBJECTIVE = Parameter(
    PRESET,
    N_("Objective"),
    None,
    N_("An objective as a whole, with its own weights and temperature."),
    kind="choice",
    choices={name: entry.label for name, entry in PRESETS.items()},
)


def sweepable(config: RunConfig) -> Mapping[str, TwinSetting]:
    """What can be varied, by its path, in the order in which people look for it.

    Suggested values are worth a try and valid in the config; settings beyond those of a twin have none.
    """
    return _sweepable(config, language())


@lru_cache(maxsize=64)
def _sweepable(config: RunConfig, spoken: str) -> Mapping[str, TwinSetting]:
    """`spoken` is the language of the labels, those of a phase or of a loss among them."""
    found = {PRESET: TwinSetting(PRESET, OBJECTIVE, None, "", ())}
    for setting in twin_settings(config):
        if setting.path != OBJECTIVE_PATH:
            found[setting.path] = setting
    for path, parameter in _others(config):
        found.setdefault(path, TwinSetting(path, parameter, None, "", ()))
    return found


def _others(config: RunConfig) -> Iterator[tuple[str, Parameter]]:
    """Every number, choice and switch that has a name, section by section."""
    yield from _fields("task", TaskConfig)
    yield from _fields("encoder", EncoderConfig)
    for number, phase in enumerate(config.phases):
        of_phase = number if len(config.phases) > 1 else None
        path = f"phases.{number}"
        yield from _fields(f"{path}.trainable", TrainableConfig, of_phase)
        yield from _fields(f"{path}.optimiser", OptimiserConfig, of_phase)
        yield from _fields(path, PhaseConfig, of_phase)
        names = term_names(phase.objective)
        for key, term in phase.objective.as_written:
            for parameter in term.entry.parameters:
                label = in_phase(setting_of(parameter.label, names[key]), of_phase)
                yield f"{path}.objective.terms.{key}.{parameter.name}", replace(parameter, label=label)
    yield "precision", fields_of(RunConfig)["precision"]


def _fields(path: str, section: type[Section], phase: int | None = None) -> Iterator[tuple[str, Parameter]]:
    for name, parameter in fields_of(section).items():
        if name not in NOT_VARIED:
            yield f"{path}.{name}", replace(parameter, label=in_phase(_(parameter.label), phase))
