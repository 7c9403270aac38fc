"""The view of one run: the map on the left, one of several panels on the right, measures below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from core.errors import PlaygroundError
from core.messages import N_, _, ngettext
from core.representation.examples import ExampleScores
from core.representation.projections import MapSpec, Points
from core.store import RunRecord, Store
from pages.ui import state
from pages.ui.address import Explore
from pages.ui.bound import bound_segments
from pages.ui.explore import frame_map, run_reads
from pages.ui.explore.classes import classes
from pages.ui.explore.forces import Acting, ForceChoice, acting, arrows_of, choose_forces, forces
from pages.ui.explore.frame_map import Choices, choose
from pages.ui.explore.measures import measures, movement
from pages.ui.explore.neighbours import Near, NearOne, choose_near, find_near, neighbours
from pages.ui.explore.run_reads import Frames, frames_of
from pages.ui.explore.sentence import Own, ask_sentence, own_point, sentence, warm_up
from pages.ui.explore.texts import camera_from_text, downloads, ids_as_text, ids_from_text, texts
from pages.ui.map_view import MapState, map_now, map_state
from pages.ui.parts import escaped
from pages.ui.waiting import POLLING, ensure_job, poll_while

POLL_S = 1.0
SIDES = {
    "texts": N_("Texts"),
    "neighbours": N_("Neighbours"),
    "classes": N_("Classes"),
    # Translators: examples that have moved
    "moved": N_("Moved"),
    "forces": N_("Forces"),
    "sentence": N_("Sentence"),
}
# More of them would cover the points.
MOST_CENTROIDS = 12


@dataclass(frozen=True, slots=True)
class Focus:
    """What is focus at: a frame, the selected rows of the probe, and the one that was chosen last."""

    number: int
    rows: tuple[int, ...]
    anchor: int | None


@dataclass(frozen=True, slots=True)
class SidePanel:
    """What was chosen in the panel beside the map, and whether the model still reads a sentence for it."""

    side: str
    near: Near | None
    forces: Acting | None
    own: Own | None
    reading: bool


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
    state.repeat_complaints(but=Explore.RUN.name)
    choices = choose(run, steps_with_weights)
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
        busy = ensure_job("inspect", request, N_("Reading the layers"))
        return frames_of(store, run, None), busy


def _draw(frames: Frames, choices: Choices) -> bool:
    if whose := run_reads.predictions_of(frames):
        st.caption(whose)
    left, right = st.columns([11, 9], gap="medium")
    above, below = left.container(), left.container()
    with below:  # what comes and goes moves neither the map nor the panel beside it
        spec, maps, busy = frame_map.maps_for(frames, choices.spec)
    with above:  # where the address asks for nonsense, it says so
        on_map = _on_map(frames)
    focus = _focus(frames, on_map)
    with right:
        beside = _choose_panel(frames, focus)
    found = frame_map.found(frames, choices)
    near = None if beside.near is None else find_near(frames, focus.number, focus.anchor, beside.near)
    try:
        with right:  # before the map, which takes longer: a click on it is answered here
            _draw_panel(beside, frames, spec, focus, near)
        with above:
            _offer_found(frames, found)
            panel = frame_map.panel_of(frames, spec, maps, choices.colour, **_extras(frames, maps, spec, beside))
            frame_map.draw(frames, panel, choices, on_map, spec, _lit(frames, found, near))
            frame_map.honesty_line(frames, spec, focus.number)
            st.caption(frame_map.method_line(frames, spec, choices.spec, choices))
        with below:
            downloads(frames, spec, maps, focus.number)
        return measures(frames, focus.number) or busy or beside.reading
    finally:  # last, since a browser that writes its address lets the answer to a click wait
        _follow(frames, on_map, focus)


def _choose_panel(frames: Frames, focus: Focus) -> SidePanel:
    """Draw the controls of the panel beside the map and read them: the map shows what they ask for."""
    side = bound_segments(_("Beside the map"), Explore.PANEL, SIDES)
    if side == "sentence":
        warm_up()
    own, reading = ask_sentence(frames) if side == "sentence" else (None, False)
    return SidePanel(
        side,
        near=choose_near(frames) if side == "neighbours" else None,
        forces=_acting(frames, focus, choose_forces(frames, focus.number)) if side == "forces" else None,
        own=own,
        reading=reading,
    )


def _extras(frames: Frames, maps: Mapping[int, Points], spec: MapSpec, panel: SidePanel) -> dict[str, Any]:
    """What the panel beside the map adds to it."""
    acts = panel.forces
    return {
        "arrows": () if acts is None else arrows_of(frames, acts),
        "own": [own_point(panel.own, frames, maps, spec)] if panel.own is not None else (),
        "centroids": panel.side == "classes" and len(frames.probe.classes) <= MOST_CENTROIDS,
        "anchor": None if acts is None else frames.probe.ids[acts.anchor],
    }


def _lit(frames: Frames, found: list[int] | None, near: NearOne | None) -> list[int] | None:
    """Ids of the examples that stand out: those that were searched for, else the nearest of one."""
    if found is not None or near is None:
        return found
    return [frames.probe.ids[row] for row in near.rows]


def _offer_found(frames: Frames, ids: list[int] | None) -> None:
    """What the search has found, and a way to select it without a pointer."""
    if ids is None:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        texts = ngettext("{count} text", "{count} texts", len(frames.probe.ids))
        st.caption(_("Found in {found} of {texts}.", found=f"{len(ids):,}", texts=texts), width="content")
        if ids and st.button(_("Select them"), key="explore.found", type="tertiary", icon=":material/select_all:"):
            state.remember("explore.select", tuple(ids))
            st.rerun()


def _on_map(frames: Frames) -> MapState:
    """What the map reports, or the address asks for."""
    ids, key = frames.probe.ids, frame_map.map_key(frames)
    # Without a frame in the address, the newest is followed.
    frame = None if Explore.FRAME.text is None else Explore.FRAME.choice(frames.numbers, frames.numbers[-1])
    known = map_now(key) or MapState(
        Explore.SELECTED.read(lambda text: ids_from_text(text, ids) or None, ()),
        frame,
        {str(i): i for i in ids}.get(Explore.ANCHOR.text or ""),
        Explore.CAMERA.read(camera_from_text, ""),
    )
    asked = state.remembered("explore.select", lambda: None)
    state.forget("explore.select")
    on_map = map_state(
        key=key,
        newest=frames.numbers[-1],
        frame=known.frame,
        selected=known.selected if asked is None else asked,
        view=known.view,
    )
    if on_map.clicked is None:
        on_map = replace(on_map, clicked=known.clicked)
    return on_map


def _focus(frames: Frames, on_map: MapState) -> Focus:
    place = {number: row for row, number in enumerate(frames.probe.ids)}
    rows = tuple(place[i] for i in on_map.selected if i in place)
    number = on_map.frame if on_map.frame in frames.numbers else frames.numbers[-1]
    clicked = place.get(on_map.clicked) if on_map.clicked is not None else None
    anchor = clicked if clicked in rows else rows[0] if rows else None
    return Focus(number, rows, anchor)


def _follow(frames: Frames, on_map: MapState, focus: Focus) -> None:
    """Have the address say what is focus at."""
    last, first = frames.numbers[-1], min(focus.rows, default=None)
    Explore.FRAME.put(on_map.frame if on_map.frame in frames.numbers else None, last)
    Explore.SELECTED.put(ids_as_text(on_map.selected))
    Explore.CAMERA.put(on_map.view)
    Explore.ANCHOR.put(None if focus.anchor in (None, first) else frames.probe.ids[focus.anchor])


def _acting(frames: Frames, focus: Focus, chosen: ForceChoice) -> Acting:
    with st.spinner(_("Computing forces"), show_time=False):  # torch is imported for the first of them
        return acting(frames, focus.number, focus.anchor, chosen)


def _draw_panel(panel: SidePanel, frames: Frames, spec: MapSpec, focus: Focus, near: NearOne | None) -> None:
    scores: ExampleScores = run_reads.scores(frames, focus.number)
    chosen = None
    match panel.side:
        case "neighbours":
            neighbours(frames, scores, near, len(focus.rows))
        case "classes":
            chosen = classes(frames, focus.number, scores)
        case "moved":
            chosen = movement(frames, focus.number, scores)
        case "forces" if panel.forces is not None:
            forces(frames, panel.forces)
        case "sentence":
            if panel.own is not None:
                sentence(panel.own, frames, focus.number)
        case _:
            chosen = texts(frames, focus.number, scores, focus.rows, run_reads.honesty(frames, spec, focus.number))
    if chosen is not None:
        state.remember("explore.select", tuple(frames.probe.ids[row] for row in chosen))
        st.rerun()
