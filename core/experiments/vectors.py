"""The job that measures the vectors in the last frame of each run of an experiment."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from core.artifacts.measures import measure
from core.errors import PlaygroundError
from core.experiments.results import vector_measures
from core.store import ExperimentRun, ExperimentTable, Status, Store
from core.workers import Progress

# Kind of the job.
VECTORS = "vectors"


def vectors_request(experiment_id: str, others: Sequence[ExperimentRun] = ()) -> dict[str, Any]:
    """Return the request of the job. Args: others: runs outside the experiment to measure, too."""
    others_ids = {"others": [run.run_id for run in others]} if others else {}
    return {"experiment": experiment_id, **others_ids}


def unmeasured(store: Store, runs: Sequence[ExperimentRun]) -> list[ExperimentRun]:
    """Return the finished runs whose vectors have not been measured."""
    finished = [run for run in runs if run.status == Status.FINISHED]
    return [run for run in finished if vector_measures(store, run) is None]


def job(request: dict[str, Any], store_folder: Path, progress: Progress) -> dict[str, Any]:
    """Measure the last frame of every finished run without measures, and of the others in the request.

    Args:
        request: from `vectors_request`.
    Returns: "measured", the number of runs measured; a run whose frame cannot be read is skipped.
    """
    with closing(Store(store_folder)) as store:
        runs = unmeasured(store, ExperimentTable(store.folder).runs(str(request["experiment"])))
        wanted = [*(str(run.run_id) for run in runs), *request.get("others", ())]
        measured = 0
        for done, run_id in enumerate(wanted):
            try:
                run = store.run(run_id)
                progress(done, len(wanted), f"Run {run.number}")
                measure(store, run, run.last_step, whole=True)
                measured += 1
            except PlaygroundError as error:
                print(error)  # stdout goes to the job's log
        return {"measured": measured}
