"""One experiment: how far it is, what it shows, and the runs of a cell; drawn again by itself while runs go on."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean

import pandas as pd
import streamlit as st

from core.artifacts.seeds import SCORES
from core.errors import PlaygroundError
from core.experiments.design import MOST_SEEDS, Design
from core.experiments.lifecycle import missing
from core.experiments.protocols.registry import PROTOCOLS
from core.experiments.result_table import SUFFIXES, Format, notes, table_rows, table_text
from core.experiments.results import SPLITS, Results
from core.figures.run_curves import MOST_RUNS
from core.quantities import PERCENT_CELLS, counted, hundredths
from core.store import Experiment, ExperimentRun, Status
from core.store.names import NAME_CHARS
from core.workers import Engine
from core.workers.machine import slots
from pages.ui.address import Experiments
from pages.ui.bound import bound, bound_segments, forget
from pages.ui.controls import leave_notice, show_notice
from pages.ui.experiments.heat_map import chosen_cell, draw_cell, heat_map, legend
from pages.ui.experiments.published import published
from pages.ui.experiments.reads import design_of, open_experiments, results_of
from pages.ui.experiments.undo import discard_with_undo
from pages.ui.parts import duration, escaped

POLL_S = 2.0
SHOWN = {"map": "Heat map", "table": "Table"}
# The chosen cell's runs, for a comparison.
OPEN = ":material/monitoring:"
NAMES: dict[Format, str] = {"csv": "CSV", "markdown": "Markdown", "latex": "LaTeX"}


def experiment_view(engine: Engine, experiment_id: str) -> None:
    """Draw one experiment; polls while its runs go on, and draws once more when they have ended."""
    table = open_experiments(engine).table
    experiment = table.experiment(experiment_id)
    runs, design = table.runs(experiment_id), design_of(experiment)
    polling = _is_going(experiment, design, runs)
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
    if polling != _is_going(experiment, design, runs):
        st.rerun()
    _head(engine, experiment, design, runs)
    show_notice()
    _progress(experiment, design, runs)
    _problems(design, runs)
    protocol = PROTOCOLS.get(design.protocol)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        show = bound_segments("Shown as", Experiments.SHOW, SHOWN, "map")
        st.space("stretch")
        measure = _choice("Measure", Experiments.MEASURE, {name: one.label for name, one in SCORES.items()}, "accuracy")
        split = _choice("Split", Experiments.SPLIT, SPLITS, "test")
    results = results_of(engine, experiment, runs, measure, split)
    if show == "table":
        _table(results)
    else:
        _map(engine, results, runs, experiment)
    if protocol is not None:
        st.caption(escaped(protocol.differs))
        published(protocol)


def _choice(label: str, item: object, names: dict[str, str], default: str) -> str:
    value, tied = bound(item, names, default)  # type: ignore[arg-type]
    st.selectbox(
        label, list(names), format_func=names.__getitem__, label_visibility="collapsed", width=200, **tied.by_index
    )
    return value


def _head(engine: Engine, experiment: Experiment, design: Design, runs: Sequence[ExperimentRun]) -> None:
    found = open_experiments(engine)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if st.button("All experiments", icon=":material/arrow_back:", type="tertiary"):
            forget([*Experiments.of("experiment"), Experiments.EXPERIMENT])
            st.rerun()
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
    st.progress(len(finished) / design.runs, " · ".join(words))


def _problems(design: Design, runs: Sequence[ExperimentRun]) -> None:
    """Why some runs were not made or failed, each reason once."""
    cells = {cell.number: cell for cell in design.cells}
    reasons: dict[str, list[str]] = {}
    for run in runs:
        reason = run.problem or (run.message if run.status == Status.FAILED else None)
        if reason:
            reasons.setdefault(reason, []).append(f"{design.title_of(cells[run.cell])}, seed {run.seed}")
    for reason, where in reasons.items():
        more = f" and {len(where) - 1} more" if len(where) > 1 else ""
        st.warning(escaped(f"{where[0]}{more}: {reason}"))


def _map(engine: Engine, results: Results, runs: Sequence[ExperimentRun], experiment: Experiment) -> None:
    number = Experiments.CELL.text
    chosen = int(number) if number and number.isdecimal() else None
    pressed = heat_map(results, runs, chosen, key=f"experiment.map.{experiment.id}")
    if pressed is not None and pressed != chosen:
        Experiments.CELL.put(pressed)
        st.rerun(scope="fragment")
    st.caption(legend(results))
    for sentence in notes(results):
        st.caption(escaped(sentence))
    cell = chosen_cell(results, chosen)
    if cell is None:
        st.caption("Press a cell to see its runs.")
        return
    with st.container(border=True):
        draw_cell(results, cell)
        _runs(results, [run for run in runs if run.cell == cell.cell.number])


def _runs(results: Results, runs: Sequence[ExperimentRun]) -> None:
    """A cell's runs, with a way to each and to all together."""
    scores = next(cell.scores for cell in results.cells if cell.cell.number == runs[0].cell) if runs else {}
    shares = results.measure.name != "cross_entropy"
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


def _table(results: Results) -> None:
    header, rows = table_rows(results)
    st.dataframe(
        pd.DataFrame(rows, columns=header), hide_index=True, placeholder="", height="content", key="experiment.table"
    )
    for sentence in notes(results):
        st.caption(escaped(sentence))
    stem = "experiment"
    with st.container(horizontal=True):
        for form, suffix in SUFFIXES.items():
            st.download_button(
                NAMES[form],
                lambda form=form: table_text(results, form),  # type: ignore[misc]
                f"{stem}.{suffix}",
                key=f"experiment.{form}",
                icon=":material/download:",
            )
