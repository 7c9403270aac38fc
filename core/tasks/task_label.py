"""Label of a run's task."""

from __future__ import annotations

from pathlib import Path

from core.config import RunConfig
from core.messages import _
from core.tasks.registry import TASKS


def task_label(config: RunConfig) -> str:
    """Return the task's name when the run was made."""
    if config.task.id in TASKS:
        return _(TASKS[config.task.id].label)
    return config.task.name or Path(config.task.path or config.task.id).name
