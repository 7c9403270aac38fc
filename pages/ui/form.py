"""The form of a fine-tune: widgets in, a draft RunConfig out."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.config import RunConfig, parse_config
from core.encoders.source import BUNDLED
from core.tasks.registry import CSV_TASK, TASKS
from core.training.prepare import DEFAULT_STEPS
from core.training.schedule import DEFAULT_FRAMES, default_frame_steps
from pages.ui import state
from pages.ui.phase_form import phases_form

# Known to load and to fit; any other Hub name or folder can be typed.
ENCODERS = (
    BUNDLED,
    "distilbert/distilbert-base-uncased",
    "google/electra-small-discriminator",
    "microsoft/mpnet-base",
    "FacebookAI/roberta-base",
    "FacebookAI/roberta-large",
    "microsoft/deberta-v3-base",
    "FacebookAI/xlm-roberta-base",
)
POOLING = {"cls": "[CLS]", "mean": "Mean of tokens"}
SAMPLERS = {"random": "Random", "balanced": "Class-balanced"}


def draft_form(start: RunConfig, origin: str) -> RunConfig:
    """Draw the widgets, filled from `start`, and read them.

    Args:
        origin: where `start` comes from, such as the run whose settings are used again.
    Raises: ConfigError for a value that no widget bound could refuse.
    """
    task = _task(start)
    encoder = _encoder(start)
    phases = phases_form(list(start.phases), origin)
    more = _more(start, sum(phase["steps"] for phase in phases))
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


def use_balanced_sampler() -> None:
    """Set the form's sampler, before it is drawn."""
    state.set_widget("form.sampler", "balanced")


def _task(start: RunConfig) -> dict[str, Any]:
    st.subheader("Task")
    names = [*TASKS, CSV_TASK]
    picked = st.selectbox(
        "What to learn",
        names,
        index=names.index(start.task.id) if start.task.id in names else 0,
        format_func=lambda name: TASKS[name].label if name in TASKS else "A CSV file of your own",
        key="form.task",
    )
    task: dict[str, Any] = {"id": picked}
    if picked == CSV_TASK:
        left, right = st.columns(2)
        task["path"] = left.text_input(
            "CSV file",
            start.task.path or "",
            placeholder="reviews.csv",
            help="Columns text,label, and text_b where rows are pairs; UTF-8.",
            key="form.csv",
        ).strip()
        test = right.text_input(
            "Test file, optional",
            start.task.test_path or "",
            help="Else a fifth of the rows is held out.",
            key="form.test",
        ).strip()
        task |= {"path": task["path"] or None, "test_path": test or None}
    else:
        st.caption(f"{TASKS[picked].summary} {TASKS[picked].source[0].upper()}{TASKS[picked].source[1:]}.")
    left, right = st.columns(2, vertical_alignment="bottom")
    task["train_size"] = left.number_input(
        "Training rows",
        min_value=2,
        value=start.task.train_size,
        placeholder="all",
        help="Few-shot: a stratified sample of that many rows. Empty: all rows that validation leaves.",
        key="form.train_size",
    )
    task["sampler"] = (
        right.segmented_control(
            "Batches",
            list(SAMPLERS),
            default=start.task.sampler,
            format_func=SAMPLERS.get,
            help="Class-balanced batches hold as many rows of each class, so that every anchor finds positives.",
            key="form.sampler",
        )
        or "random"
    )
    return task


def _encoder(start: RunConfig) -> dict[str, Any]:
    st.subheader("Encoder")
    known = [*ENCODERS, *([start.encoder.id] if start.encoder.id not in ENCODERS else [])]
    left, right = st.columns(2)
    encoder_id = left.selectbox(
        "Pre-trained encoder",
        known,
        index=known.index(start.encoder.id),
        accept_new_options=True,
        help="all-MiniLM-L6-v2 is here already; the others come from the Hugging Face Hub. "
        "Type any Hub name or folder of a BERT-, RoBERTa-, DeBERTa-, DistilBERT-, ELECTRA- or MPNet-like encoder.",
        key="form.encoder",
    )
    pooling = (
        right.segmented_control(
            "One vector per text",
            list(POOLING),
            default=start.encoder.pooling,
            format_func=POOLING.get,
            help="What is classified, contrasted and drawn: the first token's last hidden state, or the mean of all.",
            key="form.pooling",
        )
        or "cls"
    )
    return {"id": encoder_id or BUNDLED, "pooling": pooling, "max_length": start.encoder.max_length}


def _frames(start: RunConfig) -> int:
    steps = start.probe.frame_steps
    if steps is None or steps == default_frame_steps(sum(phase.steps or DEFAULT_STEPS for phase in start.phases)):
        return DEFAULT_FRAMES
    return max(2, len(steps))


def _more(start: RunConfig, steps: int) -> dict[str, Any]:
    with st.expander("Name, seed, points and frames"):
        left, right = st.columns(2)
        name = left.text_input("Name", start.name, max_chars=80, placeholder="Run and number", key="form.name")
        seed = right.number_input("Seed", min_value=0, max_value=2**32 - 1, value=start.seed, key="form.seed")
        left, right = st.columns(2)
        points = left.number_input(
            "Points on the map",
            min_value=2,
            max_value=20_000,
            value=start.probe.size,
            placeholder="120 on a CPU, 500 on a GPU",
            help="Validation examples that every frame encodes; more points, slower frames.",
            key="form.probe",
        )
        frames = right.number_input(
            "Frames",
            min_value=2,
            max_value=1_000,
            value=_frames(start),
            help="How often the map is drawn and validation is scored: denser at the start, where it moves most.",
            key="form.frames",
        )
    probe = {"size": points, "frame_steps": default_frame_steps(steps, int(frames))}
    return {"name": name, "seed": int(seed), "probe": probe}
