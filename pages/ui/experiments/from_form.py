"""From the form of one run to an experiment with its settings."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

import streamlit as st

from core.config import FILE_TASK, RunConfig
from core.config.describe import problem_text
from core.config.edit import settings_text
from core.config.fields import build
from core.errors import PlaygroundError
from core.experiments.design import Design, grid_name
from core.messages import _, ngettext
from core.workers import Engine
from pages.ui import reads
from pages.ui.address import FineTune
from pages.ui.experiments.base_form import SEEDS, USUAL_SEEDS
from pages.ui.experiments.reads import open_experiments
from pages.ui.experiments.set_up import GRID
from pages.ui.form_start import forget_start, without_defaults
from pages.ui.number_field import begin_fields, field_problem, number_field
from pages.ui.parts import escaped
from pages.ui.visitor import visitor


def seeds_or_grid(engine: Engine, draft: RunConfig) -> None:
    """Offer the same run under several seeds, and a grid around it."""
    with st.popover(_("More seeds, or a grid"), icon=":material/grid_on:", width="stretch"):
        begin_fields()
        seeds = int(number_field(st, SEEDS, USUAL_SEEDS, key="form.seeds"))
        st.caption(_("The same settings, one run for each seed: mean ± standard deviation instead of an anecdote."))
        wrong = field_problem() is not None
        label = ngettext("Run with {count} seed", "Run with {count} seeds", seeds)
        if st.button(label, icon=":material/science:", key="form.run_seeds", disabled=wrong):
            _begin(engine, draft, seeds)
        query: dict[str, Any] = dict(parse_qsl(FineTune.GRID.text or "")) | {"new": GRID}
        if draft.task.id != FILE_TASK:  # an address names no file; the grid begins with the form's draft
            query |= {"task": draft.task.id, "set": settings_text(without_defaults(draft))}
        st.page_link("pages/experiments.py", label=_("Set up a grid"), icon=":material/grid_on:", query_params=query)


def _begin(engine: Engine, draft: RunConfig, seeds: int) -> None:
    draft = draft.model_copy(update={"task": reads.library().named(draft.task)})
    name = draft.name or grid_name(draft, ())
    try:
        given = {"name": name, "base": draft.model_dump(mode="json")}
        design = build(Design, given | {"seeds": list(range(draft.seed, draft.seed + seeds))})
        experiment_id = open_experiments(engine).begin(design, visitor().id)
    except PlaygroundError as error:
        st.error(escaped(problem_text(error)))
        return
    forget_start()
    st.switch_page("pages/experiments.py", query_params={"experiment": experiment_id})
