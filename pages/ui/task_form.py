"""The part of the form about the task: which one, which of its rows, and the noise that is added to them."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.advice.defaults import Usual, default_sampler, usual
from core.config import FILE_TASK, TaskConfig
from core.config.describe import row_labels
from core.config.fields import fields_of
from core.errors import shown
from core.messages import _, ngettext
from core.store import LibraryTask
from core.tasks import TASKS
from pages.ui import reads, state
from pages.ui.parameter_widget import number_field, segmented_field
from pages.ui.parts import escaped, summarised, task_names

# Offered only where the settings of a run of an earlier version are used again.
FORMER_SAMPLER = "balanced"
# What makes a task harder, and what a press of a field's buttons adds.
HARDER = {"label_noise": 0.05, "text_noise": 0.05, "imbalance": 1.0, "back_translation": 0.1}
SUMMARISED = ("train_size", "sampler", *HARDER)


def task_field(start: TaskConfig) -> dict[str, Any]:
    """Draw the choice of a task and read it, with what says where the rows of a file come from."""
    own = _own_tasks()
    names = [*TASKS, *own, *([FILE_TASK] if start.id == FILE_TASK else [])]

    if start.id not in names:
        missing, instead = escaped(shown(start.id)), _(TASKS[names[0]].label)
        st.warning(_("Task {task} is not here; showing {instead}.", task=missing, instead=instead))

    labels = task_names(own) | {FILE_TASK: _("{path} (a file)", path=start.path)}
    key, first = state.form_key("task"), start.id if start.id in names else names[0]
    picked = st.selectbox(
        _("Task"),
        names,
        index=names.index(first),
        format_func=labels.__getitem__,
        help=_about(state.widget_value(key, first), own, start),
        key=key,
    )
    kept = start.model_dump(mode="json", include={"name", "path", "test_path", "reading", "drop"})
    return {"id": picked} | (kept if picked == FILE_TASK else {})


def rows_form(start: TaskConfig, task: str) -> dict[str, Any]:
    """Draw the settings of the training rows of a task, filled from `start`, and read them."""
    with summarised(_rows_summary(start, task), "form.rows"):
        query = {"task": task} if task != FILE_TASK else {}
        st.page_link("pages/data.py", label=_("Look at its texts"), icon=":material/table_rows:", query_params=query)
        return _rows(start) | _noise(start)


def usual_of(task: str) -> Usual:
    """The usual settings for a task. No bundled one has many classes, and those of a file are not known yet."""
    own = _own_tasks().get(task)
    return usual(0, 0) if own is None else usual(len(own.classes), own.rows)


def _own_tasks() -> dict[str, LibraryTask]:
    return {task.id: task for task in reads.library().tasks() if task.kind == "classes"}


def _rows_summary(start: TaskConfig, task: str) -> list[str]:
    now = {name: state.widget_value(state.form_key(name), getattr(start, name)) for name in SUMMARISED}
    if now["sampler"] == "auto" and task != FILE_TASK:
        own = _own_tasks().get(task)
        now["sampler"] = default_sampler(0 if own is None else len(own.classes))
    return row_labels(TaskConfig.model_construct(**now), defaults=True)  # what was typed may be out of bounds


def _about(picked: str, own: dict[str, LibraryTask], start: TaskConfig) -> str:
    if picked in own:
        rows, source = (
            ngettext("{count} row", "{count} rows", own[picked].rows),
            escaped(_(own[picked].source).rstrip(".")),
        )
        # Translators: how many rows a task has, and where they come from.
        return _("{rows}. {source}.", rows=rows, source=source)
    if picked == FILE_TASK:
        return _("Read from {path}.", path=escaped(start.path or ""))
    entry = TASKS[picked]
    source = _(entry.source)
    # Translators: a sentence on a task, and where it comes from.
    return _("{summary} {source}.", summary=_(entry.summary), source=f"{source[0].upper()}{source[1:]}")


def use_balanced_sampler() -> None:
    """Set the form's sampler, before it is drawn."""
    state.set_widget(state.form_key("sampler"), "class_balanced")


def _rows(start: TaskConfig) -> dict[str, Any]:
    left, right = st.columns(2)
    fields = fields_of(TaskConfig)
    size = number_field(left, fields["train_size"], start.train_size, key=state.form_key("train_size"))
    samplers = [name for name in fields["sampler"].options if name != FORMER_SAMPLER or name == start.sampler]
    sampler = segmented_field(right, fields["sampler"], start.sampler, options=samplers, key=state.form_key("sampler"))
    return {"train_size": size, "sampler": sampler}


def _noise(start: TaskConfig) -> dict[str, Any]:
    fields = fields_of(TaskConfig)
    st.markdown(f"**{_('Make it harder: noise and imbalance')}**")
    read = {
        name: number_field(column, fields[name], getattr(start, name), step=step, key=state.form_key(name))
        for column, (name, step) in zip(st.columns(2) + st.columns(2), HARDER.items(), strict=True)
    }
    st.caption(_("Validation and test stay as they are."))
    return read | {"translators": start.translators}
