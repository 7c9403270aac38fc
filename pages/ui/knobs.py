"""Knobs of a live run: a slider for each, and a note on turns that no step has used yet."""

from __future__ import annotations

import math
from typing import NamedTuple

import streamlit as st

from core.config import RATE
from core.config.objective import Knob
from core.config.plan import SettingsAt, objective_at
from core.errors import PlaygroundError
from core.messages import N_, _, sentences
from core.store import RunRecord
from core.store.records import KnobState
from core.workers import Engine
from pages.ui import state
from pages.ui.controls import leave_notice
from pages.ui.parameter_widget import Scale, slider_scale
from pages.ui.parts import card
from pages.ui.visitor import require_own, visitor

RATE_KNOB = Knob(
    N_("Learning rate ×"), 1.0, (0.0, 5.0), N_("Multiplies the learning rate of the schedule. At 0 nothing is learned.")
)
# Glossary cards of knobs.
CARDS = {"temperature": "temperature", "lambda": "weight"}
WHEN = N_("Takes effect at the next step; the curves mark it.")


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
        scale.low,
        scale.high,
        drawn.start,
        step=scale.step,
        format=scale.format,
        help=card(CARDS[name], about) if name in CARDS else about,
        on_change=turned,
        disabled=over or not visitor().may_change(run.owner),
        key=drawn.key(key),
    )


def _same(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=0.0, abs_tol=1e-9)
