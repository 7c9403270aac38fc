"""The form of a fine-tune: widgets in, a draft RunConfig out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from core.advice.defaults import DEFAULT_STEPS
from core.catalogue.encoders import ENGLISH, LISTED
from core.config import EncoderConfig, ProbeConfig, RunConfig, parse_config
from core.config.fields import fields_of
from core.config.schedule import DEFAULT_FRAMES, default_frame_steps
from core.config.sections import ResourcesConfig
from core.errors import PlaygroundError
from core.messages import N_, _, ngettext, with_more
from core.models.own_pooling import Pooling, known_pooling
from core.models.source import BUNDLED
from core.settings import LOCAL, settings
from core.workers.limits import check_model
from pages.ui import state
from pages.ui.parameter_widget import begin_fields, choice_field, field_problem, number_field
from pages.ui.parts import summarised
from pages.ui.phase_form import phases_form
from pages.ui.task_form import rows_form, task_field, usual_of

# The widgets of the encoder's fields.
ENCODER = {"id": "encoder", "pooling": "pooling", "max_length": "max_length"}
POOLINGS = {"cls": "[CLS]", "mean": N_("mean"), None: N_("its own pooling")}
OWN = {"cls": N_("Its own: [CLS]"), "mean": N_("Its own: mean")}
# As many frames as `default_frame_steps` spreads.
FRAMES = replace(fields_of(ProbeConfig)["frame_steps"], kind="integer", low=2, high=1_000, words={})


def draft_form(start: RunConfig, origin: str) -> RunConfig:
    """Draw the widgets, filled from `start`, and read them.

    The first screen has the task, the preset and the knobs of the objective; what follows is closed.

    Args:
        origin: where `start` comes from, such as the run whose settings are used again.
    Raises: ConfigError for a value that cannot be used.
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
    now = {name: state.widget_value(state.form_key(key), getattr(start.encoder, name)) for name, key in ENCODER.items()}
    own = _pooling_of(now["id"] or BUNDLED)
    pooling = now["pooling"] if now["pooling"] != "auto" else own
    summary = [
        now["id"] or BUNDLED,
        _(POOLINGS[pooling]),
        ngettext("{count} token", "{count} tokens", now["max_length"] or 0),
    ]
    with summarised(summary, "form.encoder_fold"):
        return _encoder_fields(start, own)


def _encoder_fields(start: RunConfig, own: str | None) -> dict[str, Any]:
    known = [*LISTED, *([start.encoder.id] if start.encoder.id not in LISTED else [])]
    left, middle, right = st.columns([5, 4, 3])
    fields = fields_of(EncoderConfig)
    encoder_id = left.selectbox(
        _(fields["id"].label),
        known,
        index=known.index(start.encoder.id),
        accept_new_options=True,
        format_func=_encoder_label,
        help=_(fields["id"].help),
        key=state.form_key(ENCODER["id"]),
    )
    labels = fields["pooling"].values_in_words | ({"auto": OWN[own]} if own else {})
    pooling = choice_field(
        middle,
        fields["pooling"],
        start.encoder.pooling,
        format_func=lambda one: _(labels[one]),
        key=state.form_key(ENCODER["pooling"]),
    )
    length = number_field(
        right, fields["max_length"], start.encoder.max_length, step=32, key=state.form_key(ENCODER["max_length"])
    )
    return {"id": encoder_id or BUNDLED, "pooling": pooling, "max_length": int(length)}


def _pooling_of(encoder_id: str) -> Pooling | None:
    """None also for an encoder that the visitor may not name, which the launch card explains."""
    try:
        check_model("encoder.id", encoder_id)
    except PlaygroundError:
        return None
    return known_pooling(encoder_id)


def _encoder_label(name: str) -> str:
    """A Hub name, with its language where that is not English."""
    if name not in LISTED or LISTED[name].language == ENGLISH:
        return name
    return with_more(name, _(LISTED[name].language))


def _frames(start: RunConfig) -> int:
    steps = start.probe.frame_steps
    if steps is None or steps == default_frame_steps(sum(phase.steps or DEFAULT_STEPS for phase in start.phases)):
        return DEFAULT_FRAMES
    return max(2, len(steps))


def _more(start: RunConfig, steps: int) -> dict[str, Any]:
    on_cluster = settings().engine != LOCAL
    now = {
        "seed": state.widget_value(state.form_key("seed"), start.seed),
        "frames": state.widget_value(state.form_key("frames"), _frames(start)),
    }
    summary = [
        _("Seed {seed}", seed=now["seed"]),
        ngettext("{count} frame", "{count} frames", now["frames"] or 0),
        _("name, classifier, precision and processes"),
    ]
    with summarised(summary, "form.more"):
        fields = fields_of(RunConfig)
        left, middle, right = st.columns([2, 1, 2])
        name = left.text_input(
            _(fields["name"].label),
            start.name,
            max_chars=80,
            placeholder=_("Run and number"),
            help=_(fields["name"].help),
            key=state.form_key("name"),
        )
        seed = number_field(middle, fields["seed"], start.seed, key=state.form_key("seed"))
        classifier = choice_field(
            right, fields["classifier_start"], start.classifier_start, key=state.form_key("classifier_start")
        )
        left, middle, right = st.columns(3)
        of_probe = fields_of(ProbeConfig)
        points = number_field(left, of_probe["size"], start.probe.size, key=state.form_key("probe"))
        beside = number_field(middle, of_probe["train_size"], start.probe.train_size, key=state.form_key("probe_train"))
        frames = number_field(right, FRAMES, _frames(start), key=state.form_key("frames"))
        columns = st.columns(4)
        precision = choice_field(columns[0], fields["precision"], start.precision, key=state.form_key("precision"))
        processes = number_field(columns[1], fields["processes"], start.processes, key=state.form_key("processes"))
        resources = _resources(columns[2:], start.resources) if on_cluster else start.resources.model_dump()
    probe = {"size": points, "train_size": beside, "frame_steps": default_frame_steps(steps, int(frames))}
    given = {"name": name, "seed": int(seed), "precision": precision, "classifier_start": classifier, "probe": probe}
    return given | {"processes": processes, "resources": resources}


def _resources(columns: Sequence[Any], start: ResourcesConfig) -> dict[str, Any]:
    """What the run asks the cluster for; empty is what the server's settings say."""
    fields, known = fields_of(ResourcesConfig), settings()

    def asked(place: int, name: str, given: float | None, usual: float, step: float) -> float | None:
        words = _("{number:g} by default", number=usual)
        key = state.form_key(name)
        number: float | None = number_field(columns[place], fields[name], given, step=step, placeholder=words, key=key)
        return number

    return {
        "cpus": asked(0, "cpus", start.cpus, known.ray_cpus, 1.0),
        "gpus": asked(1, "gpus", start.gpus, known.ray_gpus, 0.5),
    }
