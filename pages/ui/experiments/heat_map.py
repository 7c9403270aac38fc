"""The heat map of an experiment, which fills as runs end, and the results of a cell in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from core.experiments.design import axis_title
from core.experiments.result_table import (
    better_text,
    difference_text,
    interval_text,
    mean_text,
    needed_text,
    p_text,
    reference_text,
    score_name,
)
from core.experiments.results import CellResult, Results, Verdict
from core.messages import N_, _, join_label, ngettext, sentences
from core.store import ExperimentRun, Status
from pages.ui.tables import Head, TableCell, cell_table

# Colour strength of a difference that is not significant at the 5% level, relative to a significant one.
PALE = 0.4
Levels = tuple[int, ...] | None
VERDICT_SENTENCES: Mapping[Verdict, str] = {
    # Translators: this score, than that of the baseline.
    "higher": N_("Higher."),
    # Translators: this score, than that of the baseline.
    "lower": N_("Lower."),
    "no difference shown": N_("No difference shown."),
}


def heat_map(results: Results, runs: Sequence[ExperimentRun], chosen: int | None, *, key: str) -> int | None:
    """Draw the heat map. Return the number of the cell that was just pressed, or None.

    Args:
        runs: all runs of the experiment, including those that have not ended.
    """
    design = results.design
    by_levels = {cell.cell.levels: cell for cell in results.cells}
    largest = max((abs(one.difference.mean) for one in results.comparisons), default=0.0)
    means = [cell.mean for cell in results.cells if cell.mean is not None]
    ends = (min(means, default=0.0), max(means, default=0.0))
    spread = ends[::-1] if results.measure.better == "lower" else ends

    def drawn(cell: CellResult | None) -> TableCell | None:
        if cell is None:
            return None
        of_cell = [run for run in runs if run.cell == cell.cell.number]
        return _cell(results, cell, of_cell, largest, spread, chosen == cell.cell.number)

    axes = design.axes
    # The last of several axes is across.
    down, across = (axes[:-1], axes[-1].levels) if len(axes) > 1 else (axes, ())
    titles = product(*([level.title for level in axis.levels] for axis in down))
    rows = [Head(" · ".join(of_row) or _("All runs")) for of_row in titles]
    columns = [Head(level.title) for level in across] or [Head(score_name(results) if axes else "")]
    lines = product(*(range(len(axis.levels)) for axis in down))
    places: list[list[Levels]] = [[(*line, last) for last in range(len(across))] or [line] for line in lines]
    if axes and design.reference is not None:
        rows.append(Head(design.reference.title))
        places.append([None])
    cells = [[drawn(by_levels.get(levels)) for levels in line] for line in places]
    label = _("{score} of every cell", score=score_name(results))
    *above, last_title = [axis_title(axis, design.base) for axis in axes] or [""]
    corner = f"{' · '.join(above)} ↓  {last_title} →" if above else last_title
    pressed = cell_table(rows, columns, cells, label=label, corner=corner, key=key, upright=False)
    return None if pressed is None else by_levels[places[pressed[0]][pressed[1]]].cell.number


def legend(results: Results) -> str:
    """Explain the colours and the small numbers."""
    score, better = score_name(results), better_text(results)
    mean = _("{score}, mean ± standard deviation over seeds.", score=score)
    words = [mean if results.over_seeds else _("{said}.", said=score)]
    if not results.design.compares:
        words.append(_("The stronger the blue, the better.") if better else _("The stronger the blue, the higher."))
    else:
        words.append(_("The second line is the difference from the baseline."))
        words.append(_("Blue is better, orange is worse.") if better else _("Blue is higher, orange is lower."))
        if results.over_seeds:
            words.append(_("Pale differences are not significant; * marks significance at the 5% level."))
    return sentences([*words, better])


def cell_sentences(results: Results, cell: CellResult) -> list[str]:
    """Describe the results of a cell in sentences."""
    if cell.mean is None:
        return [_("{cell}: no score yet.", cell=cell.title)]
    seeds = ngettext("{count} seed", "{count} seeds", cell.seeds)
    words = [_("{cell}: {score} over {seeds}.", cell=cell.title, score=mean_text(results, cell), seeds=seeds)]
    words += [text for text in [reference_text(results, cell)] if text]
    comparison = cell.comparison
    if comparison is None:
        return words
    found = comparison.difference
    seeds = ngettext("{count} seed", "{count} seeds", found.seeds)
    difference, against = difference_text(results, found.mean), results.cells[comparison.baseline].title
    if found.p is None:
        alone = _(
            "{difference} against {baseline}, over {seeds} in common. One seed is not enough to generalise.",
            difference=difference,
            baseline=against,
            seeds=seeds,
        )
        return [*words, alone]
    if comparison.is_zero_throughout:
        return [*words, _("No difference from {baseline}, over {seeds} in common.", baseline=against, seeds=seeds)]
    shown = _(
        "{difference} against {baseline}, over {seeds} in common; 95% interval {interval}, p {p} over seeds (Holm).",
        difference=difference,
        baseline=against,
        seeds=seeds,
        interval=interval_text(results, comparison),
        p=p_text(comparison.corrected_p),
    )
    verdict = _(VERDICT_SENTENCES[comparison.verdict])
    needed = "" if comparison.is_zero else _("Seeds needed: {number}.", number=needed_text(comparison))
    return [*words, shown, sentences([verdict, needed])]


def _cell(
    results: Results,
    cell: CellResult,
    runs: Sequence[ExperimentRun],
    largest: float,
    spread: tuple[float, float],
    chosen: bool,
) -> TableCell:
    finished, total = sum(run.status == Status.FINISHED for run in runs), len(results.design.seeds)
    going = "" if finished == total else _("{finished} of {total}", finished=finished, total=total)
    if failed := sum(run.status == Status.FAILED or run.problem is not None for run in runs):
        going = _("{count} failed", count=failed)
    if cell.mean is None:
        about = join_label(cell.title, going) if going else _("{cell}: no score yet.", cell=cell.title)
        return TableCell("–", about, note=going, kind="score pending", chosen=chosen)
    about = sentences([*cell_sentences(results, cell), *([_("{progress}.", progress=going)] if going else [])])
    comparison = cell.comparison
    if results.design.compares:
        if comparison is None:
            waits = results.design.baseline_of(cell.cell) is not None
            note, strength, kind = _("waiting for baseline") if waits else _("baseline"), 0.0, "score"
        else:
            mean, shown = comparison.difference.mean, comparison.verdict != "no difference shown"
            note = f"{difference_text(results, mean)}{' *' if shown else ''}"
            strength = (1.0 if shown else PALE) * abs(mean) / largest if largest else 0.0
            kind = "score lower" if results.is_worse(mean) else "score"
    else:
        note, kind = ngettext("{count} seed", "{count} seeds", cell.seeds) if total > 1 else "", "score"
        pale, strong = spread
        strength = (cell.mean - pale) / (strong - pale) if strong != pale else 0.0
    beaten = ""
    if results.is_worse_than_probe(cell):
        beaten = _("above probe") if results.measure.better == "lower" else _("below probe")
    note = " · ".join(part for part in (note, beaten, going) if part)
    return TableCell(mean_text(results, cell), about, strength, note, kind, chosen)
