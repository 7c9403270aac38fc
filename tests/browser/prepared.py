"""Make the finished runs and the experiment that the browser tests display."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from core.config import RunConfig
from core.config.fields import build
from core.experiments.design import Design
from core.store import ExperimentTable, Store
from tests.core.artifacts.made import MORE, recorded


def finished_runs(folder: Path, draft: Callable[..., RunConfig]) -> list[str]:
    """Return the ids of two finished runs with words and weights, and of their experiment."""
    store = Store(folder)
    ids = [recorded(store, draft(more=MORE | {"seed": seed})).id for seed in (0, 1)]
    experiment_id = _experiment(store, draft(), ids)
    store.close()
    return [*ids, experiment_id]


def _experiment(store: Store, base: RunConfig, ids: Sequence[str]) -> str:
    """Return the id of an experiment of two cells and two seeds. One cell has these runs, the other none."""
    axes = [{"setting": "lambda", "values": [0.1, 0.9]}]
    given = {"base": base.model_dump(mode="json"), "axes": axes, "seeds": 2, "baseline": {"Weight λ": "0.1"}}
    table = ExperimentTable(store.folder)
    experiment_id = table.create("λ at work", build(Design, given).to_json())
    table.set_wanted(experiment_id, False)
    for seed, run_id in enumerate(ids):
        table.put_run(experiment_id, 0, seed, run_id)
    return experiment_id
