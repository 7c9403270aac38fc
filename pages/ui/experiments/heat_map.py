"""An experiment as a table of cells that fills as runs end, coloured by how each differs from its baseline."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import streamlit as st

from core.experiments.design import Design
from core.experiments.result_table import (
    difference_text,
    interval_text,
    mean_text,
    needed_text,
    p_text,
    score_name,
)
from core.experiments.results import CellResult, Results
from core.quantities import counted
from core.store import ExperimentRun, Status
from pages.ui.cell_table import Head, TableCell, cell_table
from pages.ui.parts import escaped

# How strong the colour of a difference is that is not shown, beside one that is.
PALE = 0.4
# The one row of a design without axes.
ALL = "All runs"


def heat_map(results: Results, runs: Sequence[ExperimentRun], chosen: int | None, *, key: str) -> int | None:
    """Draw it; the number of the cell that was just pressed, None for none.

    Args:
        runs: all of the experiment, those that have not ended too.
    """
    design = results.design
    by_levels = {cell.cell.levels: cell for cell in results.cells}
    largest = max((abs(one.difference.mean) for one in results.comparisons), default=0.0)
    means = [cell.mean for cell in results.cells if cell.mean is not None]
    spread = (min(means, default=0.0), max(means, default=0.0))

    def drawn(cell: CellResult | None) -> TableCell | None:
        if cell is None:
            return None
        of_cell = [run for run in runs if run.cell == cell.cell.number]
        return _cell(results, cell, of_cell, largest, spread, chosen == cell.cell.number)

    rows, columns, places = _places(results)
    cells = [[drawn(by_levels.get(levels)) for levels in line] for line in places]
    label = f"{score_name(results)} of every cell"
    pressed = cell_table(rows, columns, cells, label=label, corner=_corner(design), key=key, upright=False)
    found = None
    if pressed is not None:
        levels = places[pressed[0]][pressed[1]]
        found = by_levels[levels].cell.number
    return found


def legend(results: Results) -> str:
    """What the colours and the small numbers are."""
    better = f" {results.measure.better.capitalize()} is better." if results.measure.better else ""
    if not results.design.compares:
        return (
            f"{score_name(results)}, mean ± standard deviation over seeds; the stronger the blue, the higher.{better}"
        )
    ways = ("higher", "lower") if results.measure.better is None else ("better", "worse")
    return (
        f"{score_name(results)}, mean ± standard deviation over seeds. Below, the difference from what the cell is "
        f"compared with, and * where it is shown at the 5% level. Blue is {ways[0]}, orange {ways[1]}, pale what is "
        f"not shown.{better}"
    )


def cell_sentences(results: Results, cell: CellResult) -> list[str]:
    """What a cell found, in words."""
    if cell.mean is None:
        return [f"{cell.title}: no score yet."]
    words = [f"{cell.title}: {mean_text(results, cell)} over {counted(cell.seeds, 'seed')}."]
    if (comparison := cell.comparison) is not None:
        against = results.cells[comparison.baseline].title
        found = comparison.difference
        pairs = counted(found.seeds, "seed")
        words.append(f"{difference_text(results, found.mean)} against {against}, over the {pairs} that both have")
        if found.p is not None:
            interval, p = interval_text(results, comparison), p_text(comparison.corrected_p)
            words[-1] += f"; 95% interval {interval}, p {p} (Holm)."
            words.append(f"{comparison.verdict.capitalize()}. Seeds needed: {needed_text(comparison)}.")
        else:
            words[-1] += ". One seed says nothing of others."
    return words


def _corner(design: Design) -> str:
    """What rows and columns are."""
    names = [axis.name for axis in design.axes]
    if len(names) < 2:
        return "".join(names)
    return f"{' · '.join(names[:-1])} ↓  {names[-1]} →"


Levels = tuple[int, ...] | None


def _places(results: Results) -> tuple[list[Head], list[Head], list[list[Levels]]]:
    """Rows, columns, and which cell is where: the last axis across, the reference in a row of its own."""
    axes = results.design.axes
    if not axes:
        return [Head(ALL)], [Head("")], [[()]]
    if len(axes) == 1:
        rows = [Head(level.label) for level in axes[0].levels]
        places: list[list[Levels]] = [[(number,)] for number in range(len(rows))]
        columns = [Head(score_name(results))]
    else:
        above = list(product(*(range(len(axis.levels)) for axis in axes[:-1])))
        rows = [
            Head(" · ".join(axis.levels[level].label for axis, level in zip(axes[:-1], levels, strict=True)))
            for levels in above
        ]
        columns = [Head(level.label) for level in axes[-1].levels]
        places = [[(*levels, last) for last in range(len(columns))] for levels in above]
    if results.design.reference is not None:
        rows.append(Head(results.design.reference.label))
        places.append([None, *[NO_CELL] * (len(columns) - 1)])
    return rows, columns, places


# No cell has these levels.
NO_CELL: Levels = (-1,)


def _cell(
    results: Results,
    cell: CellResult,
    runs: Sequence[ExperimentRun],
    largest: float,
    spread: tuple[float, float],
    chosen: bool,
) -> TableCell:
    going = _going(results, runs)
    if cell.mean is None:
        about = f"{cell.title}: {going or 'no run has finished'}"
        return TableCell("–", about, note=going, kind="score pending", chosen=chosen)
    about = " ".join(cell_sentences(results, cell)) + (f" {going}." if going else "")
    comparison = cell.comparison
    if results.design.compares:
        if comparison is None:
            note, strength, kind = "baseline", 0.0, "score"
        else:
            mean, shown = comparison.difference.mean, comparison.verdict != "no difference shown"
            note = f"{difference_text(results, mean)}{' *' if shown else ''}"
            strength = (1.0 if shown else PALE) * abs(mean) / largest if largest else 0.0
            worse = mean > 0 if results.measure.better == "lower" else mean < 0
            kind = "score lower" if worse else "score"
    else:
        note, kind = counted(cell.seeds, "seed"), "score"
        low, high = spread
        strength = (cell.mean - low) / (high - low) if high > low else 0.0
    return TableCell(mean_text(results, cell), about, strength, f"{note} · {going}" if going else note, kind, chosen)


def _going(results: Results, runs: Sequence[ExperimentRun]) -> str:
    """How many of a cell's runs have ended, where not all have finished."""
    finished = sum(run.status == Status.FINISHED for run in runs)
    failed = sum(run.status == Status.FAILED or run.problem is not None for run in runs)
    total = len(results.design.seeds)
    if failed:
        return f"{failed} failed"
    return "" if finished == total else f"{finished} of {total}"


def chosen_cell(results: Results, number: int | None) -> CellResult | None:
    """The cell of this number; None where there is none."""
    return next((cell for cell in results.cells if cell.cell.number == number), None)


def draw_cell(results: Results, cell: CellResult) -> None:
    """What a cell found."""
    for sentence in cell_sentences(results, cell):
        st.markdown(escaped(sentence))
