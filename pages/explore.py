"""Explore: the map of one run, frame by frame, with its texts, neighbours and forces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from core.artifacts.maps import layer_steps
from core.artifacts.weights import weight_steps
from core.errors import PlaygroundError
from core.messages import N_, _, ngettext
from core.representation.projections import MapSpec
from core.store import Store
from core.tasks.survey import search
from pages.ui import reads, state
from pages.ui.address import Explore
from pages.ui.bound import bound_segments, forget, pick_run
from pages.ui.changed_texts import changed_texts
from pages.ui.explore import frame_map, run_reads
from pages.ui.explore.forces import BatchForces, arrows_of, choose_forces, forces
from pages.ui.explore.frame_map import Choices
from pages.ui.explore.measures import measures, movement, training_measures
from pages.ui.explore.panels import NearOne, choose_near, classes, neighbours
from pages.ui.explore.run_reads import Frames, frames_of
from pages.ui.explore.sentence import OwnText, ask_sentence, own_point, sentence
from pages.ui.explore.texts import camera_from_text, frame_button, ids_as_text, ids_from_text, texts
from pages.ui.knobs import branch_form
from pages.ui.map_view import MapState, map_now, map_state
from pages.ui.parts import escaped, first_steps, page_head, show_errors, tab_title
from pages.ui.waiting import draw_fragment, ensure_job, poll_while

SIDES = {
    "texts": N_("Texts"),
    "neighbours": N_("Neighbours"),
    "classes": N_("Classes"),
    # Translators: examples that have moved
    "moved": N_("Movement"),
    "forces": N_("Forces"),
    "sentence": N_("Sentence"),
}
# More centroids would cover the points.
MOST_CENTROIDS = 12


def page() -> None:
    store = reads.open_engine().store
    head = page_head(_("Explore"))
    state.repeat_complaints(only=Explore.RUN.name)
    named = Explore.RUN.run(store)
    runs = [run for run in store.runs() if run.probe_known]
    if not runs:
        st.info(_("There is nothing to explore yet. A run can be explored from its first frame."))
        first_steps()
        return
    with head:
        run = pick_run(store, runs, named, key="explore.run")
    if Explore.RUN.text is not None and (named is None or named.id != run.id):
        forget(Explore.of("run"))
    Explore.RUN.put(run.id)
    tab_title(run.title, _("Explore"))
    if run.probe is None or not store.frame_steps(run.id):
        st.info(_("This run has no frames yet. The first appears right after the first step."))
        return
    steps_with_layers: list[int] = []  # computed already, or computable from stored weights
    with show_errors(st.warning):
        steps_with_layers = sorted({*weight_steps(store, run), *layer_steps(store.run_folder(run.id))})
    draw_fragment(view, run.status.active, store, run.id, steps_with_layers)


def view(store: Store, run_id: str, steps_with_layers: Sequence[int]) -> None:
    """Draw the view. It is a fragment, which refreshes itself while something is computed or the run is active."""
    try:
        run = store.run(run_id)
        frames = frames_of(store, run)
    except PlaygroundError as error:  # the run was deleted meanwhile
        st.warning(escaped(str(error)))
        return
    if frames.problem:
        st.warning(escaped(frames.problem))
    if not frames.numbers:
        return
    state.repeat_complaints(but=Explore.RUN.name)
    choices = frame_map.choose(run, steps_with_layers)
    busy = False
    if choices.layers_at is not None:
        try:
            frames = frames_of(store, run, choices.layers_at)
        except PlaygroundError:  # the layers are not computed yet
            request = {"run": run.id, "what": "layers", "step": choices.layers_at}
            busy = ensure_job("inspect", request, N_("Reading the layers"))
    with show_errors(st.warning):
        busy = _draw(frames, choices) or busy
    poll_while(busy or run.status.active)


def _draw(frames: Frames, choices: Choices) -> bool:
    """Draw the page below its controls. Return whether something is still being computed."""
    if whose := run_reads.predictions_of(frames):
        st.caption(whose)
    left, right = st.columns([11, 9], gap="medium")
    above, below = left.container(), left.container()
    with below:  # transient messages here move neither the map nor the panel
        spec, maps, busy = frame_map.maps_for(frames, choices.spec)
        shown, encoding = frame_map.with_test_texts(frames) if choices.test else (frames, False)
    with above:  # warnings about the address belong above the map
        on_map = _on_map(frames)
    place = {number: row for row, number in enumerate(frames.probe.ids)}
    rows = tuple(place[i] for i in on_map.selected if i in place)
    clicked = place.get(on_map.clicked) if on_map.clicked is not None else None
    anchor = clicked if clicked in rows else rows[0] if rows else None
    number = on_map.frame if on_map.frame in frames.numbers else frames.numbers[-1]
    near, acts, own, reading = None, None, None, False
    with right:  # controls first: the map depends on them
        side = bound_segments(_("Panel beside the map"), Explore.PANEL, SIDES)
        if side == "sentence":
            own, reading = ask_sentence(frames)
        elif side == "neighbours":
            near = choose_near(frames, number, anchor)
        elif side == "forces":
            acts = choose_forces(frames, number, anchor)
    try:
        with right:  # before the map, which is slower, because the panel shows the response to a click
            _draw_panel(side, frames, spec, number, rows, near, acts, own)
        with above:
            found = _search(frames, choices.search)
            panel = replace(
                frame_map.panel_of(shown, spec, maps, choices.colour),
                arrows=() if acts is None else arrows_of(frames, acts),
                own=() if own is None else (own_point(own, frames, maps, spec),),
                centroids=side == "classes" and len(frames.probe.classes) <= MOST_CENTROIDS,
                anchor=None if acts is None else frames.probe.ids[acts.anchor],
            )
            # Search results stand out or, without a search, the anchor's neighbours.
            lit = [frames.probe.ids[row] for row in near.rows] if found is None and near is not None else found
            frame_map.draw(frames, panel, choices, on_map, spec, lit)
            st.caption(frame_map.honesty_line(frames, spec, number))
            st.caption(frame_map.method_line(frames, spec, choices))
        with below, st.container(horizontal=True):
            frame_button(frames, spec, maps.get(number), number)
            branch_form(reads.open_engine(), frames.run, frames.step_of(number))
        busy = measures(frames, number) or busy
        busy = training_measures(frames.store, {frames.run.title: frames.run}, Explore) or busy
        return changed_texts(frames.store, frames.run) or busy or reading or encoding
    finally:  # last, because the browser delays the response to a click while it writes the address
        Explore.FRAME.put(on_map.frame if on_map.frame in frames.numbers else None, frames.numbers[-1])
        Explore.SELECTED.put(ids_as_text(i for i in on_map.selected if i in place))
        Explore.CAMERA.put(on_map.view)
        Explore.ANCHOR.put(None if anchor in (None, min(rows, default=None)) else frames.probe.ids[anchor])


def _search(frames: Frames, words: str) -> list[int] | None:
    """Return the ids of the texts that contain the words, None without words.

    Draw their number, and a button that selects them from the keyboard.
    """
    if not words.strip():
        return None
    ids = [frames.probe.ids[row] for row in search(frames.probe.texts, words)]
    with st.container(horizontal=True, vertical_alignment="center"):
        texts = ngettext("{count} text", "{count} texts", len(frames.probe.ids))
        st.caption(_("Found in {found} of {texts}.", found=f"{len(ids):,}", texts=texts), width="content")
        if ids and st.button(_("Select them"), key="explore.found", type="tertiary", icon=":material/select_all:"):
            state.remember("explore.select", tuple(ids))
            st.rerun()
    return ids


def _on_map(frames: Frames) -> MapState:
    """Return the state that the map reports, otherwise the state in the address."""
    ids, key = frames.probe.ids, frame_map.map_key(frames)
    # Without a frame in the address, the map follows the newest.
    frame = None if Explore.FRAME.text is None else Explore.FRAME.choice(frames.numbers, frames.numbers[-1])
    known = map_now(key) or MapState(
        Explore.SELECTED.read(lambda text: ids_from_text(text, ids) or None, ()),
        frame,
        {str(i): i for i in ids}.get(Explore.ANCHOR.text or ""),
        Explore.CAMERA.read(camera_from_text, ""),
    )
    asked = state.session_value("explore.select", lambda: None)
    state.forget("explore.select")
    on_map = map_state(
        key=key,
        newest=frames.numbers[-1],
        frame=known.frame,
        selected=known.selected if asked is None else asked,
        view=known.view,
    )
    return replace(on_map, clicked=known.clicked) if on_map.clicked is None else on_map


def _draw_panel(
    side: str,
    frames: Frames,
    spec: MapSpec,
    number: int,
    rows: tuple[int, ...],
    near: NearOne | None,
    acts: BatchForces | None,
    own: OwnText | None,
) -> None:
    scores = run_reads.scores(frames, number)
    chosen = None
    if side == "neighbours":
        neighbours(frames, scores, near, len(rows))
    elif side == "classes":
        chosen = classes(frames, number, scores)
    elif side == "moved":
        chosen = movement(frames, number, scores)
    elif acts is not None:
        forces(frames, acts)
    elif own is not None:
        sentence(own, frames, number)
    elif side == "texts":
        chosen = texts(frames, number, scores, rows, run_reads.honesty(frames, spec, number))
    if chosen is not None:
        state.remember("explore.select", tuple(frames.probe.ids[row] for row in chosen))
        st.rerun()


state.require_app()
page()
