"""The view of one run: the map on the left, one of several panels on the right, measures below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import streamlit as st

from core.errors import PlaygroundError
from core.figures.map_data import Arrow
from core.representation.examples import ExampleScores
from core.representation.projections import MapSpec
from core.store import RunRecord, Store
from pages.ui import state
from pages.ui.bound import bound_segments
from pages.ui.explore import run_reads, the_map
from pages.ui.explore.address import camera_from_text, ids_as_text, ids_from_text
from pages.ui.explore.choices import Choices, choose
from pages.ui.explore.classes import classes
from pages.ui.explore.downloads import downloads
from pages.ui.explore.forces import ForceChoice, arrows_of, choose_forces, forces
from pages.ui.explore.measures import measures
from pages.ui.explore.movement import movement
from pages.ui.explore.neighbours import neighbours
from pages.ui.explore.run_reads import Frames, frames_of
from pages.ui.explore.sentence import Own, ask_sentence, own_point, sentence, warm_up
from pages.ui.explore.texts import texts
from pages.ui.map_view import MapState, map_state, map_told
from pages.ui.parts import escaped
from pages.ui.waiting import POLLING, poll_while, see_done

POLL_S = 1.0
SIDES = {
    "texts": "Texts",
    "neighbours": "Neighbours",
    "classes": "Classes",
    "moved": "Moved",
    "forces": "Forces",
    "sentence": "Sentence",
}
SIDE, SELECTED, VIEW, ANCHOR = "panel", "sel", "view", "at"


@dataclass(frozen=True, slots=True)
class Looked:
    """What is looked at: a frame, the selected rows of the probe, and the one that was chosen last."""

    number: int
    rows: tuple[int, ...]
    anchor: int | None


def view(store: Store, run: RunRecord, steps_with_weights: Sequence[int]) -> None:
    """Draw it; it looks again by itself while something is being computed, or while the run goes on."""
    polling = state.remembered(POLLING, lambda: run.status.active)
    st.fragment(_view, run_every=POLL_S if polling else None)(store, run.id, steps_with_weights)


def _view(store: Store, run_id: str, steps_with_weights: Sequence[int]) -> None:
    try:
        run = store.run(run_id)
        steps, problem = run_reads.readable(store, run)
    except PlaygroundError as error:  # it was deleted meanwhile
        st.warning(escaped(str(error)))
        return
    if problem:
        st.warning(escaped(problem))
    if not steps:
        return
    state.repeat_complaints(but=state.RUN)
    choices = choose(steps_with_weights)
    frames, busy = _frames(store, run, choices.layers_at)
    try:
        busy = _draw(frames, choices) or busy
    except PlaygroundError as error:
        st.warning(escaped(str(error)))
    poll_while(busy or run.status.active)


def _frames(store: Store, run: RunRecord, layers_at: int | None) -> tuple[Frames, bool]:
    """The frames that were asked for; those of the run while its layers are being read."""
    if layers_at is None:
        return frames_of(store, run, None), False
    try:
        return frames_of(store, run, layers_at), False
    except PlaygroundError:
        request = {"run": run.id, "what": "layers", "step": layers_at}
        busy = see_done("inspect", request, "Reading the layers")
        return frames_of(store, run, None), busy


def _draw(frames: Frames, choices: Choices) -> bool:
    left, right = st.columns([11, 9], gap="medium")
    above, below = left.container(), left.container()
    with below:  # what comes and goes moves neither the map nor what stands beside it
        spec, maps, busy = the_map.maps_for(frames, choices.spec)
    with right:
        side = _side()
        chosen_forces = choose_forces(frames) if side == "forces" else None
        own, reading = ask_sentence(frames) if side == "sentence" else (None, False)
    with above:  # where the address asks for nonsense, it says so
        told = _told(frames)
    looked = _looked(frames, told)
    with above:
        panel = the_map.panel_of(
            frames,
            spec,
            maps,
            choices,
            arrows=_arrows(frames, looked, chosen_forces),
            own=[own_point(own, frames, maps, spec)] if own is not None else (),
            centroids=side == "classes",
            anchor=frames.probe.ids[looked.anchor] if side == "forces" and looked.anchor is not None else None,
        )
        _found(frames, choices)
        the_map.draw(frames, panel, choices, told, spec)
        the_map.honesty_line(frames, spec, looked.number)
        st.caption(the_map.method_line(frames, spec, choices.spec, choices))
    with below:
        downloads(frames, spec, maps, looked.number)
    with right:
        _beside(side, frames, spec, looked, chosen_forces, own)
    return measures(frames, looked.number) or busy or reading


def _found(frames: Frames, choices: Choices) -> None:
    """What the search has found, and a way to select it without a pointer."""
    ids = the_map.found(frames, choices)
    if ids is None:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"{len(ids):,} of {len(frames.probe.ids):,} texts hold these words.", width="content")
        if ids and st.button("Select them", key="explore.found", type="tertiary", icon=":material/select_all:"):
            state.remember("explore.select", tuple(ids))
            st.rerun()


def _side() -> str:
    side = bound_segments("Beside the map", SIDE, SIDES, "texts", "there is no such panel")
    if side == "sentence":
        warm_up()
    return side


def _told(frames: Frames) -> MapState:
    """What the map reports, or the address asks for; the address follows."""
    ids, key = frames.probe.ids, the_map.map_key(frames)
    pinned = state.text_in_url(state.FRAME) is not None  # else the newest is followed
    frame = state.frame_in_url(frames.numbers, default=frames.numbers[-1]) if pinned else None
    known = map_told(key) or MapState(
        state.read_in_url(SELECTED, lambda text: ids_from_text(text, ids) or None, (), "the run has no such examples"),
        frame,
        {str(i): i for i in ids}.get(state.text_in_url(ANCHOR) or ""),
        state.read_in_url(VIEW, camera_from_text, "", "no map can be zoomed to that"),
    )
    asked = state.remembered("explore.select", lambda: None)
    state.forget("explore.select")
    told = map_state(
        key=key,
        newest=frames.numbers[-1],
        frame=known.frame,
        selected=known.selected if asked is None else asked,
        view=known.view,
    )
    if told.clicked is None:
        told = replace(told, clicked=known.clicked)
    last = frames.numbers[-1]
    state.put_in_url(
        frame=told.frame if told.frame in frames.numbers and told.frame != last else None,
        sel=ids_as_text(told.selected) or None,
        view=told.view or None,
    )
    return told


def _looked(frames: Frames, told: MapState) -> Looked:
    place = {number: row for row, number in enumerate(frames.probe.ids)}
    rows = tuple(place[i] for i in told.selected if i in place)
    number = told.frame if told.frame in frames.numbers else frames.numbers[-1]
    clicked = place.get(told.clicked) if told.clicked is not None else None
    anchor = clicked if clicked in rows else rows[0] if rows else None
    first = min(rows, default=None)
    state.put_in_url(**{ANCHOR: frames.probe.ids[anchor] if anchor is not None and anchor != first else None})
    return Looked(number, rows, anchor)


def _arrows(frames: Frames, looked: Looked, chosen: ForceChoice | None) -> tuple[Arrow, ...]:
    if chosen is None or looked.anchor is None:
        return ()
    with st.spinner("Computing forces", show_time=False):  # torch is imported for the first of them
        return arrows_of(frames, looked.number, looked.anchor, chosen)


def _beside(
    side: str,
    frames: Frames,
    spec: MapSpec,
    looked: Looked,
    chosen_forces: ForceChoice | None,
    own: Own | None,
) -> None:
    scores: ExampleScores = run_reads.scores(frames, looked.number)
    chosen = None
    match side:
        case "neighbours":
            neighbours(frames, looked.number, scores, looked.anchor)
        case "classes":
            chosen = classes(frames, looked.number, scores)
        case "moved":
            chosen = movement(frames, looked.number, scores)
        case "forces" if chosen_forces is not None:
            forces(frames, looked.number, looked.anchor, chosen_forces)
        case "sentence":
            if own is not None:
                sentence(own, frames, looked.number)
        case _:
            texts(frames, looked.number, scores, looked.rows, run_reads.honesty(frames, spec, looked.number))
    if chosen is not None:
        state.remember("explore.select", tuple(frames.probe.ids[row] for row in chosen))
        st.rerun()
