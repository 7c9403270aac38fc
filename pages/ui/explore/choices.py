"""What is shown of a run, as the address says it and the controls above the map change it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from core.errors import ConfigError
from core.messages import N_, _, sentences
from core.representation.projections import MapSpec, by_library, still
from core.representation.projections.entry import MODES
from core.representation.projections.registry import projection_entry
from core.store import RunSummary
from pages.ui.address import Explore
from pages.ui.bound import Tied, bound, bound_parameter, bound_text
from pages.ui.explore.colouring import COLOURINGS
from pages.ui.parameter_widget import parameter_widget
from pages.ui.parts import escaped, missing_weights

OURS, LIBRARY = "ours", "library"
DIMENSIONS: Mapping[str, str] = {"2": N_("2-D"), "3": N_("3-D")}
SEARCH_CHARS = 200


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
    # All are read before any is drawn: what the address has wrong is said above the row, not in the closed popover.
    method, to_method = bound(Explore.MAP, still())
    dims, to_dims = bound(Explore.DIMENSIONS, DIMENSIONS)
    colour, to_colour = bound(Explore.COLOUR, COLOURINGS)
    other = by_library().get(method)
    layouts = {OURS: _("This app, so that it holds still"), LIBRARY: other.library if other else ""}
    layout, to_layout = bound(Explore.LAYOUT, layouts, labels=layouts.values())
    _words, to_search = bound_text(Explore.SEARCH, SEARCH_CHARS)
    mode, to_mode = bound(Explore.MODE, MODES)
    frames = _frame_options(steps_with_weights)
    layers, to_layers = bound(Explore.LAYERS, frames)
    parameters = {parameter.name: bound_parameter(method, parameter) for parameter in still()[method].parameters}
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        _segments(_("Map"), {name: entry.label for name, entry in still().items()}, to_method)
        _segments(_("Dimensions"), DIMENSIONS, to_dims)
        st.selectbox(
            _("Colour by"),
            list(COLOURINGS),
            format_func=lambda name: _("Colour: {what}", what=_(COLOURINGS[name].label).lower()),
            width=220,
            label_visibility="collapsed",
            **to_colour.by_index,
        )
        search = st.text_input(
            _("Find words"),
            max_chars=SEARCH_CHARS,
            placeholder=_("Find words in all texts"),
            label_visibility="collapsed",
            icon=":material/search:",
            width=240,
            **to_search.by_value,
        )
        with st.popover(_("More"), icon=":material/tune:", key="explore.more"):
            values = _more(method, layouts, layout, to_layout, to_mode, parameters)
            st.selectbox(
                # Translators: followed by "Steps of the run" or "Layers at step 40"
                _("Frames are"),
                list(frames),
                format_func=frames.__getitem__,
                on_change=_forget_the_frame,
                **to_layers.by_index,
            )
            missing_weights(run)
    laid_out = other.name if other and layout == LIBRARY else method
    spec = _spec(laid_out, int(dims), mode, values)
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
    layouts: Mapping[str, str],
    layout: str,
    to_layout: Tied,
    to_mode: Tied,
    parameters: Mapping[str, tuple[Any, Tied]],
) -> dict[str, Any]:
    """Draw what is seldom changed; the parameters of the map."""
    other = by_library().get(method)
    if other is not None:
        st.radio(_("Laid out by"), list(layouts), format_func=layouts.__getitem__, **to_layout.by_index)
    entry = other if other is not None and layout == LIBRARY else still()[method]
    if len(entry.modes) > 1:
        st.radio(_("Fit the map"), list(MODES), format_func=lambda name: _(MODES[name]), **to_mode.by_index)
    values = {
        parameter.name: parameter_widget(st, parameter, tied.start, tied.key)
        for parameter in entry.parameters
        for _value, tied in [parameters[parameter.name]]
    }
    st.caption(sentences([_(entry.about), _("Source: {source}.", source=_(entry.source))]))
    return values


def _frame_options(steps: Sequence[int]) -> dict[str, str]:
    layers = {str(step): _("Layers at step {step}", step=f"{step:,}") for step in steps}
    return {"": _("Steps of the run"), **layers}


def _forget_the_frame() -> None:
    """A layer's number is no step, and what was zoomed to means nothing on its map."""
    Explore.FRAME.forget()
    Explore.CAMERA.forget()


def _segments(label: str, options: Mapping[str, str], tied: Tied) -> None:
    st.segmented_control(
        label,
        list(options),
        format_func=lambda name: _(options[name]),
        required=True,
        label_visibility="collapsed",
        width="content",
        **tied.by_default,
    )
