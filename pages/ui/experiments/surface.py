"""Surfaces on Experiments: the card that starts one, what its cells say about the two settings, and their live maps."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import ceil

import numpy as np
import streamlit as st

from core.config import RunConfig
from core.config.edit import apply_settings
from core.experiments.design import Design, axis_of
from core.experiments.surface import (
    LEVELS,
    SIDES,
    STEPS,
    TRAIN_ROWS,
    VALIDATION_ROWS,
    summarise,
    surface_design,
)
from core.figures.map_data import Bundle, box_of, examples_bundle, label_colours, places_bundle
from core.messages import _, ngettext
from core.representation.geometry import normalised
from core.representation.projections import pca_map
from core.representation.projections.alignment import align
from core.store import ExperimentRun, Status, Store
from core.tasks.rows import is_own
from core.workers import Engine
from core.workers.run_rows import TaskSource
from pages.ui import reads
from pages.ui.address import Experiments
from pages.ui.explore import run_reads
from pages.ui.explore.run_reads import Frames, frames_of
from pages.ui.map_view import Panel, map_view
from pages.ui.parts import escaped, page_link, show_errors, task_names
from pages.ui.visitor import visitor

MOST_SEEDS = 2
# Height of one map. All rows fit below the head of the page, unless they would become too small.
HEIGHT = "clamp(6.5rem, (100dvh - 31rem) / {rows} - 1.5rem, 15rem)"


def surface_link(task_id: str) -> None:
    """Draw a link to the card that starts a surface on a task."""
    page_link("experiments", _("Sweep λ and τ on it"), "grid_on", {Experiments.SURFACE.name: task_id})


def blocks_trained(*, every: bool) -> str:
    """Say which blocks a cell trains."""
    return _("all blocks of the encoder") if every else _("the last block of the encoder")


def start_card(engine: Engine) -> None:
    """Draw the card that starts a surface over τ and λ."""
    with st.container(border=True, key="experiment.surface"):
        title = _("What do λ and τ do?")
        about = _(
            "Train one short run for each pair of temperature τ and weight λ, about a minute for all. Each "
            "trains only the last block, for {steps} steps on up to {rows} texts.",
            steps=STEPS,
            rows=TRAIN_ROWS,
        )
        st.markdown(f"**{title}**  \n{about}")
        labels = task_names({task.id: task for task in reads.own_tasks().values() if task.kind == "classes"})
        named = Experiments.SURFACE.choice(labels, next(iter(labels)))
        with st.container(horizontal=True, vertical_alignment="bottom"):
            task = st.selectbox(
                _("Task"),
                list(labels),
                index=list(labels).index(named),
                format_func=labels.__getitem__,
                key=f"surface.task.{named}",
                width=280,
            )
            sides = list(range(SIDES[0], SIDES[1] + 1))
            side = st.segmented_control(
                _("Cells"),
                sides,
                default=sides[0],
                format_func=lambda n: f"{n} × {n}",
                required=True,
                key="surface.side",
            )
            # With two seeds, an interval covers the draws of a run, too.
            usual = MOST_SEEDS if is_own(task) else 1
            seeds = st.segmented_control(
                _("Seeds"), range(1, MOST_SEEDS + 1), default=usual, required=True, key=f"surface.seeds.{usual}"
            )
            if st.button(_("Start"), key="surface.start", icon=":material/grid_on:", type="primary"):
                with show_errors():
                    draft = apply_settings(RunConfig(), {"task.id": task})
                    draft = draft.model_copy(update={"task": reads.library().with_current_name(draft.task)})
                    data = TaskSource(engine.store.folder)(draft.task, draft.seed)
                    axes = [axis_of(name, LEVELS[name][side or sides[0]], draft) for name in LEVELS]
                    design = surface_design(draft, data, axes, range(seeds or usual))
                    Experiments.SURFACE.forget()
                    Experiments.EXPERIMENT.put(reads.open_experiments(engine).begin(design, visitor().id))
                    st.rerun()
            page_link("data", _("Add your own data"), "add", {"view": "file"})


def draw_findings(
    store: Store, design: Design, runs: Sequence[ExperimentRun], full: Sequence[ExperimentRun]
) -> Collection[str]:
    """Say which settings change the accuracy, and how the cells were trained. Return the measures withheld."""
    rows = design.base.task.train_size or TRAIN_ROWS
    about = _(
        "Each cell trains {blocks} for {steps} on {rows}. Cells of a seed start from the same weights; with the "
        "same training texts and batch settings they also read the same batches. Scores are of at most "
        "{validation} validation texts. The test split is left for full runs.",
        blocks=blocks_trained(every=design.base.phases[0].trainable.blocks > 1),
        steps=ngettext("{count} step", "{count} steps", STEPS),
        rows=ngettext("{count} text", "{count} texts", rows),
        validation=VALIDATION_ROWS,
    )
    if sum(run.ended for run in runs) < len(design.cells):
        st.caption(about)
        return ()
    found = summarise(store, design, runs, full)
    st.markdown(" ".join(escaped(str(one)) for one in found.sentences), help=about)
    return found.withheld


def draw_maps(store: Store, experiment_id: str, design: Design, runs: Sequence[ExperimentRun]) -> None:
    """Draw a map of every cell of the newest seed that has frames. A failed cell is left out."""
    for seed in reversed(design.seeds):
        of_seed, found = [run for run in runs if run.seed == seed], dict[int, Frames]()
        waiting = len(of_seed) < len(design.cells)
        for run in of_seed:
            if run.run_id is None or run.status == Status.FAILED:
                continue
            record = store.run(run.run_id)
            frames = frames_of(store, record) if record.probe is not None else None
            if frames is not None and frames.numbers:
                found[run.cell] = frames
            waiting |= run.cell not in found and not run.ended
        if found and not waiting:
            break
    else:
        st.caption(_("The maps appear when every cell has taken its first step."))
        return
    shown = [cell for cell in design.cells if cell.number in found]
    every = tuple(found[cell.number] for cell in shown)
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
        for cell, frames, place in zip(shown, every, places, strict=True)
    ]
    is_grid = len(design.shape) > 1 and len(shown) == len(design.cells)
    columns = design.shape[-1] if is_grid else ceil(len(panels) ** 0.5)
    map_view(
        panels,
        key=f"surface.{experiment_id}",
        height=HEIGHT.format(rows=-(-len(panels) // columns)),
        description=_("Map of {texts} texts, coloured by label.", texts=f"{len(probe.ids):,}"),
        trails=False,
        follow=True,
        name=f"surface-{experiment_id}",
        columns=columns,
    )
    st.caption(
        _(
            "All maps share the same two axes: the first two principal components of all cells' normalised "
            "vectors at the newest step. Maps and their scores are those of seed {seed}. Hovering over a text "
            "highlights it on every map.",
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
