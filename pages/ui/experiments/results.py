"""The results of an experiment: as a heat map that fills as runs end, a chart, a table, or a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path

import pandas as pd
import streamlit as st

from core.artifacts.seeds import SCORES
from core.config import RunConfig
from core.experiments.design import Design, axis_title
from core.experiments.report import chart, report_html
from core.experiments.result_table import (
    SHARES,
    SUFFIXES,
    Format,
    better_text,
    cautions,
    difference_text,
    findings,
    interval_text,
    mean_text,
    needed_text,
    notes,
    p_text,
    reference_text,
    score_name,
    strokes_text,
    table_rows,
    table_text,
)
from core.experiments.results import CellResult, Comparison, Results, Verdict, pair_agreement
from core.figures.run_curves import MOST_RUNS
from core.messages import N_, _, called, ngettext, sentences
from core.quantities import PERCENT_CELLS, hundredths
from core.store import Experiment, ExperimentRun, Status, Store
from core.workers import Engine
from pages.ui.address import Experiments
from pages.ui.cell_table import Head, TableCell, cell_table
from pages.ui.compare.pair import OVER_EXAMPLES, pair_text
from pages.ui.parts import duration, escaped

# How strong the colour of a difference is that is not shown, beside one that is.
PALE = 0.4
# The one row of a design without axes.
ALL = N_("All runs")
VERDICT_SENTENCES: Mapping[Verdict, str] = {
    # Translators: this score, than that of the baseline.
    "higher": N_("Higher."),
    # Translators: this score, than that of the baseline.
    "lower": N_("Lower."),
    "no difference shown": N_("No difference shown."),
}
# With more columns, what a cell found comes below the map.
BESIDE = 4
# Room for "no difference shown".
VERDICT_PX = 136
SEED_PX = 120
NAMES: dict[Format, str] = {"csv": "CSV", "markdown": "Markdown", "latex": "LaTeX"}


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
    label = _("{score} of every cell", score=score_name(results))
    pressed = cell_table(rows, columns, cells, label=label, corner=_corner(design), key=key, upright=False)
    found = None
    if pressed is not None:
        levels = places[pressed[0]][pressed[1]]
        found = by_levels[levels].cell.number
    return found


def legend(results: Results) -> str:
    """What the colours and the small numbers are."""
    score, better = score_name(results), better_text(results)
    if not results.design.compares:
        words = [_("{score}, mean ± standard deviation over seeds; the stronger the blue, the higher.", score=score)]
    else:
        words = [
            _(
                "{score}, mean ± standard deviation over seeds. Below, the difference from what the cell is compared "
                "with, and * where it is shown at the 5% level.",
                score=score,
            ),
            _("Blue is better, orange worse, pale what is not shown.")
            if better
            else _("Blue is higher, orange lower, pale what is not shown."),
        ]
    return sentences([*words, better])


def cell_sentences(results: Results, cell: CellResult) -> list[str]:
    """What a cell found, in words."""
    if cell.mean is None:
        return [_("{cell}: no score yet.", cell=cell.title)]
    seeds = ngettext("{count} seed", "{count} seeds", cell.seeds)
    words = [_("{cell}: {score} over {seeds}.", cell=cell.title, score=mean_text(results, cell), seeds=seeds)]
    words += [text for text in [reference_text(results, cell)] if text]
    return words if cell.comparison is None else [*words, *_comparison_sentences(results, cell.comparison)]


def _comparison_sentences(results: Results, comparison: Comparison) -> list[str]:
    found = comparison.difference
    difference, seeds = difference_text(results, found.mean), ngettext("{count} seed", "{count} seeds", found.seeds)
    against = results.cells[comparison.baseline].title
    if found.p is None:
        return [
            _(
                "{difference} against {baseline}, over the {seeds} that both have. One seed says nothing of others.",
                difference=difference,
                baseline=against,
                seeds=seeds,
            )
        ]
    if comparison.is_zero_throughout:
        return [
            _("No difference found against {baseline}, over the {seeds} that both have.", baseline=against, seeds=seeds)
        ]
    shown = _(
        "{difference} against {baseline}, over the {seeds} that both have; 95% interval {interval}, p {p} over seeds "
        "(Holm).",
        difference=difference,
        baseline=against,
        seeds=seeds,
        interval=interval_text(results, comparison),
        p=p_text(comparison.corrected_p),
    )
    verdict = _(VERDICT_SENTENCES[comparison.verdict])
    needed = "" if comparison.is_zero else _("Seeds needed: {number}.", number=needed_text(comparison))
    return [shown, sentences([verdict, needed])]


def _corner(design: Design) -> str:
    """What rows and columns are."""
    names = [axis_title(axis, design.base) for axis in design.axes]
    if len(names) < 2:
        return "".join(names)
    return f"{' · '.join(names[:-1])} ↓  {names[-1]} →"


Levels = tuple[int, ...] | None


def _places(results: Results) -> tuple[list[Head], list[Head], list[list[Levels]]]:
    """Rows, columns, and which cell is where: the last axis across, the reference in a row of its own."""
    axes = results.design.axes
    if not axes:
        return [Head(_(ALL))], [Head("")], [[()]]
    if len(axes) == 1:
        rows = [Head(level.title) for level in axes[0].levels]
        places: list[list[Levels]] = [[(number,)] for number in range(len(rows))]
        columns = [Head(score_name(results))]
    else:
        above = list(product(*(range(len(axis.levels)) for axis in axes[:-1])))
        rows = [
            Head(" · ".join(axis.levels[level].title for axis, level in zip(axes[:-1], levels, strict=True)))
            for levels in above
        ]
        columns = [Head(level.title) for level in axes[-1].levels]
        places = [[(*levels, last) for last in range(len(columns))] for levels in above]
    if results.design.reference is not None:
        rows.append(Head(results.design.reference.title))
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
        about = called(cell.title, going) if going else _("{cell}: no run has finished", cell=cell.title)
        return TableCell("–", about, note=going, kind="score pending", chosen=chosen)
    about = sentences([*cell_sentences(results, cell), *([_("{progress}.", progress=going)] if going else [])])
    comparison = cell.comparison
    if results.design.compares:
        if comparison is None:
            waits = results.design.baseline_of(cell.cell) is not None
            note, strength, kind = _("waits for baseline") if waits else _("baseline"), 0.0, "score"
        else:
            mean, shown = comparison.difference.mean, comparison.verdict != "no difference shown"
            note = f"{difference_text(results, mean)}{' *' if shown else ''}"
            strength = (1.0 if shown else PALE) * abs(mean) / largest if largest else 0.0
            worse = mean > 0 if results.measure.better == "lower" else mean < 0
            kind = "score lower" if worse else "score"
    else:
        note, kind = ngettext("{count} seed", "{count} seeds", cell.seeds), "score"
        low, high = spread
        strength = (cell.mean - low) / (high - low) if high > low else 0.0
    beaten = ""
    if results.is_worse_than_probe(cell):
        beaten = _("above probe") if results.measure.better == "lower" else _("below probe")
    note = " · ".join(part for part in (note, beaten, going) if part)
    return TableCell(mean_text(results, cell), about, strength, note, kind, chosen)


def _going(results: Results, runs: Sequence[ExperimentRun]) -> str:
    """How many of a cell's runs have ended, where not all have finished."""
    finished = sum(run.status == Status.FINISHED for run in runs)
    failed = sum(run.status == Status.FAILED or run.problem is not None for run in runs)
    total = len(results.design.seeds)
    if failed:
        return _("{count} failed", count=failed)
    return "" if finished == total else _("{finished} of {total}", finished=finished, total=total)


def chosen_cell(results: Results, number: int | None) -> CellResult | None:
    """The cell of this number; None where there is none."""
    return next((cell for cell in results.cells if cell.cell.number == number), None)


def draw_cell(results: Results, cell: CellResult) -> None:
    """What a cell found."""
    for sentence in cell_sentences(results, cell):
        st.markdown(escaped(sentence))


def chart_view(experiment: Experiment, results: Results) -> None:
    """Scores and differences with their intervals."""
    drawn = chart(results)
    if not drawn:
        st.caption(_("No run has finished yet."))
        return
    drawing(drawn, key=f"experiment.chart.{experiment.id}")
    st.caption(
        _(
            "A dot for each seed, a line at their mean; beside it the difference from what the cell is compared with "
            "and its 95% interval, filled where it is shown at the 5% level."
        )
        if results.design.compares
        else _("A dot for each seed, a line at their mean.")
    )
    if strokes := strokes_text(results):
        st.caption(strokes)
    _findings(results)
    _notes(results)
    st.download_button(
        "SVG",
        drawn,
        f"{_stem(experiment)}.svg",
        "image/svg+xml",
        key="experiment.svg",
        icon=":material/download:",
    )


def report_view(engine: Engine, experiment: Experiment, results: Results) -> None:
    """The report, to print and to download."""
    html = report_html(experiment, results, _config(engine, results))
    st.download_button(
        _("Download as one HTML file"),
        html,
        f"{_stem(experiment)}.html",
        "text/html",
        key="experiment.html",
        icon=":material/download:",
    )
    report_frame(html, key=f"experiment.report.{experiment.id}")


def _stem(experiment: Experiment) -> str:
    """What files of an experiment are called."""
    plain = "".join(sign if sign.isalnum() else " " for sign in experiment.title.casefold())
    return "-".join([*plain.split()[:8], experiment.id])


def _findings(results: Results) -> None:
    """Draw the scores to beat, the cells whose means do not, and the main effects."""
    if found := findings(results):
        st.caption(escaped(sentences(found)))


def _notes(results: Results) -> None:
    """What has to be known to read the numbers; how they were computed, on demand."""
    if found := cautions(results):
        st.caption(escaped(sentences(found)))
    with st.expander(_("How these numbers are computed")):
        st.caption(escaped(sentences(notes(results))))


def _config(engine: Engine, results: Results) -> RunConfig | None:
    """Of a run that has finished, as it was carried out."""
    runs = (run for cell in results.cells for run in cell.runs if run.run_id and run.status == Status.FINISHED)
    first = next(runs, None)
    return None if first is None else engine.store.run(str(first.run_id)).effective


def map_view(engine: Engine, results: Results, runs: Sequence[ExperimentRun], experiment: Experiment) -> None:
    """The map left, and right what the chosen cell found; below each other where many columns need the room."""
    number = Experiments.CELL.read(lambda text: _cell_number(results, text), -1)
    chosen = chosen_cell(results, number)
    narrow = len(results.design.axes[-1].levels) <= BESIDE if len(results.design.axes) > 1 else True
    left, right = st.columns([3, 2], gap="large") if narrow else (st.container(), st.container())
    with left:
        key = f"experiment.map.{experiment.id}"
        pressed = heat_map(results, runs, chosen.cell.number if chosen else None, key=key)
        st.caption(legend(results))
        _findings(results)
    if pressed is not None and (chosen is None or pressed != chosen.cell.number):
        Experiments.CELL.put(pressed)
        st.rerun(scope="fragment")
    with right:
        if chosen is None:
            st.caption(_("Press a cell to see what it found, and its runs."))
        else:
            draw_cell(results, chosen)
            _example_test(engine.store, results, chosen)
            _runs(results, [run for run in runs if run.cell == chosen.cell.number])
    _notes(results)


def _example_test(store: Store, results: Results, cell: CellResult) -> None:
    """One run of a cell against that of its baseline under the same seed, over the examples of the split."""
    if cell.comparison is None or results.measure.name not in SCORES:
        return
    pair = [cell, results.cells[cell.comparison.baseline]]
    st.markdown(f"**{escaped(_(OVER_EXAMPLES[results.split]))}**")
    seeds = [seed for seed in pair[0].scores if seed in pair[1].scores]
    seed = st.selectbox(_("Seed"), seeds, key=f"experiment.pair.{cell.cell.number}", width=SEED_PX)
    runs = [run for one in pair for run in one.runs if run.seed == seed]
    first, second = ((str(run.run_id), run.begun_attempt) for run in runs)
    found = pair_agreement(store, first, second, results.split)
    st.caption(escaped(pair_text(found, *(one.title for one in pair))))


def _cell_number(results: Results, text: str) -> int | None:
    """The number of a cell that there is."""
    return int(text) if text.isdecimal() and int(text) < len(results.cells) else None


def _runs(results: Results, runs: Sequence[ExperimentRun]) -> None:
    """A cell's runs, with a way to each and to all together."""
    scores = next(cell.scores for cell in results.cells if cell.cell.number == runs[0].cell) if runs else {}
    shares = results.measure.name in SHARES
    table = pd.DataFrame(
        {
            "Seed": [run.seed for run in runs],
            "Run": [_("Run {number}", number=run.number) if run.number else "–" for run in runs],
            "Status": [_(str(run.status)) if run.status else _("not made") for run in runs],
            "Score": hundredths([scores.get(run.seed) for run in runs])
            if shares
            else [scores.get(run.seed) for run in runs],
            "Steps": [f"{run.last_step}/{run.steps}" if run.steps else "–" for run in runs],
            "Took": [duration(run.seconds) if run.seconds else "" for run in runs],
        }
    )
    picked = st.dataframe(
        table,
        hide_index=True,
        placeholder="",
        on_select="rerun",
        selection_mode="single-cell",
        height="content",
        key=f"experiment.runs.{hash(tuple(run.run_id for run in runs))}",
        column_config={
            "Seed": st.column_config.Column(_("Seed")),
            "Run": st.column_config.Column(_("Run")),
            "Status": st.column_config.Column(_("Status")),
            "Score": st.column_config.NumberColumn(_("Score"), format=PERCENT_CELLS if shares else "%.3f"),
            "Steps": st.column_config.Column(_("Steps")),
            # Translators: how long a run took.
            "Took": st.column_config.Column(_("Took")),
        },
    )
    for row, _column in picked.selection.cells:
        if row < len(runs) and runs[row].run_id:
            st.switch_page("pages/fine_tune.py", query_params={"run": str(runs[row].run_id)})
    every = [str(run.run_id) for run in runs if run.run_id]
    ids = every[:MOST_RUNS]
    if len(ids) == len(every):
        label = _("Compare {runs}", runs=ngettext("{count} run", "{count} runs", len(ids)))
    else:
        label = _("Compare the first {shown} of {total} runs", shown=len(ids), total=len(every))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(_("Click a run to open it."), width="content")
        if len(ids) > 1:
            st.page_link(
                "pages/compare.py",
                label=label,
                icon=":material/compare_arrows:",
                query_params={"runs": ",".join(ids)},
            )


def table_view(experiment: Experiment, results: Results) -> None:
    """The table, and its files."""
    header, rows = table_rows(results)
    st.dataframe(
        pd.DataFrame(rows, columns=header),
        hide_index=True,
        placeholder="",
        height="content",
        key="experiment.table",
        column_config={_("Verdict"): st.column_config.TextColumn(width=VERDICT_PX)},
    )
    _findings(results)
    _notes(results)
    with st.container(horizontal=True):
        for form, suffix in SUFFIXES.items():
            st.download_button(
                NAMES[form],
                partial(table_text, results, form),
                f"{_stem(experiment)}.{suffix}",
                key=f"experiment.{form}",
                icon=":material/download:",
            )


_drawing = st.components.v2.component(
    "drawing",
    html='<div class="drawing" role="group" tabindex="0"></div>',
    css=".drawing { color: var(--st-text-color); font-family: var(--st-font); overflow-x: auto; }",
    js=Path(__file__).with_name("drawing.js").read_text(encoding="utf-8"),
    isolate_styles=False,
)


def drawing(svg: str, *, key: str) -> None:
    """Draw an SVG element that was made here, with everything from outside escaped."""
    _drawing(key=key, data={"svg": svg, "label": _("Chart")}, height="content")


STYLE = """
.report button { font: inherit; padding: 0.4rem 0.8rem; margin-bottom: 0.6rem; cursor: pointer;
  color: var(--st-text-color); background: var(--st-background-color);
  border: 1px solid var(--st-border-color); border-radius: var(--st-button-radius); }
.report button:hover, .report button:focus-visible { border-color: var(--st-primary-color); }
.report iframe { width: 100%; min-height: 30rem; border: 1px solid var(--st-border-color);
  border-radius: var(--st-base-radius); }
"""

_frame = st.components.v2.component(
    "report_frame",
    html='<div class="report"><button type="button"></button>'
    '<iframe sandbox="allow-same-origin allow-modals"></iframe></div>',
    css=STYLE,
    js=Path(__file__).with_name("report_frame.js").read_text(encoding="utf-8"),
    isolate_styles=False,
)


def report_frame(html: str, *, key: str) -> None:
    """Draw a whole HTML page that was made here."""
    _frame(key=key, data={"html": html, "print": _("Print"), "title": _("Report")}, height="content")
