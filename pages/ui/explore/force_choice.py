"""What the force view computes: the run's loss at the frame, a batch of the map's texts, and the anchor in it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from core.artifacts.frame_loss import ShownContrast, batch_rows, names_layers, shown_contrast
from core.catalogue.loss_entry import ForceLaw, temperature_parameter
from core.errors import PlaygroundError
from core.messages import N_, _, sentences
from core.models.source import encoder_shape
from core.parameters import Parameter
from pages.ui.address import Explore
from pages.ui.bound import Valid, bound, bound_nearest, bound_parameter, nearest
from pages.ui.explore.run_reads import Frames
from pages.ui.glossary import card
from pages.ui.number_field import number_field
from pages.ui.parts import escaped

if TYPE_CHECKING:
    from core.losses.forces import AnchorForces

# Temperatures of the papers, which are offered as they are; others that are nearly the same are not.
NAMED, SAME = (0.05, 0.1, 0.3, 0.5, 0.7, 1.0), 0.03
TAU_LOW, TAU_HIGH, TAU_STEPS = 0.01, 2.0, 41
BATCH_SIZES = (8, 16, 32, 64, 128, 256)
# Of more texts than a map has, a batch is all of them.
ANY_BATCH = range(1, sys.maxsize)
# Translators: the number of a batch that is drawn by chance
DRAW = Parameter("draw", N_("Draw"), 0, N_("Another batch."), "integer", low=0, high=999)


@dataclass(frozen=True, slots=True)
class ForceChoice:
    """What is shown of the run, and the loss, temperature and batch that were chosen to look at it."""

    shown: ShownContrast
    law: ForceLaw
    temperature: float | None
    size: int
    draw: int


@dataclass(frozen=True, slots=True)
class Acting:
    """The forces in one batch.

    Attributes:
        rows: of the probe, ascending.
        place: of the anchor in `rows`.
        by_default: whether nobody selected the anchor.
        features, labels: of the batch, as tensors [N, d] and [N].
    """

    chosen: ForceChoice
    rows: Sequence[int]
    place: int
    by_default: bool
    found: AnchorForces
    features: Any
    labels: Any

    @property
    def anchor(self) -> int:
        return self.rows[self.place]


def choose_forces(frames: Frames, number: int) -> ForceChoice:
    """Say which loss is shown, draw the controls of the force view and read them."""
    shown = _shown(frames, number)
    remarks, about = escaped(sentences(shown.remarks)), f"**{escaped(shown.about)}**"
    # What replaces the run's own loss comes after the reason.
    st.caption(sentences([about, remarks] if shown.own else [remarks, about]))
    temperature = None if shown.temperature is None else _choose_temperature(shown, shown.temperature)
    left, middle, right = st.columns([2, 2, 2], vertical_alignment="bottom")
    sizes = [size for size in BATCH_SIZES if size < len(frames.probe.ids)] + [len(frames.probe.ids)]
    size, to_size = bound_nearest(Explore.BATCH, sizes, nearest(sizes, shown.batch_size), known=ANY_BATCH)
    left.selectbox(_("Batch"), sizes, help=_("Texts of the map, drawn by chance."), **to_size.by_index)
    _draw, to_draw = bound_parameter("forces", DRAW)
    draw = int(number_field(middle, DRAW, to_draw.start, key=to_draw.key))
    law = shown.law
    if variants := law.entry.variants:
        variant, to_variant = bound(Explore.VARIANT, variants, str(law.settings["variant"]))
        right.segmented_control(
            _("Arrows from"), list(variants), format_func=variants.__getitem__, required=True, **to_variant.by_default
        )
        law = replace(law, settings={**law.settings, "variant": variant})
    return ForceChoice(shown, law, temperature, size, draw)


def _shown(frames: Frames, number: int) -> ShownContrast:
    config = frames.store.effective_config(frames.run.id)
    layer = None if frames.layers_at is None else number
    blocks = _blocks(config.encoder.id) if layer is not None or names_layers(config) else None
    return shown_contrast(config, frames.step_of(number), layer, blocks)


@st.cache_data(show_spinner=False, max_entries=64)
def _blocks(encoder_id: str) -> int | None:
    """How many blocks an encoder has; None where it is not here any more."""
    try:
        return encoder_shape(encoder_id).blocks
    except PlaygroundError:
        return None


def _choose_temperature(shown: ShownContrast, own: float) -> float:
    """A slider from the run's own τ at this step; what a person chose stays chosen from frame to frame."""
    named = {*NAMED, own}
    between = {tau for tau in map(float, temperatures()) if all(abs(np.log(tau / one)) > SAME for one in named)}
    taus = sorted({*(round(tau, 3) for tau in between), *named})
    temperature, to_temperature = bound_nearest(Explore.TEMPERATURE, taus, own, known=Valid(temperature_parameter(own)))
    st.select_slider(
        _("Temperature τ"),
        taus,
        format_func=lambda tau: f"{tau:g}",
        help=card("temperature", _about_temperature(shown)),
        **to_temperature.by_value,
    )
    return temperature


def _about_temperature(shown: ShownContrast) -> str:
    if not shown.own:
        return _("Computed from the vectors of this frame, with no training.")
    return _(
        "Recomputed from the vectors of this frame, with no training. This step used τ {temperature:g}.",
        temperature=shown.temperature,
    )


def temperatures() -> np.ndarray:
    return np.geomspace(TAU_LOW, TAU_HIGH, TAU_STEPS)


def acting(frames: Frames, number: int, selected: int | None, chosen: ForceChoice) -> Acting:
    """The forces in the chosen batch; without a selection on the anchor whose loss, as the run has it, is highest."""
    from core.losses.forces import batch_forces

    rows = batch_rows(len(frames.probe.ids), chosen.size, chosen.draw, selected)
    features, labels = _batch(frames, number, rows, chosen.shown.source)
    found = batch_forces(features, labels, temperature=chosen.temperature, law=chosen.law)
    if selected is not None:
        place = rows.index(selected)
    else:
        own = batch_forces(features, labels, temperature=chosen.shown.temperature, law=chosen.shown.law)
        place = int(own.losses.argmax())
    return Acting(chosen, rows, place, selected is None, found, features, labels)


def _batch(frames: Frames, number: int, rows: Sequence[int], source: str) -> tuple[Any, Any]:
    import torch

    logits = source == "logits"
    given = frames.store.logits(frames.run.id, frames.step_of(number)) if logits else frames.vectors(number)
    labels = torch.tensor([frames.probe.labels[row] for row in rows])
    return torch.from_numpy(np.array(given[list(rows)])), labels
