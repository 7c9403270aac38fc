"""What the steps of a phase compute, stage by stage: a turned knob changes values, and sometimes what is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from core.config import RunConfig
from core.config.objective import ObjectiveConfig
from core.config.plan import Plan, TermPlan, plan_phase
from core.config.turns import Stage, stages
from core.exports.script.tracing import Text
from core.parameters import Value, number

RATE = "learning_rate"
WEIGHT = "weight"


class Terms(NamedTuple):
    """The terms of one structure.

    Attributes:
        weighted, reported: those that count, and those of weight 0, in the order in which they are computed.
        weights, settings: by key, a number or the text of a knob that is turned.
    """

    weighted: tuple[TermPlan, ...]
    reported: tuple[TermPlan, ...]
    weights: dict[str, float | Text]
    settings: dict[str, dict[str, Value | Text]]


@dataclass(frozen=True)
class Structure:
    """What one or several stages of a phase compute.

    Attributes:
        number: from 1, over all phases of the run.
    """

    number: int
    plan: Plan
    terms: Terms


class PhaseStage(NamedTuple):
    """From a step of its phase on, a structure with these values of the knobs that are turned."""

    step: int
    structure: Structure
    knobs: dict[str, float]


def phase_stages(config: RunConfig, number: int, blocks: int, first: int) -> list[PhaseStage]:
    """The stages of a phase, the first beginning at step 1; `first` numbers its first structure."""
    begins = config.phase_ends[number - 1] if number else 0
    found = [stage for stage in stages(config, number) if stage.step <= config.phase_ends[number]]
    values = [_values(stage) for stage in found]
    turned = {name for name in values[0] if len({one[name] for one in values}) > 1}
    structures: dict[object, Structure] = {}
    made = []
    for stage, value in zip(found, values, strict=True):
        objective = stage.settings.objective
        plan = plan_phase(objective, blocks)
        structure = Structure(first + len(structures), plan, _terms(objective, plan, turned))
        structure = structures.setdefault(_shape(structure), structure)
        knobs = {name: value[name] for name in values[0] if name in turned}
        made.append(PhaseStage(max(1, stage.step - begins), structure, knobs))
    return made


def knob(name: str) -> str:
    """How a step reads a knob that is turned."""
    return f'knobs["{name}"]'


def _values(stage: Stage) -> dict[str, float]:
    """Everything that can be turned."""
    found = {RATE: stage.settings.rate_factor}
    objective = stage.settings.objective
    for key, term in zip(objective.keys, objective.terms, strict=True):
        found[f"{key}.{WEIGHT}"] = term.weight
        for name in (parameter.name for parameter in term.entry.parameters if parameter.knob):
            found[f"{key}.{name}"] = number(term.parameters, name)
    return found


def _terms(objective: ObjectiveConfig, plan: Plan, turned: set[str]) -> Terms:
    config = dict(zip(objective.keys, objective.terms, strict=True))
    weights: dict[str, float | Text] = {}
    settings: dict[str, dict[str, Value | Text]] = {}
    for planned in plan.terms:
        key, term = planned.key, config[planned.key]
        weights[key] = Text(knob(f"{key}.{WEIGHT}")) if f"{key}.{WEIGHT}" in turned else term.weight
        settings[key] = {
            name: Text(knob(f"{key}.{name}")) if f"{key}.{name}" in turned else value
            for name, value in term.parameters.items()
        }
    weighted = tuple(planned for planned in plan.terms if config[planned.key].weight > 0)
    reported = tuple(planned for planned in plan.terms if config[planned.key].weight == 0)
    return Terms(weighted, reported, weights, settings)


def _shape(structure: Structure) -> object:
    """Structures of one shape compute the same, whatever their knobs' values."""
    plan, terms = structure.plan, structure.terms

    def read(planned: Sequence[TermPlan]) -> tuple[object, ...]:
        return tuple((one.key, one.logits, one.groups) for one in planned)

    return plan.passes, plan.layers, plan.tokens, read(terms.weighted), read(terms.reported)
