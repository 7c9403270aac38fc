"""An experiment from start to end: runs, results, stopping and resuming."""

from __future__ import annotations

import pytest

from core.config import RunConfig
from core.config.edit import apply_settings
from core.errors import ConfigError, PlaygroundError, StoreError, TaskError
from core.experiments.cost import cost
from core.experiments.lifecycle import FILL, Experiments, find_missing_runs, is_complete, is_over, make_runs
from core.store import ExperimentTable, Status, Store
from core.store.job_table import JobTable
from core.tasks import TaskData
from core.workers import LocalEngine
from tests.core.experiments.conftest import Here, Make
from tests.core.experiments.instant import InstantEngine
from tests.core.store.claims import claimed
from tests.core.workers.watching import wait_for


def test_every_cell_has_a_run_under_every_seed_and_first_seeds_come_first(
    experiments: Here, engine: InstantEngine, design: Make
) -> None:
    made = design()
    experiment_id = experiments.begin(made)
    runs = experiments.table.runs(experiment_id)
    assert [(run.cell, run.seed) for run in runs] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert all(run.own and run.status == Status.FINISHED for run in runs)
    configs = [engine.store.run(run_id).config for run_id in engine.carried_out]
    assert [(c.phases[0].objective.weight, c.seed) for c in configs] == [(0.1, 0), (0.9, 0), (0.1, 1), (0.9, 1)]
    assert is_complete(made, runs)


def test_a_run_that_was_there_is_found_and_not_repeated(experiments: Here, engine: InstantEngine, design: Make) -> None:
    made = design()
    before = engine.submit(made.draft(made.cells[1], 1))
    engine.store.rename(before, "Made by hand")
    experiment_id = experiments.begin(made)
    found = {(run.cell, run.seed): run for run in experiments.table.runs(experiment_id)}
    assert (found[1, 1].run_id, found[1, 1].own) == (before, False)
    assert len(engine.carried_out) == 4
    assert experiments.begin(made.revised(name="Again")) != experiment_id
    assert len(engine.carried_out) == 4


def test_a_run_whose_knobs_were_turned_is_another(experiments: Here, engine: InstantEngine, design: Make) -> None:
    made = design()
    turned = claimed(engine.store, engine.prepared(made.draft(made.cells[0], 0))[0])
    turned.record_knob_turn(3, "lambda", 0.5)
    turned.end(Status.FINISHED)
    experiment_id = experiments.begin(made)
    assert turned.run_id not in {run.run_id for run in experiments.table.runs(experiment_id)}


def test_what_cannot_run_at_all_is_refused_and_creates_nothing(experiments: Here, design: Make) -> None:
    lost = apply_settings(design().base, {"task.path": "lost.csv"})
    made = design(base=lost.model_dump(mode="json"))
    for refuses in (lambda: cost(experiments.engine, made), lambda: experiments.begin(made)):
        with pytest.raises(TaskError, match=r"lost\.csv"):
            refuses()
    with pytest.raises(ConfigError, match="there is no such run"):
        experiments.engine.submit(apply_settings(design().base, {"start": "abcdefghijkm"}))
    assert experiments.table.experiments() == []
    assert experiments.engine.store.runs() == []


def test_a_cell_that_does_not_apply_says_why_and_the_others_run(experiments: Here, design: Make) -> None:
    axes = [{"setting": "preset", "values": ["ce", "ce-scl"]}, {"setting": "temperature", "values": [0.1]}]
    made = design(axes=axes, baseline={}, seeds=1)
    experiment_id = experiments.begin(made)
    without, with_scl = experiments.table.runs(experiment_id)
    assert without.run_id is None
    assert "no contrastive loss" in str(without.problem)
    assert with_scl.status == Status.FINISHED
    assert is_over(made, [without, with_scl])
    assert not is_complete(made, [without, with_scl])


def test_a_stop_ends_what_it_started_and_nothing_else(experiments: Here, engine: InstantEngine, design: Make) -> None:
    engine.holding = True
    made = design()
    by_hand = engine.submit(made.draft(made.cells[0], 0))
    experiment_id = experiments.begin(made)
    assert experiments.stop(experiment_id) == 3
    assert [run.run_id for run in experiments.table.runs(experiment_id)] == [by_hand]
    assert [(run.id, run.status) for run in engine.store.runs()] == [(by_hand, Status.QUEUED)]
    assert not experiments.table.is_wanted(experiment_id)


def test_a_run_that_has_begun_is_stopped_and_kept(experiments: Here, engine: InstantEngine, design: Make) -> None:
    engine.holding = True
    experiment_id = experiments.begin(design())
    claim = engine.store.claim_next(range(1))
    assert experiments.stop(experiment_id) == 4
    [run] = experiments.table.runs(experiment_id)
    assert run.run_id == claim[0]
    assert [control.kind for control in engine.store.attempt(*claim[:2]).take_controls()] == ["stop"]


def test_a_stop_leaves_what_another_experiment_needs(experiments: Here, engine: InstantEngine, design: Make) -> None:
    engine.holding = True
    first = experiments.begin(design())
    second = experiments.begin(design(seeds=1))
    assert experiments.stop(first) == 2
    assert {run.status for run in experiments.table.runs(second)} == {Status.QUEUED}


def test_a_stopped_experiment_makes_no_more_runs_until_it_goes_on(
    experiments: Here, engine: InstantEngine, design: Make
) -> None:
    made = design()
    experiment_id = experiments.table.create("", made.to_json())
    experiments.table.set_wanted(experiment_id, False)
    assert make_runs(engine, experiment_id, lambda *_: None) == 0
    assert experiments.table.runs(experiment_id) == []
    engine.holding = True
    experiments.resume(experiment_id)
    experiments.stop(experiment_id)
    engine.holding = False
    experiments.resume(experiment_id)
    assert is_complete(made, experiments.table.runs(experiment_id))
    assert len(engine.store.runs()) == 4


def test_a_run_that_is_being_prepared_during_a_stop_is_not_queued(
    experiments: Here, engine: InstantEngine, design: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment_id = experiments.table.create("", design().to_json())
    prepare = engine.prepared

    def prepare_while_the_visitor_stops(draft: RunConfig) -> tuple[RunConfig, TaskData]:
        experiments.stop(experiment_id)
        return prepare(draft)

    monkeypatch.setattr(engine, "prepared", prepare_while_the_visitor_stops)
    assert make_runs(engine, experiment_id, lambda *_: None) == 0
    assert experiments.table.runs(experiment_id) == []
    assert engine.store.runs() == []


def test_more_seeds_add_runs_and_keep_those_that_are_there(experiments: Here, design: Make) -> None:
    experiment_id = experiments.begin(design())
    before = {run.run_id for run in experiments.table.runs(experiment_id)}
    more = experiments.add_seeds(experiment_id, 2)
    assert more.seeds == (0, 1, 2, 3)
    after = experiments.table.runs(experiment_id)
    assert len(after) == 8
    assert before < {run.run_id for run in after}
    with pytest.raises(ConfigError, match="seeds = 0"):
        experiments.add_seeds(experiment_id, 0)
    with pytest.raises(ConfigError, match="seeds"):
        experiments.add_seeds(experiment_id, 1_000)
    assert experiments.design(experiment_id) == more


def test_a_deleted_run_is_made_again_when_somebody_asks(experiments: Here, engine: InstantEngine, design: Make) -> None:
    made = design()
    experiment_id = experiments.begin(made)
    gone = experiments.table.runs(experiment_id)[0].run_id or ""
    engine.store.discard(gone)
    runs = experiments.table.runs(experiment_id)
    assert (runs[0].run_id, runs[0].ended) == (None, True)
    experiments.revive(experiments.table.experiment(experiment_id), made, runs)
    assert len(engine.carried_out) == 4
    engine.store.purge_discarded(0.0)
    assert experiments.table.runs(experiment_id)[0].run_id is None
    experiments.resume(experiment_id)
    assert is_complete(made, experiments.table.runs(experiment_id))
    assert len(engine.carried_out) == 5


def test_reviving_an_experiment_makes_its_missing_runs(experiments: Here, engine: InstantEngine, design: Make) -> None:
    """Revive an experiment whose process was killed before it made the runs."""
    made = design()
    experiment_id = experiments.table.create("", made.to_json())
    experiments.revive(experiments.table.experiment(experiment_id), made, [])
    assert find_missing_runs(made, experiments.table.runs(experiment_id)) == []
    assert len(engine.carried_out) == 4


def test_names_and_deletion_can_be_undone(experiments: Here, design: Make) -> None:
    table = experiments.table
    experiment_id = experiments.begin(design(name="First"))
    assert table.experiment(experiment_id).title == "First"
    table.rename(experiment_id, "")
    assert table.experiment(experiment_id).title == "Experiment 1"
    with pytest.raises(ConfigError, match="name"):
        table.rename(experiment_id, "x" * 81)
    table.discard(experiment_id)
    assert table.experiments() == []
    with pytest.raises(StoreError, match="does not exist"):
        table.experiment(experiment_id)
    assert [(one.id, one.title) for one in table.discarded()] == [(experiment_id, "Experiment 1")]
    assert table.discarded(within_s=0.0) == []
    table.restore(experiment_id)
    assert table.discarded() == []
    assert [one.id for one in table.experiments()] == [experiment_id]
    table.discard(experiment_id)
    table.purge_discarded(0.0)
    with pytest.raises(StoreError, match="deleted permanently"):
        table.restore(experiment_id)
    assert len(experiments.engine.store.runs()) == 4


def test_an_experiment_is_found_by_id_number_and_design(experiments: Here, design: Make) -> None:
    made = design()
    experiment_id = experiments.begin(made)
    assert experiments.table.find(experiment_id) == experiments.table.find("1") == experiment_id
    assert experiments.table.with_design(made.to_json()) == experiment_id
    assert experiments.table.with_design(design(seeds=3).to_json()) is None
    for nothing in ("", "2", "' OR 1"):
        with pytest.raises(StoreError, match="does not exist"):
            experiments.table.find(nothing)


def test_a_run_knows_its_experiments(experiments: Here, engine: InstantEngine, design: Make) -> None:
    first, second = experiments.begin(design()), experiments.begin(design(seeds=1))
    run_id = experiments.table.runs(second)[0].run_id or ""
    assert [one.id for one in experiments.table.of_run(run_id)] == [second, first]
    assert experiments.table.of_run(engine.submit(apply_settings(design().base, {"steps": 3}))) == []


def test_an_experiment_that_does_not_exist_is_one_sentence(experiments: Here) -> None:
    for ask in (experiments.design, experiments.stop, experiments.resume, experiments.fill):
        with pytest.raises(PlaygroundError, match="does not exist"):
            ask("nosuchthing1")


def test_runs_start_from_the_sources_of_their_seeds(experiments: Here, engine: InstantEngine, design: Make) -> None:
    start = {
        "name": "Start",
        "levels": [{"label": "None", "settings": {}}, {"label": "First", "settings": {"start": "First"}}],
    }
    made = design(axes=[start], sources=[{"label": "First", "settings": {"steps": 5}}], baseline={"Start": "None"})
    experiment_id = experiments.begin(made)
    runs = {(run.cell, run.seed): run for run in experiments.table.runs(experiment_id)}
    assert set(runs) == {(cell, seed) for cell in (-1, 0, 1) for seed in (0, 1)}
    for seed in (0, 1):
        config = engine.store.run(str(runs[1, seed].run_id)).config
        assert config.start == runs[-1, seed].run_id
        assert engine.store.run(str(runs[0, seed].run_id)).config.start is None
    assert is_complete(made, list(runs.values()))


@pytest.mark.slow
def test_a_job_makes_the_runs_and_real_workers_carry_them_out(store: Store, design: Make) -> None:
    start = {"name": "Start", "levels": [{"label": "First", "settings": {"start": "First"}}]}
    base = apply_settings(design().base, {"steps": 2}).model_dump(mode="json")
    sources = [{"label": "First", "settings": {"steps": 3}}]
    made = design(base=base, axes=[start], sources=sources, baseline={}, seeds=2)
    experiments = Experiments(LocalEngine(store))
    experiment_id = experiments.begin(made)
    assert not is_over(made, experiments.table.runs(experiment_id))  # `begin` did not wait for them
    wait_for(lambda: is_over(made, ExperimentTable(store.folder).runs(experiment_id)), timeout_s=120)
    runs = experiments.table.runs(experiment_id)
    assert is_complete(made, runs), [(run.status, run.message, run.problem) for run in runs]
    assert {store.predictions(run.run_id or "") is not None for run in runs} == {True}


def test_the_first_run_begins_before_the_job_that_makes_the_others(
    engine: InstantEngine, design: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Experiments, "fill", lambda *_: None)
    experiments = Experiments(engine)
    experiment_id = experiments.begin(design())
    [run] = experiments.table.runs(experiment_id)
    assert (run.cell, run.seed, run.status) == (0, 0, Status.FINISHED)


def test_a_job_that_failed_is_not_started_again_at_every_look(
    store: Store, engine: InstantEngine, design: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(Experiments, "fill", lambda _, experiment_id: asked.append(experiment_id))
    experiments, made = Experiments(engine), design()
    experiment_id = experiments.table.create("", made.to_json())
    table = JobTable(store.folder)
    table.end(table.add(FILL, {"experiment": experiment_id}, "Runs"), Status.FAILED, "The disk is full.")
    experiments.revive(experiments.table.experiment(experiment_id), made, [])
    assert asked == []
    monkeypatch.setattr("core.experiments.lifecycle.RETRY_S", 0.0)
    experiments.revive(experiments.table.experiment(experiment_id), made, [])
    assert asked == [experiment_id]
