"""How an experiment is set up: a protocol's levels or a grid of settings, and what it will take."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.config.describe import problem_text
from core.config.fields import build
from core.errors import PlaygroundError
from core.experiments.design import Design, axis_title
from core.experiments.protocols.entry import Protocol
from core.experiments.protocols.registry import PROTOCOLS
from core.messages import _
from core.workers import Engine
from pages.ui import state
from pages.ui.address import Experiments
from pages.ui.experiments.base_form import chosen_base, seeds_field, with_frames
from pages.ui.experiments.grid_form import grid_form
from pages.ui.experiments.launch_card import launch_card
from pages.ui.experiments.published import published
from pages.ui.number_field import begin_fields, field_problem
from pages.ui.parts import escaped

GRID = "grid"


def set_up(engine: Engine, name: str, head: DeltaGenerator) -> None:
    """Draw the form of a protocol or of a grid, and start the experiment when that is asked for."""
    protocol = None if name == GRID else PROTOCOLS[name]
    if head.button(_("All experiments"), icon=":material/arrow_back:", type="tertiary"):
        leave()
    left, right = st.columns([3, 2], gap="large")
    begin_fields()
    design, problem = None, ""
    with left:
        try:
            design = grid_form() if protocol is None else _protocol(protocol)
        except PlaygroundError as error:
            problem = problem_text(error)
        if protocol is not None:
            published(protocol)
    if (of_field := field_problem()) is not None:
        design, problem = None, str(of_field)
    with right, st.container(border=True, key="before_launch"):
        st.header(_("Before launch"))
        started = launch_card(engine, design, problem)
    if started:
        leave()


def leave() -> None:
    """Back to the list, with an address that says nothing of the form."""
    for item in (*Experiments.of("design"), Experiments.NEW):
        item.forget()
    state.put_all_in_url(Experiments.SET.name, [])
    st.rerun()


def _protocol(protocol: Protocol) -> Design:
    st.header(_(protocol.label))
    st.markdown(f"**{escaped(_(protocol.question))}** :gray[{escaped(_(protocol.source))}]")
    base = chosen_base(protocol.base, f"protocol.{protocol.name}")
    whole = protocol.design(base)
    seeds = seeds_field(len(whole.seeds), protocol.name)
    axes = []
    for axis in whole.axes:
        against = whole.baseline.get(axis.name)
        titles = {level.label: level.title for level in axis.levels}
        labels = list(titles)
        picked = st.pills(
            axis_title(axis, base),
            labels,
            format_func=titles.__getitem__,
            selection_mode="multi",
            default=labels,
            key=f"experiment.{protocol.name}.{axis.name}",
            help=_("All are compared with {level}.", level=titles[against]) if against else None,
        )
        kept = [level for level in axis.levels if level.label in picked or level.label == against]
        axes.append({"name": axis.name, "levels": [level.model_dump() for level in kept]})
    base = with_frames(base)
    st.caption(escaped(_(protocol.differs)))
    return build(
        Design,
        whole.model_dump(mode="json") | {"axes": axes, "seeds": seeds, "base": base.model_dump(mode="json")},
    )
