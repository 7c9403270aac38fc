"""The comparison itself: one of four views, drawn again by itself while a run or a job goes on."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.errors import PlaygroundError
from core.messages import N_, _, called, listed, ngettext
from core.store import Status
from core.workers import Engine
from pages.ui import state
from pages.ui.address import Compare
from pages.ui.bound import bound
from pages.ui.compare.curves import curves
from pages.ui.compare.maps import about, choose_map, height_of, maps_of, panels_of
from pages.ui.compare.pair import ASKED, pair
from pages.ui.compare.picking import Compared, Linked, Shown, compared, linked, with_frames
from pages.ui.compare.scores import overview
from pages.ui.compare.selected import selection
from pages.ui.compare.twin_form import twin_form
from pages.ui.explore.run_reads import predictions_of
from pages.ui.explore.selection_text import ids_as_text, ids_from_text
from pages.ui.map_view import MapState, Panel, map_now, map_view
from pages.ui.parts import escaped, status_badge
from pages.ui.waiting import POLLING, poll_while

POLL_S = 1.0
VIEWS = {
    "scores": N_("Settings and scores"),
    "curves": N_("Curves"),
    "maps": N_("Maps and examples"),
    "twin": N_("Make a twin"),
}


def view(engine: Engine, ids: Sequence[str]) -> None:
    """Draw the comparison of these runs; of one alone, how to get another."""
    polling = state.remembered(POLLING, lambda: False)
    st.fragment(_view, run_every=POLL_S if polling else None)(engine, tuple(ids))


def _view(engine: Engine, ids: tuple[str, ...]) -> None:
    try:
        runs = compared(engine.store, ids)
    except PlaygroundError as error:
        st.warning(escaped(str(error)))
        return
    busy = _going_on(engine, runs)
    try:
        busy = (_alone(engine, runs) if len(runs) == 1 else _draw(engine, runs)) or busy
    except PlaygroundError as error:
        st.warning(escaped(str(error)))
    poll_while(busy)


def _alone(engine: Engine, runs: Sequence[Compared]) -> bool:
    st.info(
        _(
            "A comparison takes two runs: add another, or make a twin of this one, the same run with one setting "
            "changed."
        )
    )
    twin_form(engine, runs, [one.run.id for one in runs])
    return False


def _draw(engine: Engine, runs: Sequence[Compared]) -> bool:
    """Returns whether something is still being computed."""
    shown, tied = bound(Compare.SHOW, VIEWS)
    st.segmented_control(
        # Translators: a noun.
        _("View"),
        list(VIEWS),
        format_func=lambda name: _(VIEWS[name]),
        required=True,
        label_visibility="collapsed",
        **tied.by_default,
    )
    match shown:
        case "curves":
            curves(engine.store, runs)
        case "maps":
            return _maps(runs)
        case "twin":
            twin_form(engine, runs, [one.run.id for one in runs])
        case _:
            return overview(engine.store, runs)
    return False


def _going_on(engine: Engine, runs: Sequence[Compared]) -> bool:
    """A line for every run that has not ended; returns whether there is one."""
    going = [one for one in runs if not one.run.status.ended]
    if any(one.run.status == Status.QUEUED for one in going):
        engine.dispatch()
    for one in going:
        with st.container(horizontal=True, vertical_alignment="center"):
            status_badge(one.run)
            st.page_link(
                "pages/fine_tune.py", label=escaped(one.name), query_params={"run": one.run.id}, width="content"
            )
            step, steps = f"{one.run.last_step:,}", f"{one.run.steps:,}"
            st.caption(_("step {step} of {steps}", step=step, steps=steps), width="content")
    return bool(going)


def _maps(runs: Sequence[Compared]) -> bool:
    waiting = [escaped(one.name) for one in runs if one.frames is None]
    if waiting:
        runs_waiting = listed(waiting)
        st.caption(_("No frames yet: {runs}. The first comes right after a run's first step.", runs=runs_waiting))
    if len(waiting) == len(runs):
        return False
    shown = with_frames(runs)
    wanted, colour = choose_map()
    spec, maps, busy = maps_of(shown, wanted)
    examples = linked(shown)
    panels, turns = panels_of(shown, examples, spec, maps, colour)
    on_map = _drawn(shown, panels, examples)
    st.caption(about(shown, spec, wanted, turns, colour))
    for one in shown:
        if whose := predictions_of(one.frames):
            st.caption(called(escaped(one.name), whose))
    selection(shown, examples, on_map.selected, on_map.frame)
    pair(shown, examples)
    return busy


def _drawn(runs: Sequence[Shown], panels: Sequence[Panel], examples: Linked) -> MapState:
    """Draw the maps at what the address asks for; the address follows what they report."""
    asked = state.remembered(ASKED, lambda: None)
    state.forget(ASKED)
    steps = sorted({step for panel in panels for step in panel.steps})
    key = f"compare.map.{'.'.join(one.frames.run.id for one in runs)}"
    known = map_now(key) or MapState(
        ids_from_text(Compare.SELECTED.text or "", examples.known()),
        _frame(steps),
        view=Compare.CAMERAS.text or "",
    )
    on_map = map_view(
        panels,
        key=key,
        height=height_of(len(panels)),
        description=_(
            "Maps of {runs} side by side, linked by their common examples.",
            runs=ngettext("{count} run", "{count} runs", len(panels)),
        ),
        frame=known.frame,
        selected=known.selected if asked is None else asked,
        view=known.view,
        name="compare",
    )
    last = steps[-1] if steps else None
    Compare.FRAME.put(on_map.frame, last)
    Compare.SELECTED.put(ids_as_text(on_map.selected))
    Compare.CAMERAS.put(on_map.view)
    return on_map


def _frame(steps: Sequence[int]) -> int | None:
    """The step that the address asks for, None for the newest."""
    return {str(step): step for step in steps}.get(Compare.FRAME.text or "")
