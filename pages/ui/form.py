"""The form of a run: its task, its encoder and its phases."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import streamlit as st
from pydantic import BaseModel
from streamlit.delta_generator import DeltaGenerator

from core.advice.defaults import DEFAULT_STEPS, Usual, default_sampler, usual
from core.catalogue.encoders import ENGLISH, LISTED
from core.config import FILE_TASK, EncoderConfig, ProbeConfig, RunConfig, TaskConfig, parse_config
from core.config.describe import row_labels
from core.config.fields import fields_of
from core.config.plan import DEFAULT_FRAMES, default_frame_steps
from core.errors import PlaygroundError, quote_value
from core.messages import N_, _, ngettext, with_more
from core.models.own_pooling import known_pooling
from core.models.source import BUNDLED
from core.settings import LOCAL, settings
from core.tasks import TASKS
from core.workers.limits import check_model
from pages.ui import reads, state
from pages.ui.parameter_widget import (
    begin_fields,
    field_problem,
    number_field,
    parameter_field,
    segmented_field,
)
from pages.ui.parts import escaped, page_link, summarised, task_names
from pages.ui.phase_form import phases_form

# Offered only when the form reuses the settings of a run from an earlier version.
FORMER_SAMPLER = "balanced"
# Settings that make a task harder, with the increment of their fields.
HARDER = {"label_noise": 0.05, "text_noise": 0.05, "imbalance": 1.0, "back_translation": 0.1}
SUMMARISED = ("train_size", "sampler", "paraphrases", *HARDER)


def task_field(start: TaskConfig) -> dict[str, Any]:
    """Draw the choice of a task and read it; for a file, include the settings of its source."""
    own = reads.own_tasks()
    labels = task_names(own, start)
    names = list(labels)
    if start.id not in labels:
        missing, instead = escaped(quote_value(start.id)), _(TASKS[names[0]].label)
        st.warning(_("There is no task {task} here; showing {instead}.", task=missing, instead=instead))

    key, first = state.form_key("task"), start.id if start.id in labels else names[0]
    now = state.widget_value(key, first)
    if now in own:
        rows = ngettext("{count} row", "{count} rows", own[now].rows)
        # Translators: how many rows a task has, and where they come from.
        about = _("{rows}. {source}.", rows=rows, source=escaped(_(own[now].source).rstrip(".")))
    elif now == FILE_TASK:
        about = _("Read from {path}.", path=escaped(start.path or ""))
    else:
        source = _(TASKS[now].source)
        # Translators: a sentence on a task, and where it comes from.
        about = _("{summary} {source}.", summary=_(TASKS[now].summary), source=f"{source[0].upper()}{source[1:]}")
    picked = st.selectbox(
        _("Task"), names, index=names.index(first), format_func=labels.__getitem__, help=about, key=key
    )
    kept = start.model_dump(mode="json", include={"name", "path", "test_path", "reading", "drop"})
    return {"id": picked} | (kept if picked == FILE_TASK else {})


def rows_form(start: TaskConfig, task: str) -> dict[str, Any]:
    """Draw the settings of a task's training rows, filled from `start`, and read them."""
    fields = fields_of(TaskConfig)
    now = {name: state.widget_value(state.form_key(name), getattr(start, name)) for name in SUMMARISED}
    if now["sampler"] == "auto" and task != FILE_TASK:
        own = reads.own_tasks().get(task)
        now["sampler"] = default_sampler(0 if own is None else len(own.classes))
    summary = row_labels(TaskConfig.model_construct(**now), defaults=True)  # a typed value may be out of bounds
    with summarised(summary, "form.rows"):
        query = {"task": task} if task != FILE_TASK else {}
        page_link("data", _("Browse its texts"), "table_rows", query)
        left, right = st.columns(2)
        size = number_field(left, fields["train_size"], start.train_size, key=state.form_key("train_size"))
        samplers = [name for name in fields["sampler"].options if name != FORMER_SAMPLER or name == start.sampler]
        key = state.form_key("sampler")
        sampler = segmented_field(right, fields["sampler"], start.sampler, options=samplers, key=key)
        st.markdown(f"**{_('Add noise and imbalance')}**")
        harder = {
            name: number_field(column, fields[name], getattr(start, name), step=step, key=state.form_key(name))
            for column, (name, step) in zip(st.columns(2) + st.columns(2), HARDER.items(), strict=True)
        }
        key = state.form_key("paraphrases")
        harder["paraphrases"] = segmented_field(st, fields["paraphrases"], start.paraphrases, key=key)
        st.caption(_("Validation and test rows stay unchanged."))
    return {"train_size": size, "sampler": sampler, **harder, "translators": start.translators}


def usual_of(task: str) -> Usual:
    """Return the usual settings for a task. No bundled task has many classes; those of a file are not known yet."""
    own = reads.own_tasks().get(task)
    return usual(0, 0) if own is None else usual(len(own.classes), own.rows)


# Widget names of the encoder's fields.
ENCODER = {"id": "encoder", "pooling": "pooling", "max_length": "max_length", "dropout": "dropout"}
POOLINGS = {"cls": "[CLS]", "mean": N_("mean pooling"), None: N_("the encoder's own pooling")}
OWN = {"cls": N_("Encoder's own: [CLS]"), "mean": N_("Encoder's own: mean")}
# Number of frames that `default_frame_steps` spreads over a run.
FRAMES = replace(fields_of(ProbeConfig)["frame_steps"], kind="integer", low=2, high=1_000, words={})


def draft_form(start: RunConfig, origin: str) -> RunConfig:
    """Draw the widgets, filled from `start`, and read them.

    The first screen has the task, the preset and the knobs of the objective; the other sections start collapsed.

    Args:
        origin: source of `start`, such as the run whose settings are reused.
    Raises: ConfigError for an invalid value.
    """
    begin_fields()
    left, right = st.columns(2)
    objective, rows, encoder_rows = st.container(), st.container(), st.container()
    with left:
        task = task_field(start.task)
    with rows:
        task |= rows_form(start.task, task["id"])
    with encoder_rows:
        encoder = _encoder(start)
    with objective:
        phases = phases_form(list(start.phases), origin, encoder["id"], usual_of(task["id"]), right)
    more = _more(start, sum(phase["steps"] for phase in phases))
    if (problem := field_problem()) is not None:
        raise problem
    return parse_config(
        {
            "device": start.device,
            "start": start.start,
            "checkpoint": start.checkpoint.model_dump(),
            "task": task,
            "encoder": encoder,
            "phases": phases,
        }
        | more
    )


def _encoder(start: RunConfig) -> dict[str, Any]:
    fields, given = fields_of(EncoderConfig), start.encoder
    keys = {name: state.form_key(key) for name, key in ENCODER.items()}
    now = {name: state.widget_value(key, getattr(given, name)) for name, key in keys.items()}
    own = None
    with suppress(PlaygroundError):  # the launch card explains an encoder that the visitor may not use
        check_model("encoder.id", now["id"] or BUNDLED)
        own = known_pooling(now["id"] or BUNDLED)
    summary = [
        _("Encoder: {name}", name=now["id"] or BUNDLED),
        _(POOLINGS[now["pooling"] if now["pooling"] != "auto" else own]),
        _("up to {count} tokens", count=now["max_length"] or 0),
        *([] if now["dropout"] is None else [_("dropout {rate:g}", rate=now["dropout"])]),
    ]
    with summarised(summary, "form.encoder_fold"):
        left, middle, right, last = st.columns([5, 4, 3, 3])
        encoder_id = encoder_field(left, given.id, keys["id"])
        labels = fields["pooling"].values_in_words | ({"auto": OWN[own]} if own else {})
        pooling = parameter_field(
            middle, fields["pooling"], given.pooling, format_func=lambda one: _(labels[one]), key=keys["pooling"]
        )
        length = number_field(right, fields["max_length"], given.max_length, step=32, key=keys["max_length"])
        dropout = number_field(last, fields["dropout"], given.dropout, step=0.05, key=keys["dropout"])
    return {"id": encoder_id or BUNDLED, "pooling": pooling, "max_length": int(length), "dropout": dropout}


def encoder_field(place: DeltaGenerator, start: str, key: str) -> str | None:
    """Draw the choice of an encoder and read it; None if the field is empty."""
    field = fields_of(EncoderConfig)["id"]
    known = [*LISTED, *([start] if start not in LISTED else [])]
    foreign = {name for name, language in LISTED.items() if language != ENGLISH}
    return place.selectbox(
        _(field.label),
        known,
        index=known.index(start),
        accept_new_options=True,
        # A Hub name, with its language unless that is English.
        format_func=lambda one: with_more(one, _(LISTED[one])) if one in foreign else one,
        help=_(field.help),
        key=key,
    )


def _more(start: RunConfig, steps: int) -> dict[str, Any]:
    frames, given = DEFAULT_FRAMES, start.probe.frame_steps
    if given is not None and given != default_frame_steps(sum(phase.steps or DEFAULT_STEPS for phase in start.phases)):
        frames = max(2, len(given))
    summary = [
        _("Seed {seed}", seed=state.widget_value(state.form_key("seed"), start.seed)),
        ngettext(
            "{count} frame",
            "{count} frames",
            len(default_frame_steps(steps, max(2, state.widget_value(state.form_key("frames"), frames) or 0))),
        ),
        _("more settings: name, classifier, precision, processes"),
    ]

    def field(place: Any, section: BaseModel, name: str, widget: str = "", **more: Any) -> Any:
        parameter, key = fields_of(type(section))[name], state.form_key(widget or name)
        return parameter_field(place, parameter, getattr(section, name), key=key, **more)

    with summarised(summary, "form.more"):
        left, middle, right = st.columns([2, 1, 2])
        read = {
            "name": field(left, start, "name", max_chars=80, placeholder=_("Run and number")),
            "seed": int(field(middle, start, "seed")),
            "classifier_start": field(right, start, "classifier_start"),
        }
        left, middle, right = st.columns(3)
        size = field(left, start.probe, "size", "probe")
        train_size = field(middle, start.probe, "train_size", "probe_train")
        frames = int(number_field(right, FRAMES, frames, key=state.form_key("frames")))
        columns = st.columns(4)
        read |= {
            "precision": field(columns[0], start, "precision"),
            "processes": field(columns[1], start, "processes"),
            "resources": start.resources.model_dump(),
        }
        if (known := settings()).engine != LOCAL:
            # Resources that the run requests from the cluster; an empty field means the server's default.
            cpus, gpus = (_("default {number:g}", number=usual) for usual in (known.ray_cpus, known.ray_gpus))
            read["resources"] = {
                "cpus": field(columns[2], start.resources, "cpus", step=1.0, placeholder=cpus),
                "gpus": field(columns[3], start.resources, "gpus", step=0.5, placeholder=gpus),
            }
    probe = {"size": size, "train_size": train_size, "frame_steps": default_frame_steps(steps, frames)}
    return read | {"probe": probe}
