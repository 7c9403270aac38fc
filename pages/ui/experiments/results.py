"""The results of an experiment as a heat map with the chosen cell, a chart, a table or a report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import pandas as pd
import streamlit as st

from core.artifacts.seeds import SCORES
from core.events import SPEARMAN
from core.experiments.report import chart, levels_figure, report_html
from core.experiments.result_table import (
    SHARES,
    SUFFIXES,
    Format,
    cautions,
    findings,
    in_phrase,
    mean_text,
    notes,
    score_name,
    strokes_text,
    table_rows,
    table_text,
)
from core.experiments.results import (
    OF_VECTORS,
    CellResult,
    Results,
    pair_agreement,
    vector_measures,
)
from core.experiments.results import results as compute_results
from core.experiments.surface import full_draft
from core.figures.run_curves import MOST_RUNS
from core.messages import N_, _, join_list, ngettext, sentences
from core.quantities import PERCENT_CELLS, hundredths
from core.store import Experiment, ExperimentRun, Status, Store
from core.store.records import PEAK_MEMORY
from core.store.sizes import size_text
from core.workers import Engine
from pages.ui import reads
from pages.ui.address import Experiments
from pages.ui.compare.pair import OVER_EXAMPLES, pair_text
from pages.ui.experiments.heat_map import cell_sentences, heat_map, legend
from pages.ui.live_figure import live_figure
from pages.ui.parts import UI, component, duration, escaped, page_link, show_errors
from pages.ui.visitor import visitor

# With more columns, the results of a cell are drawn below the map.
BESIDE = 4
# Fits "no difference shown".
VERDICT_PX = 136
NAMES: dict[Format, str] = {"csv": "CSV", "markdown": "Markdown", "latex": "LaTeX"}

_drawing = component(
    "drawing",
    '<div class="drawing" role="group" tabindex="0"></div>',
    [UI / "experiments" / "drawing.js"],
    [".drawing { color: var(--st-text-color); font-family: var(--st-font); overflow-x: auto; }"],
)


STYLE = """
.report button { font: inherit; padding: 0.4rem 0.8rem; margin-bottom: 0.6rem; cursor: pointer;
  color: var(--st-text-color); background: var(--st-background-color);
  border: 1px solid var(--st-border-color); border-radius: var(--st-button-radius); }
.report button:hover, .report button:focus-visible { border-color: var(--st-primary-color); }
.report iframe { width: 100%; min-height: 30rem; border: 1px solid var(--st-border-color);
  border-radius: var(--st-base-radius); }
"""

_frame = component(
    "report_frame",
    '<div class="report"><button type="button"></button>'
    '<iframe sandbox="allow-same-origin allow-modals"></iframe></div>',
    [UI / "experiments" / "report_frame.js"],
    [STYLE],
)


def results_of(
    store: Store, experiment: Experiment, runs: Sequence[ExperimentRun], measure: str, split: str
) -> Results:
    """Compute the results of the finished runs, again whenever another run finishes."""
    finished = [
        run
        for run in runs
        if run.status == Status.FINISHED
        # Vectors are measured some time after a run has finished.
        and (measure not in OF_VECTORS or vector_measures(store, run) is not None)
    ]
    return _results(store, experiment, finished, measure, split)


@reads.cached(128, spinner=N_("Comparing"))
def _results(
    store: Store, experiment: Experiment, finished: Sequence[ExperimentRun], measure: str, split: str
) -> Results:
    design = reads.design_of(experiment)
    return compute_results(store, experiment.id, design, measure=measure, split=split, runs=finished)


def chart_view(experiment: Experiment, results: Results, beside: Results | None) -> None:
    """Draw the scores, and the differences with their intervals. Args: beside: results in another measure."""
    drawn = chart(results)
    if not drawn:
        st.caption(_("There is no {score} yet.", score=in_phrase(score_name(results))))
        return
    # This app renders the SVG and escapes all user input in it.
    data = {"svg": drawn, "label": _("Chart")}
    _drawing(key=f"experiment.chart.{experiment.id}", data=data)
    words = [_("Dots are seeds, the line is their mean.")] if results.over_seeds else []
    if results.design.compares:
        words.append(
            _(
                "On the right, the difference from the baseline with its 95% interval; filled markers are significant "
                "at the 5% level."
            )
            if results.over_seeds
            else _("On the right, the difference from the baseline.")
        )
    st.caption(sentences([*words, strokes_text(results)]))
    draw_levels(experiment, [results, beside] if beside else [results])
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


def draw_levels(experiment: Experiment, measured: Sequence[Results]) -> None:
    """Draw the scores against the levels of a numeric setting, if there is one."""
    figure = levels_figure(measured)
    if figure is not None:
        description = _("The scores at each level of a setting.")
        live_figure(figure, key=f"experiment.levels.{experiment.id}", description=description)


def report_view(engine: Engine, experiment: Experiment, results: Results) -> None:
    """Draw the report, with buttons to print and to download it."""
    runs = (run for cell in results.cells for run in cell.runs if run.run_id and run.status == Status.FINISHED)
    first = next(runs, None)
    # The config of a finished run, including its knob turns.
    config = None if first is None else engine.store.run(str(first.run_id)).effective
    html = report_html(experiment, results, config)
    st.download_button(
        _("Download as one HTML file"),
        html,
        f"{_stem(experiment)}.html",
        "text/html",
        key="experiment.html",
        icon=":material/download:",
    )
    data = {"html": html, "print": _("Print"), "title": _("Report")}
    _frame(key=f"experiment.report.{experiment.id}", data=data)


def _stem(experiment: Experiment) -> str:
    """Return the stem of an experiment's file names."""
    plain = "".join(sign if sign.isalnum() else " " for sign in experiment.title.casefold())
    return "-".join([*plain.split()[:8], experiment.id])


def _findings(results: Results) -> None:
    """Draw the scores to beat, the cells whose means do not beat them, and the main effects."""
    if found := [*findings(results)]:
        st.caption(escaped(sentences(found)))


def _notes(results: Results) -> None:
    """Draw the cautions, and an expander that explains how the numbers are computed."""
    if found := [*cautions(results)]:
        st.caption(escaped(sentences(found)))
    with st.expander(_("Methods")):
        st.caption(escaped(sentences(notes(results))))


def map_view(
    engine: Engine,
    results: Results,
    runs: Sequence[ExperimentRun],
    experiment: Experiment,
    *,
    maps: Callable[[], None] | None,
    beside: Results | None,
) -> None:
    """Draw the heat map, with the results of the chosen cell beside it, or below it if there are many columns.

    Args:
        maps: for a surface, draws the maps of its cells; the heat map and the chosen cell then lie beside them.
        beside: for a surface, results in another measure, drawn against the same setting.
    """
    by_number = {str(cell.cell.number): cell for cell in results.cells}
    chosen = Experiments.CELL.read(by_number.get, None)
    narrow = len(results.design.axes[-1].levels) <= BESIDE if len(results.design.axes) > 1 else True
    left, right = st.columns([3, 2], gap="large") if narrow or maps else (st.container(), st.container())
    if maps is not None:
        with left:
            maps()
        left = right
    # While a surface trains, a press marks the cell that the visitor expects to be the best.
    item = Experiments.EXPECTED if beside is not None and not all(run.ended for run in runs) else Experiments.CELL
    marked = item.read(by_number.get, None)
    with left:
        if item is Experiments.EXPECTED:
            st.markdown(_("Which cell do you expect to be the best in the end? Click it to mark your guess."))
        elif (expected := Experiments.EXPECTED.read(by_number.get, None)) and (best := results.best):
            said = _(
                "You expected {cell}: {score}. The best cell is {best}: {most}.",
                cell=expected.title,
                score=mean_text(results, expected),
                best=best.title,
                most=mean_text(results, best),
            )
            st.markdown(escaped(said))
        key = f"experiment.map.{experiment.id}"
        pressed = heat_map(results, runs, marked.cell.number if marked else None, key=key)
        st.caption(legend(results))
        if beside is not None:
            draw_levels(experiment, [results, beside])
        _findings(results)
    if pressed is not None and (marked is None or pressed != marked.cell.number):
        item.put(pressed)
        st.rerun(scope="fragment")
    with right:
        if chosen is None and item is Experiments.CELL:
            st.caption(_("Click a cell to see its result and its runs."))
        elif chosen is not None:
            for sentence in cell_sentences(results, chosen):
                st.markdown(escaped(sentence))
            if chosen.comparison is not None and results.measure.name in SCORES and results.measure.name != SPEARMAN:
                # The paired test over examples, for a run of this cell and the baseline's run of the same seed.
                pair = [chosen, results.cells[chosen.comparison.baseline]]
                st.markdown(f"**{escaped(_(OVER_EXAMPLES[results.split]))}**")
                seeds = [seed for seed in pair[0].scores if seed in pair[1].scores]
                seed = st.selectbox(_("Seed"), seeds, key=f"experiment.pair.{chosen.cell.number}", width=120)
                both = [(str(run.run_id), run.begun_attempt) for one in pair for run in one.runs if run.seed == seed]
                found = pair_agreement(engine.store, both[0], both[1], results.split)
                st.caption(escaped(pair_text(found, *(one.title for one in pair))))
            _runs(results, [run for run in runs if run.cell == chosen.cell.number])
            _seed_maps(chosen, results)
            if results.design.full is not None:
                about = _(
                    "Starts a run with the settings of this cell: all weights, all rows, and a score on the test split."
                )
                if st.button(_("Train in full"), icon=":material/rocket_launch:", help=about, key="surface.full"):
                    with show_errors():
                        draft = full_draft(results.design, chosen.cell, results.design.seeds[0])
                        run_id = engine.submit(draft, visitor().id)
                        st.switch_page("pages/fine_tune.py", query_params={"run": run_id})
    _notes(results)


def _runs(results: Results, runs: Sequence[ExperimentRun]) -> None:
    """Draw a cell's runs, with links to each run and to their comparison."""
    scores = next(cell.scores for cell in results.cells if cell.cell.number == runs[0].cell) if runs else {}
    shares = results.measure.name in SHARES
    table = pd.DataFrame(
        {
            _("Seed"): [run.seed for run in runs],
            _("Run"): [_("Run {number}", number=run.number) if run.number else "–" for run in runs],
            _("Status"): [_(str(run.status)) if run.status else _("not created") for run in runs],
            "Score": hundredths([scores.get(run.seed) for run in runs])
            if shares
            else [scores.get(run.seed) for run in runs],
            _("Steps"): [f"{run.last_step}/{run.steps}" if run.steps else "–" for run in runs],
            # Translators: how long a run took.
            _("Duration"): [duration(run.seconds) if run.seconds else "" for run in runs],
            _("Peak memory"): [size_text(run.peak_memory) if run.peak_memory is not None else "" for run in runs],
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
            "Score": st.column_config.NumberColumn(_("Score"), format=PERCENT_CELLS if shares else "%.3f"),
            _("Peak memory"): st.column_config.TextColumn(help=_(PEAK_MEMORY)),
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
            page_link("compare", label, "compare_arrows", {"runs": ",".join(ids)})


def _seed_maps(chosen: CellResult, results: Results) -> None:
    """Draw a link to t-SNE maps of the cell over several seeds, with those of the cell it is compared with."""
    cells = [chosen] if chosen.comparison is None else [results.cells[chosen.comparison.baseline], chosen]
    by_seed = [{run.seed: str(run.run_id) for run in of.runs if run.status == Status.FINISHED} for of in cells]
    seeds = sorted(set.intersection(*map(set, by_seed)))[: MOST_RUNS // len(cells)]
    if len(seeds) > 1:
        label = _("t-SNE over seeds: {cells}", cells=join_list(escaped(cell.title) for cell in cells))
        query = {"runs": ",".join(of[seed] for of in by_seed for seed in seeds), "show": "maps", "map": "tsne"}
        page_link("compare", label, "bubble_chart", query)


def table_view(experiment: Experiment, results: Results) -> None:
    """Draw the table and its download buttons."""
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
