"""Cached reads of experiments. A cache key holds everything that its value depends on."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.experiments.cost import Cost, cost
from core.experiments.design import Design, parse_design
from core.experiments.lifecycle import Experiments
from core.experiments.results import OF_VECTORS, Results, results, vector_measures
from core.messages import N_
from core.store import Experiment, ExperimentRun, Status
from core.workers import Engine
from pages.ui import reads
from pages.ui.reads import cached

# The cost of an experiment depends on the existing runs, which change over time.
COST_S = 60.0


@st.cache_resource(show_spinner=False, max_entries=1)
def _experiments(folder: str) -> Experiments:
    return Experiments(reads.engine_of(folder))


def open_experiments(engine: Engine) -> Experiments:
    """Return the experiments of an engine's store."""
    return _experiments(str(engine.store.folder))


@cached(64)
def design_of(experiment: Experiment) -> Design:
    """Return the design of an experiment."""
    return parse_design(experiment.design)


@cached(64, spinner=N_("Checking every cell"), kept_s=COST_S)
def _cost(folder: str, text: str) -> Cost:
    return cost(reads.engine_of(folder), parse_design(text))


def cost_of(engine: Engine, design: Design) -> Cost:
    """Estimate the cost of a design. Raises: ConfigError, TaskError or EncoderError if none of its cells can run."""
    return _cost(str(engine.store.folder), design.to_json())


Finished = tuple[tuple[int, int, str, int], ...]


@cached(128, spinner=N_("Comparing"))
def _results(folder: str, text: str, experiment_id: str, finished: Finished, measure: str, split: str) -> Results:
    found = _experiments(folder)
    wanted = set(finished)
    runs = [run for run in found.table.runs(experiment_id) if _key(run) in wanted]
    return results(found.engine.store, experiment_id, parse_design(text), measure=measure, split=split, runs=runs)


def results_of(
    engine: Engine, experiment: Experiment, runs: Sequence[ExperimentRun], measure: str, split: str
) -> Results:
    """Compute the results of the finished runs, again whenever another run finishes."""
    finished = tuple(
        _key(run)
        for run in runs
        if run.status == Status.FINISHED
        # Vectors are measured some time after a run has finished.
        and (measure not in OF_VECTORS or vector_measures(engine.store, run) is not None)
    )
    return _results(str(engine.store.folder), experiment.design, experiment.id, finished, measure, split)


def _key(run: ExperimentRun) -> tuple[int, int, str, int]:
    return (run.cell, run.seed, run.run_id or "", run.begun_attempt)
