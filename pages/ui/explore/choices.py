"""What is shown of a run, as the address says it and the controls above the map change it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from core.errors import ConfigError
from core.representation.projections import PROJECTIONS, MapSpec
from core.representation.projections.registry import MODES
from pages.ui import state
from pages.ui.explore.colouring import COLOURINGS
from pages.ui.parameter_widget import parameter_widget
from pages.ui.parts import escaped

# The address leaves out what everybody gets anyway.
METHOD, DIMS, MODE, COLOUR, SEARCH, LAYERS = "map", "dims", "mode", "colour", "find", "layers"


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
        with st.popover("More", icon=":material/tune:"):
            mode, parameters = _more(method)
            layers_at = _layers(steps_with_weights)
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
        value = _number_in_url(parameter.name, parameter.default)
        chosen = parameter_widget(st, parameter, value, f"explore.{method}.{parameter.name}")  # type: ignore[arg-type]
        parameters[parameter.name] = chosen
        state.put_in_url(**{parameter.name: None if chosen == parameter.default else str(chosen)})
    st.caption(f"{entry.about} Source: {entry.source}.")
    return mode, parameters


def _number_in_url(name: str, default: Any) -> Any:
    """A parameter as the address says it; nonsense counts as the default, and MapSpec checks the bounds."""
    text = state.text_in_url(name)
    try:
        return default if text is None else type(default)(text)
    except ValueError:
        return default


def _layers(steps: Sequence[int]) -> int | None:
    """Whether the frames are those of the run, or the layers of one step."""
    options = {"": "Steps of the run", **{str(step): f"Layers at step {step:,}" for step in steps}}
    chosen = _select("Frames are", LAYERS, options, "", "stretch")
    return int(chosen) if chosen else None


def _segmented(label: str, name: str, options: Mapping[str, str], default: str) -> str:
    start = state.choice_in_url(name, {key: key for key in options}, default, f"there is no such {label.lower()}")
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
    start = state.choice_in_url(name, {key: key for key in options}, default, f"there is no such {label.lower()}")
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
