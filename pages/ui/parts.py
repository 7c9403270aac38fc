"""Small pieces that several pages draw alike."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import streamlit as st

from core.config import RunConfig, TrainableConfig
from core.config.objective import ObjectiveConfig
from core.config.term import TermConfig
from core.config.turns import settings_at_end
from core.events import Probe
from core.quantities import counted
from core.store import LibraryTask, RunSummary, Status
from core.store.budget import missing_sentence
from core.tasks import TASKS

BadgeColour = Literal["gray", "blue", "green", "red", "orange", "violet", "yellow"]
STATUS_COLOURS: Mapping[Status, BadgeColour] = {
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


def distinct(labels: Sequence[str], marks: Sequence[str]) -> list[str]:
    """Labels of options, each with its mark where it is not the only one of its kind.

    A browser says what was chosen by its label: of two that read alike the wrong one would be taken.
    """
    count = Counter(labels)
    return [label if count[label] == 1 else f"{label} ({mark})" for label, mark in zip(labels, marks, strict=True)]


def task_names(own: Mapping[str, LibraryTask]) -> dict[str, str]:
    """What people call the bundled tasks and their own, by id."""
    yours = distinct([f"{task.name} (yours)" for task in own.values()], list(own))
    return {name: entry.label for name, entry in TASKS.items()} | dict(zip(own, yours, strict=True))


def run_titles(runs: Sequence[RunSummary]) -> list[str]:
    """The runs' titles, each with its number where two are called alike."""
    return distinct([run.title for run in runs], [f"run {run.number}" for run in runs])


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
    """The mix in a few signs, such as `0.1 CE + 0.9 SCL, τ 0.3`; phases in their order.

    A knob that was turned shows both values, as launched and last: `τ 0.3 → 0.08`.

    Args:
        config: of a run, with its knob turns (`RunSummary.effective`).
    """
    return "; then ".join(_phase_label(config, number) for number in range(len(config.phases)))


def _phase_label(config: RunConfig, number: int) -> str:
    first, last = config.phases[number].objective, settings_at_end(config, number)
    parts = [_mix(first, last.objective)]
    taus = (first.temperature, last.objective.temperature)
    if taus[0] is not None and taus[1] is not None and (first.contrastive or last.objective.contrastive):
        parts.append(f"τ {_moved(f'{taus[0]:g}', f'{taus[1]:g}')}")
    turned = {turn.name for turn in config.knob_turns if config.phase_at(turn.step) == number}
    parts += [
        f"{knob.label} {_moved(f'{knob.value:g}', f'{last.objective.value_of(name):g}')}"
        for name, knob in first.knobs.items()
        if name in turned and name not in ("lambda", "temperature") and not name.endswith(".weight")
    ]
    if last.rate_factor != 1:
        parts.append(f"learning rate × {last.rate_factor:g}")
    if turned and last == (number, first, 1.0):
        parts.append("turned and back")
    return ", ".join(parts)


def _mix(first: ObjectiveConfig, last: ObjectiveConfig) -> str:
    """The terms with their weights, those that count at the beginning or at the end."""
    weights = {key: term.weight for key, term in last.as_written}
    counted = [(term, weights[key]) for key, term in first.as_written if term.weight > 0 or weights[key] > 0]
    if len(counted) == 1:
        return _name(counted[0][0])
    moved = [(_moved(f"{term.weight:.3g}", f"{now:.3g}"), _name(term)) for term, now in counted]
    return " + ".join(f"({weight}) {symbol}" if "→" in weight else f"{weight} {symbol}" for weight, symbol in moved)


def _name(term: TermConfig) -> str:
    """A loss's symbol, and what it contrasts where that is not one or two views of a text's pooled vector."""
    several = len(term.views) + term.original > 2 or any(view.entry.kind == "layers" for view in term.views)
    return f"{'token ' if term.level == 'token' else ''}{'multi-view ' if several else ''}{term.entry.symbol}"


def _moved(first: str, last: str) -> str:
    """A value, or both where it was turned."""
    return first if first == last else f"{first} → {last}"


def trainable_label(config: RunConfig) -> str:
    """What learns, once where all phases agree."""
    return " → ".join(dict.fromkeys(_part_label(phase.trainable) for phase in config.phases))


def _part_label(trainable: TrainableConfig) -> str:
    if trainable.part == "last_blocks":
        return f"last {counted(trainable.blocks, 'block') if trainable.blocks > 1 else 'block'} + classifier"
    names = {"all": "all weights", "lora": f"LoRA, rank {trainable.lora_rank}", "classifier": "classifier only"}
    return names[trainable.part]
