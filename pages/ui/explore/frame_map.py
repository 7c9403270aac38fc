"""The map of a run's frames: its controls, layout, colours and captions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from core.artifacts.cache import read
from core.artifacts.maps import LIVE, map_request
from core.artifacts.sentence import END_TEXTS, EndTexts
from core.artifacts.weights import weight_stamps
from core.errors import ConfigError
from core.events import TRAIN, VALIDATION, Probe
from core.figures.map_data import (
    TEST,
    Bundle,
    categories_bundle,
    correct_colours,
    examples_bundle,
    label_colours,
    places_bundle,
    prediction_colours,
    values_bundle,
)
from core.figures.template import ACCENT
from core.messages import N_, _, sentences
from core.quantities import percent
from core.representation.examples import ExampleScores
from core.representation.projections import PROJECTIONS, MapSpec, Points, library_projections, stable_projections
from core.representation.projections.entry import MODES
from core.representation.projections.sequence import place_new
from core.store import RunSummary, Status
from pages.ui.address import Explore
from pages.ui.bound import bound, bound_parameter, bound_switch, bound_text, forget, segments, set_item
from pages.ui.explore import run_reads
from pages.ui.explore.run_reads import Frames
from pages.ui.map_view import MapState, Panel, map_name, map_view
from pages.ui.parameter_widget import parameter_widget
from pages.ui.parts import escaped, missing_weights
from pages.ui.waiting import complete_since, ensure_job

SPLITS, SPLIT_COLOURS = (VALIDATION, TRAIN, TEST), (ACCENT, "#e69f00", "#cc79a7")
# Losses above this quantile share the colour at the end of the scale, so that one outlier does not hide the rest.
# The description of the colouring states this.
LOSS_QUANTILE = 0.98
# The map fills the screen together with the page's header, the controls and the player.
HEIGHT = "max(18rem, min(100dvh - 17.5rem, max(48vw, 36rem)))"  # on a tall screen as high as wide


@dataclass(frozen=True, slots=True)
class Colouring:
    """A colour scheme of the map.

    Attributes:
        label: name on the page, marked with `N_`.
        make: computes the colours of some frames.
        about: one sentence, marked with `N_`.
    """

    label: str
    make: Callable[[Frames], Bundle]
    about: str


def _each(frames: Frames, take: Callable[[ExampleScores], NDArray[Any]]) -> NDArray[Any]:
    """Stack one value per example of every frame into [F, N]."""
    return np.stack([take(run_reads.scores(frames, number)) for number in frames.numbers])


def _loss(frames: Frames) -> Bundle:
    losses = _each(frames, lambda s: s.loss)
    high = float(np.nanquantile(losses, LOSS_QUANTILE)) if np.isfinite(losses).any() else 1.0
    return values_bundle(losses, _("Cross-entropy, nats"), 0.0, max(high, 1e-6))


def _cluster(frames: Frames) -> Bundle:
    count = len(frames.probe.classes)
    known = run_reads.measures(frames)
    codes: NDArray[np.int64] = np.full((len(frames.numbers), len(frames.probe.ids)), -1)
    for row, number in enumerate(frames.numbers):
        if number in known:
            codes[row, : len(known[number].clusters)] = known[number].clusters
    names = [_("cluster {number}", number=i + 1) for i in range(max(count, int(codes.max(initial=0)) + 1))]
    return categories_bundle(codes, names, _("Cluster"))


COLOURINGS: Mapping[str, Colouring] = {
    "label": Colouring(
        N_("Label"),
        lambda frames: label_colours(frames.probe.labels, frames.probe.classes),
        N_("Colour and symbol: label."),
    ),
    "prediction": Colouring(
        N_("Prediction"),
        lambda frames: prediction_colours(_each(frames, lambda s: s.predicted), frames.probe.classes),
        N_("Colour: prediction at this step."),
    ),
    "correct": Colouring(
        N_("Correctness"),
        lambda frames: correct_colours(_each(frames, lambda s: s.correct)),
        N_("Colour: right or wrong at this step."),
    ),
    "confidence": Colouring(
        N_("Confidence"),
        lambda frames: values_bundle(_each(frames, lambda s: s.confidence), _("Confidence"), 0.0, 1.0),
        N_("Colour: probability of the predicted class."),
    ),
    "loss": Colouring(N_("Loss"), _loss, N_("Colour: cross-entropy of the label; the highest 2% share a colour.")),
    "split": Colouring(
        N_("Training or validation"),
        lambda frames: categories_bundle(
            [SPLITS.index(split) for split in frames.probe.splits] or [0] * len(frames.probe.ids),
            (_("validation"), _("training"), *([_("test")] if frames.end else [])),
            _("Split"),
            SPLIT_COLOURS,
        ),
        N_("Colour: training or validation example."),
    ),
    "cluster": Colouring(
        N_("Cluster"), _cluster, N_("Colour: k-means clusters, one for each class, numbered to match the labels.")
    ),
}


def colours(frames: Frames, name: str) -> Bundle:
    """Return the colours of some frames. Raises: StoreError for a frame that cannot be read."""
    clustered = str(run_reads.measured_steps(frames)) if name == "cluster" else ""
    return _colours(frames, frames.extent, name, clustered)


@run_reads.cached_by_frames(max_entries=32)
def _colours(frames: Frames, extent: str, name: str, clustered: str) -> Bundle:
    return COLOURINGS[name].make(frames)


OURS, LIBRARY = "ours", "library"
DIMENSIONS: Mapping[str, str] = {"2": N_("2-D"), "3": N_("3-D")}
SEARCH_CHARS = 200


@dataclass(frozen=True, slots=True)
class Choices:
    """The user's choice of a map and its colours.

    Attributes:
        layers_at: the step whose layers are shown instead of the run's frames.
        search: words; texts that contain them stand out.
        test: whether test texts are placed on the last frame.
    """

    spec: MapSpec
    colour: str
    search: str
    layers_at: int | None
    test: bool


def choose(run: RunSummary, steps_with_layers: Sequence[int]) -> Choices:
    """Draw the controls and read them."""
    # All that can complain are read before any is drawn, so that address errors appear above the row, not in the closed
    # popover.
    method, to_method = bound(Explore.MAP, stable_projections())
    dims, to_dims = bound(Explore.DIMENSIONS, DIMENSIONS)
    colour, to_colour = bound(Explore.COLOUR, COLOURINGS)
    other = library_projections().get(method)
    layouts = {OURS: _("This app (stable between frames)"), LIBRARY: other.library if other else ""}
    layout, to_layout = bound(Explore.LAYOUT, layouts, labels=layouts.values())
    _words, to_search = bound_text(Explore.SEARCH, SEARCH_CHARS)
    mode, to_mode = bound(Explore.MODE, MODES)
    frames = {str(step): _("Layers at step {step}", step=f"{step:,}") for step in steps_with_layers}
    frames = {"": _("Steps of the run"), **frames}
    layers, to_layers = bound(Explore.LAYERS, frames)
    parameters = {
        parameter.name: bound_parameter(method, parameter) for parameter in stable_projections()[method].parameters
    }
    with st.container(horizontal=True, vertical_alignment="center"):
        segments(_("Map"), {name: entry.label for name, entry in stable_projections().items()}, to_method)
        segments(_("Dimensions"), DIMENSIONS, to_dims)
        st.selectbox(
            _("Colour by"),
            list(COLOURINGS),
            format_func=lambda name: _("Colour: {what}", what=_(COLOURINGS[name].label).lower()),
            width=220,
            label_visibility="collapsed",
            **to_colour.by_index,
        )
        search = st.text_input(
            _("Search texts"),
            max_chars=SEARCH_CHARS,
            placeholder=_("Search all texts"),
            label_visibility="collapsed",
            icon=":material/search:",
            width=240,
            **to_search.by_value,
        )
        st.button(
            # Translators: a button: open the panel that places a sentence of the visitor on the map.
            _("Type a sentence"),
            icon=":material/edit:",
            key="explore.type",
            on_click=set_item,
            args=(Explore.PANEL, "sentence"),
        )
        with st.popover(_("More"), icon=":material/tune:", key="explore.more"):
            if other is not None:
                st.radio(_("Layout by"), list(layouts), format_func=layouts.__getitem__, **to_layout.by_index)
            entry = other if other is not None and layout == LIBRARY else stable_projections()[method]
            if len(entry.modes) > 1:
                st.radio(_("Fit the map"), list(MODES), format_func=lambda name: _(MODES[name]), **to_mode.by_index)
            values = {}
            for parameter in entry.parameters:
                _value, tied = parameters[parameter.name]
                values[parameter.name] = parameter_widget(st, parameter, tied.start, tied.key)
            st.caption(sentences([_(entry.about), _("Source: {source}.", source=_(entry.source))]))
            st.selectbox(
                # Translators: followed by "Steps of the run" or "Layers at step 40"
                _("Frames"),
                list(frames),
                format_func=frames.__getitem__,
                # A layer number is not a step, and the zoom of one map means nothing on another.
                on_change=forget,
                args=([Explore.FRAME, Explore.CAMERA],),
                **to_layers.by_index,
            )
            about = _("Places texts of the test split on the map of the last frame, without moving the others.")
            test = bound_switch(_("Test texts at the end"), Explore.TEST, help=about)
            missing_weights(run)
    if mode not in entry.modes:  # this map has no such mode; the choice stays for the maps that do
        mode = "each"
    try:
        spec = MapSpec(entry.name, int(dims), mode, tuple(values.items()))  # type: ignore[arg-type]
    except ConfigError as error:  # the address has incompatible parameters
        st.warning(escaped(str(error)))
        spec = MapSpec(entry.name, int(dims))
    return Choices(spec, colour, search, int(layers) if layers else None, test)


def with_test_texts(frames: Frames) -> tuple[Frames, bool]:
    """Return the frames with test texts at the last one, and whether these are still being encoded.

    Without test texts, explain why and return the frames unchanged.
    """
    run, probe, busy = frames.run, frames.probe, False
    if run.config.on_shared_trunk:
        st.caption(_("This cell was trained on shared frozen blocks. The test split is left for full runs."))
        return frames, False
    if frames.layers_at is not None or run.status != Status.FINISHED:
        st.caption(_("Test texts have positions only at the last step of a finished run."))
        return frames, False
    path, stamps = frames.folder / END_TEXTS, weight_stamps(frames.store, run)
    end = read(EndTexts, path)
    if end is None or stamps.get(run.steps, end.stamp) != end.stamp:
        request = {"run": run.id, "what": "test"}
        busy = ensure_job("inspect", request, N_("Encoding the test texts"), since=complete_since(run))
        end = read(EndTexts, path)
    if end is None:
        return frames, busy
    count, first = len(end.texts), max(probe.ids) + 1
    text = _("{count} of {rows:,} test texts are on the last frame, drawn with an outline.", count=count, rows=end.rows)
    st.caption(text)
    shown = Probe(
        (*probe.ids, *range(first, first + count)),
        (*probe.texts, *end.texts),
        (*probe.labels, *end.labels),
        probe.classes,
        (*(probe.splits or (VALIDATION,) * len(probe.ids)), *(TEST,) * count),
    )
    return replace(frames, probe=shown, end=end), busy


def maps_for(frames: Frames, wanted: MapSpec) -> tuple[MapSpec, dict[int, Points], bool]:
    """Return the maps to show: PCA while the wanted ones are still being computed.

    Returns: the kind of map, its maps by frame, and whether something is still being computed.
    """
    found = run_reads.maps(frames, wanted)
    missing = len(frames.numbers) - len(found)
    measured = run_reads.honesty(frames, wanted, frames.numbers[-1]) is not None
    busy = False
    if missing or not measured:
        request = map_request(frames.run, wanted, frames.layers_at)
        busy = ensure_job("map", request, PROJECTIONS[wanted.method].label, since=complete_since(frames.run))
    if not missing or (found and frames.run.status.active):  # maps of an active run lag some frames behind
        return wanted, found, busy
    fallback = run_reads.maps(frames, LIVE)
    return (LIVE, fallback, busy) if len(fallback) >= len(found) else (wanted, found, busy)


def panel_of(frames: Frames, spec: MapSpec, maps: Mapping[int, Points], colour: str = "label") -> Panel:
    """Build one map of all frames, coloured by one of `COLOURINGS`. Raises: StoreError for an unreadable frame."""
    if frames.layers_at is None:
        notes = run_reads.score_notes(frames)
    else:
        notes = (_("step {step}", step=f"{frames.layers_at:,}"),) * len(frames.numbers)
    return Panel(
        examples=_examples(frames),
        places=_places(frames, spec, frames.extent, str([*maps]), maps),
        colours=colours(frames, colour),
        steps=frames.numbers,
        notes=notes,
        space=spec.key,
    )


def map_key(frames: Frames) -> str:
    return f"explore.map.{frames.run.id}.{frames.layers_at}"


def draw(
    frames: Frames, panel: Panel, choices: Choices, on_map: MapState, spec: MapSpec, lit: Sequence[int] | None
) -> None:
    """Draw the map in the state `on_map`; examples with ids in `lit` stand out."""
    map_view(
        [panel],
        key=map_key(frames),
        frame=on_map.frame,
        selected=on_map.selected,
        view=on_map.view,
        height=HEIGHT,
        description=_(
            "Map of {texts} texts, {what} as colour.",
            texts=f"{len(frames.probe.ids):,}",
            what=_(COLOURINGS[choices.colour].label).lower(),
        ),
        lit=lit,
        name=f"{frames.run.id}-{spec.method}",
        unit="layer" if frames.layers_at is not None else "step",
    )


def honesty_line(frames: Frames, spec: MapSpec, number: int) -> str:
    """Describe in a sentence how faithful the map of a frame is."""
    known = run_reads.honesty(frames, spec, number)
    if known is None:
        return _("Measuring the trustworthiness of this map.")
    return _(
        "**Trustworthiness {trust:.2f} · {k}-NN overlap {overlap}**. A map that kept the {k} nearest "
        "neighbours (cosine) of every point would have a trustworthiness of 1 and an overlap of 100%.",
        trust=known.trustworthiness,
        k=known.k,
        overlap=percent(known.overlap),
    )


def method_line(frames: Frames, spec: MapSpec, choices: Choices) -> str:
    """Describe the map's colours and method in a few sentences."""
    waiting, wanted = "", choices.spec
    if spec != wanted:
        waiting = _("**{map} is being computed; showing PCA until then.**", map=_(PROJECTIONS[wanted.method].label))
    about = _(COLOURINGS[choices.colour].about)
    # Translators: such as "2-D PCA".
    name = _("{dimensions} {name}", dimensions=_(DIMENSIONS[str(spec.dims)]), name=_(spec.entry.label))
    if spec.mode == "once":
        made = N_("{map} of normalised vectors, fitted on the last frame; other frames are projected onto it.")
    elif frames.layers_at is not None:
        made = N_(
            "{map} of normalised vectors; each layer is aligned with the one before, so points move only "
            "because the vectors changed."
        )
    else:
        made = N_(
            "{map} of normalised vectors; each frame is aligned with the one before, so points move only "
            "because the vectors changed."
        )
    how = _(made, map=map_name(spec, name))
    return sentences([waiting, about, how, _(spec.entry.caution), _("Open symbols are training examples.")])


@run_reads.cached_by_frames(max_entries=16)
def _examples(frames: Frames) -> Bundle:
    probe = frames.probe
    return examples_bundle(probe.ids, probe.texts, probe.labels, probe.classes, probe.splits)


@run_reads.cached_by_frames(max_entries=16)
def _places(frames: Frames, spec: MapSpec, extent: str, there: str, _maps: Mapping[int, Points]) -> Bundle:
    stack: NDArray[np.float32] = np.full((len(frames.numbers), len(frames.probe.ids), spec.dims), np.nan, np.float32)
    for row, number in enumerate(frames.numbers):
        if number in _maps:
            stack[row, : len(_maps[number])] = _maps[number]
    last = frames.numbers[-1]
    if frames.end is not None and last in _maps:
        placed = place_new(_maps[last], frames.vectors(last), frames.end.vectors, linear=spec.entry.linear)
        stack[-1, len(_maps[last]) :] = placed
    return places_bundle(stack)
