"""A branch of a run: the same steps up to a frame, then other settings."""

from __future__ import annotations

import streamlit as st

from core.config import RATE, TaskConfig
from core.config.branches import branch
from core.config.fields import fields_of
from core.config.objective import ObjectiveConfig
from core.config.plan import objective_at
from core.config.presets import PRESETS, SHOWING
from core.messages import _
from core.store import RunRecord
from core.tasks.batches import CLASSES_AT_ONCE
from core.workers import Engine
from pages.ui.knobs import RATE_KNOB
from pages.ui.parameter_widget import number_slider
from pages.ui.parts import show_errors
from pages.ui.visitor import visitor

KEEP = ""


def branch_form(engine: Engine, run: RunRecord, step: int) -> None:
    """Draw the form, unless the run cannot be branched. When the user starts the branch, open Compare.

    Args:
        step: the frame that is shown.
    """
    steps = [one for one in engine.store.frame_steps(run.id) if one < run.steps]
    if not steps or run.adopted or run.config.on_shared_trunk:
        return
    key = f"branch.{run.id}"
    with st.popover(_("Branch here"), icon=":material/call_split:", key=key):
        st.caption(_("Continue from this frame with other settings, and compare both futures."))
        wanted = step if step < run.steps else run.steps // 2
        near = max((one for one in steps if one <= wanted), default=steps[0])
        # Another frame on the map is another suggestion.
        columns = st.columns(2)
        at = columns[0].selectbox(
            _("After step"), steps, steps.index(near), format_func="{:,}".format, key=f"{key}.{near}"
        )
        used = objective_at(run.effective, at + 1)
        presets = [name for name, one in PRESETS.items() if len(one.objectives) == 1 and one.group != SHOWING]
        losses = columns[1].selectbox(
            _("Losses"),
            [KEEP, *presets],
            format_func=lambda name: _(PRESETS[name].label) if name else _("Unchanged"),
            key=f"{key}.losses",
        )
        objective = ObjectiveConfig.model_validate(PRESETS[losses].objectives[0]) if losses else used.objective
        knobs = {**objective.knobs, RATE: RATE_KNOB._replace(value=used.rate_factor)}
        turns = {
            name: number_slider(columns[place % 2], knob, knob.help, f"{key}.{at}.{losses}.{name}")
            for place, (name, knob) in enumerate(knobs.items())
        }
        field, sampler = fields_of(TaskConfig)["sampler"], run.effective.sampler_at(at + 1)
        samplers = [sampler, *(name for name in ("random", *CLASSES_AT_ONCE) if name != sampler)]
        drawn = columns[len(knobs) % 2].selectbox(
            _(field.label), samplers, format_func=lambda one: _((field.choices or {})[one]), key=f"{key}.{at}.sampler"
        )
        if st.button(_("Start the branch"), type="primary", icon=":material/rocket_launch:", key=f"{key}.start"):
            with show_errors():
                title = run.name or f"Run {run.number}"  # in English, as names are stored
                draft = branch(
                    run.effective, run.id, at, turns=turns, objective=losses or None, sampler=drawn, title=title
                )
                branch_id = engine.submit(draft, visitor().id)
                st.switch_page("pages/compare.py", query_params={"runs": f"{run.id},{branch_id}", "show": "curves"})
