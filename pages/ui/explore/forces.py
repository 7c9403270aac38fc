"""The force view: what pulls and pushes one example in a batch of the probe, and what another temperature would do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from core.figures.forces import spread_figure
from core.figures.map_data import Arrow
from core.store import RunRecord
from pages.ui import state
from pages.ui.bound import bound
from pages.ui.explore.run_reads import Frames
from pages.ui.live_figure import live_figure
from pages.ui.text_table import Cell, text_table

if TYPE_CHECKING:
    from core.losses.forces import Forces, PushSpread

VARIANTS = {"out": "L_out", "in": "L_in"}
TAU_LOW, TAU_HIGH, TAU_STEPS = 0.01, 2.0, 41
BATCH_SIZES = (8, 16, 32, 64, 128, 256)
DEFAULT_TAU = 0.3
# More arrows than this hide the map; the table has all.
ARROWS = 24
MOST_DRAWS = 999
SPREAD_HEIGHT = 420
TAU, BATCH, DRAW, VARIANT = "tau", "batch", "draw", "variant"


@dataclass(frozen=True, slots=True)
class ForceChoice:
    """Which batch, at which temperature."""

    temperature: float
    size: int
    draw: int
    variant: str


def choose_forces(frames: Frames) -> ForceChoice:
    """Draw the controls of the force view and read them."""
    sizes = [size for size in BATCH_SIZES if size < len(frames.probe.ids)] + [len(frames.probe.ids)]
    own_tau, own_size = run_temperature(frames.run), frames.run.config.phases[0].batch_size
    taus = sorted({*(round(float(tau), 3) for tau in temperatures()), own_tau})
    start = _in_url(TAU, own_tau)
    temperature = st.select_slider(
        "Temperature τ",
        taus,
        min(taus, key=lambda tau: abs(tau - start)),
        format_func=lambda tau: f"{tau:g}",
        help=f"Recomputed from the vectors of this frame, with no training. This run used τ {own_tau:g}.",
        key="explore.tau",
    )
    left, middle, right = st.columns([2, 2, 2], vertical_alignment="bottom")
    nearest = min(sizes, key=lambda size: abs(size - _in_url(BATCH, own_size)))
    size = left.selectbox("Batch", sizes, sizes.index(nearest), key="explore.batch", help="Examples of the map.")
    drawn = min(MOST_DRAWS, int(_in_url(DRAW, 0)))
    draw = middle.number_input("Draw", 0, MOST_DRAWS, drawn, key="explore.draw", help="Another batch.")
    variant, to_variant = bound(VARIANT, VARIANTS, "out", "there is no such loss")
    right.segmented_control("Arrows from", list(VARIANTS), format_func=VARIANTS.get, required=True, **to_variant)
    state.put_in_url(
        tau=None if temperature == own_tau else f"{temperature:g}",
        batch=None if size == min(sizes, key=lambda s: abs(s - own_size)) else size,
        draw=draw or None,
    )
    return ForceChoice(float(temperature), int(size), int(draw), variant)


def run_temperature(run: RunRecord) -> float:
    """The temperature of the run's first contrastive term, the papers' usual one where it has none."""
    found = [phase.objective.temperature for phase in run.config.phases if phase.objective.contrastive]
    return next((float(tau) for tau in found if tau is not None), DEFAULT_TAU)


def temperatures() -> np.ndarray:
    return np.geomspace(TAU_LOW, TAU_HIGH, TAU_STEPS)


def batch_rows(count: int, size: int, draw: int, anchor: int) -> list[int]:
    """Rows of a batch drawn from so many examples, the anchor among them; the same draw, the same batch."""
    order = np.random.default_rng([draw, count]).permutation(count)
    others = [int(row) for row in order if row != anchor][: size - 1]
    return sorted([anchor, *others])


def arrows_of(frames: Frames, number: int, anchor: int, chosen: ForceChoice) -> tuple[Arrow, ...]:
    """The strongest forces as arrows on the map: a pull towards an example, a push away from it."""
    rows, found = _forces(frames, number, anchor, chosen)
    strength = -found.coefficients.numpy()
    largest = float(np.abs(strength).max(initial=0.0))
    if largest == 0.0:
        return ()
    strongest = np.argsort(-np.abs(strength), kind="stable")[:ARROWS]
    ids = frames.probe.ids
    return tuple(
        Arrow(ids[anchor], ids[rows[i]], float(strength[i] / largest), _said(float(strength[i])))
        for i in strongest
        if strength[i] != 0.0
    )


def forces(frames: Frames, number: int, anchor: int | None, chosen: ForceChoice) -> None:
    """Draw the numbers, the table and the curves over τ."""
    if anchor is None:
        st.caption("Click a point: it becomes the anchor, and arrows show which examples of a batch pull and push it.")
        return
    from core.losses.forces import push_spread, push_spreads

    st.caption("The anchor is the point whose ring has four ticks; click another and that becomes the anchor.")
    rows, found = _forces(frames, number, anchor, chosen)
    features, labels = _batch(frames, number, rows)
    place = rows.index(anchor)
    own = push_spread(features, labels, temperature=chosen.temperature, anchor=place)
    batch = push_spread(features, labels, temperature=chosen.temperature)
    _numbers(found, own, batch, sum(int(label != labels[place]) for label in labels))
    _table(frames, rows, found, place)
    taus = temperatures().tolist()
    curves = push_spreads(features, labels, taus)
    live_figure(
        spread_figure(taus, curves, chosen.temperature, run_temperature(frames.run), revision=frames.run.id),
        key="explore.spread",
        height=SPREAD_HEIGHT,
        description="Loss, entropy, effective number of negatives and share of the push over the temperature.",
    )
    st.caption(
        f"Means over the anchors of this batch of {len(rows)}, at this frame. The dotted line is the τ of this run; "
        "another τ is recomputed from the same vectors, which training with it would have changed."
    )


def _numbers(found: Forces, own: PushSpread, batch: PushSpread, negatives: int) -> None:
    def told(value: float, form: str) -> str:
        return "–" if np.isnan(value) else format(value, form)

    rows = [
        ("L_out, nats", found.loss_out, batch.loss_out, ".3f"),
        ("L_in, nats", found.loss_in, batch.loss_in, ".3f"),
        ("Entropy of p, nats", own.entropy, batch.entropy, ".3f"),
        (f"Effective negatives, of {negatives}", own.effective_negatives, batch.effective_negatives, ".1f"),
        ("Push from the top 5 %", own.top_share, batch.top_share, ".0%"),
    ]
    st.dataframe(
        [
            {"": name, "This anchor": told(mine, form), "Batch mean": told(mean, form)}
            for name, mine, mean, form in rows
        ],
        hide_index=True,
        key="explore.force.numbers",
    )
    if found.loss_out == 0.0 and not found.coefficients.any():
        st.caption("The anchor has no other example of its class in this batch, so nothing acts on it: draw another.")


def _table(frames: Frames, rows: Sequence[int], found: Forces, place: int) -> None:
    strength = -found.coefficients.numpy()
    order = [int(i) for i in np.argsort(-np.abs(strength), kind="stable") if i != place]
    first_columns: dict[str, list[Cell]] = {
        "Acts": ["pulls" if strength[i] > 0 else "pushes" if strength[i] < 0 else "–" for i in order],
        "Strength": [float(abs(strength[i])) for i in order],
        "p": [float(found.p[i]) for i in order],
        "Cosine": [float(found.similarity[i]) for i in order],
        "Label": [frames.probe.classes[frames.probe.labels[rows[i]]] for i in order],
        "Text": [frames.probe.texts[rows[i]] for i in order],
    }
    text_table(first_columns, height=320, classes=frames.probe.classes)


def _forces(frames: Frames, number: int, anchor: int, chosen: ForceChoice) -> tuple[list[int], Forces]:
    from core.losses.forces import forces_on

    rows = batch_rows(len(frames.probe.ids), chosen.size, chosen.draw, anchor)
    features, labels = _batch(frames, number, rows)
    variant: Any = chosen.variant
    return rows, forces_on(features, labels, rows.index(anchor), temperature=chosen.temperature, variant=variant)


def _batch(frames: Frames, number: int, rows: Sequence[int]) -> tuple[Any, Any]:
    import torch

    labels = torch.tensor([frames.probe.labels[row] for row in rows])
    return torch.from_numpy(np.array(frames.vectors(number)[list(rows)])), labels


def _said(strength: float) -> str:
    return f"{'pulls' if strength > 0 else 'pushes'} with {abs(strength):.3f}"


def _in_url(name: str, default: float) -> float:
    try:
        value = float(state.text_in_url(name) or default)
    except ValueError:
        return default
    return value if np.isfinite(value) and value >= 0 else default
