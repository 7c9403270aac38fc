"""Describe the settings that all cells of a grid share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import reduce
from itertools import product
from typing import NamedTuple

from core.advice.defaults import DEFAULT_STEPS
from core.config import RunConfig
from core.config.describe import objective_label, row_settings
from core.config.edit import apply_settings
from core.errors import ConfigError
from core.experiments.design import START, Axis
from core.messages import _, join_label, ngettext
from core.tasks.registry import task_label


class SharedSettings(NamedTuple):
    """Descriptions of the settings that no axis varies."""

    rows: list[str]
    encoder: list[str]
    objective: list[str]
    length: list[str]


def shared_settings(base: RunConfig, axes: Sequence[Axis]) -> SharedSettings:
    """Describe the settings of a draft that no level changes. The objective may be described without weights or τ."""
    drafts = [base]
    for level in (level for axis in axes for level in axis.levels):
        with suppress(ConfigError):  # a level may be valid only with another axis's level
            drafts.append(
                apply_settings(base, {name: value for name, value in level.settings.items() if name != START})
            )

    def shared(texts: Callable[[RunConfig], list[str]]) -> list[str]:
        return [text for text in texts(base) if all(text in texts(draft) for draft in drafts)]

    wholes = product((True, False), repeat=2)
    labels = ({objective_label(one, weights=w, temperature=t) for one in drafts} for t, w in wholes)
    objective = next((list(found) for found in labels if len(found) == 1), [])
    rows = shared(
        lambda draft: [task_label(draft), *(join_label(one.label, one.text) for one in row_settings(draft.task))]
    )
    return SharedSettings(rows, shared(lambda draft: [draft.encoder.id]), objective, shared(_length))


def _length(draft: RunConfig) -> list[str]:
    lengths = [
        ngettext("{count} step", "{count} steps", phase.steps or DEFAULT_STEPS)
        if phase.epochs is None
        else ngettext("{epochs} epoch", "{epochs} epochs", 1 if phase.epochs == 1 else 2, epochs=f"{phase.epochs:g}")
        for phase in draft.phases
    ]
    return [reduce(lambda first, then: _("{first}, then {then}", first=first, then=then), lengths)]
