"""The cells of a surface as small live maps on the same axes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import streamlit as st

from core.experiments.design import Design
from core.figures.map_data import Bundle, box_of, examples_bundle, label_colours, places_bundle
from core.messages import _
from core.representation.geometry import normalised
from core.representation.projections import pca_map
from core.representation.projections.alignment import align
from core.store import ExperimentRun, Store
from pages.ui.explore import run_reads
from pages.ui.explore.run_reads import Frames, frames_of
from pages.ui.map_view import Panel, map_view

# Height of one map. All rows fit below the head of the page, unless they would become too small.
HEIGHT = "clamp(6.5rem, (100dvh - 31rem) / {rows} - 1.5rem, 15rem)"


def draw_maps(store: Store, experiment_id: str, design: Design, runs: Sequence[ExperimentRun]) -> None:
    """Draw a map of every cell of the newest seed that has frames."""
    for seed in reversed(design.seeds):
        of_seed = {run.cell: str(run.run_id) for run in runs if run.seed == seed and run.run_id}
        records = [store.run(of_seed[cell.number]) for cell in design.cells if cell.number in of_seed]
        every = tuple(frames_of(store, record) for record in records if record.probe is not None)
        if len(every) == len(design.cells) and all(frames.numbers for frames in every):
            break
    else:
        st.caption(_("The maps appear when every cell has taken its first step."))
        return
    probe = every[0].probe
    examples = examples_bundle(probe.ids, probe.texts, probe.labels, probe.classes, probe.splits)
    colours = label_colours(probe.labels, probe.classes)
    places = _places(every, str([frames.numbers for frames in every]))
    panels = [
        Panel(
            examples=examples,
            places=place,
            colours=colours,
            steps=frames.numbers,
            title=design.spoken_title(cell),
            notes=run_reads.score_notes(frames),
            space="PCA",
        )
        for cell, frames, place in zip(design.cells, every, places, strict=True)
    ]
    map_view(
        panels,
        key=f"surface.{experiment_id}",
        height=HEIGHT.format(rows=-(-len(panels) // design.shape[-1])),
        description=_("Map of {texts} texts, coloured by label.", texts=f"{len(probe.ids):,}"),
        trails=False,
        follow=True,
        name=f"surface-{experiment_id}",
        columns=design.shape[-1],
    )
    st.caption(
        _(
            "All maps share the same two axes: the first two principal components of all cells' normalised vectors at "
            "the newest step. Maps and their scores are those of seed {seed}. Hovering a text highlights it on every "
            "map.",
            seed=seed,
        )
    )


@run_reads.cached_by_frames(max_entries=8)
def _places(every: tuple[Frames, ...], extents: str) -> list[Bundle]:
    """Project every frame of every cell onto the same two axes, in one box.

    The axes are turned as those of the first frame, which all cells share, so that they hold still from frame to frame.
    """
    common = max(set.intersection(*(set(frames.numbers) for frames in every)))
    vectors = [{step: normalised(frames.vectors(step)) for step in frames.numbers} for frames in every]
    newest = np.concatenate([of_cell[common] for of_cell in vectors])
    middle = newest.mean(0)
    axes = np.linalg.svd(newest - middle, full_matrices=False)[2][:2].T  # [H, 2]
    first = vectors[0][min(vectors[0])]
    start = (first - middle) @ axes
    turn = np.linalg.lstsq(start - start.mean(0), align(start - start.mean(0), pca_map(first)), rcond=None)[0]
    stacks = [
        np.stack([(of_cell[step] - middle) @ axes @ turn for step in frames.numbers])
        for of_cell, frames in zip(vectors, every, strict=True)
    ]
    box = box_of(*stacks)
    return [places_bundle(stack, box) for stack in stacks]
