"""The list of bundled tasks, with a note on those that a small encoder hardly learns in a short run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from core.config import RunConfig
from core.errors import ConfigError
from core.messages import N_, _, ngettext
from core.quantities import percent
from core.tasks.dataset import TaskData

ASSETS = Path(__file__).resolve().parents[2] / "assets" / "tasks"


@dataclass(frozen=True, slots=True)
class TaskEntry:
    """A bundled task. Its folder holds train.csv, test.csv and a data card, README.md.

    `hard` says why a small encoder hardly learns it in a short run. All texts except the name are translated for
    display.
    """

    name: str
    label: str
    summary: str
    source: str = N_("written for this project, CC0")
    hard: str = ""

    @property
    def folder(self) -> Path:
        return ASSETS / self.name


_ENTRIES = (
    TaskEntry(
        "film_reviews",
        N_("Film reviews"),
        N_(
            "Invented sentences in the style of film reviews, negative or positive; some are ironic or express "
            "mixed feelings."
        ),
    ),
    TaskEntry(
        "product_reviews",
        N_("Product reviews"),
        N_(
            "Invented sentences in the style of reviews of phones and other gadgets, negative or positive; a "
            "target for sentiment transfer."
        ),
    ),
    TaskEntry(
        "venue_reviews",
        N_("Venue reviews"),
        N_(
            "Invented sentences in the style of reviews of restaurants and bars, negative or positive; a target "
            "for sentiment transfer."
        ),
    ),
    TaskEntry(
        "news_topics",
        N_("News topics"),
        N_("One or two sentences of news in four topics: business, science, sport, world."),
    ),
    TaskEntry(
        "question_types",
        N_("Question types"),
        N_("Questions by the kind of answer they ask for: six kinds, as in TREC."),
    ),
    TaskEntry(
        "nli",
        N_("Natural language inference"),
        N_(
            "Pairs: does the second sentence follow from the first, contradict it, or neither? Also available as "
            "triplets. Hard for a small encoder."
        ),
    ),
    TaskEntry(
        "paraphrase",
        N_("Paraphrase pairs"),
        N_("Pairs that do or do not mean the same, in similar words. Hard for a small encoder."),
    ),
    TaskEntry(
        "acceptability",
        N_("Acceptability"),
        N_("Is it a well-formed English sentence? Hard for a small encoder."),
        hard=N_("Sentence encoders were trained to ignore grammar"),
    ),
    TaskEntry(
        "long_film_reviews",
        N_("Long film reviews"),
        N_("Complete film reviews of 90 to 220 words, negative or positive; made for token-level objectives."),
    ),
)
TASKS: Mapping[str, TaskEntry] = {entry.name: entry for entry in _ENTRIES}


def task_entry(name: str) -> TaskEntry:
    """Return the entry of a bundled task.

    Raises: ConfigError naming the bundled tasks.
    """
    if name not in TASKS:
        raise ConfigError("task", name, "choose {names}, or give the path of a file.", names=tuple(TASKS))
    return TASKS[name]


def task_label(config: RunConfig) -> str:
    """Return the label of a run's bundled task, or the name that another task had when the run was created."""
    if config.task.id in TASKS:
        return _(TASKS[config.task.id].label)
    return config.task.name or Path(config.task.path or config.task.id).name


PAIRS = N_("The relation between two sentences is more than a small encoder learns in a short run")
# Measured (benchmarks/README.md, default rates and steps): with 100 rows the defaults end above the linear probe on
# nearly every set, with 20 on little more than half of them.
ENOUGH_ROWS = 50


def expectation(task_id: str, data: TaskData) -> str | None:
    """Return a sentence for tasks whose scores may not exceed the linear probe's; None for other tasks.

    These are tasks on pairs, bundled tasks marked as hard (the data cards have their measured baselines), and tasks
    with fewer than 50 training rows.
    """
    entry = TASKS.get(task_id)
    reason = entry.hard if entry and entry.hard else PAIRS if data.train.seconds is not None else ""
    if reason:
        return _(
            "{reason}. Expect scores near the majority class ({majority}) and the linear probe. More rows, more "
            "steps and a larger encoder help.",
            reason=_(reason),
            majority=percent(data.majority_rate(data.validation)),
        )
    if len(data.train) < ENOUGH_ROWS:
        return _(
            "With {rows}, whether a run beats the linear probe depends on the sampled rows. Compare several seeds, "
            "or train on 100 rows or more.",
            rows=ngettext("{count} training row", "{count} training rows", len(data.train)),
        )
    return None
