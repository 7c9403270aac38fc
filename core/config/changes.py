"""A draft with some settings changed at once: another objective by its preset, λ and τ where they are, any field."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from core.config import RunConfig, parse_config
from core.config.assign import put, with_full_objective
from core.config.objective import ObjectiveConfig
from core.config.presets import preset
from core.config.validation import build
from core.errors import ConfigError

# Settings that are no fields: an objective by its name, λ, and the τ of every contrastive loss.
PRESET, LAMBDA, TEMPERATURE = "preset", "lambda", "temperature"
# How long a run is; one takes the place of the other, and a preset of two phases divides it.
LENGTHS = ("steps", "epochs")
# They come in this order, and before fields.
ORDER = (*LENGTHS, PRESET, LAMBDA, TEMPERATURE)


def changed(config: RunConfig, settings: Mapping[str, Any]) -> RunConfig:
    """A draft with these settings: "preset", "lambda", "temperature", and paths as `put` takes them.

    A preset keeps what the first phase says beside its objective, and the steps or epochs of the whole run, which
    "steps" or "epochs" beside it are. "lambda" is that of the first phase, `phases.1.objective.lambda` of the second.

    Args:
        config: a draft; what `prepare` has found out about its rows is dropped where they may change.
        settings: values in JSON form.
    Raises: ConfigError naming the field, the value and what would work.
    """
    given = config.model_dump(mode="json")
    for name in sorted(settings, key=_order):
        value = settings[name]
        if name in LENGTHS:
            given["phases"] = _as_long(name, value, given["phases"], whole=PRESET in settings)
        elif name == PRESET:
            given["phases"] = _of_preset(value, given["phases"])
        elif (phase := _phase_of_lambda(name)) is not None:
            put_lambda(given["phases"], value, phase)
        elif name == TEMPERATURE:
            put_temperature(given["phases"], value)
        else:
            put(given, name, value, (PRESET, LAMBDA, TEMPERATURE))
            _keep_one_length(given["phases"], name, value)
            if name.startswith("task.") or name == "seed":
                given["task"]["content_hash"] = None
    return parse_config(given)


def _keep_one_length(phases: Sequence[dict[str, Any]], name: str, value: Any) -> None:
    """A phase whose steps or epochs were given has the other no more."""
    *above, last = name.split(".")
    if last in LENGTHS and above[:1] == ["phases"] and len(above) == 2 and value is not None:
        phases[int(above[1])] |= {other: None for other in LENGTHS if other != last}


def _order(name: str) -> int:
    """Where a setting comes: each works on what those before it have made."""
    name = LAMBDA if _phase_of_lambda(name) is not None else name
    return ORDER.index(name) if name in ORDER else len(ORDER)


def _phase_of_lambda(name: str) -> int | None:
    """The number of the phase whose λ a setting is; None for one that is no λ."""
    if name == LAMBDA:
        return 0
    found = re.fullmatch(r"phases\.([01])\.objective\.lambda", name)
    return int(found[1]) if found else None


def put_lambda(phases: Sequence[dict[str, Any]], value: Any, number: int = 0) -> None:
    """Weigh the contrastive loss of a phase. Raises: ConfigError where its objective has no λ."""
    if number >= len(phases):
        raise ConfigError(LAMBDA, value, "there is one phase; give lambda.")
    objective = build(ObjectiveConfig, phases[number]["objective"])
    if objective.weight is None:
        where = f"phases.{number}." if len(phases) > 1 else ""
        example = f"{where}objective.terms.0.weight=1"
        raise ConfigError(LAMBDA, value, "this objective has no λ; set a weight, such as {example}.", example=example)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigError(LAMBDA, value, "give a number.")
    phases[number]["objective"] = objective.turned("lambda", value).model_dump(mode="json")


def put_temperature(phases: Sequence[dict[str, Any]], value: Any) -> None:
    """Give every contrastive loss this τ. Raises: ConfigError where there is none."""
    terms = [term for phase in phases for term in phase["objective"]["terms"] if TEMPERATURE in term]
    if not terms:
        raise ConfigError(TEMPERATURE, value, "this objective has no contrastive loss; leave it out.")
    for term in terms:
        term[TEMPERATURE] = value


def _as_long(name: str, value: Any, phases: list[dict[str, Any]], *, whole: bool) -> list[dict[str, Any]]:
    """Phases of another length; of two, the first alone with the length of both where a preset will divide it."""
    phases = phases[:1] if whole else phases
    put({"phases": phases}, name, value)
    if value is not None:
        phases[0] |= {other: None for other in LENGTHS if other != name}
    return phases


def _of_preset(name: Any, phases: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The phases of a preset, made from what the first phase says and from how long they all are."""
    phase = {field: value for field, value in phases[0].items() if field != "objective"}
    for length in ("steps", "epochs"):
        given = [one[length] for one in phases if one[length] is not None]
        phase[length] = sum(given) if len(given) == len(phases) else None
    return [with_full_objective(made) for made in preset(name).phases(phase)]
