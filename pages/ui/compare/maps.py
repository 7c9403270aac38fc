"""The runs' maps side by side, aligned to the first, with a common step, hover and selection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from streamlit.delta_generator import DeltaGenerator

from core.artifacts.maps import LIVE, map_request
from core.artifacts.seeds import seed_groups
from core.artifacts.shared_examples import Turn, example_keys, find_shared_rows, find_turn
from core.config.compare import shared_steps
from core.figures.map_data import Bundle, box_of, places_bundle
from core.messages import _, join_label, join_list, ngettext, sentences
from core.quantities import signed
from core.representation.paired import paired_difference
from core.representation.projections import MapSpec, Points, stable_projections
from pages.ui.address import Compare
from pages.ui.bound import bound_segments
from pages.ui.compare.picking import Linked, RunFrames, group_name
from pages.ui.explore import run_reads
from pages.ui.explore.frame_map import COLOURINGS, colours
from pages.ui.explore.run_reads import Frames
from pages.ui.map_view import Panel, map_name
from pages.ui.parts import escaped
from pages.ui.waiting import complete_since, ensure_job

COLOURS = ("label", "prediction", "correct")

Maps = Mapping[int, Points]


def choose_map(row: DeltaGenerator) -> tuple[MapSpec, str]:
    """Draw the controls into a row. Return the map and its colouring."""
    labels = {colour: _(COLOURINGS[colour].label) for colour in COLOURS}
    labels[COLOURS[0]] = _("Colour: {of}", of=labels[COLOURS[0]].lower())
    with row:
        names = {name: entry.label for name, entry in stable_projections().items()}
        method = bound_segments(_("Map"), Compare.MAP, names, wrap=None)
        colour = bound_segments(_("Colour by"), Compare.COLOUR, labels, wrap=None)
    return MapSpec(method), colour


def maps_of(runs: Sequence[RunFrames], wanted: MapSpec) -> tuple[MapSpec, list[Maps], bool]:
    """Return the maps of every run: PCA for all while the wanted maps of any run are still being computed.

    Returns: the kind of map, the maps by frame for each run, and whether something is still being computed.
    """
    every = [one.frames for one in runs]
    if wanted == LIVE:
        return LIVE, [run_reads.maps(frames, LIVE) for frames in every], False
    found: list[Maps] = [run_reads.maps(frames, wanted) for frames in every]
    busy, usable = False, True
    for frames, maps in zip(every, found, strict=True):
        if len(maps) < len(frames.numbers):
            # An ended run needs all of its maps, an active run at least one.
            usable = usable and bool(maps) and frames.run.status.active
            label = _("{map} of {run}", map=_(wanted.entry.label), run=frames.run.title)
            busy = ensure_job("map", map_request(frames.run, wanted), label, since=complete_since(frames.run)) or busy
    return (wanted, found, busy) if usable else (LIVE, [run_reads.maps(frames, LIVE) for frames in every], busy)


def panels_of(
    runs: Sequence[RunFrames], examples: Linked, spec: MapSpec, maps: Sequence[Maps], colour: str
) -> tuple[list[Panel], list[Turn]]:
    """Build one map per run. Return the maps and their alignments to the first. Raises: StoreError."""
    every = tuple(one.frames for one in runs)
    laid, turns = _compute_aligned_maps(
        every, spec, str([(frames.numbers, [*of]) for frames, of in zip(every, maps, strict=True)])
    )
    panels = [
        Panel(
            examples=bundle,
            places=places,
            colours=colours(one.frames, colour),
            steps=one.frames.numbers,
            title=one.name,
            notes=run_reads.score_notes(one.frames),
            about=run_reads.separation(one.frames) if one.frames.run.status.ended else "",
            space=spec.key,
        )
        for one, bundle, places in zip(runs, examples.bundles, laid, strict=True)
    ]
    return panels, turns


def about(runs: Sequence[RunFrames], spec: MapSpec, wanted: MapSpec, turns: Sequence[Turn], colour: str) -> str:
    """Describe the maps and their alignment in a few sentences."""
    kind = map_name(spec, _(spec.entry.label))
    words = [_(COLOURINGS[colour].about), _("{map} of normalised vectors, the same scale on all maps.", map=kind)]
    words.append(
        _(
            "The figures above each map are the mean cosine within and between classes and the silhouette, over the "
            "validation texts."
        )
    )
    if spec.entry.caution:
        words.append(_(spec.entry.caution))
    if spec != wanted:
        words.append(_("{map} is not computed yet; showing PCA.", map=_(wanted.entry.label)))
    apart = [escaped(one.name) for one, turn in zip(runs[1:], turns[1:], strict=True) if not turn.common]
    counts = [turn.common for turn in turns[1:] if turn.common]
    if counts:
        low, high = f"{min(counts):,}", f"{max(counts):,}"
        how = _(
            "Each map is rotated or mirrored, never stretched, to match the first map on the {count} examples "
            "they share; the same rotation is used for all of its frames. Hovering over an example highlights "
            "it on every map.",
            count=low if low == high else _("{low} to {high}", low=low, high=high),
        )
        words.append(how)
    if counts and apart:
        words.append(_("No examples in common with the first run: {runs}.", runs=join_list(apart)))
    elif apart:
        words.append(_("These runs have no examples in common, so their maps are shown side by side, unlinked."))
    return sentences(words)


def separation_over_seeds(runs: Sequence[RunFrames]) -> str | None:
    """Describe the silhouettes of runs that differ only in the seed; None without two seeds or before the last step."""
    every = [one.frames for one in runs]
    if any(frames.numbers[-1] != frames.run.steps for frames in every):
        return None
    configs, found = [frames.run.effective for frames in every], list[tuple[str, dict[int, float]]]()
    for group in seed_groups(configs):
        values = ((configs[number].seed, run_reads.silhouette(every[number])) for number in group)
        if known := {seed: value for seed, value in values if value is not None}:
            found.append((escaped(group_name([runs[number].name for number in group])), known))
    if all(len(known) < 2 for _name, known in found):
        return None
    groups = join_list(join_label(name, _interval(list(known.values()))) for name, known in found)
    about = _("Silhouette of the last frame, mean over seeds with 95% bootstrap interval: {groups}.", groups=groups)
    if len(found) != 2 or len(common := sorted(found[0][1].keys() & found[1][1].keys())) < 2:
        return about
    gaps = [found[1][1][seed] - found[0][1][seed] for seed in common]
    return sentences([about, _("The second minus the first, paired by seed: {interval}.", interval=_interval(gaps))])


def _interval(values: Sequence[float]) -> str:
    """Format the mean of one value per seed with its interval over seeds."""
    one = paired_difference(values, [0.0] * len(values))
    seeds = ngettext("{count} seed", "{count} seeds", len(values))
    if one.low is None or one.high is None:
        return _("{mean} ({seeds})", mean=signed(one.mean, 2), seeds=seeds)
    low, high = signed(one.low, 2), signed(one.high, 2)
    return _("{mean} ({low} to {high}, {seeds})", mean=signed(one.mean, 2), low=low, high=high, seeds=seeds)


@run_reads.cached_by_frames(max_entries=12)
def _compute_aligned_maps(every: tuple[Frames, ...], spec: MapSpec, there: str) -> tuple[list[Bundle], list[Turn]]:
    """Compute the aligned points of every run in one box, and the alignments.

    Args:
        there: the frames of each run and those with a map, as text for the cache key.
    """
    maps = [run_reads.maps(frames, spec) for frames in every]
    turns = [turn_onto(every[0], maps[0], frames, of_run) for frames, of_run in zip(every, maps, strict=True)]
    stacks = []  # [F, N, 2] of each run, NaN for frames without a map
    for frames, of_run, turn in zip(every, maps, turns, strict=True):
        nowhere = np.full((len(frames.probe.ids), 2), np.nan, np.float32)
        stacks.append(np.stack([turn(of_run[n]) if n in of_run else nowhere for n in frames.numbers]))
    box = box_of(*stacks)
    return [places_bundle(stack, box) for stack in stacks], turns


def turn_onto(first: Frames, first_maps: Maps, frames: Frames, maps: Maps) -> Turn:
    """Align a run's maps to the first run's, by common examples at the last step for which both have a map.

    Without a common step, the last map of each run is used.
    """
    rows = find_shared_rows([example_keys(first.probe), example_keys(frames.probe)])  # [2, M]
    shared = shared_steps({one.run.id: one.run.config for one in (first, frames)})
    if shared is not None or not first_maps or not maps:  # the maps of shared steps are equal already
        nothing = np.zeros((0, 2))
        return replace(find_turn(nothing, nothing), common=rows.shape[1])
    step = max(set(first_maps) & set(maps), default=None)
    onto = first_maps[max(first_maps) if step is None else step]
    points = maps[max(maps) if step is None else step]
    return find_turn(points[rows[1]], onto[rows[0]])
