"""Start an experiment, from the form of a design or from the form of one run."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.config import FILE_TASK, RunConfig
from core.config.describe import problem_text
from core.config.edit import settings_text
from core.config.fields import build
from core.errors import PlaygroundError
from core.experiments.cost import Cost, cost
from core.experiments.design import Design, grid_name
from core.experiments.protocols.entry import Protocol
from core.experiments.protocols.registry import PROTOCOLS
from core.messages import N_, _, ngettext
from core.representation.paired import LEVEL, fewest_seeds
from core.store import Store
from core.store.sizes import size_text
from core.workers import Engine
from core.workers.machine import slots
from pages.ui import reads
from pages.ui.address import EveryPage, Experiments, FineTune
from pages.ui.experiments.design_form import SEEDS, USUAL_SEEDS, grid_form, protocol_form
from pages.ui.form_start import forget_start, without_defaults
from pages.ui.parameter_widget import begin_fields, field_problem, number_field
from pages.ui.parts import duration, escaped, page_link, scroll_into_view, show_errors
from pages.ui.visitor import visitor

GRID = "grid"
# The cost of an experiment depends on the existing runs, which change over time.
COST_S = 60.0


def set_up(engine: Engine, name: str, head: DeltaGenerator) -> None:
    """Draw the form of a protocol or of a grid, and start the experiment when the user asks for it."""
    protocol = None if name == GRID else PROTOCOLS[name]
    if head.button(_("All experiments"), icon=":material/arrow_back:", type="tertiary"):
        leave()
    if EveryPage.LESSON.text is None:  # otherwise the lesson scrolls to its target
        scroll_into_view("h1", name)
    left, right = st.columns([3, 2], gap="large")
    begin_fields()
    design, problem = None, ""
    with left:
        try:
            design = grid_form() if protocol is None else protocol_form(protocol)
        except PlaygroundError as error:
            problem = problem_text(error)
        if protocol is not None:
            draw_published(protocol)
    if field_problem() is not None:
        design, problem = None, _("Correct the field marked in red.")
    with right, st.container(border=True, key="before_launch"):
        st.header(_("Before launch"))
        _launch_card(engine, design, problem)


def leave() -> None:
    """Return to the list, and remove the form from the address."""
    for item in (*Experiments.of("design"), Experiments.NEW, Experiments.SET):
        item.forget()
    st.rerun()


@reads.cached(64, spinner=N_("Checking every cell"), kept_s=COST_S)
def _cost(store: Store, design: Design) -> Cost:
    """Estimate the cost of a design. Raises: ConfigError, TaskError or EncoderError if none of its cells can run."""
    return cost(reads.engine_of(str(store.folder)), design)


def _launch_card(engine: Engine, design: Design | None, problem: str) -> None:
    """Draw the launch card. Args: problem: why there is no design."""
    found = None
    if design is not None:
        try:
            found = _cost(engine.store, design)
        except PlaygroundError as error:
            problem = problem_text(error)
    if design is None or found is None:
        st.error(escaped(problem))
    else:
        # All cells of a seed share a slot.
        at_once = min(len(slots()), len(design.seeds)) if design.base.on_shared_trunk else len(slots())
        first, second, third = st.columns(3)
        first.metric(_("New runs"), f"{found.runs - found.known:,}")
        second.metric(_("Estimated time"), duration(found.seconds / at_once))
        third.metric(_("Disk space"), size_text(found.disk_bytes))
        words = {
            "cells": ngettext("{count} cell", "{count} cells", len(design.cells))
            if design.reference is None
            else ngettext("{count} cell (baseline included)", "{count} cells (baseline included)", len(design.cells)),
            "seeds": ngettext("{count} seed", "{count} seeds", len(design.seeds)),
            "pace": _("all cells of a seed train together")
            if design.base.on_shared_trunk
            else ngettext("one run at a time", "{count} runs at a time", at_once),
        }
        st.caption(
            _("{cells} × {seeds} · {pace} · speed measured in earlier runs here", **words)
            if found.measured
            else _("{cells} × {seeds} · {pace} · speed assumed until a run has been measured", **words)
        )
        if found.known:
            st.caption(
                ngettext(
                    "{count} run exists already and is not repeated.",
                    "{count} runs exist already and are not repeated.",
                    found.known,
                )
            )
        for title, reason in found.refused:
            st.warning(escaped(_("{cell} is left out: {reason}", cell=title, reason=reason)))
        comparisons = sum(design.baseline_of(cell) is not None for cell in design.cells)
        if comparisons and len(design.seeds) < (needed := fewest_seeds(LEVEL / comparisons)):
            st.info(
                _(
                    "With {seeds} and {comparisons}, no difference can be significant at the 5% level, however "
                    "large. Significance needs at least {needed} seeds; you can add seeds later.",
                    seeds=ngettext("{count} seed", "{count} seeds", len(design.seeds)),
                    comparisons=ngettext("{count} comparison", "{count} comparisons", comparisons),
                    needed=needed,
                )
            )
    start = st.button(
        _("Start the experiment"),
        type="primary",
        icon=":material/science:",
        width="stretch",
        disabled=found is None,
    )
    if design is not None and found is not None and len(design.seeds) > 1:
        time = duration(found.seconds / (1 if design.base.on_shared_trunk else len(slots())) / len(design.seeds))
        if st.button(
            _("Start with one seed, about {time}", time=time),
            help=_("A first look at every cell. You can add the other seeds later."),
            icon=":material/timer:",
            width="stretch",
            key="experiment.one_seed",
        ):
            start, design = True, design.model_copy(update={"seeds": design.seeds[:1]})
    if start:
        assert design is not None
        with show_errors(words=problem_text):
            Experiments.EXPERIMENT.put(reads.open_experiments(engine).begin(design, visitor().id))
            leave()


def draw_published(protocol: Protocol) -> None:
    """Draw each published table of a protocol with its setting and source, and how the protocol differs from them."""
    if protocol.published:
        st.subheader(_("Reported figures"))
    for number, table in enumerate(protocol.published):
        rows = pd.DataFrame(
            [[_(cell) for cell in row] for row in table.rows], columns=[_(name) for name in table.header]
        )
        st.dataframe(rows, hide_index=True, height="content", key=f"published.{protocol.name}.{number}")
        st.caption(escaped(_("{setting}. Source: {source}.", setting=_(table.setting), source=_(table.source))))
    st.caption(escaped(_(protocol.differs)))


def seeds_or_grid(engine: Engine, draft: RunConfig) -> None:
    """Offer to run the draft under several seeds, or to set up a grid around it."""
    with st.popover(_("Run as an experiment"), icon=":material/grid_on:", width="stretch"):
        begin_fields()
        seeds = int(number_field(st, SEEDS, USUAL_SEEDS, key="form.seeds"))
        st.caption(_("Repeat these settings with several seeds, which gives a mean ± standard deviation."))
        wrong = field_problem() is not None
        label = ngettext("Run with {count} seed", "Run with {count} seeds", seeds)
        if st.button(label, icon=":material/science:", key="form.run_seeds", disabled=wrong):
            base = draft.model_copy(update={"task": reads.library().with_current_name(draft.task)})
            given = {"name": base.name or grid_name(base, ()), "base": base.model_dump(mode="json")}
            with show_errors(words=problem_text):
                design = build(Design, given | {"seeds": list(range(base.seed, base.seed + seeds))})
                experiment_id = reads.open_experiments(engine).begin(design, visitor().id)
                forget_start()
                st.switch_page("pages/experiments.py", query_params={"experiment": experiment_id})
        query: dict[str, Any] = dict(parse_qsl(FineTune.GRID.text or "")) | {"new": GRID}
        if draft.task.id != FILE_TASK:  # an address cannot name a file; the grid starts from the form's draft
            query |= {"task": draft.task.id, "set": settings_text(without_defaults(draft))}
        page_link("experiments", _("Set up a grid"), "grid_on", query)
