"""Settings that a twin can change, and settings that a grid can vary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from core.config import EncoderConfig, OptimiserConfig, PhaseConfig, RunConfig, TaskConfig, TrainableConfig
from core.config.describe import in_phase, term_names, value_text
from core.config.edit import PRESET, twin
from core.config.fields import Section, fields_of
from core.config.objective import WEIGHT_MAX, Knob, ObjectiveConfig, setting_of
from core.config.presets import PRESETS, SHOWING
from core.errors import ConfigError
from core.messages import N_, _, language
from core.parameters import Parameter, Value

# Gunel et al. 2021 search λ and τ over values such as these.
LAMBDAS = (0.1, 0.5, 0.9)
TEMPERATURES = (0.05, 0.1, 0.3, 0.5, 0.7, 1.0)
# Few-shot sizes that Gunel et al. report.
TRAIN_SIZES = (20, 100)
BASELINE, MIX, MIX_TERM = "ce", "ce-scl", "supcon"


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A suggested value, valid in the run's config; None for all training rows."""

    value: Value | None
    text: str


@dataclass(frozen=True, slots=True)
class TwinSetting:
    """A setting that a twin can change.

    Attributes:
        path: path of the setting, as in `twin`.
        parameter: its label, help, kind, bounds and choices, for a widget.
        value, text: its value in the run, and the display text. The value is None if the parameter has none for it (all
            training rows, or an objective that is not a preset).
        suggestions: other values, each to choose with one click.
    """

    path: str
    parameter: Parameter
    value: Value | None
    text: str
    suggestions: tuple[Suggestion, ...]

    @property
    def label(self) -> str:
        return _(self.parameter.label)


# A path, its parameter, its value (None as in TwinSetting), and suggested values.
Offer = tuple[str, Parameter, Value | None, Iterable[Value | None]]


def twin_settings(config: RunConfig) -> tuple[TwinSetting, ...]:
    """Return the settings that a twin can change.

    They are the objective, λ, weights, τ and other knobs, the weights that learn, learning rate, batch size, rows and
    pooling. Suggested values pass the config's validation; `prepare` checks them against the encoder and the data. The
    objectives of a run with two phases cannot be replaced.
    """
    found = []
    for path, parameter, value, candidates in _offers(config):
        kept = [one for one in dict.fromkeys(candidates) if one != value and _valid(config, path, one)]
        suggestions = tuple(Suggestion(one, value_text(one, parameter)) for one in kept)
        text = value_text(value, parameter)
        if path == OBJECTIVE_PATH and value is None:
            text = " + ".join(term_names(config.phases[0].objective).values())
        found.append(TwinSetting(path, parameter, value, text, suggestions))
    return tuple(found)


def _valid(config: RunConfig, path: str, value: Value | None) -> bool:
    try:
        twin(config, path, value)
    except ConfigError:
        return False
    return True


def _offers(config: RunConfig) -> Iterator[Offer]:
    two = len(config.phases) > 1
    if not two:
        yield _presets(config.phases[0].objective)
    size, pooling = config.task.train_size, fields_of(EncoderConfig)["pooling"]
    for number, phase in enumerate(config.phases):
        for path, parameter, value, candidates in _of_phase(phase, f"phases.{number}", size):
            label = in_phase(_(parameter.label), number if two else None)
            yield path, replace(parameter, label=label), value, candidates
    largest = max(phase.batch_size for phase in config.phases)
    # Suggest fewer rows, or all: a config does not hold the number of rows.
    fewer = [n for n in TRAIN_SIZES if largest <= n < (size or n + 1)]
    yield "task.train_size", fields_of(TaskConfig)["train_size"], size, [*fewer, None]
    named = [name for name in pooling.options if name != "auto"]  # a prepared run has one of these
    yield "encoder.pooling", pooling, config.encoder.pooling, named


def _presets(objective: ObjectiveConfig) -> Offer:
    """Offer cross-entropy or the mix as one click, and any preset of one phase as a choice."""
    single = {name: entry for name, entry in PRESETS.items() if len(entry.objectives) == 1 and entry.group != SHOWING}
    made = {name: ObjectiveConfig.model_validate(entry.objectives[0]) for name, entry in single.items()}
    now = next((name for name, one in made.items() if Counter(one.terms) == Counter(objective.terms)), None)
    names = {name: entry.label for name, entry in single.items()}
    about = N_("Another complete objective, with its own weights and temperature.")
    parameter = Parameter("objective", N_("Objective"), now or BASELINE, about, kind="choice", choices=names)
    # An objective that already has supervised contrast gets no suggestion of the mix.
    contrasts = any(term.loss == MIX_TERM for term in objective.terms)
    return OBJECTIVE_PATH, parameter, now, [BASELINE] if contrasts else [BASELINE, MIX]


def _of_phase(phase: PhaseConfig, path: str, rows: int | None) -> Iterator[Offer]:
    for name, knob in phase.objective.knobs.items():
        yield _knob(phase.objective, f"{path}.objective", name, knob)
    trainable, fields = phase.trainable, fields_of(TrainableConfig)
    parts = ["all", "last_blocks"]
    if trainable.reinitialised_blocks == 0:  # a re-initialised block has to learn
        parts += ["lora", *(["classifier"] if phase.objective.classifies else [])]
    yield f"{path}.trainable.part", fields["part"], trainable.part, parts
    if size := {"last_blocks": "blocks", "lora": "lora_rank"}.get(trainable.part):
        value = getattr(trainable, size)
        yield f"{path}.trainable.{size}", fields[size], value, (value // 2, value * 2)
    rate = phase.optimiser.learning_rate
    if rate is not None:
        rates = [float(f"{rate / 3:.0e}"), float(f"{rate * 3:.0e}")]
        yield f"{path}.optimiser.learning_rate", fields_of(OptimiserConfig)["learning_rate"], rate, rates
    fewest = 2 if phase.objective.contrastive else 1
    sizes = [size for size in (phase.batch_size // 2, phase.batch_size * 2) if fewest <= size <= (rows or size)]
    yield f"{path}.batch_size", fields_of(PhaseConfig)["batch_size"], phase.batch_size, sizes


def _knob(objective: ObjectiveConfig, path: str, name: str, knob: Knob) -> Offer:
    """Offer a knob of the objective, to be set before the first step."""
    # Half and double; for 0, a fifth of the slider's maximum.
    around = [knob.value / 2, knob.value * 2] if knob.value else [knob.slider[1] / 5]
    key, _dot, setting = name.rpartition(".")
    if setting in ("lambda", "weight"):
        about = N_("Weight of this term in the loss.")
        most = 1.0 if setting == "lambda" and objective.combine == "convex" else WEIGHT_MAX
        weight = Parameter(setting, knob.label, knob.value, about, low=0.0, high=most, slider=knob.slider)
        if setting == "lambda":
            return f"{path}.lambda", weight, knob.value, LAMBDAS
        return f"{path}.terms.{key}.weight", weight, knob.value, around
    key = key or next(k for k, term in objective.formula_terms if setting in term.parameters)
    entry = dict(objective.formula_terms)[key].entry
    parameter = replace(next(p for p in entry.parameters if p.name == setting), label=knob.label)
    if setting == "temperature":
        smaller, larger = [t for t in TEMPERATURES if t < knob.value], [t for t in TEMPERATURES if t > knob.value]
        around = smaller[-1:] + larger[:1]
    return f"{path}.terms.{key}.{setting}", parameter, knob.value, around


# Fields that a grid cannot vary, because they determine the texts of a task.
NOT_VARIED = frozenset({"test_path", "drop", "translators"})
# The whole objective is varied by preset, including presets of two phases.
OBJECTIVE_PATH = "phases.0.objective"
OBJECTIVE = Parameter(
    PRESET,
    N_("Objective"),
    None,
    N_("A complete objective, with its own weights and temperature."),
    kind="choice",
    choices={name: entry.label for name, entry in PRESETS.items()},
)


def sweepable(config: RunConfig) -> Mapping[str, TwinSetting]:
    """Return the settings that a grid can vary, by path, in display order.

    Only settings that a twin can change have suggested values, which are valid in the config.
    """
    return _sweepable(config, language())


@lru_cache(maxsize=64)
def _sweepable(config: RunConfig, spoken: str) -> Mapping[str, TwinSetting]:
    """Compute `sweepable`. `spoken`, the language of the labels, is part of the cache key."""
    found = {PRESET: TwinSetting(PRESET, OBJECTIVE, None, "", ())}
    found |= {setting.path: setting for setting in twin_settings(config) if setting.path != OBJECTIVE_PATH}
    for path, parameter in _every_parameter(config):
        found.setdefault(path, TwinSetting(path, parameter, None, "", ()))
    return found


def _every_parameter(config: RunConfig) -> Iterator[tuple[str, Parameter]]:
    """Yield every number, choice and switch that has a title, section by section."""

    def of_sections(sections: Mapping[str, type[Section]], phase: int | None = None) -> Iterator[tuple[str, Parameter]]:
        for path, section in sections.items():
            for name, parameter in fields_of(section).items():
                if name not in NOT_VARIED:
                    yield f"{path}.{name}", replace(parameter, label=in_phase(_(parameter.label), phase))

    yield from of_sections({"task": TaskConfig, "encoder": EncoderConfig})
    for number, phase in enumerate(config.phases):
        of_phase, path = number if len(config.phases) > 1 else None, f"phases.{number}"
        sections: dict[str, type[Section]] = {
            f"{path}.trainable": TrainableConfig,
            f"{path}.optimiser": OptimiserConfig,
            path: PhaseConfig,
        }
        yield from of_sections(sections, of_phase)
        names = term_names(phase.objective)
        for key, term in phase.objective.formula_terms:
            for parameter in term.entry.parameters:
                label = in_phase(setting_of(parameter.label, names[key]), of_phase)
                yield f"{path}.objective.terms.{key}.{parameter.name}", replace(parameter, label=label)
    yield "precision", fields_of(RunConfig)["precision"]
