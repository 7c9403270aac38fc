"""The force view: what pulls and pushes one example in a batch of the map's texts, and what another τ would do."""

from __future__ import annotations

from functools import partial

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from core.figures.map_data import Arrow
from core.figures.push_spread import spread_figure
from core.messages import N_, _, ngettext
from core.quantities import percent
from pages.ui.explore.force_choice import Acting, temperatures
from pages.ui.explore.run_reads import Frames
from pages.ui.glossary import explained
from pages.ui.live_figure import live_figure
from pages.ui.parts import escaped
from pages.ui.softmax_bars import softmax_bars
from pages.ui.text_table import Cell, text_table

# More arrows than this hide the map; the table has all.
ARROWS = 24
SPREAD_HEIGHT = 420
EXCERPT_CHARS = 120


def arrows_of(frames: Frames, acting: Acting) -> tuple[Arrow, ...]:
    """The strongest forces as arrows on the map, in the direction in which the anchor would move.

    A pull runs from the anchor to what attracts it; a push runs from what repels to the anchor.
    """
    strength = _strength(acting)
    strength[acting.place] = 0.0  # a further view of the anchor lies where the anchor is
    largest = float(np.abs(strength).max(initial=0.0))
    ids, anchor = frames.probe.ids, frames.probe.ids[acting.anchor]
    arrows = []
    for i in np.argsort(-np.abs(strength), kind="stable")[:ARROWS].tolist():
        force = float(strength[i])
        if force == 0.0:
            break
        other = ids[acting.rows[i]]
        start, end = (anchor, other) if force > 0 else (other, anchor)
        arrows.append(Arrow(start, end, force / largest, _in_words(force)))
    return tuple(arrows)


def forces(frames: Frames, acting: Acting) -> None:
    """Draw the anchor, the numbers, the table and, for a loss with a temperature, the curves over τ."""
    _anchor(frames, acting)
    if not acting.found.has_positive[acting.place]:
        st.info(_("The anchor has no positive in this batch, so nothing acts on it. Draw another batch."))
    _shares(acting)
    _numbers(acting)
    explained("anchor", "positive", "negative", "effective_negatives", "l_out", "l_in")
    for sentence in (_near_positives(acting), _own_view(acting)):
        if sentence:
            st.caption(sentence)
    _table(frames, acting)
    _curves(frames, acting)


def _anchor(frames: Frames, acting: Acting) -> None:
    probe, row = frames.probe, acting.anchor
    text = " ".join(probe.texts[row].split())
    cut = text if len(text) <= EXCERPT_CHARS else f"{text[:EXCERPT_CHARS]} …"
    st.markdown(f"**{_('Anchor')}** · {escaped(probe.classes[probe.labels[row]])} · {escaped(cut)}")
    if acting.by_default:
        st.caption(
            _(
                "No text is selected, so the anchor is the one with the highest loss in this batch. Click a point on "
                "the map to choose another; the anchor's ring has four ticks."
            )
        )


def _strength(acting: Acting) -> NDArray[np.float64]:
    """How hard each text of the batch pulls (above 0) or pushes (below 0) the anchor."""
    strength: NDArray[np.float64] = -acting.found.coefficients[acting.place].numpy()
    return strength


def _shares(acting: Acting) -> None:
    """The softmax over the anchor's similarities, where the loss has one."""
    found, place, temperature = acting.found, acting.place, acting.chosen.temperature
    if found.p is None or temperature is None:
        return
    others = [i for i in range(len(acting.rows)) if i != place]
    softmax_bars(
        found.similarity[place][others].numpy(),
        found.p[place][others].numpy(),
        found.positives[place][others].tolist(),
        temperature,
        key="explore.softmax",
    )


def _numbers(acting: Acting) -> None:
    from core.losses.forces import push_spread

    chosen, place = acting.chosen, acting.place
    spread = partial(push_spread, acting.features, acting.labels, temperature=chosen.temperature, law=chosen.law)
    own, batch = spread(anchor=place), spread()
    negatives = int(acting.found.negatives[place].sum())
    titles = [_("{loss}, nats", loss=law.symbol) for law in chosen.law.variants]
    rows = list(zip(titles, own.losses, batch.losses, strict=True))
    if acting.found.p is not None:
        rows.append((_("Entropy of p, nats"), own.entropy, batch.entropy))
    cells = [(name, _number(mine, ".3f"), _number(mean, ".3f")) for name, mine, mean in rows]
    effective = _("Effective negatives, of {negatives}", negatives=f"{negatives:,}")
    cells.append((effective, _number(own.effective_negatives, ".1f"), _number(batch.effective_negatives, ".1f")))
    cells.append((_("Push from the top 5%"), percent(own.top_share), percent(batch.top_share)))
    with st.container(key="explore_force_numbers"):
        st.dataframe(
            [{"": name, "This anchor": mine, "Batch mean": mean} for name, mine, mean in cells],
            hide_index=True,
            column_config={"This anchor": _("This anchor"), "Batch mean": _("Batch mean")},
            key="explore.force.numbers",
        )


def _number(value: float, form: str) -> str:
    return "–" if np.isnan(value) else format(value, form)


def _near_positives(acting: Acting) -> str:
    """Positives that push, where there are any: p of theirs is above what the loss asks for."""
    found, place = acting.found, acting.place
    if found.p is None:
        return ""
    pushing = found.positives[place] & (found.coefficients[place] > 0)
    pushing[place] = False
    count = int(pushing.sum())
    if not count:
        return ""
    return ngettext(
        "{count} positive pushes: the loss asks for a share X from each positive, and where p is above it already, the "
        "anchor is moved away from that positive and towards the others.",
        "{count} positives push: the loss asks for a share X from each positive, and where p is above it already, the "
        "anchor is moved away from that positive and towards the others.",
        count,
    )


def _own_view(acting: Acting) -> str:
    """What the anchor's further views do, which no arrow can show."""
    found, place = acting.found, acting.place
    if not acting.chosen.law.has_own_view or found.p is None or found.X is None:
        return ""
    others = acting.chosen.law.views - 1
    return ngettext(
        "Its own other view has p {p:.3f} where the loss asks for {X:.3f}. Both are one vector here, so that force "
        "turns nothing and has no arrow.",
        "Its {count} own other views together have p {p:.3f} where the loss asks for {X:.3f}. All are one vector here, "
        "so that force turns nothing and has no arrow.",
        others,
        p=float(found.p[place, place]),
        X=float(found.X[place, place]),
    )


def _table(frames: Frames, acting: Acting) -> None:
    strength, found, place = _strength(acting), acting.found, acting.place
    order = [int(i) for i in np.argsort(-np.abs(strength), kind="stable") if i != place]
    softmax = {"p": found.p, "X": found.X} if found.p is not None and found.X is not None else {}
    similarity = N_("Cosine") if acting.chosen.law.normalize else N_("Dot product")
    columns: dict[str, list[Cell]] = {
        # Translators: a column that says of each text that it pulls or pushes
        N_("Acts"): [_("pulls") if strength[i] > 0 else _("pushes") if strength[i] < 0 else "–" for i in order],
        N_("Strength"): [float(abs(strength[i])) for i in order],
        **{name: [float(shares[place, i]) for i in order] for name, shares in softmax.items()},
        similarity: [float(found.similarity[place, i]) for i in order],
        N_("Label"): [frames.probe.classes[frames.probe.labels[acting.rows[i]]] for i in order],
        N_("Text"): [frames.probe.texts[acting.rows[i]] for i in order],
    }
    text_table(columns, height=320, classes=frames.probe.classes)
    if softmax:
        about = _(
            "Strength: |p − X|/τ, the size of a text's part in the gradient on the anchor, before the weight of the "
            "loss. p: its share among all candidates; X: the share that the loss asks for, 0 for a negative."
        )
    else:
        about = _("Strength: the size of a text's part in the gradient on the anchor, before the weight of the loss.")
    st.caption(about)


def _curves(frames: Frames, acting: Acting) -> None:
    from core.losses.forces import push_spreads

    chosen, own = acting.chosen, acting.chosen.shown.temperature
    if chosen.temperature is None or own is None:
        return
    taus = temperatures().tolist()
    curves = push_spreads(acting.features, acting.labels, taus, law=chosen.law)
    losses = [law.symbol for law in chosen.law.variants]
    live_figure(
        spread_figure(taus, curves, losses, chosen.temperature, own, revision=f"{frames.run.id}.{'.'.join(losses)}"),
        key="explore.spread",
        height=SPREAD_HEIGHT,
        description=_("Loss, entropy, effective number of negatives and share of the push over the temperature."),
    )
    st.caption(_about_curves(len(acting.rows), own=chosen.shown.own))


def _about_curves(size: int, *, own: bool) -> str:
    if own:
        return _(
            "Means over the anchors of this batch of {size}, at this frame. The dotted line is this run's τ at this "
            "step; another τ is recomputed from the same vectors, which training with it would have changed.",
            size=size,
        )
    return _(
        "Means over the anchors of this batch of {size}, at this frame. The dotted line is a usual τ; another τ is "
        "recomputed from the same vectors, which training with it would have changed.",
        size=size,
    )


def _in_words(strength: float) -> str:
    said = N_("pulls with {strength:.3f}") if strength > 0 else N_("pushes with {strength:.3f}")
    return _(said, strength=abs(strength))
