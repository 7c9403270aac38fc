"""The label of a run's task."""

from __future__ import annotations

from pathlib import Path

from core.config import RunConfig
from core.messages import _
from core.tasks.registry import TASKS


def task_label(config: RunConfig) -> str:
    """Return the label of a bundled task, or the name that another task had when the run was created."""
    if config.task.id in TASKS:
        return _(TASKS[config.task.id].label)
    return config.task.name or Path(config.task.path or config.task.id).name
