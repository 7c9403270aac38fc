"""The literal list of bundled tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from core.errors import ConfigError

ASSETS = Path(__file__).resolve().parents[2] / "assets" / "tasks"
CSV_TASK = "csv"


@dataclass(frozen=True, slots=True)
class TaskEntry:
    """A task that comes with the project; its folder holds train.csv, test.csv and README.md."""

    name: str
    label: str
    summary: str
    source: str

    @property
    def folder(self) -> Path:
        return ASSETS / self.name


TASKS: Mapping[str, TaskEntry] = {
    "film_reviews": TaskEntry(
        name="film_reviews",
        label="Film reviews",
        summary="One sentence from a film review, negative or positive; negation, irony and mixed feelings.",
        source="written for this project, CC0",
    ),
}


def task_entry(name: str) -> TaskEntry:
    """The entry of a bundled task.

    Raises: ConfigError naming what exists.
    """
    if name not in TASKS:
        raise ConfigError("task", name, f"choose {', '.join(TASKS)}, or give the path of a CSV file.")
    return TASKS[name]
