"""Small pieces that several pages draw alike."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import streamlit as st

from core.config import RunConfig, TrainableConfig
from core.events import Probe
from core.objectives import ObjectiveConfig
from core.quantities import counted
from core.store import RunSummary, Status
from core.store.budget import missing_sentence
from core.tasks import TASKS, LibraryTask

STATUS_COLOURS = {
    Status.QUEUED: "gray",
    Status.STARTING: "blue",
    Status.RUNNING: "blue",
    Status.PAUSED: "orange",
    Status.STOPPING: "orange",
    Status.INTERRUPTED: "orange",
    Status.STOPPED: "gray",
    Status.FAILED: "red",
    Status.FINISHED: "green",
}


def told_apart(labels: Sequence[str], marks: Sequence[str]) -> list[str]:
    """Labels of options, each with its mark where it is not the only one of its kind.

    A browser tells what was chosen by its label: of two that read alike the wrong one would be taken.
    """
    count = Counter(labels)
    return [label if count[label] == 1 else f"{label} ({mark})" for label, mark in zip(labels, marks, strict=True)]


def task_names(own: Mapping[str, LibraryTask]) -> dict[str, str]:
    """What people call the bundled tasks and their own, by id."""
    yours = told_apart([f"{task.name} (yours)" for task in own.values()], list(own))
    return {name: entry.label for name, entry in TASKS.items()} | dict(zip(own, yours, strict=True))


def run_titles(runs: Sequence[RunSummary]) -> list[str]:
    """The runs' titles, each with its number where two are called alike."""
    return told_apart([run.title for run in runs], [f"run {run.number}" for run in runs])


def missing_weights(run: RunSummary) -> None:
    """Where something needs weights that the disk budget took: what is missing and what to do."""
    sentence = missing_sentence(run)
    if sentence is not None:
        st.caption(escaped(sentence))


def status_badge(run: RunSummary) -> None:
    st.badge(str(run.status), color=STATUS_COLOURS[run.status])


def duration(seconds: float) -> str:
    """Seconds as people say them: 42 s, 3 min 20 s, 2 h 5 min."""
    seconds = max(0, round(seconds))
    if seconds < 60:
        return f"{seconds} s"
    minutes, rest = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest and minutes < 5 else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def elapsed_s(run: RunSummary) -> float:
    """Seconds since the run started, or that it took."""
    if run.started_at is None:
        return 0.0
    return (run.ended_at or time.time()) - run.started_at


def ago(moment: float) -> str:
    seconds = time.time() - moment
    return "just now" if seconds < 60 else f"{duration(seconds // 60 * 60)} ago"


def escaped(text: str) -> str:
    """Text from outside, safe in Streamlit's Markdown: no markup, no formula, no HTML, no directive."""
    return "".join(f"\\{c}" if c in r"\`*_{}[]()<>#+-.!|~$:&" else c for c in " ".join(text.split()))


def task_label(config: RunConfig) -> str:
    """What people called the task when the run was made."""
    if config.task.id in TASKS:
        return TASKS[config.task.id].label
    return config.task.name or Path(config.task.path or config.task.id).name


def probe_label(probe: Probe) -> str:
    """Which texts are on a map."""
    train = len(probe.ids) - probe.held_out
    held_out = counted(probe.held_out, "validation text")
    return f"{held_out} and {counted(train, 'training text')} (open)" if train else held_out


def objective_label(config: RunConfig) -> str:
    """The mix in a few signs, such as `0.1 CE + 0.9 SCL, τ 0.3`; phases in their order."""
    return " → ".join(_phase_label(phase.objective) for phase in config.phases)


def _phase_label(objective: ObjectiveConfig) -> str:
    counted = [term for _, term in objective.as_written if term.weight > 0]
    alone = len(counted) == 1
    mix = " + ".join(term.entry.symbol if alone else f"{term.weight:.3g} {term.entry.symbol}" for term in counted)
    tau = objective.temperature
    return f"{mix}, τ {tau:g}" if tau is not None and objective.contrastive else mix


def trainable_label(config: RunConfig) -> str:
    """What learns, once where all phases agree."""
    return " → ".join(dict.fromkeys(_part_label(phase.trainable) for phase in config.phases))


def _part_label(trainable: TrainableConfig) -> str:
    if trainable.part == "last_blocks":
        return f"last {counted(trainable.blocks, 'block') if trainable.blocks > 1 else 'block'} + classifier"
    names = {"all": "all weights", "lora": f"LoRA, rank {trainable.lora_rank}", "classifier": "classifier only"}
    return names[trainable.part]
