"""The form of a fine-tune: widgets in, a draft RunConfig out."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.config import LARGEST_SEED, RunConfig, parse_config
from core.encoders.catalogue import ENGLISH, LISTED
from core.encoders.own_pooling import known_pooling
from core.encoders.source import BUNDLED
from core.training.defaults import DEFAULT_STEPS
from core.training.prepare import TRAIN_POINTS_MAX
from core.training.schedule import DEFAULT_FRAMES, default_frame_steps
from pages.ui import state
from pages.ui.number_field import begin_fields, field_problem, number_field
from pages.ui.phase_form import phases_form
from pages.ui.task_form import task_form

PRECISION = {"auto": "Automatic", "float32": "float32", "bfloat16": "bfloat16"}
OWN = {"cls": "[CLS]", "mean": "mean"}
POOLING = {"auto": "The encoder’s own", "cls": "[CLS]", "mean": "Mean of tokens"}


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
            "checkpoint": start.checkpoint.model_dump(),
            "task": task,
            "encoder": encoder,
            "phases": phases,
        }
        | more
    )


def _encoder(start: RunConfig) -> dict[str, Any]:
    st.header("Encoder")
    known = [*LISTED, *([start.encoder.id] if start.encoder.id not in LISTED else [])]
    left, middle, right = st.columns([5, 4, 3])
    encoder_id = left.selectbox(
        "Pre-trained encoder",
        known,
        index=known.index(start.encoder.id),
        accept_new_options=True,
        format_func=_encoder_label,
        help="all-MiniLM-L6-v2 is here already; the others come from the Hugging Face Hub. "
        "Type any Hub name or folder of a BERT-, RoBERTa-, DeBERTa-, DistilBERT-, ELECTRA- or MPNet-like encoder.",
        key=state.form_key("encoder"),
    )
    own = known_pooling(encoder_id or BUNDLED)
    labels = POOLING | {"auto": f"Its own: {OWN[own]}" if own else "The encoder’s own"}
    pooling = middle.selectbox(
        "One vector per text",
        list(POOLING),
        index=list(POOLING).index(start.encoder.pooling),
        format_func=lambda name: labels[name],
        help="What is classified, contrasted and drawn: the first token's last hidden state, or the mean of all. "
        "Sentence encoders were trained with one of them, plain language models with [CLS].",
        key=state.form_key("pooling"),
    )
    length = number_field(
        right,
        "Tokens read",
        4,
        8192,
        start.encoder.max_length,
        step=32,
        help="Of each text; a longer one is cut. More tokens take more time and memory.",
        key=state.form_key("max_length"),
    )
    return {"id": encoder_id or BUNDLED, "pooling": pooling, "max_length": int(length)}


def _encoder_label(name: str) -> str:
    """A Hub name, with its language where that is not English."""
    if name not in LISTED or LISTED[name].language == ENGLISH:
        return name
    return f"{name} ({LISTED[name].language})"


def _frames(start: RunConfig) -> int:
    steps = start.probe.frame_steps
    if steps is None or steps == default_frame_steps(sum(phase.steps or DEFAULT_STEPS for phase in start.phases)):
        return DEFAULT_FRAMES
    return max(2, len(steps))


def _more(start: RunConfig, steps: int) -> dict[str, Any]:
    with st.expander("Name, seed, precision, points and frames"):
        left, middle, right = st.columns(3)
        name = left.text_input(
            "Name", start.name, max_chars=80, placeholder="Run and number", key=state.form_key("name")
        )
        seed = number_field(middle, "Seed", 0, LARGEST_SEED, start.seed, key=state.form_key("seed"))
        precision = right.selectbox(
            "Precision",
            list(PRECISION),
            index=list(PRECISION).index(start.precision),
            format_func=lambda name: PRECISION[name],
            help="Of the encoder's passes. Automatic takes bfloat16 where this machine computes in it, for about twice "
            "the speed. Losses, norms and the classifier are float32 either way.",
            key=state.form_key("precision"),
        )
        left, middle, right = st.columns(3)
        points = number_field(
            left,
            "Validation texts on the map",
            2,
            20_000,
            start.probe.size,
            placeholder="120 on a CPU, 500 on a GPU",
            help="Examples that every frame encodes; more points, slower frames. By itself at least two of each class.",
            key=state.form_key("probe"),
        )
        beside = number_field(
            middle,
            "Training texts beside them",
            0,
            TRAIN_POINTS_MAX,
            start.probe.train_size,
            placeholder="a third as many",
            help="Drawn open, so that one sees what the model was shown and what it was not.",
            key=state.form_key("probe_train"),
        )
        frames = number_field(
            right,
            "Frames",
            2,
            1_000,
            _frames(start),
            help="How often the map is drawn and validation is scored: denser at the start, where it moves most.",
            key=state.form_key("frames"),
        )
    probe = {"size": points, "train_size": beside, "frame_steps": default_frame_steps(steps, int(frames))}
    return {"name": name, "seed": int(seed), "precision": precision, "probe": probe}
