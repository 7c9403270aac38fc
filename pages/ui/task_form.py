"""The part of the form that says what is learned, from which rows, and what is done to them."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.config import FILE_TASK, TaskConfig
from core.errors import shown
from core.quantities import counted
from core.store import LibraryTask
from core.tasks import TASKS
from pages.ui import reads, state
from pages.ui.number_field import number_field
from pages.ui.parts import escaped, task_names

SAMPLERS = {"random": "Random", "class_balanced": "Class-balanced"}
# Offered where the settings of a run of an earlier version are used again.
FORMER_SAMPLERS = {"balanced": "Equal shares"}


def task_form(start: TaskConfig) -> dict[str, Any]:
    """Draw the widgets, filled from `start`, and read them."""
    st.header("Task")
    own = {task.id: task for task in reads.library().tasks() if task.kind == "classes"}
    names = [*TASKS, *own, *([FILE_TASK] if start.id == FILE_TASK else [])]

    if start.id not in names:
        st.warning(f"Task {escaped(shown(start.id))} is not here; showing {TASKS[names[0]].label}.")

    labels = task_names(own) | {FILE_TASK: f"{start.path} (a file)"}
    picked = st.selectbox(
        "What to learn",
        names,
        index=names.index(start.id) if start.id in names else 0,
        format_func=labels.__getitem__,
        key=state.form_key("task"),
    )
    st.caption(_about(picked, own, start))
    with st.container(horizontal=True):
        query = {"task": picked} if picked != FILE_TASK else {}
        st.page_link("pages/data.py", label="Look at its texts", icon=":material/table_rows:", query_params=query)
        st.page_link("pages/data.py", label="Bring your own", icon=":material/add:", query_params={"view": "file"})
    task: dict[str, Any] = {"id": picked}
    if picked == FILE_TASK:
        kept = start.model_dump(mode="json")
        task |= {name: kept[name] for name in ("name", "path", "test_path", "reading", "drop")}
    return task | _rows(start) | _noise(start)


def _about(picked: str, own: dict[str, LibraryTask], start: TaskConfig) -> str:
    if picked in own:
        return f"{counted(own[picked].rows, 'row')}. {escaped(own[picked].source.rstrip('.'))}."
    if picked == FILE_TASK:
        return f"Read from {escaped(start.path or '')}."
    entry = TASKS[picked]
    return f"{entry.summary} {entry.source[0].upper()}{entry.source[1:]}."


def use_balanced_sampler() -> None:
    """Set the form's sampler, before it is drawn."""
    state.set_widget(state.form_key("sampler"), "class_balanced")


def _rows(start: TaskConfig) -> dict[str, Any]:
    left, right = st.columns(2)
    size = number_field(
        left,
        "Training rows",
        2,
        None,
        start.train_size,
        placeholder="all",
        help="Few-shot: a stratified sample of that many rows; with one seed, the 20 are among the 100. "
        "Empty: all rows that validation leaves.",
        key=state.form_key("train_size"),
    )
    samplers = SAMPLERS | {name: label for name, label in FORMER_SAMPLERS.items() if name == start.sampler}
    sampler = right.segmented_control(
        "Batches",
        list(samplers),
        default=start.sampler,
        format_func=samplers.__getitem__,
        help="Random: every text once an epoch. Class-balanced: each class in a batch has at least two texts there, so "
        "that every text finds a positive (unless its class has no other); where the classes do not all fit, they take "
        "turns. Small classes come round more often.",
        key=state.form_key("sampler"),
    )
    return {"train_size": size, "sampler": sampler or "random"}


def _noise(start: TaskConfig) -> dict[str, Any]:
    untouched = start.label_noise == start.text_noise == 0.0 and start.imbalance == 1.0
    with st.expander("Make it harder: noise and imbalance", expanded=not untouched):
        left, middle, right = st.columns(3)
        label_noise = number_field(
            left,
            "Label noise ρ",
            0.0,
            1.0,
            start.label_noise,
            step=0.05,
            help="That share of each class's training rows gets another label.",
            key=state.form_key("label_noise"),
        )
        text_noise = number_field(
            middle,
            "Text noise r",
            0.0,
            1.0,
            start.text_noise,
            step=0.05,
            help="That share of the words of every training text is replaced, deleted, duplicated or swapped (EDA).",
            key=state.form_key("text_noise"),
        )
        imbalance = number_field(
            right,
            "Imbalance",
            1.0,
            1000.0,
            start.imbalance,
            step=1.0,
            help="Rows of the largest class to rows of the smallest; classes are thinned out, in their order. "
            "1 leaves them as they are.",
            key=state.form_key("imbalance"),
        )
        st.caption("Validation and test stay as they are.")
    return {"label_noise": label_noise, "text_noise": text_noise, "imbalance": imbalance}
