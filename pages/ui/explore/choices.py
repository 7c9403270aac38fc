"""What is shown of a run, as the address says it and the controls above the map change it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from core.errors import ConfigError, shown
from core.parameters import Parameter
from core.representation.projections import PROJECTIONS, MapSpec
from core.representation.projections.registry import MODES
from pages.ui import state
from pages.ui.explore.colouring import COLOURINGS
from pages.ui.parameter_widget import parameter_widget
from pages.ui.parts import escaped

# The address leaves out what everybody gets anyway.
METHOD, DIMS, MODE, COLOUR, SEARCH, LAYERS = "map", "dims", "mode", "colour", "find", "layers"


LAYERS_BEFORE = "explore.layers_before"
PROBLEMS = {
    METHOD: "there is no such map",
    DIMS: "a map has 2 or 3 dimensions",
    COLOUR: "there is no such colouring",
    LAYERS: "weights are not kept of that step",
}


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


def choose(steps_with_weights: Sequence[int]) -> Choices:
    """Draw the controls and read them."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        method = _segmented("Map", METHOD, {name: entry.label for name, entry in PROJECTIONS.items()}, "pca")
        dims = _segmented("Dimensions", DIMS, {"2": "2-D", "3": "3-D"}, "2")
        colour = _select("Colour by", COLOUR, {name: entry.label for name, entry in COLOURINGS.items()}, "label", 190)
        search = st.text_input(
            "Find words",
            state.text_in_url(SEARCH) or "",
            max_chars=200,
            placeholder="in all texts",
            icon=":material/search:",
            key="explore.find",
            width=230,
        )
        state.put_in_url(**{SEARCH: search or None})
        options = _frame_options(steps_with_weights)
        # Asked once before, so that a complaint does not hide in the closed popover.
        state.choice_in_url(LAYERS, {name: name for name in options}, "", "weights are not kept of that step")
        entry = PROJECTIONS[method]
        state.choice_in_url(MODE, {name: name for name in entry.modes}, "each", "this map cannot be fitted that way")
        with st.popover("More", icon=":material/tune:"):
            mode, parameters = _more(method)
            layers_at = _layers(options)
    try:
        spec = MapSpec(method, int(dims), mode, tuple(parameters.items()))  # type: ignore[arg-type]
    except ConfigError as error:  # the address asked for it
        st.warning(escaped(str(error)))
        spec = MapSpec(method, int(dims))
    return Choices(spec, colour, search, layers_at)


def _more(method: str) -> tuple[str, dict[str, Any]]:
    entry = PROJECTIONS[method]
    mode = "each"
    if len(entry.modes) > 1:
        mode = _radio("Fit the map", MODE, {name: MODES[name] for name in entry.modes}, "each")
    parameters = {}
    for parameter in entry.parameters:
        value = _number_in_url(parameter)
        chosen = parameter_widget(st, parameter, value, f"explore.{method}.{parameter.name}")  # type: ignore[arg-type]
        parameters[parameter.name] = chosen
        state.put_in_url(**{parameter.name: None if chosen == parameter.default else str(chosen)})
    st.caption(f"{entry.about} Source: {entry.source}.")
    return mode, parameters


def _number_in_url(parameter: Parameter) -> Any:
    """A parameter as the address says it; the default, and a sentence, for what it cannot be."""
    text = state.text_in_url(parameter.name)
    if text is None:
        return parameter.default
    try:
        value = int(text) if parameter.kind == "integer" else float(text)
        if math.isfinite(value):
            return parameter.check(parameter.name, value)
    except (ConfigError, ValueError):
        pass  # said below
    st.warning(f"The address asks for {escaped(parameter.label.lower())} {escaped(shown(text))}, which it cannot be.")
    return parameter.default


def _frame_options(steps: Sequence[int]) -> dict[str, str]:
    return {"": "Steps of the run", **{str(step): f"Layers at step {step:,}" for step in steps}}


def _layers(options: Mapping[str, str]) -> int | None:
    """Whether the frames are those of the run, or the layers of one step."""
    chosen = _select("Frames are", LAYERS, options, "", "stretch")
    if state.remembered(LAYERS_BEFORE, lambda: chosen) != chosen:  # a layer's number is no step
        state.put_in_url(frame=None, view=None)
    state.remember(LAYERS_BEFORE, chosen)
    return int(chosen) if chosen else None


def _segmented(label: str, name: str, options: Mapping[str, str], default: str) -> str:
    start = state.choice_in_url(name, {key: key for key in options}, default, PROBLEMS[name])
    chosen = st.segmented_control(
        label,
        list(options),
        default=start,
        format_func=options.get,
        required=True,
        key=f"explore.{name}",
    )
    return _kept(name, str(chosen), default)


def _select(label: str, name: str, options: Mapping[str, str], default: str, width: Any) -> str:
    start = state.choice_in_url(name, {key: key for key in options}, default, PROBLEMS[name])
    keys = list(options)
    chosen = st.selectbox(
        label, keys, index=keys.index(start), format_func=options.get, key=f"explore.{name}", width=width
    )
    return _kept(name, str(chosen), default)


def _radio(label: str, name: str, options: Mapping[str, str], default: str) -> str:
    start = state.choice_in_url(name, {key: key for key in options}, default, "this map cannot be fitted that way")
    keys = list(options)
    chosen = st.radio(label, keys, index=keys.index(start), format_func=options.get, key=f"explore.{name}")
    return _kept(name, str(chosen), default)


def _kept(name: str, chosen: str, default: str) -> str:
    state.put_in_url(**{name: None if chosen == default else chosen})
    return chosen
