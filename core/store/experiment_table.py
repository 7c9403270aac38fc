"""Experiments as rows: their designs, the run of each cell and seed, and the progress of those runs."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from core.errors import StoreError, quote_value
from core.events import Evaluation
from core.messages import Message, Text
from core.store.database import UNDO_S, Database, build_record
from core.store.liveness import observed_status, rows_of_work
from core.store.names import checked_name, new_id
from core.store.records import Status, stored_text, worked_seconds

RUNS_OF = (
    "SELECT e.cell, e.seed, e.run_id, e.own, e.problem, e.ended_early, r.number, w.status, w.owner, w.worker, "
    "w.heartbeat_at, r.last_step, r.steps, r.worked_s, r.working_since, r.peak_memory, w.ended_at, w.message, "
    # Avoid the view `run_rows`: on the right of a LEFT JOIN, SQLite would read all of its rows.
    "r.discarded_at, r.begun_attempt FROM experiment_runs e "
    "LEFT JOIN runs r ON r.id = e.run_id LEFT JOIN work w ON w.id = r.id "
    "WHERE e.experiment_id = ? ORDER BY e.cell, e.seed"
)


@dataclass(frozen=True, slots=True)
class Experiment:
    """A stored experiment.

    Attributes:
        design: JSON that `core.experiments` parses.
        wanted: True while its runs are to be executed; False once a user stopped it.
        created_at: seconds since the epoch.
        owner: the visitor who created it; None if unknown.
        discarded_at: seconds since the epoch; None unless it was deleted.
    """

    id: str
    number: int
    name: str
    design: str
    wanted: bool
    created_at: float
    owner: str | None = None
    discarded_at: float | None = None

    @property
    def title(self) -> str:
        return str(self.text)

    @property
    def text(self) -> Text:
        """The name, or the number of an unnamed experiment."""
        return self.name or Message("Experiment {number}", number=self.number)


@dataclass(frozen=True, slots=True)
class ExperimentRun:
    """Run of one cell and seed.

    Attributes:
        run_id: None if the run could not be created (see `problem`) or was deleted.
        own: True if this experiment started the run; False if it reuses one that existed before.
        problem: reason why the run could not be created, in one sentence.
        ended_early: True if the run was ended because others were better. It is not resumed.
        begun_attempt: identifies the available scores, together with the run's id and status.
        seconds: working time of the run.
        peak_memory: as in `RunSummary`.
        ended_at: seconds since the epoch.
        owner: the visitor who started the run; None if unknown.
    """

    cell: int
    seed: int
    run_id: str | None = None
    own: bool = False
    problem: Text | None = None
    ended_early: bool = False
    number: int | None = None
    status: Status | None = None
    last_step: int = 0
    steps: int = 0
    begun_attempt: int = 0
    seconds: float = 0.0
    peak_memory: int | None = None
    ended_at: float | None = None
    message: Text | None = None
    owner: str | None = None

    @property
    def may_go_on(self) -> bool:
        """True if resuming the experiment resumes this run."""
        return self.status is not None and self.status.resumable and not self.ended_early

    @property
    def ended(self) -> bool:
        """True if the run has ended or does not exist."""
        return self.status is None or self.status.ended


class ExperimentTable(Database):
    """The experiments table of a database."""

    def create(self, name: str, design: str, owner: str | None = None) -> str:
        """Add an experiment whose runs are to be executed; return its id. Raises: ConfigError for an overlong name."""
        experiment_id = new_id()
        given: dict[str, Any] = {"id": experiment_id, "name": checked_name(name), "design": design, "owner": owner}
        self.insert("experiments", wanted=1, created_at=time.time(), **given)
        return experiment_id

    def adopt(self, experiment_id: str, name: str, design: str) -> None:
        """Add an experiment that was executed elsewhere, so that it starts no runs here.

        A discarded experiment is restored; an existing one does not change.
        """
        self.write(
            "INSERT INTO experiments (id, name, design, wanted, created_at) VALUES (?, ?, ?, 0, ?) "
            "ON CONFLICT (id) DO UPDATE SET discarded_at = NULL",
            (experiment_id, checked_name(name), design, time.time()),
        )

    def experiments(self) -> list[Experiment]:
        """Return all experiments that are not discarded, newest first."""
        return self._experiments("discarded_at IS NULL ORDER BY number DESC")

    def experiment(self, experiment_id: str) -> Experiment:
        """Return one experiment. Raises: StoreError for an unknown id."""
        found = self._experiments("id = ? AND discarded_at IS NULL", experiment_id)
        if not found:
            raise StoreError("Experiment {id} does not exist: choose one from the list.", id=quote_value(experiment_id))
        return found[0]

    def _experiments(self, condition: str, *values: object) -> list[Experiment]:
        rows = self.all(f"SELECT * FROM experiments WHERE {condition}", values)
        return [build_record(Experiment, row, wanted=bool(row["wanted"])) for row in rows]

    def find(self, text: str) -> str:
        """Return the id of the experiment with this id or number. Raises: StoreError."""
        rows = self.all("SELECT id, number FROM experiments WHERE discarded_at IS NULL")
        found = [str(row["id"]) for row in rows if text in (row["id"], str(row["number"]))]
        if len(found) != 1:
            raise StoreError(
                "Experiment {id} does not exist: give an id or a number from the list.", id=quote_value(text)
            )
        return found[0]

    def with_design(self, design: str) -> str | None:
        """Return the id of the newest experiment with this design, ignoring the task's name; None if none has it."""
        rows = self.all(
            "SELECT id FROM experiments WHERE json_remove(design, '$.base.task.name') = "
            "json_remove(?, '$.base.task.name') AND discarded_at IS NULL ORDER BY number DESC LIMIT 1",
            (design,),
        )
        return str(rows[0]["id"]) if rows else None

    def rename(self, experiment_id: str, name: str) -> None:
        """Rename an experiment; "" restores its number as the title. Raises: StoreError, ConfigError."""
        self._change(experiment_id, "name = ?", checked_name(name))

    def redesign(self, experiment_id: str, design: str) -> None:
        """Replace the design with one that numbers its cells in the same way. Raises: StoreError."""
        self._change(experiment_id, "design = ?", design)

    def set_wanted(self, experiment_id: str, wanted: bool) -> None:
        """Set whether the experiment's runs are to be executed. Raises: StoreError."""
        self._change(experiment_id, "wanted = ?", wanted)

    def is_wanted(self, experiment_id: str) -> bool:
        """Return True if the experiment exists and was not stopped."""
        return bool(self._experiments("id = ? AND wanted AND discarded_at IS NULL", experiment_id))

    def discard(self, experiment_id: str) -> None:
        """Hide an experiment; its runs stay. `restore` undoes this. Raises: StoreError."""
        self._change(experiment_id, "discarded_at = ?", time.time())

    def discarded(self, within_s: float = UNDO_S) -> list[Experiment]:
        """Return the experiments discarded within the last `within_s` seconds, most recently discarded first."""
        return self._experiments("discarded_at > ? ORDER BY discarded_at DESC", time.time() - within_s)

    def restore(self, experiment_id: str) -> None:
        """Undo `discard`. Raises: StoreError if the experiment was purged."""
        if not self.write("UPDATE experiments SET discarded_at = NULL WHERE id = ?", (experiment_id,)).rowcount:
            raise StoreError(
                "Experiment {id} was deleted permanently and cannot be restored.", id=quote_value(experiment_id)
            )

    def purge_discarded(self, older_than_s: float = UNDO_S) -> None:
        """Permanently delete experiments discarded more than `older_than_s` seconds ago; their runs stay."""
        self.write("DELETE FROM experiments WHERE discarded_at <= ?", (time.time() - older_than_s,))

    # Runs

    def runs(self, experiment_id: str) -> list[ExperimentRun]:
        """Return the experiment's runs so far, ordered by cell and seed."""
        runs = []
        for row in rows_of_work(self, RUNS_OF, (experiment_id,)):
            problem = stored_text(row["problem"])
            if row["number"] is None or row["discarded_at"] is not None:
                runs.append(ExperimentRun(row["cell"], row["seed"], problem=problem))
                continue
            run = build_record(
                ExperimentRun,
                row,
                own=bool(row["own"]),
                problem=problem,
                ended_early=bool(row["ended_early"]),
                status=observed_status(row),
                seconds=worked_seconds(row["worked_s"], row["working_since"], row["ended_at"]),
                message=stored_text(row["message"]),
            )
            runs.append(run)
        return runs

    def cells_of(self, run_id: str) -> list[tuple[str, int]]:
        """Return the id and the seed of every experiment that started a run."""
        rows = self.all("SELECT experiment_id, seed FROM experiment_runs WHERE run_id = ? AND own", (run_id,))
        return [(row["experiment_id"], row["seed"]) for row in rows]

    def put_run(
        self, experiment_id: str, cell: int, seed: int, run_id: str | None, problem: Text | None = None
    ) -> None:
        """Assign a run to a cell and seed, or None and the reason why it could not be created."""
        given = {"experiment_id": experiment_id, "cell": cell, "seed": seed, "run_id": run_id, "problem": problem}
        self.insert("experiment_runs", replace=True, **given)

    def forget_missing(self, experiment_id: str) -> None:
        """Reset the cells whose run could not be created or was deleted, so that it can be created again."""
        self.write(
            "DELETE FROM experiment_runs WHERE experiment_id = ? AND (run_id IS NULL OR run_id IN "
            "(SELECT id FROM runs WHERE discarded_at IS NOT NULL))",
            (experiment_id,),
        )

    def scores(self, experiment_id: str, split: str) -> dict[str, Evaluation]:
        """Return each run's newest evaluation on a split, by run id."""
        return {run_id: found[-1] for run_id, found in self.evaluations(experiment_id, split).items()}

    def evaluations(self, experiment_id: str, split: str) -> dict[str, list[Evaluation]]:
        """Return every evaluation on a split, by run id, in order of steps."""
        found: dict[str, list[Evaluation]] = {}
        every = (
            "SELECT run_id, step, measures FROM evaluations WHERE split = ? AND run_id IN "
            "(SELECT run_id FROM experiment_runs WHERE experiment_id = ?) ORDER BY step"
        )
        for row in self.all(every, (split, experiment_id)):
            found.setdefault(row["run_id"], []).append(Evaluation(row["step"], split, json.loads(row["measures"])))
        return found

    def end_early(self, run_id: str) -> None:
        """Mark a run as ended because other runs of its experiments are better."""
        self.write("UPDATE experiment_runs SET ended_early = 1 WHERE run_id = ?", (run_id,))

    def of_run(self, run_id: str) -> list[Experiment]:
        """Return the experiments that a run belongs to, newest first."""
        own = "id IN (SELECT experiment_id FROM experiment_runs WHERE run_id = ?)"
        return self._experiments(f"{own} AND discarded_at IS NULL ORDER BY number DESC", run_id)

    def needed_by_others(self, experiment_id: str, run_ids: Sequence[str]) -> set[str]:
        """Return those of `run_ids` that another experiment also uses; stopped experiments do not count."""
        rows = self.all(
            "SELECT DISTINCT e.run_id FROM experiment_runs e JOIN experiments x ON x.id = e.experiment_id "
            "WHERE x.id != ? AND x.wanted AND x.discarded_at IS NULL",
            (experiment_id,),
        )
        return {row["run_id"] for row in rows} & set(run_ids)

    def _change(self, experiment_id: str, setting: str, value: object) -> None:
        with self.transaction() as db:
            self.experiment(experiment_id)
            db.execute(f"UPDATE experiments SET {setting} WHERE id = ?", (value, experiment_id))
