"""The map of the Explore page: what it is made of, and what is said beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import streamlit as st

from core.artifacts.maps import LIVE, map_request
from core.figures.map_data import Arrow, Box, Bundle, OwnPoint, box_of, examples_bundle, places_bundle
from core.messages import _, sentences
from core.quantities import percent
from core.representation.projections import PROJECTIONS, MapSpec, Points
from core.tasks.survey import search
from pages.ui.explore import run_reads
from pages.ui.explore.choices import COLOURINGS, DIMENSIONS, Choices, colours
from pages.ui.explore.run_reads import Frames
from pages.ui.map_view import MapState, Panel, map_name, map_view
from pages.ui.waiting import complete_since, ensure_job

# With the page's header, the controls and the player around it the map fills the screen.
HEIGHT = "max(18rem, 100dvh - 17.5rem)"


def maps_for(frames: Frames, wanted: MapSpec) -> tuple[MapSpec, dict[int, Points], bool]:
    """The maps to show, and of which kind: PCA while the wanted ones are still being placed.

    Returns: the kind, its maps by frame, and whether something is still being computed.
    """
    found = run_reads.maps(frames, wanted)
    missing = len(frames.numbers) - len(found)
    measured = run_reads.honesty(frames, wanted, frames.numbers[-1]) is not None
    busy = False
    if missing or not measured:
        request = map_request(frames.run, wanted, frames.layers_at)
        busy = ensure_job("map", request, PROJECTIONS[wanted.method].label, since=complete_since(frames.run))
    if not missing or (found and frames.run.status.active):  # a running run is some frames ahead of its maps
        return wanted, found, busy
    fallback = run_reads.maps(frames, LIVE)
    return (LIVE, fallback, busy) if len(fallback) >= len(found) else (wanted, found, busy)


def panel_of(
    frames: Frames,
    spec: MapSpec,
    maps: Mapping[int, Points],
    colour: str = "label",
    *,
    arrows: Sequence[Arrow] = (),
    own: Sequence[OwnPoint] = (),
    centroids: bool = False,
    anchor: int | None = None,
) -> Panel:
    """One map of all frames, coloured by one of `COLOURINGS`. Raises: StoreError for a frame that cannot be read."""
    places = _places(frames, spec, frames.numbers, tuple(maps), maps)
    return Panel(
        examples=_examples(frames),
        places=places,
        colours=colours(frames, colour),
        steps=frames.numbers,
        notes=_notes(frames),
        space=spec.key,
        arrows=tuple(arrows),
        own=tuple(own),
        centroids=centroids,
        anchor=anchor,
    )


def map_key(frames: Frames) -> str:
    return f"explore.map.{frames.run.id}.{frames.layers_at}"


def draw(
    frames: Frames, panel: Panel, choices: Choices, on_map: MapState, spec: MapSpec, lit: Sequence[int] | None
) -> None:
    """Draw the map as `on_map` says; examples whose ids are `lit` stand out."""
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


def found(frames: Frames, choices: Choices) -> list[int] | None:
    """Ids of the texts that hold the words that are looked for; None where none are."""
    if not choices.search.strip():
        return None
    return [frames.probe.ids[row] for row in search(frames.probe.texts, choices.search)]


def honesty_line(frames: Frames, spec: MapSpec, number: int) -> None:
    """How far the map of a frame can be believed."""
    known = run_reads.honesty(frames, spec, number)
    if known is None:
        st.caption(_("Measuring how far this map can be trusted."))
        return
    st.caption(
        _(
            "**Trustworthiness {trust:.2f} · {k}-NN overlap {overlap}** · at 1 and 100%, neighbours on this map would "
            "be exactly the neighbours in all dimensions (cosine).",
            trust=known.trustworthiness,
            k=known.k,
            overlap=percent(known.overlap),
        )
    )


def method_line(frames: Frames, spec: MapSpec, wanted: MapSpec, choices: Choices) -> str:
    """What the map shows, in a sentence or two."""
    entry = PROJECTIONS[spec.method]
    waiting = ""
    if spec != wanted:
        waiting = _("**{map} is being computed; until then, this is PCA.**", map=_(PROJECTIONS[wanted.method].label))
    about = _(COLOURINGS[choices.colour].about)
    words = [waiting, about, _how_made(frames, spec), _(entry.caution), _("Open symbols were trained on.")]
    return sentences(words)


def _how_made(frames: Frames, spec: MapSpec) -> str:
    """A sentence on the map's method, and why its points move."""
    # Translators: a name with what is to be said of it, such as: PCA, 2 dimensions.
    name = _("{name}, {detail}", name=_(spec.entry.label), detail=_(DIMENSIONS[str(spec.dims)]))
    name = map_name(spec, name)
    if spec.mode == "once":
        return _("{map}, normalised vectors; fitted on the last frame, the others placed.", map=name)
    if frames.layers_at is not None:
        return _(
            "{map}, normalised vectors; each layer is turned onto the one before, so points move because the vectors "
            "moved.",
            map=name,
        )
    return _(
        "{map}, normalised vectors; each frame is turned onto the one before, so points move because the vectors "
        "moved.",
        map=name,
    )


def _notes(frames: Frames) -> tuple[str, ...]:
    """What is shown beside each frame's number on the scrubber."""
    if frames.layers_at is not None:
        return (_("step {step}", step=f"{frames.layers_at:,}"),) * len(frames.numbers)
    return run_reads.score_notes(frames)


@run_reads.kept(max_entries=16)
def _examples(frames: Frames) -> Bundle:
    probe = frames.probe
    return examples_bundle(probe.ids, probe.texts, probe.labels, probe.classes, probe.splits)


@run_reads.kept(max_entries=16)
def _places(
    frames: Frames, spec: MapSpec, numbers: tuple[int, ...], there: tuple[int, ...], _maps: Mapping[int, Points]
) -> Bundle:
    nowhere = np.full((len(frames.probe.ids), spec.dims), np.nan, np.float32)
    return places_bundle(np.stack([_maps.get(number, nowhere) for number in numbers]), _box(_maps))


def _box(maps: Mapping[int, Points]) -> Box | None:
    return box_of(*(points[np.newaxis] for points in maps.values())) if maps else None
