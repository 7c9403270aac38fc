"""One experiment: how far it is, what it shows, and the runs of a cell; drawn again by itself while runs go on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from statistics import mean

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.artifacts.seeds import SCORES
from core.errors import PlaygroundError
from core.events import VALIDATION
from core.experiments.design import MOST_SEEDS, Design
from core.experiments.lifecycle import missing
from core.experiments.protocols.registry import PROTOCOLS
from core.experiments.report import chart, report_html
from core.experiments.result_table import SHARES, SUFFIXES, Format, notes, table_rows, table_text
from core.experiments.results import MEASURES, OF_VECTORS, SPLITS, TEST, Results
from core.experiments.vectors_job import VECTORS, unmeasured, vectors_request
from core.figures.run_curves import MOST_RUNS
from core.quantities import PERCENT_CELLS, counted, hundredths
from core.store import Experiment, ExperimentRun, Status
from core.store.names import NAME_CHARS
from core.workers import Engine
from core.workers.machine import slots
from pages.ui import state
from pages.ui.address import Experiments
from pages.ui.bound import bound, bound_segments, forget
from pages.ui.controls import leave_notice, show_notice
from pages.ui.drawing import drawing
from pages.ui.experiments.heat_map import chosen_cell, draw_cell, heat_map, legend
from pages.ui.experiments.published import published
from pages.ui.experiments.reads import design_of, open_experiments, results_of
from pages.ui.experiments.report_frame import report_frame
from pages.ui.experiments.undo import discard_with_undo
from pages.ui.head import tab_title
from pages.ui.parts import duration, escaped
from pages.ui.waiting import ensure_job

POLL_S = 2.0
# Whether vectors were being measured when the page looked last.
MEASURING = "experiment.measuring"
SHOWN = {"map": "Heat map", "chart": "Chart", "table": "Table", "report": "Report"}
# With more columns, what a cell found comes below the map.
BESIDE = 4
NAMES: dict[Format, str] = {"csv": "CSV", "markdown": "Markdown", "latex": "LaTeX"}


def experiment_view(engine: Engine, experiment_id: str, head: DeltaGenerator) -> None:
    """Draw one experiment; polls while its runs go on, and draws once more when they have ended."""
    table = open_experiments(engine).table
    experiment = table.experiment(experiment_id)
    runs, design = table.runs(experiment_id), design_of(experiment)
    tab_title(experiment.title, "Experiments")
    if head.button("All experiments", icon=":material/arrow_back:", type="tertiary"):
        forget([*Experiments.of("experiment"), Experiments.EXPERIMENT])
        st.rerun()
    polling = _is_going(experiment, design, runs) or state.remembered(MEASURING, bool)
    st.fragment(_view, run_every=POLL_S if polling else None)(engine, experiment_id, polling)


def _is_going(experiment: Experiment, design: Design, runs: Sequence[ExperimentRun]) -> bool:
    """Whether more comes by itself."""
    return any(not run.ended for run in runs) or (experiment.wanted and bool(missing(design, runs)))


def _view(engine: Engine, experiment_id: str, polling: bool) -> None:
    found = open_experiments(engine)
    try:
        experiment = found.table.experiment(experiment_id)
    except PlaygroundError as error:
        st.error(escaped(str(error)))
        return
    design, runs = design_of(experiment), found.table.runs(experiment_id)
    found.revive(experiment, design, runs)
    engine.dispatch()
    _head(engine, experiment, design, runs)
    show_notice()
    _progress(experiment, design, runs)
    _problems(design, runs)
    protocol = PROTOCOLS.get(design.protocol)
    usual = (protocol.measure, protocol.split) if protocol else ("accuracy", TEST)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        show = bound_segments("Shown as", Experiments.SHOW, SHOWN, "map")
        st.space("stretch")
        measure = _choice("Measure", Experiments.MEASURE, {name: one.label for name, one in MEASURES.items()}, usual[0])
        split = _choice("Split", Experiments.SPLIT, SPLITS, usual[1]) if measure in SCORES else VALIDATION
    measuring = measure in OF_VECTORS and _measuring(engine, experiment, runs)
    state.remember(MEASURING, measuring)
    if polling != (measuring or _is_going(experiment, design, runs)):
        st.rerun()
    results = results_of(engine, experiment, runs, measure, split)
    match show:
        case "chart":
            _chart(experiment, results)
        case "table":
            _table(experiment, results)
        case "report":
            _report(experiment, results)
            return  # which has the protocol in it
        case _:
            _map(results, runs, experiment)
    if protocol is not None:
        st.caption(escaped(protocol.differs))
        published(protocol)


def _measuring(engine: Engine, experiment: Experiment, runs: Sequence[ExperimentRun]) -> bool:
    """Have the vectors of finished runs be measured, and say how far that is. Returns: whether it goes on."""
    lacking = unmeasured(engine.store, runs)
    if not lacking:
        return False
    newest = max(run.ended_at or 0.0 for run in lacking)
    return ensure_job(VECTORS, vectors_request(experiment.id), "Measuring the vectors", since=newest)


def _chart(experiment: Experiment, results: Results) -> None:
    drawn = chart(results)
    if not drawn:
        st.caption("No run has finished yet.")
        return
    drawing(drawn, key=f"experiment.chart.{experiment.id}")
    st.caption(
        "A dot for each seed, a line at their mean; beside it the difference from what the cell is compared with and "
        "its 95% interval, filled where it is shown at the 5% level."
    )
    _notes(results)
    st.download_button(
        "SVG",
        drawn,
        f"{_stem(experiment)}.svg",
        "image/svg+xml",
        key="experiment.svg",
        icon=":material/download:",
    )


def _report(experiment: Experiment, results: Results) -> None:
    html = report_html(experiment, results)
    st.download_button(
        "Download as one HTML file",
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


def _notes(results: Results) -> None:
    """What has to be known to read the numbers, in one paragraph."""
    if found := notes(results):
        st.caption(escaped(" ".join(found)))


def _choice(label: str, item: object, names: dict[str, str], default: str) -> str:
    value, tied = bound(item, names, default)  # type: ignore[arg-type]
    st.selectbox(
        label, list(names), format_func=names.__getitem__, label_visibility="collapsed", width=200, **tied.by_index
    )
    return value


def _head(engine: Engine, experiment: Experiment, design: Design, runs: Sequence[ExperimentRun]) -> None:
    found = open_experiments(engine)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.header(escaped(experiment.title), anchor=False, width="content")
        st.space("stretch")
        going = _is_going(experiment, design, runs)
        if going and st.button("Stop", icon=":material/stop:", key="experiment.stop"):
            _ask(lambda: found.stop(experiment.id))
        resumable = any(run.status is None or run.status.resumable for run in runs)
        if (
            not going
            and (resumable or missing(design, runs))
            and st.button("Resume", icon=":material/play_arrow:", key="experiment.resume")
        ):
            _ask(lambda: found.resume(experiment.id))
        _more_seeds(engine, experiment, design)
        _rename(engine, experiment)
        if not going and st.button("Delete", icon=":material/delete:", key="experiment.delete", help="Its runs stay."):
            discard_with_undo(found.table, experiment)


def _more_seeds(engine: Engine, experiment: Experiment, design: Design) -> None:
    with st.popover("Add seeds", icon=":material/add:"), st.form("experiment.seeds.form", border=False):
        left = MOST_SEEDS - len(design.seeds)
        more = st.number_input("More seeds", 1, max(1, left), min(5, max(1, left)), help="For every cell.")
        st.caption(f"There are {len(design.seeds)}; each more adds {counted(len(design.cells), 'run')}.")
        if st.form_submit_button("Add", type="primary", disabled=left < 1):
            _ask(lambda: open_experiments(engine).add_seeds(experiment.id, int(more)))


def _rename(engine: Engine, experiment: Experiment) -> None:
    with st.popover("Rename", icon=":material/edit:"), st.form("experiment.name.form", border=False):
        name = st.text_input(
            "Name", experiment.name, max_chars=NAME_CHARS, placeholder=f"Experiment {experiment.number}"
        )
        if st.form_submit_button("Save", type="primary"):
            _ask(lambda: open_experiments(engine).table.rename(experiment.id, name))


def _ask(action: object) -> None:
    """Do it, say in a sentence why it cannot be done, and draw the page again."""
    assert callable(action)
    try:
        action()
    except PlaygroundError as error:
        leave_notice(str(error))
    st.rerun()


def _progress(experiment: Experiment, design: Design, runs: Sequence[ExperimentRun]) -> None:
    finished = [run for run in runs if run.status == Status.FINISHED]
    words = [f"{len(finished):,} of {counted(design.runs, 'run')} finished"]
    going = [run for run in runs if run.status is not None and run.status.active]
    waiting = sum(run.status == Status.QUEUED for run in runs)
    words += [f"{len(going)} going on"] if going else []
    words += [f"{waiting:,} waiting"] if waiting else []
    failed = sum(run.status == Status.FAILED for run in runs)
    words += [f"{failed} failed"] if failed else []
    unmade = len(missing(design, runs))
    if unmade and experiment.wanted:
        words.append(f"{unmade:,} being made")
    if not experiment.wanted:
        words.append("stopped")
    if finished and experiment.wanted and len(finished) < design.runs:
        left = (design.runs - len(finished)) * mean(run.seconds for run in finished) / len(slots())
        words.append(f"about {duration(left)} left")
    if len(finished) == design.runs:
        st.caption(" · ".join(words))
    else:
        st.progress(len(finished) / design.runs, " · ".join(words))


def _problems(design: Design, runs: Sequence[ExperimentRun]) -> None:
    """Why some runs were not made or failed, each reason once."""
    cells = {cell.number: cell for cell in (*design.source_cells, *design.cells)}
    reasons: dict[str, list[str]] = {}
    for run in runs:
        reason = run.problem or (run.message if run.status == Status.FAILED else None)
        if reason:
            reasons.setdefault(reason, []).append(f"{design.title_of(cells[run.cell])}, seed {run.seed}")
    for reason, where in reasons.items():
        more = f" and {len(where) - 1} more" if len(where) > 1 else ""
        st.warning(escaped(f"{where[0]}{more}: {reason}"))


def _map(results: Results, runs: Sequence[ExperimentRun], experiment: Experiment) -> None:
    """The map left, and right what the chosen cell found; below each other where many columns need the room."""
    number = Experiments.CELL.text
    chosen = chosen_cell(results, int(number) if number and number.isdecimal() else None)
    narrow = len(results.design.axes[-1].levels) <= BESIDE if len(results.design.axes) > 1 else True
    left, right = st.columns([3, 2], gap="large") if narrow else (st.container(), st.container())
    with left:
        key = f"experiment.map.{experiment.id}"
        pressed = heat_map(results, runs, chosen.cell.number if chosen else None, key=key)
        st.caption(legend(results))
        _notes(results)
    if pressed is not None and (chosen is None or pressed != chosen.cell.number):
        Experiments.CELL.put(pressed)
        st.rerun(scope="fragment")
    with right:
        if chosen is None:
            st.caption("Press a cell to see what it found, and its runs.")
            return
        draw_cell(results, chosen)
        _runs(results, [run for run in runs if run.cell == chosen.cell.number])


def _runs(results: Results, runs: Sequence[ExperimentRun]) -> None:
    """A cell's runs, with a way to each and to all together."""
    scores = next(cell.scores for cell in results.cells if cell.cell.number == runs[0].cell) if runs else {}
    shares = results.measure.name in SHARES
    table = pd.DataFrame(
        {
            "Seed": [run.seed for run in runs],
            "Run": [f"Run {run.number}" if run.number else "–" for run in runs],
            "Status": [str(run.status or "not made") for run in runs],
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
        column_config={"Score": st.column_config.NumberColumn(format=PERCENT_CELLS if shares else "%.3f")},
    )
    for row, _ in picked.selection.cells:
        if row < len(runs) and runs[row].run_id:
            st.switch_page("pages/fine_tune.py", query_params={"run": str(runs[row].run_id)})
    ids = [str(run.run_id) for run in runs if run.run_id][:MOST_RUNS]
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption("Click a run to open it.", width="content")
        if len(ids) > 1:
            st.page_link(
                "pages/compare.py",
                label=f"Compare {counted(len(ids), 'run')}",
                icon=":material/compare_arrows:",
                query_params={"runs": ",".join(ids)},
            )


def _table(experiment: Experiment, results: Results) -> None:
    header, rows = table_rows(results)
    st.dataframe(
        pd.DataFrame(rows, columns=header), hide_index=True, placeholder="", height="content", key="experiment.table"
    )
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
