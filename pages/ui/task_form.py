"""The part of the form that says what is learned, from which rows, and what is done to them."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.config import FILE_TASK, TaskConfig
from core.config.fields import fields_of
from core.errors import shown
from core.language import _
from core.quantities import counted
from core.store import LibraryTask
from core.tasks import TASKS
from pages.ui import reads, state
from pages.ui.number_field import number_field
from pages.ui.parameter_widget import segmented_field
from pages.ui.parts import escaped, task_names

# Offered only where the settings of a run of an earlier version are used again.
FORMER_SAMPLER = "balanced"
# What makes a task harder, and what a press of a field's buttons adds.
HARDER = {"label_noise": 0.05, "text_noise": 0.05, "imbalance": 1.0}


def task_form(start: TaskConfig) -> dict[str, Any]:
    """Draw the widgets, filled from `start`, and read them."""
    st.header(_("Task"))
    own = {task.id: task for task in reads.library().tasks() if task.kind == "classes"}
    names = [*TASKS, *own, *([FILE_TASK] if start.id == FILE_TASK else [])]

    if start.id not in names:
        missing, instead = escaped(shown(start.id)), _(TASKS[names[0]].label)
        st.warning(_("Task {task} is not here; showing {instead}.", task=missing, instead=instead))

    labels = task_names(own) | {FILE_TASK: _("{path} (a file)", path=start.path)}
    picked = st.selectbox(
        _("What to learn"),
        names,
        index=names.index(start.id) if start.id in names else 0,
        format_func=labels.__getitem__,
        key=state.form_key("task"),
    )
    st.caption(_about(picked, own, start))
    with st.container(horizontal=True):
        query = {"task": picked} if picked != FILE_TASK else {}
        st.page_link("pages/data.py", label=_("Look at its texts"), icon=":material/table_rows:", query_params=query)
        # Translators: texts of one's own.
        st.page_link("pages/data.py", label=_("Bring your own"), icon=":material/add:", query_params={"view": "file"})
    task: dict[str, Any] = {"id": picked}
    if picked == FILE_TASK:
        kept = start.model_dump(mode="json")
        task |= {name: kept[name] for name in ("name", "path", "test_path", "reading", "drop")}
    return task | _rows(start) | _noise(start)


def _about(picked: str, own: dict[str, LibraryTask], start: TaskConfig) -> str:
    if picked in own:
        rows, source = counted(own[picked].rows, "row"), escaped(_(own[picked].source).rstrip("."))
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
    untouched = start.label_noise == start.text_noise == 0.0 and start.imbalance == 1.0
    untouched &= start.back_translation is None
    with st.expander(_("Make it harder: noise and imbalance"), expanded=not untouched):
        read = {
            name: number_field(
                column, fields_of(TaskConfig)[name], getattr(start, name), step=step, key=state.form_key(name)
            )
            for column, (name, step) in zip(st.columns(3), HARDER.items(), strict=True)
        }
        field = fields_of(TaskConfig)["back_translation"]
        key = state.form_key("back_translation")
        temperature = number_field(st, field, start.back_translation, step=0.1, key=key)
        st.caption(_("Validation and test stay as they are."))
    return read | {"back_translation": temperature, "translators": start.translators}
