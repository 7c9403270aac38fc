"""The form of a fine-tune: widgets in, a draft RunConfig out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from core.config import EncoderConfig, ProbeConfig, RunConfig, parse_config
from core.config.fields import fields_of
from core.config.sections import ResourcesConfig
from core.encoders.catalogue import ENGLISH, LISTED
from core.encoders.own_pooling import Pooling, known_pooling
from core.encoders.source import BUNDLED
from core.errors import PlaygroundError
from core.language import N_, _, with_more
from core.settings import LOCAL, settings
from core.training.defaults import DEFAULT_STEPS
from core.training.schedule import DEFAULT_FRAMES, default_frame_steps
from core.workers.limits import check_model
from pages.ui import state
from pages.ui.number_field import begin_fields, field_problem, number_field
from pages.ui.parameter_widget import choice_field
from pages.ui.phase_form import phases_form
from pages.ui.task_form import task_form

CLOSED = N_("Name, seed, precision, points, frames and processes")
CLOSED_ON_CLUSTER = N_("Name, seed, precision, points, frames, processes and cluster")
OWN = {"cls": N_("Its own: [CLS]"), "mean": N_("Its own: mean")}
# As many frames as `default_frame_steps` spreads.
FRAMES = replace(fields_of(ProbeConfig)["frame_steps"], kind="integer", low=2, high=1_000, words={})


def draft_form(start: RunConfig, origin: str) -> RunConfig:
    """Draw the widgets, filled from `start`, and read them.

    Args:
        origin: where `start` comes from, such as the run whose settings are used again.
    Raises: ConfigError for a value that cannot be used.
    """
    begin_fields()
    task = task_form(start.task)
    encoder = _encoder(start)
    phases = phases_form(list(start.phases), origin, encoder["id"])
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
    st.header(_("Encoder"))
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
        key=state.form_key("encoder"),
    )
    own = _pooling_of(encoder_id or BUNDLED)
    labels = fields["pooling"].values_in_words | ({"auto": OWN[own]} if own else {})
    pooling = choice_field(
        middle,
        fields["pooling"],
        start.encoder.pooling,
        format_func=lambda one: _(labels[one]),
        key=state.form_key("pooling"),
    )
    length = number_field(
        right, fields["max_length"], start.encoder.max_length, step=32, key=state.form_key("max_length")
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
    with st.expander(_(CLOSED_ON_CLUSTER if on_cluster else CLOSED)):
        fields = fields_of(RunConfig)
        left, middle, right = st.columns(3)
        name = left.text_input(
            _(fields["name"].label),
            start.name,
            max_chars=80,
            placeholder=_("Run and number"),
            help=_(fields["name"].help),
            key=state.form_key("name"),
        )
        seed = number_field(middle, fields["seed"], start.seed, key=state.form_key("seed"))
        precision = choice_field(right, fields["precision"], start.precision, key=state.form_key("precision"))
        left, middle, right = st.columns(3)
        of_probe = fields_of(ProbeConfig)
        points = number_field(left, of_probe["size"], start.probe.size, key=state.form_key("probe"))
        beside = number_field(middle, of_probe["train_size"], start.probe.train_size, key=state.form_key("probe_train"))
        frames = number_field(right, FRAMES, _frames(start), key=state.form_key("frames"))
        columns = st.columns(3)
        processes = number_field(columns[0], fields["processes"], start.processes, key=state.form_key("processes"))
        resources = _resources(columns[1:], start.resources) if on_cluster else start.resources.model_dump()
    probe = {"size": points, "train_size": beside, "frame_steps": default_frame_steps(steps, int(frames))}
    given = {"name": name, "seed": int(seed), "precision": precision, "probe": probe}
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
