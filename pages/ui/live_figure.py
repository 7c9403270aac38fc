"""A Plotly figure that is updated in place: one DOM node for its whole life.

`st.plotly_chart` mounts a new chart whenever its data change, which loses zoom, selection and WebGL context. This
component calls `Plotly.react` on one node. Streamlit serves plotly.min.js, copied from the plotly package, as a static
file.
"""

from __future__ import annotations

import json
from importlib.metadata import distribution
from pathlib import Path

import streamlit as st

from core.figures.map_script import WORDS
from core.figures.template import Figure
from core.messages import script_messages
from pages.ui.parts import UI, component, static_url


@st.cache_resource(show_spinner=False)
def plotly_url() -> str:
    """Return the URL of plotly.min.js."""
    return static_url("plotly.min.js", plotly_script().read_bytes())


def plotly_script() -> Path:
    """Return the path of plotly.min.js in the plotly package, which is not imported."""
    return Path(str(distribution("plotly").locate_file("plotly/package_data/plotly.min.js")))


_mount = component(
    "live_figure",
    '<div class="live-figure" role="figure"></div>',
    [*WORDS, UI / "plotly.js", UI / "live_figure.js"],
    [".live-figure { width: 100%; }"],
)


def as_text(figure: Figure) -> str:
    """Encode a figure as JSON for the browser. Streamlit would encode it twice on every draw."""
    return json.dumps(figure, separators=(",", ":"))


def live_figure(
    figure: Figure | str, *, key: str, description: str, height: int | None = None, version: str = ""
) -> None:
    """Draw a figure, or update the one under `key` in place.

    Args:
        figure: the figure, or its JSON if that is cached.
        description: description of the figure for screen readers.
        height: pixels; None for that of the figure's layout.
        version: identifies the figure, so that an unchanged one is not drawn again; "" if unknown.
    """
    if not isinstance(figure, str):
        height, figure = height or int(figure["layout"]["height"]), as_text(figure)
    _mount(
        key=key,
        # A list, because Streamlit would load pandas to check a dictionary's values for data frames.
        data=[
            {
                "figure": figure,
                "height": height,
                "description": description,
                "plotly": plotly_url(),
                "version": version,
                "words": script_messages("pages/ui/plotly.js") | script_messages("pages/ui/live_figure.js"),
            }
        ],
    )
