"""Estimate the cost of an experiment before it starts: runs, time and disk space."""

from __future__ import annotations

from dataclasses import dataclass

from core.advice.prepare import lack_of_scores
from core.artifacts.waiting_time import estimate_run
from core.errors import ConfigError, PlaygroundError
from core.events import SPEARMAN
from core.experiments.design import Design
from core.experiments.lifecycle import check_drafts
from core.experiments.results import usual_measure
from core.workers import Engine
from core.workers.machine import has_gpu

MAX_PREPARED_RUNS = 200


@dataclass(frozen=True, slots=True)
class Cost:
    """The estimated cost of the runs that remain to be executed.

    Attributes:
        runs: number of runs in the experiment.
        known: number of runs that exist already; large experiments are checked for the first seed only.
        seconds: total run time, one run after another.
        disk_bytes: disk space the runs will occupy.
        measured: True if `seconds` is based on the speed of earlier runs, False if on an assumed speed.
        refused: title of each cell for which no run can be created, and the reason.
    """

    runs: int
    known: int
    seconds: float
    disk_bytes: float
    measured: bool
    refused: tuple[tuple[str, str], ...]


def cost(engine: Engine, design: Design) -> Cost:
    """Estimate the cost from one run per cell, assuming that all seeds take equally long.

    Raises: EncoderError if a cell's models are missing; ConfigError, TaskError or EncoderError if no cell can be run.
    """
    design.check_early_stopping()
    check_drafts(design)
    # Checking every run of a large experiment would take too long.
    looked_at = design.seeds if design.runs <= MAX_PREPARED_RUNS else design.seeds[:1]
    refused: list[tuple[str, str]] = []
    first: PlaygroundError | None = None
    seconds = disk_bytes = 0.0
    probes = dict[object, float]()
    known, measured, by_rank = 0, True, usual_measure(design) == SPEARMAN
    for cell in (*design.source_cells, *design.cells):
        try:
            made = [engine.prepared(design.draft(cell, seed)) for seed in looked_at]
            config, data = made[0]
            if by_rank and not data.pairs:  # also a cell that could train without scores
                raise ConfigError("task.id", config.task.id, lack_of_scores(data.name))
            found = estimate_run(engine.store, *made[0], gpu=has_gpu())
        except PlaygroundError as error:
            refused.append((design.spoken_title(cell), str(error)))
            first = first or error
            continue
        of_cell = sum(engine.store.same_as(config) is not None for config, _ in made)
        new = len(design.seeds) - of_cell
        seconds += found.total_s * new
        if design.base.on_shared_trunk and new:
            # Cells with the same trunk share the linear probe of the untrained encoder.
            seconds -= found.probe_s * new
            probes[config.trunk] = max(probes.get(config.trunk, 0.0), found.probe_s * new)
        disk_bytes += found.disk_bytes * new
        measured &= found.measured
        known += of_cell
    cells = len(design.cells) + len(design.sources)
    if first is not None and len(refused) == cells:
        raise first
    seconds += sum(probes.values())
    runs = (cells - len(refused)) * len(design.seeds)
    return Cost(runs, known, seconds, disk_bytes, measured, tuple(refused))
