"""What is shown of a run, as the address says it and the controls above the map change it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from core.errors import ConfigError
from core.representation.projections import BY_LIBRARY, STILL, MapSpec
from core.representation.projections.registry import MODES, projection_entry
from core.store import RunSummary
from pages.ui import state
from pages.ui.bound import bound, bound_parameter, bound_text, give_again
from pages.ui.explore.colouring import COLOURINGS
from pages.ui.parameter_widget import parameter_widget
from pages.ui.parts import escaped, missing_weights

# The address leaves out what everybody gets anyway.
METHOD, DIMS, MODE, COLOUR, SEARCH, LAYERS, LAYOUT = "map", "dims", "mode", "colour", "find", "layers", "layout"
OURS, LIBRARY = "ours", "library"
DIMENSIONS: Mapping[str, str] = {"2": "2-D", "3": "3-D"}
SEARCH_CHARS = 200
MORE = "explore.more"


@dataclass(frozen=True, slots=True)
class Choices:
    """Which map, in which colours.

    Attributes:
        layers_at: the step whose layers are shown instead of the run's frames.
        search: words that texts have to hold to stand out.
    """

    spec: MapSpec
    colour: str
    search: str
    layers_at: int | None


def choose(run: RunSummary, steps_with_weights: Sequence[int]) -> Choices:
    """Draw the controls and read them."""
    if state.just_opened(MORE):
        give_again((MODE, LAYOUT, LAYERS))
    # All are read before any is drawn: what the address has wrong is said above the row, not in the closed popover.
    method, to_method = bound(METHOD, STILL, "pca", "there is no such map")
    dims, to_dims = bound(DIMS, DIMENSIONS, "2", "a map has 2 or 3 dimensions")
    colour, to_colour = bound(COLOUR, COLOURINGS, "label", "there is no such colouring")
    layout, to_layout = bound(LAYOUT, (OURS, LIBRARY), OURS, "a map is laid out by ours or by the library")
    to_search = bound_text(SEARCH, SEARCH_CHARS)
    mode, to_mode = bound(MODE, MODES, "each", "no map can be fitted that way")
    frames = _frame_options(steps_with_weights)
    layers, to_layers = bound(LAYERS, frames, "", "weights are not kept of that step")
    parameters = {parameter.name: bound_parameter(method, parameter) for parameter in STILL[method].parameters}
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        _segments("Map", {name: entry.label for name, entry in STILL.items()}, to_method)
        _segments("Dimensions", DIMENSIONS, to_dims)
        labels = {name: entry.label for name, entry in COLOURINGS.items()}
        st.selectbox(
            "Colour by",
            list(labels),
            format_func=lambda name: f"Colour: {labels[name].lower()}",
            width=220,
            label_visibility="collapsed",
            **to_colour,
        )
        search = st.text_input(
            "Find words",
            max_chars=SEARCH_CHARS,
            placeholder="Find words in all texts",
            label_visibility="collapsed",
            icon=":material/search:",
            width=240,
            **to_search,
        )
        with st.popover("More", icon=":material/tune:", key=MORE, on_change="rerun"):
            values = _more(method, layout, to_layout, to_mode, parameters)
            st.selectbox(
                "Frames are", list(frames), format_func=frames.__getitem__, on_change=_forget_the_frame, **to_layers
            )
            missing_weights(run)
    by_library = BY_LIBRARY.get(method) if layout == LIBRARY else None
    spec = _spec(by_library.name if by_library else method, int(dims), mode, values)
    return Choices(spec, colour, search, int(layers) if layers else None)


def _spec(method: str, dims: int, mode: str, values: Mapping[str, Any]) -> MapSpec:
    if mode not in projection_entry(method).modes:  # it was chosen for another map, and waits for that
        mode = "each"
    try:
        return MapSpec(method, dims, mode, tuple(values.items()))  # type: ignore[arg-type]
    except ConfigError as error:  # the address asked for it
        st.warning(escaped(str(error)))
        return MapSpec(method, dims)


def _more(
    method: str,
    layout: str,
    to_layout: dict[str, Any],
    to_mode: dict[str, Any],
    parameters: Mapping[str, tuple[Any, str]],
) -> dict[str, Any]:
    """Draw what is seldom changed; the parameters of the map."""
    by_library = BY_LIBRARY.get(method)
    if by_library is not None:
        names = {OURS: "This app, so that it holds still", LIBRARY: by_library.library}
        st.radio("Laid out by", list(names), format_func=names.__getitem__, **to_layout)
    entry = by_library if by_library is not None and layout == LIBRARY else STILL[method]
    if len(entry.modes) > 1:
        st.radio("Fit the map", list(MODES), format_func=MODES.__getitem__, **to_mode)
    values = {
        parameter.name: parameter_widget(st, parameter, *parameters[parameter.name])
        for parameter in entry.parameters
    }
    st.caption(f"{entry.about} Source: {entry.source}.")
    return values


def _frame_options(steps: Sequence[int]) -> dict[str, str]:
    return {"": "Steps of the run", **{str(step): f"Layers at step {step:,}" for step in steps}}


def _forget_the_frame() -> None:
    """A layer's number is no step, and what was zoomed to means nothing on its map."""
    state.put_in_url(frame=None, view=None)


def _segments(label: str, options: Mapping[str, str], widget: dict[str, Any]) -> None:
    st.segmented_control(
        label,
        list(options),
        format_func=options.__getitem__,
        required=True,
        label_visibility="collapsed",
        width="content",
        **widget,
    )
