"""The examples whose vectors turned the most since another frame."""

from __future__ import annotations

import numpy as np
import streamlit as st

from core.messages import N_, _
from core.quantities import percent
from core.representation.examples import ExampleScores
from core.representation.movement import moved
from core.representation.neighbours import all_neighbours, kept_neighbours
from pages.ui.address import Explore
from pages.ui.bound import bound_nearest
from pages.ui.explore import run_reads
from pages.ui.explore.run_reads import Frames
from pages.ui.explore.texts import example_columns
from pages.ui.text_table import Cell, text_table

LISTED = 30
K = 10


def movement(frames: Frames, number: int, scores: ExampleScores) -> tuple[int, ...] | None:
    """Draw them; those that are to be selected, None for no change."""
    earlier = [other for other in frames.numbers if other < number]
    if not earlier:
        st.caption(_("This is the first frame: move on to see which examples have moved."))
        return None
    what = _("Since layer") if frames.layers_at is not None else _("Since step")
    since = earlier[0]
    if len(earlier) > 1:
        since, to_since = bound_nearest(Explore.SINCE, earlier, since, known=frames.numbers)
        st.select_slider(what, earlier, format_func=lambda n: f"{n:,}", **to_since.by_value)
    turned = moved(frames.vectors(since), frames.vectors(number))
    kept = _kept(frames, since, number)
    before = run_reads.scores(frames, since)
    rows = np.argsort(-turned, kind="stable")[:LISTED].tolist()
    st.caption(
        _(
            "Turned: 1 − cosine of an example's vectors in the two frames; mean {turned:.3f}. Kept: share of its {k} "
            "nearest that stayed; mean {kept}.",
            turned=float(turned.mean()),
            k=min(K, len(turned) - 1),
            kept=percent(kept.mean()),
        )
    )
    known = example_columns(frames.probe, scores, rows)
    columns: dict[str, list[Cell]] = {
        N_("Turned"): [float(turned[row]) for row in rows],
        N_("Kept"): [float(kept[row]) for row in rows],
        # Translators: what was predicted at the earlier of two frames
        N_("Before"): [frames.probe.classes[before.predicted[row]] for row in rows],
        # With more beside them, three classes of long names would not fit.
        **{name: known[name] for name in ("Label", "Prediction", "Text")},
    }
    text_table(columns, classes=frames.probe.classes)
    if st.button(_("Select these"), key="explore.moved.select", icon=":material/select_all:"):
        return tuple(rows)
    return None


@run_reads.kept(max_entries=64)
def _kept(frames: Frames, since: int, number: int) -> np.ndarray:
    before, after = (all_neighbours(frames.vectors(frame), K) for frame in (since, number))
    return kept_neighbours(before, after)
