"""Attempts of a visitor to take more of a shared server than a fair share, and to change what belongs to others."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from core.artifacts.waiting_time import places, remaining_time
from core.config.edit import apply_settings
from core.config.fields import build
from core.errors import ConfigError, EngineError
from core.experiments.design import Design
from core.store import Status, Store, TaskLibrary
from core.store.liveness import liveness_of
from core.tasks.hub.fetch import Fetched
from core.tasks.rows import Rows
from core.workers import Jobs, LocalEngine, hub_job, processes
from core.workers import job_kinds as kinds
from core.workers.run_controls import controlled
from tests.core.experiments.conftest import Here
from tests.core.workers.watching import wait_for
from tests.pages.conftest import Draft, page

ROWS = Rows(("a cat", "a dog", "an emu", "a dog again") * 10, ("x", "y", "x", "x") * 10)


@pytest.fixture
def engine(shared: Store) -> LocalEngine:
    return LocalEngine(shared, slots=range(0))


@pytest.fixture
def experiments(engine: LocalEngine) -> Here:
    return Here(engine)


def design(draft: Draft, seeds: int, first: int = 0) -> Design:
    base = apply_settings(draft(), {"seed": first}).model_dump(mode="json")
    return build(Design, {"base": base, "seeds": list(range(first, first + seeds))})


class TestQueue:
    def test_twenty_requests_at_once_queue_no_more_than_five_runs(self, engine: LocalEngine, draft: Draft) -> None:
        config, data = engine.prepared(draft())
        start = threading.Barrier(20)

        def submit(_: int) -> bool:
            start.wait()
            try:
                engine.queue(config, data, owner="ada")
            except EngineError:
                return False
            return True

        with ThreadPoolExecutor(20) as pool:
            assert sum(pool.map(submit, range(20))) == 5
        assert len(engine.store.runs()) == 5

    def test_runs_that_wait_for_a_source_count(self, engine: LocalEngine, draft: Draft) -> None:
        source = engine.submit(draft(), "ada")
        for _ in range(4):
            engine.submit(apply_settings(draft(), {"start": source}), "ada")
        with pytest.raises(EngineError, match="5 of your runs are queued already"):
            engine.submit(draft(), "ada")

    def test_a_stopped_run_cannot_be_resumed_beyond_the_limit(self, engine: LocalEngine, draft: Draft) -> None:
        first = engine.submit(draft(), "ada")
        engine.stop(first)
        for _ in range(5):
            engine.submit(draft(), "ada")
        with pytest.raises(EngineError, match="5 of your runs are queued already"):
            engine.resume(first)
        assert engine.store.run(first).status == Status.STOPPED

    def test_a_run_has_at_most_as_many_steps_as_a_visitor_may_take(
        self, engine: LocalEngine, draft: Draft, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SCL_VISITOR_STEPS", "3")
        long = apply_settings(draft(), {"steps": 4})
        with pytest.raises(ConfigError, match="at most 3") as refused:
            engine.submit(long, "ada")
        assert (refused.value.field, engine.store.runs()) == ("steps", [])
        engine.submit(long)  # from the command line
        engine.submit(apply_settings(draft(), {"steps": 3}), "ada")


class TestExperiments:
    def test_unfinished_runs_of_all_experiments_count_together(
        self, experiments: Here, draft: Draft, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SCL_VISITOR_EXPERIMENT", "5")
        first = experiments.begin(design(draft, 3), "ada")
        with pytest.raises(EngineError, match="3 runs of your other experiments have not ended, and this one adds 3"):
            experiments.begin(design(draft, 3, first=10), "ada")
        assert [one.id for one in experiments.table.experiments()] == [first]
        with pytest.raises(EngineError, match="has 6 runs, but at most 5 are allowed"):
            experiments.add_seeds(first, 3)
        experiments.begin(design(draft, 3, first=10), "bob")
        experiments.stop(first)
        experiments.begin(design(draft, 3, first=20), "ada")
        with pytest.raises(EngineError, match="3 runs of your other experiments"):
            experiments.resume(first)
        assert not experiments.table.experiment(first).wanted
        assert sum(run.owner == "ada" for run in experiments.engine.store.runs()) == 3

    def test_a_stopped_run_of_another_visitor_is_not_restarted(self, experiments: Here, draft: Draft) -> None:
        store = experiments.engine.store
        made = design(draft, 1)
        of_bob = experiments.engine.submit(made.draft(made.cells[0], 0), "bob")
        experiments.engine.stop(of_bob)
        experiments.begin(made, "ada")
        owners = {run.owner: run.status for run in store.runs()}
        assert owners == {"bob": Status.STOPPED, "ada": Status.QUEUED}

    def test_resuming_an_experiment_replaces_a_run_that_another_visitor_stopped(
        self, experiments: Here, draft: Draft
    ) -> None:
        store, made = experiments.engine.store, design(draft, 1)
        of_bob = experiments.engine.submit(made.draft(made.cells[0], 0), "bob")
        begun = experiments.begin(made, "ada")
        assert [run.run_id for run in experiments.table.runs(begun)] == [of_bob]
        experiments.engine.stop(of_bob)
        experiments.resume(begun)
        [run] = experiments.table.runs(begun)
        assert (store.run(of_bob).status, store.run(str(run.run_id)).owner) == (Status.STOPPED, "ada")


class TestPause:
    def test_a_paused_run_gives_up_its_slot_only_for_a_queued_run(
        self, engine: LocalEngine, draft: Draft, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SCL_PAUSED_MINUTES", "0.002")
        store, run_id = engine.store, engine.submit(draft(), "ada")
        claim = store.claim_next(range(1))
        assert claim is not None
        attempt = store.attempt(run_id, claim.attempt)
        attempt.register()
        with controlled(store, [attempt]) as (controls,):
            engine.pause(run_id)
            wait_for(lambda: store.run(run_id).status == Status.PAUSED)
            threading.Event().wait(0.6)
            assert not controls.stop_requested()
            waiting = engine.submit(draft(), "bob")
            assert places(store, 1)[waiting].seconds == pytest.approx(0.12)
            assert remaining_time(store, [run_id], 1).seconds is None
            wait_for(controls.stop_requested)
        assert "was stopped. Resume it" in str(store.run(run_id).message)


class TestJobs:
    def test_limits_are_per_visitor(self, shared: Store) -> None:
        jobs = Jobs(shared.folder)
        for number in range(kinds.VISITOR_ACTIVE):
            jobs.start("map", {"number": number}, "Map", owner="ada")
        with pytest.raises(EngineError, match="5 such jobs are running or queued"):
            jobs.start("map", {"number": 99}, "Map", owner="ada")
        jobs.start("map", {"number": 99}, "Map", owner="bob")

    def test_a_job_of_another_visitor_can_be_watched_but_not_cancelled_or_dismissed(
        self, shared: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(processes, "spawn", lambda *_: liveness_of())  # jobs that stay active
        jobs = Jobs(shared.folder)
        request = {"repository": "acme/tiny", "text": "text", "label": "label", "owner": "bob"}
        mine = jobs.start("hub", request | {"owner": "ada"}, "Of ada", owner="ada")
        theirs = jobs.start("hub", request, "Of bob", owner="bob")
        buttons = {button.key for button in page("data", view="hub").button}
        assert f"cancel.{mine}" in buttons
        assert f"cancel.{theirs}" not in buttons
        for job_id in (mine, theirs):
            jobs._table.end(job_id, Status.FAILED, "No space.")
        buttons = {button.key for button in page("data", view="hub").button}
        assert {f"dismiss.{mine}", f"again.{mine}"} <= buttons
        assert not {f"dismiss.{theirs}", f"again.{theirs}"} & buttons


class TestTasks:
    def test_a_task_of_another_visitor_cannot_be_renamed_deleted_or_restored(self, shared: Store) -> None:
        library = TaskLibrary(shared.folder)
        theirs = library.add(ROWS, name="Theirs", source="a.csv", owner="bob")
        shown = page("data", task=theirs.id)
        assert not {button.label for button in shown.button} & {"Rename", "Delete"}
        assert any("only they or an admin can rename or delete it" in caption.value for caption in shown.caption)
        mine = library.add(Rows(ROWS.texts[1:], ROWS.labels[1:]), name="Mine", source="b.csv", owner="ada")
        assert {"Rename", "Delete"} <= {button.label for button in page("data", task=mine.id).button}
        library.discard(theirs.id)
        assert not any("Theirs" in caption.value for caption in page("data").caption)

    def test_a_page_that_is_out_of_date_deletes_nothing(self, shared: Store) -> None:
        """The task is replaced by another visitor's with the same rows while the page is open."""
        library = TaskLibrary(shared.folder)
        mine = library.add(ROWS, name="Mine", source="a.csv", owner="ada")
        shown = page("data", task=mine.id)
        library.delete(mine.id)
        library.add(ROWS, name="Theirs", source="a.csv", owner="bob")
        shown.button(key="data.delete").click().run()
        assert [task.name for task in library.tasks()] == ["Theirs"]

    def test_a_fetched_task_belongs_to_its_visitor(self, shared: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(hub_job, "fetch", lambda *_, **__: Fetched(ROWS, "acme/tiny", ""))
        monkeypatch.setattr(hub_job, "_check_splits", lambda *_: None)
        request: dict[str, Any] = {"repository": "acme/tiny", "text": "text", "label": "label", "owner": "ada"}
        result = hub_job.job(json.loads(json.dumps(request)), Path(shared.folder), lambda *_: None)
        assert TaskLibrary(shared.folder).task(result["task"]).owner == "ada"
