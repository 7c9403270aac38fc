"""The force view: the pulls and pushes on one text in a batch of the map's texts, and the effect of another τ."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from core.artifacts.frame_loss import ShownContrast, batch_rows, names_layers, shown_contrast
from core.catalogue.loss_entry import ForceLaw, temperature_parameter
from core.errors import PlaygroundError
from core.figures.map_data import Arrow
from core.figures.small_multiples import spread_figure
from core.messages import N_, _, ngettext, sentences
from core.models.source import encoder_shape
from core.parameters import Parameter
from core.quantities import percent, signed
from pages.ui.address import Explore
from pages.ui.bound import Valid, bound, bound_nearest, bound_parameter, nearest
from pages.ui.explore.run_reads import Frames
from pages.ui.live_figure import live_figure
from pages.ui.parameter_widget import number_field
from pages.ui.parts import card, draw_cards, escaped
from pages.ui.softmax_bars import softmax_bars
from pages.ui.tables import Cell, text_table, truncate

if TYPE_CHECKING:
    from core.losses.forces import AnchorForces

# Temperatures from the papers are offered exactly; grid values within SAME of one (in log τ) are dropped.
NAMED, SAME = (0.05, 0.1, 0.3, 0.5, 0.7, 1.0), 0.03
TAUS: Sequence[float] = np.geomspace(0.01, 2.0, 41).tolist()
BATCH_SIZES = (8, 16, 32, 64, 128, 256)
# The address may name any size. A size above the number of texts on the map means all of them.
ANY_BATCH = range(1, sys.maxsize)
# Translators: the number of a batch that is drawn by chance
DRAW = Parameter("draw", N_("Batch seed"), 0, N_("Each value samples another batch."), "integer", low=0, high=999)


@dataclass(frozen=True, slots=True)
class BatchForces:
    """The forces in one batch.

    Attributes:
        shown: the loss shown at this frame, with its own temperature.
        law, temperature: the loss variant and the τ that the user chose.
        rows: rows of the probe set in the batch, ascending.
        place: position of the anchor in `rows`.
        by_default: whether the app chose the anchor, because nothing is selected.
        features, labels: the batch, as tensors [N, d] and [N].
    """

    shown: ShownContrast
    law: ForceLaw
    temperature: float | None
    rows: Sequence[int]
    place: int
    by_default: bool
    found: AnchorForces
    features: Any
    labels: Any

    @property
    def anchor(self) -> int:
        return self.rows[self.place]


def choose_forces(frames: Frames, number: int, selected: int | None) -> BatchForces:
    """Name the loss, draw the controls of the force view, and compute the forces."""
    config = frames.store.run(frames.run.id).effective
    layer = None if frames.layers_at is None else number
    blocks = _blocks(config.encoder.id) if layer is not None or names_layers(config) else None
    shown = shown_contrast(config, frames.step_of(number), layer, blocks)
    remarks, name = escaped(sentences(shown.remarks)), f"**{escaped(shown.about)}**"
    # For a loss that replaces the run's own, the reason comes first.
    st.caption(sentences([name, remarks] if shown.own else [remarks, name]))
    temperature = None
    if (own := shown.law.temperature) is not None:  # the slider starts at the τ of the shown loss; a chosen τ persists
        named = {*NAMED, own}
        between = {tau for tau in TAUS if all(abs(np.log(tau / one)) > SAME for one in named)}
        taus = sorted({*(round(tau, 3) for tau in between), *named})
        valid = Valid(temperature_parameter(own))
        temperature, to_temperature = bound_nearest(Explore.TEMPERATURE, taus, own, known=valid)
        about = _("Computed from the vectors of this frame, with no training.")
        if shown.own:
            about = _(
                "Recomputed from the vectors of this frame, with no training. This step used τ {temperature:g}.",
                temperature=own,
            )
        st.select_slider(
            _("Temperature τ"),
            taus,
            format_func=lambda tau: f"{tau:g}",
            help=card("temperature", about),
            **to_temperature.by_value,
        )
    left, middle, right = st.columns([2, 2, 2], vertical_alignment="bottom")
    count = len(frames.probe.ids)
    sizes = [size for size in BATCH_SIZES if size < count] + [count]
    size, to_size = bound_nearest(Explore.BATCH, sizes, nearest(sizes, shown.batch_size), known=ANY_BATCH)
    left.selectbox(_("Batch"), sizes, help=_("Texts of the map, sampled at random."), **to_size.by_index)
    _draw, to_draw = bound_parameter("forces", DRAW)
    draw = int(number_field(middle, DRAW, to_draw.start, key=to_draw.key))
    law = shown.law
    if variants := law.entry.variants:
        variant, to_variant = bound(Explore.VARIANT, variants, str(law.settings["variant"]))
        right.segmented_control(
            _("Forces of"),
            list(variants),
            format_func=lambda name: _(variants[name]),
            required=True,
            **to_variant.by_default,
        )
        law = replace(law, settings={**law.settings, "variant": variant})
    with st.spinner(_("Computing forces")):  # the first call imports torch
        return _acting(frames, number, selected, batch_rows(count, size, draw, selected), shown, law, temperature)


@st.cache_data(show_spinner=False, max_entries=64)
def _blocks(encoder_id: str) -> int | None:
    """Return the number of blocks of an encoder, or None if the encoder is no longer available."""
    try:
        return encoder_shape(encoder_id).blocks
    except PlaygroundError:
        return None


def _acting(
    frames: Frames,
    number: int,
    selected: int | None,
    rows: Sequence[int],
    shown: ShownContrast,
    law: ForceLaw,
    temperature: float | None,
) -> BatchForces:
    """Compute the forces in a batch. Without a selection, the anchor is the text with the highest `shown` loss."""
    import torch

    from core.losses.forces import batch_forces

    logits = shown.source == "logits"
    given = frames.store.logits(frames.run.id, frames.step_of(number)) if logits else frames.vectors(number)
    features = torch.from_numpy(np.array(given[list(rows)]))
    labels = torch.tensor([frames.probe.labels[row] for row in rows])
    found = batch_forces(features, labels, temperature=temperature, law=law)
    if selected is not None:
        place = rows.index(selected)
    else:
        own = batch_forces(features, labels, temperature=shown.law.temperature, law=shown.law)
        place = int(own.losses.argmax())
    return BatchForces(shown, law, temperature, rows, place, selected is None, found, features, labels)


# More arrows would hide the map; the table lists every force.
ARROWS = 24


def arrows_of(frames: Frames, acting: BatchForces) -> tuple[Arrow, ...]:
    """Return the strongest forces as arrows on the map, pointing the way the anchor would move.

    A pull points from the anchor to the text that attracts it; a push points from the text that repels it to the
    anchor.
    """
    strength = _strength(acting)
    strength[acting.place] = 0.0  # other views of the anchor have the same position
    largest = float(np.abs(strength).max(initial=0.0))
    ids, anchor = frames.probe.ids, frames.probe.ids[acting.anchor]
    arrows = []
    for i in np.argsort(-np.abs(strength), kind="stable")[:ARROWS].tolist():
        force = float(strength[i])
        if force == 0.0:
            break
        other = ids[acting.rows[i]]
        start, end = (anchor, other) if force > 0 else (other, anchor)
        about = N_("pulls with {strength:.3f}") if force > 0 else N_("pushes with {strength:.3f}")
        arrows.append(Arrow(start, end, force / largest, _(about, strength=abs(force))))
    return tuple(arrows)


def forces(frames: Frames, acting: BatchForces) -> None:
    """Draw the anchor, the numbers, the table and, for a loss with a temperature, the curves over τ."""
    from core.losses.forces import push_spread

    probe, found, place, temperature = frames.probe, acting.found, acting.place, acting.temperature
    text = truncate(" ".join(probe.texts[acting.anchor].split()), 120)
    label = probe.classes[probe.labels[acting.anchor]]
    st.markdown(f"**{_('Anchor')}** · {escaped(label)} · {escaped(text)}")
    if acting.by_default:
        st.caption(
            _(
                "No text is selected, so the anchor is the text with the highest loss in this batch. Click a point "
                "on the map to choose another. Four short lines mark the anchor."
            )
        )
    if not found.has_positive[place]:
        st.info(_("The anchor has no positive in this batch, so no force acts on it. Draw another batch."))
    if found.p is not None and temperature is not None:
        others = [i for i in range(len(acting.rows)) if i != place]
        softmax_bars(
            found.similarity[place][others].numpy(),
            found.p[place][others].numpy(),
            found.positives[place][others].tolist(),
            temperature,
            key="explore.softmax",
        )
    spread = partial(push_spread, acting.features, acting.labels, temperature=temperature, law=acting.law)
    own, batch = spread(anchor=place), spread()
    negatives = int(found.negatives[place].sum())
    titles = [_("{loss}, nats", loss=variant.symbol) for variant in acting.law.variants]
    rows = list(zip(titles, own.losses, batch.losses, strict=True))
    if found.p is not None:
        rows.append((_("Entropy of p, nats"), own.entropy, batch.entropy))
    cells = [(name, _number(mine, 3), _number(mean, 3)) for name, mine, mean in rows]
    effective = _("Effective negatives (this anchor has {negatives})", negatives=f"{negatives:,}")
    cells.append((effective, _number(own.effective_negatives, 1), _number(batch.effective_negatives, 1)))
    cells.append((_("Share of push, strongest 5%"), percent(own.top_share), percent(batch.top_share)))
    with st.container(key="explore_force_numbers"):
        st.dataframe(
            [{"": name, "This anchor": mine, "Batch mean": mean} for name, mine, mean in cells],
            hide_index=True,
            column_config={"This anchor": _("This anchor"), "Batch mean": _("Batch mean")},
            key="explore.force.numbers",
        )
    draw_cards("anchor", "positive", "negative", "effective_negatives", "l_out", "l_in")
    _texts(frames, acting)
    if temperature is not None and acting.shown.law.temperature is not None:
        _curves(frames, acting, temperature, acting.shown.law.temperature)


def _strength(acting: BatchForces) -> NDArray[np.float64]:
    """Return the force of each text of the batch on the anchor: a pull above 0, a push below 0."""
    strength: NDArray[np.float64] = -acting.found.coefficients[acting.place].numpy()
    return strength


def _number(value: float, decimals: int) -> str:
    return "–" if np.isnan(value) else signed(value, decimals)


def _texts(frames: Frames, acting: BatchForces) -> None:
    """Draw which positives push, because their p exceeds X, how the anchor's other views act, and every force."""
    strength, found, place = _strength(acting), acting.found, acting.place
    softmax: dict[str, Any] = {}
    if found.p is not None and found.X is not None:
        softmax = {"p": found.p, N_("Target X"): found.X}
        pushing = found.positives[place] & (found.coefficients[place] > 0)
        pushing[place] = False
        if count := int(pushing.sum()):
            st.caption(
                ngettext(
                    "{count} positive pushes: its p exceeds its target X, so the anchor is moved away from it and "
                    "towards the other positives.",
                    "{count} positives push: their p exceeds their target X, so the anchor is moved away from them "
                    "and towards the other positives.",
                    count,
                )
            )
        if acting.law.second_views or acting.law.views > 1:
            st.caption(
                ngettext(
                    "Its other view has p {p:.3f} and the target {X:.3f}. Both views are the same vector here, so "
                    "this force has no direction and no arrow.",
                    "Its {count} other views together have p {p:.3f} and the target {X:.3f}. All views are the same "
                    "vector here, so this force has no direction and no arrow.",
                    acting.law.views - 1,
                    p=float(found.p[place, place]),
                    X=float(found.X[place, place]),
                )
            )
    order = [int(i) for i in np.argsort(-np.abs(strength), kind="stable") if i != place]
    similarity = N_("Cosine") if acting.law.normalize else N_("Dot product")
    columns: dict[str, list[Cell]] = {
        # Translators: a column that says of each text that it pulls or pushes
        N_("Force"): [_("pulls") if strength[i] > 0 else _("pushes") if strength[i] < 0 else "–" for i in order],
        N_("Strength"): [float(abs(strength[i])) for i in order],
        **{name: [float(shares[place, i]) for i in order] for name, shares in softmax.items()},
        similarity: [float(found.similarity[place, i]) for i in order],
        N_("Label"): [frames.probe.classes[frames.probe.labels[acting.rows[i]]] for i in order],
        N_("Text"): [frames.probe.texts[acting.rows[i]] for i in order],
    }
    text_table(columns, height=320, classes=frames.probe.classes)
    if softmax:
        about = _(
            "Strength: |p − X|/τ, how strongly a text enters the anchor's gradient, before multiplying by the "
            "loss weight. p: its softmax probability among all candidates; X: its target probability, 0 for a "
            "negative."
        )
    else:
        about = _("Strength: how strongly a text enters the anchor's gradient, before multiplying by the loss weight.")
    st.caption(about)


def _curves(frames: Frames, acting: BatchForces, temperature: float, own: float) -> None:
    from core.losses.forces import push_spread

    curves = [push_spread(acting.features, acting.labels, temperature=tau, law=acting.law) for tau in TAUS]
    losses = [law.symbol for law in acting.law.variants]
    live_figure(
        spread_figure(TAUS, curves, losses, temperature, own, revision=f"{frames.run.id}.{'.'.join(losses)}"),
        key="explore.spread",
        height=420,
        description=_("Loss, entropy, effective number of negatives and share of the push, by temperature."),
    )
    if acting.shown.own:
        about = _(
            "Means over the anchors of this batch of {size} at this frame. The dotted line is this run's τ at this "
            "step. Other temperatures are recomputed from the same vectors; training with them would have given "
            "other vectors.",
            size=len(acting.rows),
        )
    else:
        about = _(
            "Means over the anchors of this batch of {size} at this frame. The dotted line is a common τ. Other "
            "temperatures are recomputed from the same vectors; training with them would have given other vectors.",
            size=len(acting.rows),
        )
    st.caption(about)
