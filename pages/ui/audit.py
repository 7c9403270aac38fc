"""Before launch: will anchors find positives, and what will the run cost?"""

from __future__ import annotations

from collections import Counter

import pandas as pd
import streamlit as st

from core.config import RunConfig
from core.encoders.source import encoder_shape
from core.engine.machine import has_gpu, memory_bytes
from core.store import RunSummary, Status, Store
from core.tasks import TaskData
from core.training.batches import anchors_without_positive, expected_positives
from core.training.estimate import Estimate, assumed_flops, estimate, measured_flops
from pages.ui.form import use_balanced_sampler
from pages.ui.parts import duration

STARVING = 0.1
MAX_CLASS_ROWS = 8


def batch_audit(config: RunConfig, data: TaskData) -> None:
    """Expected positives per anchor, class by class, and a remedy where anchors would starve."""
    counts = [Counter(data.train.labels)[label] for label in range(len(data.classes))]
    batch, sampler = config.phase.batch_size, config.task.sampler
    positives = expected_positives(counts, batch, sampler)
    starving = anchors_without_positive(counts, batch, sampler)
    st.markdown("**Positives in a batch**")
    st.dataframe(
        pd.DataFrame(
            {"Class": data.classes, "Rows": counts, "Per anchor": positives, "No positive": [s * 100 for s in starving]}
        ),
        hide_index=True,
        height="content" if len(counts) <= MAX_CLASS_ROWS else 320,
        column_config={
            "Class": st.column_config.TextColumn(help="Training rows by class"),
            "Per anchor": st.column_config.NumberColumn(
                format="%.1f", help="Expected number of others of its class in an anchor's batch"
            ),
            "No positive": st.column_config.NumberColumn(
                format="%.1f %%", help="Chance that an anchor finds none; it then adds nothing to the contrastive loss"
            ),
        },
    )
    if max(starving) > STARVING and (config.phase.objective.weight or 0) > 0:
        share = max(starving)
        st.warning(f"Up to {share:.0%} of the anchors of a class will find no positive. A larger batch helps.")
        if sampler == "random" and batch >= 2 * len(counts):
            st.button("Use class-balanced batches", on_click=use_balanced_sampler)


def cost(store: Store, config: RunConfig, data: TaskData) -> None:
    """Estimated time and memory, with where the numbers come from."""
    found = _estimate(store, config, data)
    left, right = st.columns(2)
    left.metric("Time, about", duration(found.total_s))
    right.metric("Memory, about", f"{found.memory_bytes / 2**30:.1f} GB")
    frames = len(config.probe.frame_steps or ())
    source = (
        "measured in an earlier run here" if found.measured else "assumed for this machine until a run was measured"
    )
    st.caption(
        f"{config.steps:,} steps {duration(found.steps_s)} · {frames} frames of {config.probe.size} points "
        f"{duration(found.frames_s)} · test {duration(found.test_s)}; speed {source}."
    )
    if not has_gpu() and found.memory_bytes > memory_bytes():
        st.warning(f"{memory_bytes() / 2**30:.1f} GB are free: try a smaller batch, fewer blocks or a smaller encoder.")


def _estimate(store: Store, config: RunConfig, data: TaskData) -> Estimate:
    shape = encoder_shape(config.encoder.id)
    flops = _measured(store, config)
    speed = flops or assumed_flops(has_gpu())
    return estimate(config, data, shape, speed, measured=flops is not None)


def _measured(store: Store, config: RunConfig) -> float | None:
    """The speed of the newest finished run with this encoder."""
    for run in store.runs():
        if run.status == Status.FINISHED and run.config.encoder.id == config.encoder.id and run.last_step > 5:
            return _run_flops(store, run.id, run)
    return None


@st.cache_data(show_spinner=False, max_entries=64)
def _run_flops(_store: Store, run_id: str, _run: RunSummary) -> float | None:
    return measured_flops(
        _store.steps(run_id, most=200), encoder_shape(_run.config.encoder.id), _run.config.phase.trainable
    )
