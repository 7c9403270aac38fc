"""Experiments as rows: what was designed, which run each cell has under each seed, and how far those are."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass

from core.errors import StoreError, shown
from core.events import Evaluation
from core.messages import Message, Text, load_text
from core.store.database import UNDO_S, Database
from core.store.liveness import observed_status, rows_of_work
from core.store.names import checked_name, new_id
from core.store.records import Status

RUNS_OF = (
    "SELECT e.cell, e.seed, e.run_id, e.own, e.problem, e.ended_early, r.number, w.status, w.worker, "
    "w.heartbeat_at, r.last_step, r.steps, r.worked_s, r.working_since, w.ended_at, w.message, r.discarded_at, "
    # Not the view `run_rows`, of which SQLite would read every row to the right of a LEFT JOIN.
    "r.begun_attempt FROM experiment_runs e LEFT JOIN runs r ON r.id = e.run_id LEFT JOIN work w ON w.id = r.id "
    "WHERE e.experiment_id = ? ORDER BY e.cell, e.seed"
)


@dataclass(frozen=True, slots=True)
class Experiment:
    """One experiment.

    Attributes:
        design: its design in JSON form, which `core.experiments` reads.
        wanted: whether its runs are to be carried out; False once somebody stopped it.
        created_at: seconds since the epoch.
        owner: the visitor whose it is; None where nobody is known.
        discarded_at: since the epoch; None unless it was deleted.
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
        """The name, or the number where it has none."""
        return self.name or Message("Experiment {number}", number=self.number)


@dataclass(frozen=True, slots=True)
class ExperimentRun:
    """The run of a cell under a seed.

    Attributes:
        run_id: None where there is none: it could not be made (`problem` says why), or was deleted.
        own: whether the experiment started it; another experiment, or somebody, may have run the same before.
        problem: why no run could be made, in a sentence.
        ended_early: whether it was ended because others were better, and is not to go on.
        begun_attempt: with the run's id and status it says which scores are there.
        seconds: that it has worked; ended_at: since the epoch.
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
    ended_at: float | None = None
    message: Text | None = None

    @property
    def may_go_on(self) -> bool:
        """Whether resuming the experiment resumes it."""
        return self.status is not None and self.status.resumable and not self.ended_early

    @property
    def ended(self) -> bool:
        """Whether nothing more comes of it by itself."""
        return self.status is None or self.status.ended


class ExperimentTable(Database):
    """The experiments of a database."""

    def create(self, name: str, design: str, owner: str | None = None) -> str:
        """Add an experiment whose runs are wanted; returns its id. Raises: ConfigError for a name that is too long."""
        experiment_id = new_id()
        self.write(
            "INSERT INTO experiments (id, name, design, wanted, created_at, owner) VALUES (?, ?, ?, 1, ?, ?)",
            (experiment_id, checked_name(name), design, time.time(), owner),
        )
        return experiment_id

    def adopt(self, experiment_id: str, name: str, design: str) -> None:
        """Have an experiment that was carried out elsewhere, which wants no runs of this machine.

        One that was discarded is restored; of one that is here, nothing changes.
        """
        self.write(
            "INSERT INTO experiments (id, name, design, wanted, created_at) VALUES (?, ?, ?, 0, ?) "
            "ON CONFLICT (id) DO UPDATE SET discarded_at = NULL",
            (experiment_id, checked_name(name), design, time.time()),
        )

    def experiments(self) -> list[Experiment]:
        """All that were not discarded, the newest first."""
        rows = self.all("SELECT * FROM experiments WHERE discarded_at IS NULL ORDER BY number DESC")
        return [_experiment(row) for row in rows]

    def experiment(self, experiment_id: str) -> Experiment:
        """Raises: StoreError where there is none with that id."""
        rows = self.all("SELECT * FROM experiments WHERE id = ? AND discarded_at IS NULL", (experiment_id,))
        if not rows:
            raise _missing(experiment_id)
        return _experiment(rows[0])

    def find(self, text: str) -> str:
        """The id of an experiment given by id or number. Raises: StoreError."""
        rows = self.all("SELECT id, number FROM experiments WHERE discarded_at IS NULL")
        found = [str(row["id"]) for row in rows if text in (row["id"], str(row["number"]))]
        if len(found) != 1:
            raise StoreError("Experiment {id} does not exist: give an id or a number from the list.", id=shown(text))
        return found[0]

    def with_design(self, design: str) -> str | None:
        """The newest experiment that has exactly this design, whatever its task was called; None without one."""
        rows = self.all(
            "SELECT id FROM experiments WHERE json_remove(design, '$.base.task.name') = "
            "json_remove(?, '$.base.task.name') AND discarded_at IS NULL ORDER BY number DESC LIMIT 1",
            (design,),
        )
        return str(rows[0]["id"]) if rows else None

    def rename(self, experiment_id: str, name: str) -> None:
        """Call it something else; "" goes back to its number. Raises: StoreError, ConfigError."""
        self._change(experiment_id, "name = ?", checked_name(name))

    def redesign(self, experiment_id: str, design: str) -> None:
        """Give it another design, whose cells have the same numbers. Raises: StoreError."""
        self._change(experiment_id, "design = ?", design)

    def want(self, experiment_id: str, wanted: bool) -> None:
        """Have its runs be carried out, or not. Raises: StoreError."""
        self._change(experiment_id, "wanted = ?", wanted)

    def is_wanted(self, experiment_id: str) -> bool:
        """Whether it is there, and nobody stopped it."""
        wanted = "SELECT 1 FROM experiments WHERE id = ? AND wanted AND discarded_at IS NULL"
        return bool(self.all(wanted, (experiment_id,)))

    def discard(self, experiment_id: str) -> None:
        """Take it out of sight; its runs stay. `restore` brings it back."""
        self._change(experiment_id, "discarded_at = ?", time.time())

    def discarded(self, within_s: float = UNDO_S) -> list[Experiment]:
        """Those that were discarded in the last seconds and can be brought back, the newest moment first."""
        since = time.time() - within_s
        rows = self.all("SELECT * FROM experiments WHERE discarded_at > ? ORDER BY discarded_at DESC", (since,))
        return [_experiment(row) for row in rows]

    def restore(self, experiment_id: str) -> None:
        """Undo `discard`. Raises: StoreError when it is gone for good."""
        if not self.write("UPDATE experiments SET discarded_at = NULL WHERE id = ?", (experiment_id,)).rowcount:
            raise StoreError("Experiment {id} is deleted for good: it cannot be brought back.", id=shown(experiment_id))

    def purge_discarded(self, older_than_s: float = UNDO_S) -> None:
        """Delete those that were discarded longer ago than that, for good; their runs stay."""
        self.write("DELETE FROM experiments WHERE discarded_at <= ?", (time.time() - older_than_s,))

    # Runs

    def runs(self, experiment_id: str) -> list[ExperimentRun]:
        """The runs that it has so far, by cell and seed."""
        return [_run(row) for row in rows_of_work(self, RUNS_OF, (experiment_id,))]

    def put_run(
        self, experiment_id: str, cell: int, seed: int, run_id: str | None, problem: Text | None = None
    ) -> None:
        """A run that was there before is that of a cell under a seed; None where a problem keeps it from being made."""
        self.write(
            "INSERT OR REPLACE INTO experiment_runs (experiment_id, cell, seed, run_id, problem) "
            "VALUES (?, ?, ?, ?, ?)",
            (experiment_id, cell, seed, run_id, problem),
        )

    def forget_missing(self, experiment_id: str) -> None:
        """Have cells without a run be as if nobody had tried to make it: those with a problem, and deleted runs."""
        self.write(
            "DELETE FROM experiment_runs WHERE experiment_id = ? AND (run_id IS NULL OR run_id IN "
            "(SELECT id FROM runs WHERE discarded_at IS NOT NULL))",
            (experiment_id,),
        )

    def scores(self, experiment_id: str, split: str) -> dict[str, Evaluation]:
        """The newest evaluation of a split of every run that has one, by run id."""
        # Beside max(), SQLite takes the other columns from the row that has it.
        newest = (
            "SELECT run_id, max(step) AS step, measures FROM evaluations WHERE split = ? AND run_id IN "
            "(SELECT run_id FROM experiment_runs WHERE experiment_id = ?) GROUP BY run_id"
        )
        rows = self.all(newest, (split, experiment_id))
        return {row["run_id"]: Evaluation(row["step"], split, json.loads(row["measures"])) for row in rows}

    def evaluations(self, experiment_id: str, split: str) -> dict[str, list[Evaluation]]:
        """Every evaluation of a split in order of steps, by run id."""
        found: dict[str, list[Evaluation]] = {}
        every = (
            "SELECT run_id, step, measures FROM evaluations WHERE split = ? AND run_id IN "
            "(SELECT run_id FROM experiment_runs WHERE experiment_id = ?) ORDER BY step"
        )
        for row in self.all(every, (split, experiment_id)):
            found.setdefault(row["run_id"], []).append(Evaluation(row["step"], split, json.loads(row["measures"])))
        return found

    def end_early(self, run_id: str) -> None:
        """A run is ended because others of its experiments are better."""
        self.write("UPDATE experiment_runs SET ended_early = 1 WHERE run_id = ?", (run_id,))

    def of_run(self, run_id: str) -> list[Experiment]:
        """The experiments that a run belongs to, the newest first."""
        rows = self.all(
            "SELECT x.* FROM experiments x JOIN experiment_runs e ON e.experiment_id = x.id "
            "WHERE e.run_id = ? AND x.discarded_at IS NULL ORDER BY x.number DESC",
            (run_id,),
        )
        return [_experiment(row) for row in rows]

    def needed_by_others(self, experiment_id: str, run_ids: Sequence[str]) -> set[str]:
        """Those of these runs that another experiment whose runs are wanted has too."""
        rows = self.all(
            "SELECT DISTINCT e.run_id FROM experiment_runs e JOIN experiments x ON x.id = e.experiment_id "
            "WHERE x.id != ? AND x.wanted AND x.discarded_at IS NULL",
            (experiment_id,),
        )
        return {row["run_id"] for row in rows} & set(run_ids)

    def _change(self, experiment_id: str, setting: str, value: object) -> None:
        with self.transaction() as db:
            changed = f"UPDATE experiments SET {setting} WHERE id = ? AND discarded_at IS NULL"
            if not db.execute(changed, (value, experiment_id)).rowcount:
                raise _missing(experiment_id)


def _missing(experiment_id: str) -> StoreError:
    return StoreError("Experiment {id} does not exist: choose one from the list.", id=shown(experiment_id))


def _experiment(row: sqlite3.Row) -> Experiment:
    columns = ("id", "number", "name", "design", "created_at", "owner", "discarded_at")
    return Experiment(**{name: row[name] for name in columns}, wanted=bool(row["wanted"]))


def _text(stored: str | None) -> Text | None:
    return None if stored is None else load_text(stored)


def _run(row: sqlite3.Row) -> ExperimentRun:
    cell, seed, problem = row["cell"], row["seed"], _text(row["problem"])
    if row["number"] is None or row["discarded_at"] is not None:
        return ExperimentRun(cell, seed, problem=problem)
    since = row["working_since"]
    working_s = 0.0 if since is None else max(0.0, (row["ended_at"] or time.time()) - since)
    return ExperimentRun(
        cell,
        seed,
        run_id=row["run_id"],
        own=bool(row["own"]),
        problem=problem,
        ended_early=bool(row["ended_early"]),
        number=row["number"],
        status=observed_status(row),
        last_step=row["last_step"],
        steps=row["steps"],
        begun_attempt=row["begun_attempt"],
        seconds=row["worked_s"] + working_s,
        ended_at=row["ended_at"],
        message=_text(row["message"]),
    )
