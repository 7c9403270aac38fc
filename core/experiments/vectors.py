"""Measuring the vectors that an experiment's runs end with, as a job of a process of its own."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from core.artifacts.measures import measure_last
from core.errors import PlaygroundError
from core.experiments.results import vector_measures
from core.store import ExperimentRun, ExperimentTable, Status, Store
from core.workers import Progress

# The kind of this job.
VECTORS = "vectors"


def vectors_request(experiment_id: str) -> dict[str, Any]:
    """What the job is asked."""
    return {"experiment": experiment_id}


def unmeasured(store: Store, runs: Sequence[ExperimentRun]) -> list[ExperimentRun]:
    """The finished runs whose vectors nobody has measured."""
    finished = [run for run in runs if run.status == Status.FINISHED]
    return [run for run in finished if vector_measures(store, run) is None]


def job(request: dict[str, Any], store_folder: Path, progress: Progress) -> dict[str, Any]:
    """Measure the last frame of every finished run that lacks it.

    Args:
        request: as `vectors_request` makes it.
    Returns: "measured", how many were; a run whose frame cannot be read is left out.
    """
    with closing(Store(store_folder)) as store:
        runs = unmeasured(store, ExperimentTable(store.folder).runs(str(request["experiment"])))
        measured = 0
        for done, run in enumerate(runs):
            progress(done, len(runs), f"Run {run.number}")
            try:
                measure_last(store, store.run(str(run.run_id)))
                measured += 1
            except PlaygroundError as error:
                print(error)  # into the job's log
        return {"measured": measured}
