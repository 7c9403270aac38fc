"""What protocols and grids ask alike: task, encoder, steps, seeds, and whether runs have maps over their steps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import streamlit as st

from core.advice.defaults import DEFAULT_STEPS
from core.catalogue.encoders import LISTED
from core.config import FILE_TASK, PhaseConfig, RunConfig
from core.config.edit import changed
from core.config.fields import fields_of
from core.experiments.design import LEAN, MOST_SEEDS, EarlyStopping
from core.messages import N_, _
from core.parameters import Parameter
from pages.ui import reads
from pages.ui.address import Experiments, Item
from pages.ui.bound import bound, bound_switch
from pages.ui.parameter_widget import number_field
from pages.ui.parts import task_names

USUAL_SEEDS = 5
SEEDS = Parameter(
    "seeds",
    N_("Seeds"),
    USUAL_SEEDS,
    N_("Runs of each cell, which differ in the seed alone."),
    kind="integer",
    low=1,
    high=MOST_SEEDS,
)
STEPS = replace(fields_of(PhaseConfig)["steps"], words={})


def chosen_base(base: RunConfig, key: str) -> RunConfig:
    """The draft with another task, encoder and length."""
    own = {task.id: task for task in reads.library().tasks() if task.kind == "classes"}
    labels = task_names(own)
    if base.task.id == FILE_TASK:
        labels[FILE_TASK] = _("{path} (a file)", path=base.task.path)
    left, middle, right = st.columns([5, 5, 3])
    with left:
        usual = base.task.id if base.task.id in labels else next(iter(labels))
        task, tied = bound(Experiments.TASK, list(labels), usual, labels=labels.values())
        st.selectbox(_("Task"), list(labels), format_func=labels.__getitem__, **tied.by_index)
    known = [*LISTED, *([base.encoder.id] if base.encoder.id not in LISTED else [])]
    encoder = middle.selectbox(
        _("Encoder"),
        known,
        index=known.index(base.encoder.id),
        accept_new_options=True,
        key=f"experiment.{key}.encoder",
    )
    settings: dict[str, Any] = {"encoder.id": encoder or base.encoder.id}
    if task != base.task.id:
        settings |= {"task.id": task, "task.path": None, "task.name": None}
    if len(base.phases) == 1 and base.phases[0].epochs is None:
        steps = base.phases[0].steps or DEFAULT_STEPS
        settings["steps"] = number_field(
            right, STEPS, _number(Experiments.STEPS, steps), key=f"experiment.{key}.steps.{steps}"
        )
        Experiments.STEPS.put(settings["steps"], steps)
    chosen = changed(base, settings)
    return chosen.model_copy(update={"task": reads.library().named(chosen.task)})


def _number(item: Item[int], usual: int) -> int:
    """What the address says; the usual number, and a sentence, where that is no whole number above 0."""
    return item.read(lambda text: int(text) if text.isdecimal() and int(text) > 0 else None, usual)


def seeds_field(usual: int, key: str) -> int:
    """How many seeds. Args: usual: where nobody chose; key: of the form."""
    start = min(_number(Experiments.SEEDS, usual), MOST_SEEDS)
    seeds = int(number_field(st, SEEDS, start, key=f"experiment.seeds.{key}"))
    Experiments.SEEDS.put(seeds, usual)
    return seeds


def early_stopping_fields() -> dict[str, int] | None:
    """Whether poor runs end early, and after how long; None where all run to their end."""
    wanted, tied = bound_switch(Experiments.EARLY)
    st.toggle(
        _("End poor runs early"),
        help=_(
            "For a search: runs are compared by validation accuracy at a few steps, and only the better ones go on "
            "(ASHA, Li et al. 2020). This finds good cells, but does not compare them fairly."
        ),
        **tied.by_value,
    )
    if not wanted:
        return None
    fields, usual = fields_of(EarlyStopping), EarlyStopping()
    left, right, _rest = st.columns(3)
    return {
        "grace_steps": int(number_field(left, fields["grace_steps"], usual.grace_steps, key="experiment.grace")),
        "reduction": int(number_field(right, fields["reduction"], usual.reduction, key="experiment.reduction")),
    }


def with_frames(base: RunConfig) -> RunConfig:
    """The draft with maps over its steps or without, as a switch says, which is drawn."""
    wanted, tied = bound_switch(Experiments.FRAMES)
    st.toggle(
        _("Maps over the steps"),
        help=_(
            "As single runs have them. Without, a run has a map at its start and its end alone, which is faster and "
            "takes a third of the space."
        ),
        **tied.by_value,
    )
    return changed(base, {name: None if wanted else value for name, value in LEAN.items()})
