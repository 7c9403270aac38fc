"""What an experiment will take, and the button that starts it."""

from __future__ import annotations

import streamlit as st

from core.config.describe import problem_text
from core.errors import PlaygroundError
from core.experiments.design import Design
from core.messages import _, ngettext
from core.representation.paired import LEVEL, fewest_seeds
from core.store.sizes import size_text
from core.workers import Engine
from core.workers.machine import slots
from pages.ui.address import Experiments
from pages.ui.experiments.reads import cost_of, open_experiments
from pages.ui.parts import duration, escaped
from pages.ui.visitor import visitor


def launch_card(engine: Engine, design: Design | None, problem: str) -> bool:
    """Draw it. Args: problem: why there is no design. Returns: whether an experiment was started just now."""
    found = None
    if design is not None:
        try:
            found = cost_of(engine, design)
        except PlaygroundError as error:
            problem = problem_text(error)
    if design is None or found is None:
        st.error(escaped(problem))
    else:
        at_once = len(slots())
        first, second, third = st.columns(3)
        first.metric(_("New runs"), f"{found.runs - found.known:,}")
        second.metric(_("Time, about"), duration(found.seconds / at_once))
        third.metric(_("On disk, about"), size_text(found.disk_bytes))
        words = {
            "cells": ngettext("{count} cell", "{count} cells", len(design.cells)),
            "seeds": ngettext("{count} seed", "{count} seeds", len(design.seeds)),
            "pace": ngettext("one run at a time", "{count} runs at a time", at_once),
        }
        st.caption(
            _("{cells} × {seeds} · {pace} · speed measured in earlier runs here.", **words)
            if found.measured
            else _("{cells} × {seeds} · {pace} · speed assumed until a run has been measured.", **words)
        )
        if found.known:
            st.caption(
                ngettext(
                    "{count} run is there already and will not be repeated.",
                    "{count} runs are there already and will not be repeated.",
                    found.known,
                )
            )
        for title, reason in found.refused:
            st.warning(escaped(_("{cell} is left out: {reason}", cell=title, reason=reason)))
        _seeds_note(design)
    if st.button(
        _("Start the experiment"),
        type="primary",
        icon=":material/science:",
        width="stretch",
        disabled=found is None,
    ):
        assert design is not None
        try:
            experiment_id = open_experiments(engine).begin(design, visitor().id)
        except PlaygroundError as error:
            st.error(escaped(problem_text(error)))
            return False
        Experiments.EXPERIMENT.put(experiment_id)
        return True
    return False


def _seeds_note(design: Design) -> None:
    """Whether so few seeds can show anything at all."""
    comparisons = sum(design.baseline_of(cell) is not None for cell in design.cells)
    if comparisons and len(design.seeds) < fewest_seeds(LEVEL / comparisons):
        st.info(
            _(
                "With {seeds} and {comparisons}, no difference can be shown at the 5% level, however large: it takes "
                "{needed} seeds. Seeds can be added later.",
                seeds=ngettext("{count} seed", "{count} seeds", len(design.seeds)),
                comparisons=ngettext("{count} comparison", "{count} comparisons", comparisons),
                needed=fewest_seeds(LEVEL / comparisons),
            )
        )
