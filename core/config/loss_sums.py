"""Whether a loss means the same in several runs, so that the heights of its curves compare."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from pathlib import PureWindowsPath

from core.config import RunConfig
from core.config.describe import phase_settings

TOTAL = "loss"


def is_loss(name: str) -> bool:
    """Whether a measure of a step is the total loss, or a part of it (`loss.supcon`, `loss.rdrop.kl`)."""
    return name.partition(".")[0] == TOTAL


def same_loss(configs: Sequence[RunConfig], name: str) -> bool:
    """Whether the total loss is the same sum in all runs, or a part of it has the same settings but for its weight.

    The value of a loss depends on the texts and the number of classes: the task counts. That of a contrastive loss
    depends on its temperature, its views, and on how many vectors it has to separate: the batch size counts for it.

    Args:
        configs: with the knob turns that were made.
        name: see `is_loss`.
    """
    return len({_meaning(config, name) for config in configs}) <= 1


def _meaning(config: RunConfig, name: str) -> Hashable:
    """What decides the value of a loss, phase by phase; a phase without the part says nothing."""
    key = name.split(".")[1] if "." in name else None
    found = [_in_phase(config, number, key) for number in range(len(config.phases))]
    file = config.task.path and PureWindowsPath(config.task.path).name  # as replays keep it
    return (config.task.id, file, *(phase for phase in found if phase))


def _in_phase(config: RunConfig, number: int, key: str | None) -> frozenset[tuple[str, Hashable]]:
    phase, path = config.phases[number], f"phases.{number}."
    objective = phase.objective
    terms = [term for name, term in zip(objective.keys, objective.terms, strict=True) if key in (None, name)]
    if not terms:
        return frozenset()
    start = f"{path}objective." if key is None else f"{path}objective.terms.{key}."
    every = {setting.path: setting.value for setting in phase_settings(config, number)}
    kept = {at: value for at, value in every.items() if at.startswith(start) and not (key and at == f"{start}weight")}
    if any(term.entry.contrastive for term in terms):
        kept[f"{path}batch_size"] = phase.batch_size
    return frozenset((at.removeprefix(path), value) for at, value in kept.items()) | {("present", True)}
