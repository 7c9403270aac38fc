"""A surface against full runs: the rank correlation of each measure over its cells.

Trains 3 × 3 cells of temperature τ by weight λ at once, as the page's card does, then the same nine cells in full with
the default settings. Both read at most 300 training and 200 validation rows. This is no measurement of time.

Data sets are given as names or files, as in `fit --task`; by default, all bundled tasks.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as in workers

from benchmarks.measure import own_folders, run_experiment
from core.cli.options import task_fields
from core.config import RunConfig
from core.config.edit import apply_settings
from core.experiments.lifecycle import Experiments
from core.experiments.results import MEASURES
from core.experiments.surface import TRAIN_ROWS, VALIDATION_ROWS, full_runs, rank_correlations, surface_design
from core.experiments.vectors import job, vectors_request
from core.store import Store
from core.tasks.registry import TASKS
from core.workers import LocalEngine
from core.workers.run_rows import TaskSource

POLL_S = 1.0


def ranks(folder: Path, given: str) -> dict[str, float]:
    """Train both on a data set; return the rank correlation of each measure."""
    store = Store(folder)
    rows = {"task.train_size": TRAIN_ROWS, "task.validation_size": VALIDATION_ROWS}
    draft = apply_settings(RunConfig.model_validate({"task": task_fields(given, None)}), rows)
    small = surface_design(draft, TaskSource(folder)(draft.task, draft.seed))
    found = Experiments(LocalEngine(store))
    begun = []
    for design in (small, small.model_copy(update={"base": draft, "full": None})):
        begun.append(run_experiment(found, design, POLL_S)[0])
        job(vectors_request(begun[-1]), folder, lambda *_: None)
    correlations = rank_correlations(store, found.table.runs(begun[0]), full_runs(found.engine, small))
    store.close()
    return correlations


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="*", default=list(TASKS))
    for given in parser.parse_args().data:
        with own_folders() as folder:
            found = ranks(folder, given)
        values = (f"{measure} {found[measure]:.2f}" if measure in found else f"{measure} –" for measure in MEASURES)
        print(f"rank correlation, {given}: {', '.join(values)}", flush=True)


if __name__ == "__main__":
    main()
