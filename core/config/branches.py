"""Branches: runs that repeat another run up to a step and go on with other settings."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from core.config.compare import config_hash
from core.config.edit import single_objective
from core.config.fields import build
from core.config.objective import ObjectiveConfig
from core.config.plan import objective_at
from core.config.run import MAX_STEPS, RATE, BranchConfig, Change, KnobTurn, RunConfig, parse_config

TITLE_CHARS = 60


def branch(
    config: RunConfig,
    run_id: str,
    step: int,
    *,
    turns: Mapping[str, float] = MappingProxyType({}),
    objective: str | None = None,
    sampler: str | None = None,
    title: str = "",
) -> RunConfig:
    """Return the config of a branch: that of its parent, with other settings after `step`.

    Later turns and changes of the parent are kept, except those that would undo a change of the branch. Without a
    change, the branch repeats its parent.

    Args:
        config: config of the parent, prepared, with its knob turns.
        run_id: id of the parent.
        turns: new values of knobs, by name.
        objective: name of a preset of one phase, None for the parent's objective.
        sampler: None for the parent's sampler.
        title: title of the parent, from which the branch is named.
    Raises: ConfigError naming the knob, its value and a remedy.
    """
    first, phase = step + 1, config.phase_at(step + 1)
    used = objective_at(config, first)
    replacement = None if objective is None else build(ObjectiveConfig, single_objective(objective))
    replacement = None if replacement == used.objective else replacement
    sampler = None if sampler == config.sampler_at(first) else sampler
    used = used._replace(objective=replacement or used.objective)
    now = {name: used.rate_factor if name == RATE else used.objective.value_of(name) for name in turns}
    turned = {name: value for name, value in turns.items() if value != now[name]}

    def is_undone(turn: KnobTurn) -> bool:
        same = _kind(turn.name) in map(_kind, turned) or (replacement is not None and turn.name != RATE)
        return same and turn.step > step and config.phase_at(turn.step) == phase

    replaced = {"objective": replacement, "sampler": sampler}
    undone = dict.fromkeys(name for name, value in replaced.items() if value is not None)
    changes = [change.model_copy(update=undone) if change.step > step else change for change in config.changes]
    changes.append(build(Change, {"step": first, **replaced}))
    made = [build(KnobTurn, {"step": first, "name": name, "value": value}) for name, value in turned.items()]
    given = {
        "branch": BranchConfig(run=run_id, step=step),
        "name": f"{title[:TITLE_CHARS]} from step {step}",  # in English, as names are stored
        "knob_turns": (*(turn for turn in config.knob_turns if not is_undone(turn)), *made),
        "changes": tuple(one for one in changes if one.objective is not None or one.sampler is not None),
    }
    return parse_config(config.model_copy(update=given).to_json())


def _kind(name: str) -> str:
    """Return the setting that a knob turns, whichever name it has."""
    setting = name.rpartition(".")[2]
    return "lambda" if setting == "weight" else setting


def past_hash(config: RunConfig, step: int) -> str:
    """Return a hash of everything that the steps up to `step` depend on."""
    early = {
        name: tuple(sorted((one for one in getattr(config, name) if one.step <= step), key=lambda one: one.step))
        for name in ("knob_turns", "changes")
    }
    return config_hash(config.model_copy(update={**early, "branch": None}).to_json())


def shared_steps(runs: Mapping[str, RunConfig]) -> int | None:
    """Return the last step that all runs share, as a parent and its branches do; None for other runs.

    Args:
        runs: config by run id.
    """
    lines = [
        {run_id: MAX_STEPS} | ({} if config.branch is None else {config.branch.run: config.branch.step})
        for run_id, config in runs.items()
    ]
    common = set.intersection(*map(set, lines))
    return max((min(line[run_id] for line in lines) for run_id in common), default=None)
