"""Maps of invented runs, for the browser tests of `pages.ui.map_view` and for benchmarks/bench_scrub.py.

The address sets the contents: frames, points, classes, axes (2 or 3), panels, colour (label, prediction, confidence),
`tasks` (their number; panels alternate between them, and each has one class more than the previous one), and `extras`
for arrows with their anchor, a typed sentence and centroids. `static` beside it is the folder of the app, because
Streamlit serves files from the folder of the script that it runs.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import streamlit as st

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from core.figures.map_data import (
    Arrow,
    Bundle,
    OwnPoint,
    categories_bundle,
    examples_bundle,
    places_bundle,
    values_bundle,
)
from pages.ui.map_view import Panel, map_view

HOSTILE = "<img src=x onerror=window.hacked=1> "


def number(name: str, default: int) -> int:
    return int(st.query_params.get(name, default))


@st.cache_resource(show_spinner=False)
def invented(
    seed: int, frames: int, points: int, classes: int, axes: int, hostile: bool
) -> tuple[Bundle, Bundle, dict[str, Bundle], np.ndarray]:
    """Return bundles of maps whose classes drift apart. With more than three frames, the second is missing."""
    rng = np.random.default_rng(seed)
    labels = np.arange(points) % classes
    goals = np.random.default_rng(0).normal(size=(classes, axes)) * [3, 2, 2][:axes]
    start = rng.normal(size=(points, axes))
    end = goals[labels] + rng.normal(size=(points, axes)) * 0.5
    share = np.linspace(0, 1, frames)[:, None, None]
    places = start * (1 - share) + end * share + rng.normal(size=(frames, points, axes)) * 0.02
    if frames > 3:
        places[1] = np.nan
    confidence = np.clip(share[..., 0] * 0.6 + rng.random((frames, points)) * 0.4, 0, 1)
    predictions = np.where(confidence > 0.65, labels, rng.integers(0, classes, (frames, points)))
    name = HOSTILE + "W" * 2_000 if hostile else "a class with quite a long name"
    names = [f"{name} {i}" if hostile or i % 3 == 0 else f"class {i}" for i in range(classes)]
    texts = [f"{HOSTILE if hostile else ''}Text {i}, " + "which says a little. " * (1 + i % 9) for i in range(points)]
    if hostile:
        texts = [text + "W" * 2_000 for text in texts]
    splits = ["train" if i % 4 == 3 else "validation" for i in range(points)]
    colours = {
        "label": categories_bundle(labels, names, "Label"),
        "prediction": categories_bundle(predictions, names, "Prediction"),
        "confidence": values_bundle(confidence, "Confidence", 0, 1),
    }
    return (
        examples_bundle(range(1000, 1000 + points), texts, labels.tolist(), names, splits),
        places_bundle(places),
        colours,
        places,
    )


def page() -> None:
    st.set_page_config(layout="wide")
    frames, points, axes = number("frames", 12), number("points", 300), number("axes", 2)
    hostile = st.query_params.get("text") == "hostile"
    colour = st.segmented_control("Colour", ["label", "prediction", "confidence"], default="label", key="colour")
    search = st.text_input("Search")
    asked = tuple(map(int, st.query_params.get_all("select")))
    if st.button("Select three"):
        asked = (1000, 1001, 1002)
        st.query_params["select"] = [str(i) for i in asked]
    panels = []
    for seed in range(number("panels", 1)):
        classes = number("classes", 3) + seed % number("tasks", 1)
        examples, places, colours, raw = invented(seed, frames, points, classes, axes, hostile)
        steps = tuple(range(0, 10 * frames, 10)) if seed == 0 else tuple(range(5, 10 * frames, 10))
        extras = st.query_params.get("extras") is not None
        panels.append(
            Panel(
                examples,
                places,
                colours[colour or "label"],
                steps,
                title=f"{HOSTILE if hostile else ''}Run {seed + 1}" if number("panels", 1) > 1 else "",
                notes=tuple(f"{HOSTILE if hostile else ''}validation {50 + 40 * i // frames} %" for i in range(frames)),
                space=str(axes),
                arrows=tuple(Arrow(1000, 1000 + i, 1 - i / 8, f"pull or push {i}") for i in range(1, 16) if i < points)
                if extras
                else (),
                own=(
                    OwnPoint(
                        f"{HOSTILE}mine",
                        "A typed sentence.",
                        tuple(tuple(map(float, place)) for place in np.nan_to_num(raw[:, 0] * 0.8 + 0.3)),
                        tuple(i % 3 == 0 for i in range(frames)),
                    ),
                )
                if extras
                else (),
                centroids=extras,
                anchor=1000 if extras else None,
            )
        )
    shown = map_view(
        panels,
        key="map",
        height=number("height", 520),
        description="Map of invented texts.",
        frame=number("frame", -1) if "frame" in st.query_params else None,
        selected=asked,
        lit=None if not search else [1000 + i for i in range(points) if search in f"Text {i},"],
        view=st.query_params.get("view", ""),
    )
    st.session_state["runs"] = st.session_state.get("runs", 0) + 1
    if st.query_params.get("link") is not None:
        st.query_params["select"] = [str(i) for i in shown.selected]
        st.query_params["view"] = shown.view
        if shown.frame is not None:
            st.query_params["frame"] = str(shown.frame)
    st.text(f"selected {list(shown.selected)}")
    st.text(f"frame {shown.frame} clicked {shown.clicked} view {shown.view or 'whole'}")
    st.text(f"script runs {st.session_state['runs']}")


page()
