"""Measuring the final vectors of runs."""

from __future__ import annotations

import pytest

from core.config.edit import apply_settings
from core.experiments.design import parse_design
from core.experiments.results import results
from core.experiments.vectors import job, unmeasured, vectors_request
from core.representation.metrics import frame_measures
from core.store import ExperimentTable, Store
from core.workers import LocalEngine
from tests.core.experiments.conftest import Here, Make
from tests.core.workers.test_branches import carry_out


@pytest.fixture
def trained(store: Store, design: Make, monkeypatch: pytest.MonkeyPatch) -> tuple[Store, str]:
    """Return the store and the id of an experiment of one cell, whose two runs were trained."""
    base = apply_settings(design().base, {"steps": 2, "probe.frame_steps": []})
    made = design(axes=[], baseline={}, base=base.model_dump(mode="json"))
    monkeypatch.setattr(LocalEngine, "dispatch", carry_out)
    return store, Here(LocalEngine(store)).begin(made)


def test_it_measures_the_last_frame_of_runs_that_are_not_measured_for_the_table(trained: tuple[Store, str]) -> None:
    store, experiment_id = trained
    table = ExperimentTable(store.folder)
    runs = table.runs(experiment_id)
    assert len(unmeasured(store, runs)) == 2
    assert job(vectors_request(experiment_id), store.folder, lambda *_: None) == {"measured": 2}
    assert unmeasured(store, runs) == []
    assert job(vectors_request(experiment_id), store.folder, lambda *_: None) == {"measured": 0}
    design = parse_design(table.experiment(experiment_id).design)
    found = results(store, experiment_id, design, measure="knn1", split="test")
    assert found.split == "validation"
    for row in runs:
        run = store.run(str(row.run_id))
        vectors = store.embeddings(run.id, run.steps)[: run.probe.held_out]
        expected = frame_measures(vectors, run.probe.labels[: run.probe.held_out])["knn1"]
        assert found.cells[0].scores[row.seed] == expected


def test_a_frame_that_is_damaged_costs_its_run_alone(trained: tuple[Store, str]) -> None:
    store, experiment_id = trained
    run_id = str(ExperimentTable(store.folder).runs(experiment_id)[0].run_id)
    for path in store.run_folder(run_id).glob("frame-*"):
        path.write_bytes(b"nonsense")
    assert job(vectors_request(experiment_id), store.folder, lambda *_: None) == {"measured": 1}


def test_it_also_measures_runs_outside_the_experiment(trained: tuple[Store, str]) -> None:
    store, experiment_id = trained
    other = ExperimentTable(store.folder).create("", "{}")
    runs = ExperimentTable(store.folder).runs(experiment_id)
    assert job(vectors_request(other, runs), store.folder, lambda *_: None) == {"measured": 2}
    assert unmeasured(store, runs) == []
