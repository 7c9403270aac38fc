"""What an experiment will take, before it starts: runs, time and room on disk."""

from __future__ import annotations

from dataclasses import dataclass

from core.artifacts.speed import estimated
from core.errors import PlaygroundError
from core.experiments.design import Cell, Design
from core.workers import Engine
from core.workers.machine import has_gpu

MOST_LOOKED_AT = 200


@dataclass(frozen=True, slots=True)
class Cost:
    """Of all runs that have to be carried out.

    Attributes:
        runs: how many an experiment has; `known` of them are there already (of many, first seeds alone counted).
        seconds: one after the other, at the speed that earlier runs reached or an assumed one (`measured` says which).
        disk_bytes: what they leave.
        refused: cells that no run can be made of, each with the reason.
    """

    runs: int
    known: int
    seconds: float
    disk_bytes: float
    measured: bool
    refused: tuple[tuple[str, str], ...]


def cost(engine: Engine, design: Design) -> Cost:
    """Estimated from one run of every cell, whose other seeds take as long.

    Raises: ConfigError, TaskError or EncoderError where no cell can be run at all.
    """
    design.check_early_stopping()
    refused: list[tuple[str, str]] = []
    first: PlaygroundError | None = None
    seconds = disk_bytes = 0.0
    known, measured = 0, True
    for cell in (*design.source_cells, *design.cells):
        try:
            of_cell = _of_cell(engine, design, cell)
        except PlaygroundError as error:
            refused.append((design.spoken_title(cell), str(error)))
            first = first or error
            continue
        seconds += of_cell[0]
        disk_bytes += of_cell[1]
        measured &= of_cell[2]
        known += of_cell[3]
    cells = len(design.cells) + len(design.sources)
    if first is not None and len(refused) == cells:
        raise first
    runs = (cells - len(refused)) * len(design.seeds)
    return Cost(runs, known, seconds, disk_bytes, measured, tuple(refused))


def _of_cell(engine: Engine, design: Design, cell: Cell) -> tuple[float, float, bool, int]:
    """Seconds and bytes of a cell's runs, whether its speed was measured, and how many of them are there."""
    made = [engine.prepared(design.draft(cell, seed)) for seed in _looked_at(design)]
    found = estimated(engine.store, *made[0], gpu=has_gpu())
    known = sum(engine.store.same_as(config) is not None for config, _ in made)
    left = len(design.seeds) - known
    return found.total_s * left, found.disk_bytes * left, found.measured, known


def _looked_at(design: Design) -> tuple[int, ...]:
    """The seeds under which runs are looked for: of many, checking every run would take too long."""
    return design.seeds if design.runs <= MOST_LOOKED_AT else design.seeds[:1]
