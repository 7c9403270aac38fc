"""The life cycle of an experiment: create it and its runs, stop, resume, add seeds."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from core.advice.prepare import check_models
from core.config import RunConfig
from core.errors import ConfigError, EngineError, PlaygroundError
from core.experiments.design import START, Cell, Design, parse_design
from core.messages import Message
from core.store import Experiment, ExperimentRun, ExperimentTable, Status, Store, TaskLibrary
from core.tasks import TaskData
from core.workers import Engine, Jobs, Progress, build_engine
from core.workers.limits import check_experiments, check_paths

# The kind of the job that creates an experiment's runs.
FILL = "experiment"
# A failed job is retried only after this delay, because its cause is likely to persist for a while.
RETRY_S = 30.0
# The experiment, cell and seed of a run, its prepared config and its rows.
_Prepared = tuple[tuple[str, int, int], RunConfig, TaskData]


class Experiments:
    """The experiments of an engine's store.

    A job creates the runs, so that the caller need not wait while a thousand runs are checked. Viewing an experiment
    that lacks runs restarts the job if it has ended.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.table = ExperimentTable(engine.store.folder)
        self._jobs = Jobs(engine.store.folder)

    def begin(self, design: Design, owner: str | None = None) -> str:
        """Create an experiment, start the job that creates its runs, and return its id.

        Args:
            owner: the visitor who owns it, on a shared server.
        Raises: ConfigError, TaskError or EncoderError if no run can be created, and EngineError or StoreError. If
            it raises, nothing was created.
        """
        design.check_levels()
        design.check_early_stopping()
        check_drafts(design)
        refused: PlaygroundError | None = None
        for cell in design.cells:  # one run is checked completely
            try:
                self.engine.prepared(design.draft(cell, design.seeds[0]))
                break
            except PlaygroundError as error:
                refused = refused or error
        else:
            assert refused is not None
            raise refused
        # Store the task's name in the design, because the task may be deleted.
        task = TaskLibrary(self.engine.store.folder).with_current_name(design.base.task)
        design = design.model_copy(update={"base": design.base.model_copy(update={"task": task})})
        with self.table.transaction():
            check_experiments(design.runs, owner, lambda: self._unfinished(owner))
            experiment_id = self.table.create(design.name, design.to_json(), owner)
        # Create the first run here: it starts while the job is still loading its imports. Cells that train together
        # are few.
        together = design.base.on_shared_trunk
        make_runs(self.engine, experiment_id, lambda *_progress: None, most=None if together else 1)
        if not together:
            self.fill(experiment_id)
        return experiment_id

    def design(self, experiment_id: str) -> Design:
        """Return the design of an experiment. Raises: StoreError if there is no such experiment."""
        return parse_design(self.table.experiment(experiment_id).design)

    def fill(self, experiment_id: str) -> None:
        """Start the job that creates missing runs, unless it is running. Raises: EngineError."""
        experiment = self.table.experiment(experiment_id)
        self._jobs.start(
            FILL, {"experiment": experiment_id}, Message("Runs of {experiment}", experiment=experiment.text)
        )

    def revive(self, experiment: Experiment, design: Design, runs: Sequence[ExperimentRun]) -> None:
        """Restart the job for missing runs, unless the experiment was stopped or the job failed in the last RETRY_S."""
        if not (experiment.wanted and find_missing_runs(design, runs)):
            return
        request = (FILL, {"experiment": experiment.id})
        newest = next((job for job in self._jobs.jobs() if (job.kind, job.request) == request), None)
        failed = newest is not None and newest.status in ("failed", "interrupted")
        if newest is None or not failed or time.time() - newest.updated_at >= RETRY_S:
            with suppress(EngineError):  # the next view tries again
                self.fill(experiment.id)

    def stop(self, experiment_id: str) -> int:
        """Stop creating runs, and stop or withdraw the experiment's own runs that no other experiment needs.

        Returns: number of runs stopped or withdrawn. Raises: StoreError.
        """
        self.table.set_wanted(experiment_id, False)
        own = [run for run in self.table.runs(experiment_id) if run.own and run.run_id and not run.ended]
        others = self.table.needed_by_others(experiment_id, [run.run_id for run in own if run.run_id])
        stopped = 0
        for run in own:
            if run.run_id and run.run_id not in others:
                with suppress(EngineError):  # the run may just have ended
                    if not self.engine.store.withdraw(run.run_id):
                        self.engine.stop(run.run_id)
                    stopped += 1
        self.table.forget_missing(experiment_id)
        return stopped

    def resume(self, experiment_id: str) -> None:
        """Resume stopped, failed and interrupted runs, and create missing and deleted runs.

        Raises: StoreError, EngineError.
        """
        design, owner = self.design(experiment_id), self.table.experiment(experiment_id).owner
        with self.table.transaction():
            runs = self.table.runs(experiment_id)
            going_on = len(find_missing_runs(design, runs)) + sum(
                not run.ended or run.may_go_on or not run.run_id for run in runs
            )
            check_experiments(going_on, owner, lambda: self._unfinished(owner, besides=experiment_id))
            self.table.set_wanted(experiment_id, True)
        self.engine.retire_outdated()
        for run in runs:
            if run.run_id and run.may_go_on:
                if run.owner != owner:
                    self.table.put_run(experiment_id, run.cell, run.seed, None)  # replaced by an own run below
                    continue
                with suppress(EngineError):  # another request may have resumed it
                    self.engine.store.requeue(run.run_id)
        self.table.forget_missing(experiment_id)
        self.engine.dispatch()
        self.fill(experiment_id)

    def add_seeds(self, experiment_id: str, count: int) -> Design:
        """Add `count` seeds to every cell, counting up from the largest.

        Raises: ConfigError, StoreError, EngineError.
        """
        if count < 1:
            raise ConfigError("seeds", count, "give 1 or more.")
        design = self.design(experiment_id)
        first = max(design.seeds) + 1
        more = design.revised(seeds=[*design.seeds, *range(first, first + count)])
        owner = self.table.experiment(experiment_id).owner
        with self.table.transaction():
            unfinished = count_unfinished_runs(more, self.table.runs(experiment_id))
            check_experiments(unfinished, owner, lambda: self._unfinished(owner, besides=experiment_id))
            self.table.redesign(experiment_id, more.to_json())
            self.table.set_wanted(experiment_id, True)
        self.fill(experiment_id)
        return more

    def _unfinished(self, owner: str | None, besides: str | None = None) -> int:
        """Return the number of runs of a visitor's experiments that have not ended, created or not."""
        return sum(
            count_unfinished_runs(parse_design(experiment.design), self.table.runs(experiment.id))
            for experiment in self.table.experiments()
            if experiment.owner == owner and experiment.wanted and experiment.id != besides
        )


def check_drafts(design: Design) -> None:
    """Check the paths and the models of every cell. Raises: ConfigError, EncoderError."""
    for cell in (*design.source_cells, *design.cells):
        try:
            draft = design.draft(cell, design.seeds[0])
        except PlaygroundError:
            continue  # a cell without a draft gets no run
        check_paths(draft)
        check_models(draft)


def find_missing_runs(design: Design, runs: Sequence[ExperimentRun]) -> list[tuple[Cell, int]]:
    """Return the cells and seeds without a run, ordered by seed. A deleted run does not count as missing.

    Sources come before the cells that start from them.
    """
    there = {(run.cell, run.seed) for run in runs}
    every = (*design.source_cells, *design.cells)
    return [(cell, seed) for seed in design.seeds for cell in every if (cell.number, seed) not in there]


def count_unfinished_runs(design: Design, runs: Sequence[ExperimentRun]) -> int:
    """Return the number of runs that have not ended, created or not."""
    return len(find_missing_runs(design, runs)) + sum(not run.ended for run in runs)


def make_runs(engine: Engine, experiment_id: str, report: Progress, most: int | None = None) -> int:
    """Create the missing runs of an experiment, or reuse identical ones, until the experiment is stopped.

    If a run cannot be created, the reason is stored instead.

    Args:
        most: maximum number of missing runs to handle; None for all.
    Returns: number of new runs.
    """
    table = ExperimentTable(engine.store.folder)
    experiment = table.experiment(experiment_id)
    design = parse_design(experiment.design)
    todo = find_missing_runs(design, table.runs(experiment_id))[:most]
    new, prepared = 0, list[_Prepared]()
    for done, (cell, seed) in enumerate(todo):
        report(done, len(todo), f"{design.title_of(cell)}, seed {seed}")
        if not table.is_wanted(experiment_id):
            break
        place = (experiment_id, cell.number, seed)
        try:
            draft = design.draft(cell, seed, _sources(design, table.runs(experiment_id), cell, seed))
            prepared.append((place, *engine.prepared(draft)))
        except PlaygroundError as error:
            table.put_run(*place, None, error.message)
        if not design.base.on_shared_trunk:
            new += _queue(engine, table, prepared, experiment.owner)
            prepared = []
    # Cells that train together are queued together, so that one worker claims all of them.
    new += _queue(engine, table, prepared, experiment.owner)
    report(len(todo), len(todo), "done")
    return new


def _sources(design: Design, runs: Sequence[ExperimentRun], cell: Cell, seed: int) -> dict[str, str]:
    """Return the id of the source run of a cell and seed, by label; empty if the cell has no source.

    Raises: EngineError if the source run could not be created.
    """
    named = [level.settings[START] for level in design.levels_of(cell) if level.settings.get(START)]
    if not named:
        return {}
    label = named[-1]
    number = next(one.number for one in design.source_cells if design.title_of(one) == label)
    found = next((run.run_id for run in runs if (run.cell, run.seed) == (number, seed)), None)
    if found is None:
        raise EngineError("The source run {run} failed with seed {seed}: fix it first.", run=label, seed=seed)
    return {label: found}


def _queue(engine: Engine, table: ExperimentTable, prepared: Sequence[_Prepared], owner: str | None) -> int:
    """Queue runs in one transaction, or reuse identical ones. Returns: number of new runs."""
    reused = []
    try:
        with engine.store.transaction():
            for place, config, data in prepared:
                same = engine.store.same_as(config)
                run = None if same is None else engine.store.run(same)
                if run is None or (
                    run.status.resumable and run.owner != owner
                ):  # only its owner restarts a stopped run
                    engine.queue(config, data, place, owner)
                else:
                    reused.append((place, run))
    except PlaygroundError as error:
        for place, _config, _data in prepared:
            if table.is_wanted(place[0]):
                table.put_run(*place, None, error.message)
        return 0
    engine.retire_outdated()
    for place, run in reused:
        table.put_run(*place, run.id)
        if run.status.resumable:
            with suppress(EngineError):  # another request may have resumed it
                engine.store.requeue(run.id)
    engine.dispatch()
    return len(prepared) - len(reused)


def job(request: dict[str, Any], store_folder: Path, progress: Progress) -> dict[str, Any]:
    """Create an experiment's runs. Args: request: "experiment", its id. Returns: "new", the number of new runs."""
    engine = build_engine(Store(store_folder))
    return {"new": make_runs(engine, str(request["experiment"]), progress)}


def is_over(design: Design, runs: Sequence[ExperimentRun]) -> bool:
    """Return True if every cell has an ended run, or a reason for having none, for every seed."""
    return not find_missing_runs(design, runs) and all(run.ended for run in runs)


def is_complete(design: Design, runs: Sequence[ExperimentRun]) -> bool:
    """Return True if every run has finished, or was ended early in favour of better runs."""
    return is_over(design, runs) and all(run.status == Status.FINISHED or run.ended_early for run in runs)
