"""Schema migrations. A migration and its record share a transaction; a released migration is never edited."""

from __future__ import annotations

from sqlite_utils import Database, Migrations

from core.config.compare import config_hash

migrations = Migrations("runs")
# The number of migrations identifies the version of a store.
EARLIER = ("m001_runs", "m002_begun_attempt", "m003_disk_budget", "m004_worked", "m005_tags", "m006_jobs")


@migrations()  # type: ignore[untyped-decorator]
def m007_tasks(db: Database) -> None:
    """Create the schema of version 0.1.0, which comprised seven migrations."""
    for statement in (
        """
        CREATE TABLE runs (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            id TEXT NOT NULL UNIQUE,
            name TEXT NOT NULL,
            config TEXT NOT NULL,
            created_at REAL NOT NULL,
            queued_at REAL NOT NULL,
            status TEXT NOT NULL,
            attempt INTEGER NOT NULL DEFAULT 0,
            slot INTEGER,
            worker TEXT,
            heartbeat_at REAL,
            started_at REAL,
            ended_at REAL,
            last_step INTEGER NOT NULL DEFAULT 0,
            steps INTEGER NOT NULL,
            checkpoint_step INTEGER,
            device TEXT,
            probe TEXT,
            facts TEXT,
            message TEXT,
            discarded_at REAL,
            begun_attempt INTEGER NOT NULL DEFAULT 0,
            keep_weights INTEGER NOT NULL DEFAULT 0,
            snapshots_dropped_at REAL,
            weights_dropped_at REAL,
            dropped_gb REAL,
            worked_s REAL NOT NULL DEFAULT 0,
            working_since REAL,
            tags TEXT NOT NULL DEFAULT '[]'
        )
        """,
        "CREATE INDEX runs_status ON runs (status)",
        """
        CREATE TABLE steps (
            run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
            step INTEGER NOT NULL,
            at REAL NOT NULL,
            measures TEXT NOT NULL,
            PRIMARY KEY (run_id, step)
        ) WITHOUT ROWID
        """,
        """
        CREATE TABLE evaluations (
            run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
            step INTEGER NOT NULL,
            split TEXT NOT NULL,
            measures TEXT NOT NULL,
            PRIMARY KEY (run_id, split, step)
        ) WITHOUT ROWID
        """,
        """
        CREATE TABLE frames (
            run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
            step INTEGER NOT NULL,
            file TEXT NOT NULL,
            PRIMARY KEY (run_id, step)
        ) WITHOUT ROWID
        """,
        """
        CREATE TABLE knob_turns (
            run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
            step INTEGER NOT NULL,
            name TEXT NOT NULL,
            value REAL NOT NULL,
            PRIMARY KEY (run_id, step, name)
        ) WITHOUT ROWID
        """,
        """
        CREATE TABLE controls (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
            kind TEXT NOT NULL,
            name TEXT,
            value REAL,
            sent_at REAL NOT NULL,
            taken_at REAL
        )
        """,
        "CREATE INDEX controls_run ON controls (run_id, taken_at)",
        """
        CREATE TABLE jobs (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            id TEXT NOT NULL UNIQUE,
            kind TEXT NOT NULL,
            label TEXT NOT NULL,
            request TEXT NOT NULL,
            warm_group TEXT,
            status TEXT NOT NULL,
            worker TEXT,
            done INTEGER NOT NULL DEFAULT 0,
            total INTEGER,
            message TEXT NOT NULL DEFAULT 'starting',
            result TEXT NOT NULL DEFAULT '{}',
            created_at REAL NOT NULL,
            updated_at REAL NOT NULL,
            cancelled_at REAL
        )
        """,
        "CREATE INDEX jobs_status ON jobs (status)",
        """
        CREATE TABLE warm_processes (
            warm_group TEXT NOT NULL PRIMARY KEY,
            worker TEXT NOT NULL,
            doing TEXT NOT NULL,
            failed_starts INTEGER NOT NULL
        ) WITHOUT ROWID
        """,
        """
        CREATE TABLE tasks (
            id TEXT NOT NULL PRIMARY KEY,
            name TEXT NOT NULL,
            source TEXT NOT NULL,
            kind TEXT NOT NULL,
            pairs INTEGER NOT NULL,
            rows INTEGER NOT NULL,
            classes TEXT NOT NULL,
            splits TEXT NOT NULL,
            created_at REAL NOT NULL,
            changed_at REAL NOT NULL,
            discarded_at REAL
        ) WITHOUT ROWID
        """,
    ):
        db.conn.execute(statement)
    for name in EARLIER:
        db.conn.execute(
            "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('runs', ?, datetime('now'))",
            (name,),
        )


@migrations()  # type: ignore[untyped-decorator]
def m008_experiments(db: Database) -> None:
    """Add experiments, the runs of their cells, and a config hash that identifies equal runs."""
    for statement in (
        "ALTER TABLE runs ADD COLUMN config_hash TEXT",
        # Runs of experiments wait behind those that users started individually.
        "ALTER TABLE runs ADD COLUMN background INTEGER NOT NULL DEFAULT 0",
        "CREATE INDEX runs_config_hash ON runs (config_hash)",
        """
        CREATE TABLE experiments (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            id TEXT NOT NULL UNIQUE,
            name TEXT NOT NULL,
            design TEXT NOT NULL,
            wanted INTEGER NOT NULL,
            created_at REAL NOT NULL,
            discarded_at REAL
        )
        """,
        """
        CREATE TABLE experiment_runs (
            experiment_id TEXT NOT NULL REFERENCES experiments (id) ON DELETE CASCADE,
            cell INTEGER NOT NULL,
            seed INTEGER NOT NULL,
            run_id TEXT REFERENCES runs (id) ON DELETE SET NULL,
            own INTEGER NOT NULL DEFAULT 0,
            problem TEXT,
            PRIMARY KEY (experiment_id, cell, seed)
        ) WITHOUT ROWID
        """,
        "CREATE INDEX experiment_runs_run ON experiment_runs (run_id)",
    ):
        db.conn.execute(statement)
    # Runs opened from a file get no hash: the same config gives different curves on another machine.
    for row in db.conn.execute("SELECT id, config FROM runs WHERE tags NOT LIKE '%\"replay\"%'").fetchall():
        db.conn.execute("UPDATE runs SET config_hash = ? WHERE id = ?", (config_hash(row["config"]), row["id"]))


@migrations()  # type: ignore[untyped-decorator]
def m009_places(db: Database) -> None:
    """Add the cluster node of a run, and a mark on runs of an experiment that were ended early."""
    db.conn.execute("ALTER TABLE runs ADD COLUMN place TEXT")
    db.conn.execute("ALTER TABLE experiment_runs ADD COLUMN ended_early INTEGER NOT NULL DEFAULT 0")


@migrations()  # type: ignore[untyped-decorator]
def m010_visitors(db: Database) -> None:
    """Add owners, the visitors' turns, and a mark on runs whose micro-batch was reduced to save memory."""
    for statement in (
        "ALTER TABLE runs ADD COLUMN owner TEXT",
        "ALTER TABLE runs ADD COLUMN memory_short INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE experiments ADD COLUMN owner TEXT",
        """
        CREATE TABLE visitors (
            id TEXT PRIMARY KEY,
            name TEXT NOT NULL DEFAULT '',
            turn_at REAL NOT NULL DEFAULT 0
        ) WITHOUT ROWID
        """,
    ):
        db.conn.execute(statement)


@migrations()  # type: ignore[untyped-decorator]
def m011_work(db: Database) -> None:
    """Move the state of runs and jobs to one table, `work`; the view `run_rows` joins it with the runs."""
    moved = "status, owner, background, created_at, queued_at, attempt, slot, worker, heartbeat_at, ended_at, message"
    for statement in (
        """
        CREATE TABLE work (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            id TEXT NOT NULL UNIQUE,
            kind TEXT NOT NULL,
            line TEXT,
            status TEXT NOT NULL,
            owner TEXT,
            background INTEGER NOT NULL DEFAULT 0,
            created_at REAL NOT NULL,
            queued_at REAL NOT NULL,
            attempt INTEGER NOT NULL DEFAULT 0,
            slot INTEGER,
            worker TEXT,
            heartbeat_at REAL,
            ended_at REAL,
            message TEXT,
            label TEXT NOT NULL DEFAULT '',
            request TEXT NOT NULL DEFAULT '{}',
            done INTEGER NOT NULL DEFAULT 0,
            total INTEGER,
            result TEXT NOT NULL DEFAULT '{}'
        )
        """,
        f"INSERT INTO work (id, kind, line, {moved}) SELECT id, 'run', 'runs', {moved} FROM runs ORDER BY number",
        # A run handed to a process of the earlier version is queued again.
        """
        UPDATE work SET status = 'queued', worker = NULL, slot = NULL WHERE kind = 'run' AND status = 'starting'
            AND id IN (SELECT json_extract(request, '$.run') FROM jobs WHERE kind = 'run' AND status = 'waiting')
        """,
        """
        INSERT INTO work (id, kind, line, status, created_at, queued_at, attempt, worker, heartbeat_at, ended_at,
            message, label, request, done, total, result)
        SELECT id, kind, warm_group,
            CASE status WHEN 'waiting' THEN 'queued' WHEN 'done' THEN 'finished' WHEN 'cancelled' THEN 'stopped'
                WHEN 'running' THEN iif(cancelled_at IS NULL, 'running', 'stopping') ELSE status END,
            created_at, created_at, status != 'waiting', worker, updated_at,
            iif(status IN ('waiting', 'running'), NULL, updated_at), message, label, request, done, total, result
        FROM jobs WHERE kind != 'run' ORDER BY number
        """,
        "CREATE INDEX work_status ON work (status)",
        "CREATE INDEX work_jobs ON work (number) WHERE kind != 'run'",
        "CREATE INDEX work_awaited ON work (line) WHERE status = 'queued' AND kind != 'run'",
        "DROP TABLE jobs",
        "DROP INDEX runs_status",
        *(f"ALTER TABLE runs DROP COLUMN {column}" for column in moved.split(", ")),
        "CREATE TRIGGER runs_deleted AFTER DELETE ON runs BEGIN DELETE FROM work WHERE id = OLD.id; END",
        f"CREATE VIEW run_rows AS SELECT runs.*, {moved} FROM runs JOIN work ON work.id = runs.id",
    ):
        db.conn.execute(statement)


@migrations()  # type: ignore[untyped-decorator]
def m012_task_owners(db: Database) -> None:
    """Add the owners of tasks."""
    db.conn.execute("ALTER TABLE tasks ADD COLUMN owner TEXT")


@migrations()  # type: ignore[untyped-decorator]
def m013_memory(db: Database) -> None:
    """Add the kernel's count of processes killed for lack of memory, as of the start of a run's latest attempt."""
    db.conn.execute("ALTER TABLE runs ADD COLUMN oom_kills INTEGER")


@migrations()  # type: ignore[untyped-decorator]
def m014_peak_memory(db: Database) -> None:
    """Add the peak memory of a run, in bytes."""
    db.conn.execute("ALTER TABLE runs ADD COLUMN peak_memory INTEGER")
