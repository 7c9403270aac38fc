"""Knobs of a run: sliders that turn them while it trains, and a branch that continues with other values."""

from __future__ import annotations

import math
from typing import NamedTuple

import streamlit as st

from core.config import RATE, TaskConfig
from core.config.edit import branch
from core.config.fields import fields_of
from core.config.objective import Knob, ObjectiveConfig
from core.config.plan import SettingsAt, objective_at
from core.config.presets import PRESETS, SHOWING
from core.errors import PlaygroundError
from core.messages import N_, _, sentences
from core.store import RunRecord
from core.store.records import KnobState
from core.tasks.batches import CLASSES_AT_ONCE
from core.workers import Engine
from pages.ui import state
from pages.ui.controls import leave_notice
from pages.ui.parameter_widget import Scale, number_slider, slider_scale
from pages.ui.parts import card, show_errors
from pages.ui.visitor import require_own, visitor

RATE_KNOB = Knob(
    N_("Learning rate ×"), 1.0, (0.0, 5.0), N_("Multiplies the learning rate of the schedule. At 0 nothing is learned.")
)
# Glossary cards of knobs.
CARDS = {"temperature": "temperature", "lambda": "weight"}
WHEN = N_("Takes effect at the next step; the curves mark it.")
KEEP = ""


class Drawn(NamedTuple):
    """Current widget of a knob in this browser: number of earlier widgets, start value, and value shown last."""

    revision: int
    start: float
    shown: float

    def key(self, knob: str) -> str:
        return f"{knob}.{self.revision}"


def draw_knobs(engine: Engine, run: RunRecord, now: KnobState) -> None:
    """Draw a slider for each knob of the phase that the next step belongs to."""
    used, launched = _used_and_launched(now)
    for name, knob in launched.items():
        in_use = used.rate_factor if name == RATE else used.objective.value_of(name)
        # One scale for every value that the knob has had: a slider with other bounds or steps is another widget.
        turns = [turn for turn in now.config.knob_turns if now.config.phase_at(turn.step) == used.phase]
        had = [knob.value, *(turn.value for turn in turns if turn.name == name)]
        scale = slider_scale(knob.slider, had + ([now.pending[name]] if name in now.pending else []))
        value, over = now.pending.get(name, in_use), now.step > now.config.steps or now.config.repeats(now.step)
        _slider(engine, run, name, f"knob.{run.id}.{used.phase}.{name}", knob, value, scale, over=over)


def pending_words(now: KnobState) -> list[str]:
    """Describe the turns that no step has used yet, because the next step of a paused run may be far off.

    The text is not in the slider's label, where a second line would push down everything below it.
    """
    if now.step > now.config.steps:
        return []
    launched = _used_and_launched(now)[1]
    return [
        # Translators: such as "τ 0.3 from the next step".
        _("{knob} {value} from the next step", knob=_(launched[name].label), value=f"{value:g}")
        for name, value in now.pending.items()
        if name in launched
    ]


def _used_and_launched(now: KnobState) -> tuple[SettingsAt, dict[str, Knob]]:
    used = objective_at(now.config, now.step)
    launched = now.config.phases[used.phase].objective
    shown = launched if launched.keys == used.objective.keys else used.objective
    return used, {**shown.knobs, RATE: RATE_KNOB}


def _slider(
    engine: Engine, run: RunRecord, name: str, key: str, knob: Knob, value: float, scale: Scale, *, over: bool
) -> None:
    """Draw a slider at the current value. Args: over: whether no steps are left that could use another value.

    The widget, with the keyboard focus, stays while its own turns change the value. If the value changes for another
    reason, such as a turn from another browser or a refused turn, a new widget replaces it. Otherwise a browser that
    has not yet drawn the server's value could send the previous one, which would count as a turn back.
    """
    drawn = state.session_value(key, lambda: Drawn(0, value, value))
    held = state.widget_value(drawn.key(key))
    if held is None or not (_same(value, drawn.shown) or _same(value, held)):
        drawn = Drawn(drawn.revision + 1, value, value)
    state.remember(key, drawn._replace(shown=value))

    def turned() -> None:
        if state.session_value(key, lambda: drawn).revision != drawn.revision:
            return  # the browser still sends the value of a replaced widget
        try:
            require_own(run.owner)
            engine.turn(run.id, name, round(float(state.widget_value(drawn.key(key))), scale.digits))
        except PlaygroundError as error:
            leave_notice(str(error))
            state.remember(key, drawn._replace(shown=math.nan))

    about = sentences([_(knob.help), _(WHEN)])
    st.slider(
        _(knob.label),
        value=drawn.start,
        help=card(CARDS[name], about) if name in CARDS else about,
        on_change=turned,
        disabled=over or not visitor().may_change(run.owner),
        key=drawn.key(key),
        **scale.look,
    )


def _same(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=0.0, abs_tol=1e-9)


def branch_form(engine: Engine, run: RunRecord, step: int) -> None:
    """Draw the form, unless the run cannot be branched. When the user starts the branch, open Compare.

    Args:
        step: the frame that is shown.
    """
    steps = [one for one in engine.store.frame_steps(run.id) if one < run.steps]
    if not steps or run.adopted or run.config.on_shared_trunk:
        return
    key = f"branch.{run.id}"
    about = _("Continue from this frame with other settings, and compare both futures.")
    with st.popover(_("Branch this run"), icon=":material/call_split:", key=key, help=about):
        st.caption(about)
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
