"""Which settings of a draft can be varied: those that a twin is offered for, then every other number and choice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache

from core.config import EncoderConfig, OptimiserConfig, PhaseConfig, RunConfig, TaskConfig, TrainableConfig
from core.config.changes import PRESET
from core.config.describe import term_names
from core.config.fields import fields_of
from core.config.labels import in_phase
from core.config.objective import setting_of
from core.config.presets import PRESETS
from core.config.suggestions import TwinSetting, twin_settings
from core.config.validation import Section
from core.messages import N_, _, language
from core.parameters import Parameter

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
