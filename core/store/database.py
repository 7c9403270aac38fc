"""One SQLite file in a folder, opened, migrated and shared by many processes."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from core.errors import DiskFullError, StoreError, quote_value
from core.messages import Message, dump_text

DATABASE = "runs.sqlite3"
# Number of migrations now, and in version 0.1.0. An up-to-date store is opened without sqlite-utils.
MIGRATIONS, OLDEST = 14, 7
# A page gives up on a locked database after this time.
BUSY_TIMEOUT_S = 10.0
# Backing up and migrating a large store takes some seconds.
MIGRATION_TIMEOUT_S = 120.0
# In WAL mode a process crash loses nothing; a power failure may lose the last transactions.
SYNCHRONOUS = "NORMAL"
# Time during which a deletion can be undone.
UNDO_S = 600.0
# A file that is deleted when the disk is full, so that deletions and errors can still be recorded.
RESERVE, RESERVE_BYTES = "reserve", 2**20
# Below this much free space, no reserve is written and deletions take effect at once.
NEARLY_FULL_BYTES = 64 * 2**20
Record = TypeVar("Record")
Made = TypeVar("Made")

# Lets a Message be passed as the value of a text column.
sqlite3.register_adapter(Message, dump_text)


class Database:
    """The database `runs.sqlite3` of a folder. Each thread has a connection. All processes must run on one host."""

    def __init__(self, folder: str | Path, *, busy_timeout_s: float | None = None) -> None:
        """Open the database, creating or migrating it as needed.

        Args:
            busy_timeout_s: time to wait while another process changes the database; None for BUSY_TIMEOUT_S.
        Raises: StoreError if the folder cannot be written, the file is not a store, or it is missing although the
            folder holds files of runs.
        """
        self.folder = Path(folder).expanduser().absolute()
        self._busy_timeout_s = busy_timeout_s
        self._local = threading.local()
        self._inode: tuple[int, int] | None = None
        if not self.exists() and any(self.folder.glob("files/*")):
            raise StoreError(
                "The folder {folder} holds files of runs, but {name} is missing: restore it from a backup, or choose "
                "another folder with SCL_RUNS.",
                folder=quote_value(str(self.folder)),
                name=DATABASE,
            )
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            where = quote_value(str(self.folder))
            raise StoreError(
                "The runs folder {folder} cannot be created ({reason}).", folder=where, reason=error.strerror
            ) from error
        self._migrate()
        self._inode = self._current_inode()

    def _migrate(self) -> None:
        with self.plain_errors():
            recorded = self._recorded()
        if recorded > MIGRATIONS:
            raise StoreError(
                "The store in {folder} was written by a later version of SCL Playground: install that version, or "
                "choose another folder with SCL_RUNS.",
                folder=quote_value(str(self.folder)),
            )
        if recorded == MIGRATIONS:
            return
        if 0 < recorded < OLDEST:
            raise StoreError(
                "The store in {folder} was written before version 0.1.0 of SCL Playground: open it once with that "
                "version, or choose another folder with SCL_RUNS.",
                folder=quote_value(str(self.folder)),
            )
        import sqlite_utils
        from filelock import FileLock, Timeout

        from core.store.migrations import migrations

        # Changing the journal mode does not wait for a lock, so processes that open a new store take turns.
        try:
            with self.plain_errors(), FileLock(self.folder / "migration.lock", timeout=MIGRATION_TIMEOUT_S):
                connection = self._connection()
                if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                    connection.execute("PRAGMA journal_mode = WAL")
                if 0 < (recorded := self._recorded()) < MIGRATIONS:  # another process may have migrated it
                    self._back_up(connection, recorded)
                migrations.apply(sqlite_utils.Database(connection, use_counts_table=False))
        except Timeout:
            raise StoreError(_sentence(quote_value(str(self.folder)), "locked")) from None

    def _back_up(self, connection: sqlite3.Connection, recorded: int) -> None:
        """Copy the database to a backup next to it, in case a migration damages it."""
        path = self.folder / f"{DATABASE}.schema-{recorded}"
        partial = path.with_name(f"{path.name}.partial")
        partial.unlink(missing_ok=True)
        with closing(sqlite3.connect(partial)) as copy:
            connection.backup(copy)
        partial.replace(path)

    def _recorded(self) -> int:
        """Count the applied migrations without sqlite-utils, which imports pandas and takes a third of a second."""
        connection = self._connection()
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = '_sqlite_migrations'").fetchone():
            return 0
        recorded = "SELECT count(*) FROM _sqlite_migrations WHERE migration_set = 'runs'"
        return int(connection.execute(recorded).fetchone()[0])

    def _current_inode(self) -> tuple[int, int] | None:
        try:
            stat = os.stat(self.folder / DATABASE)
        except OSError:
            return None
        return stat.st_dev, stat.st_ino

    def _connection(self) -> sqlite3.Connection:
        """Return this thread's connection. Raises: StoreError if another file has taken its place."""
        # SQLite would go on writing to a deleted file, and would create a missing one.
        if self._inode is not None and self._current_inode() != self._inode:
            raise StoreError(
                "The store in {folder} was moved, deleted or replaced while this process was using it: put it back, "
                "or restart the process.",
                folder=quote_value(str(self.folder)),
            )
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            timeout = BUSY_TIMEOUT_S if self._busy_timeout_s is None else self._busy_timeout_s
            connection = sqlite3.connect(self.folder / DATABASE, timeout=timeout, isolation_level=None)
            connection.row_factory = sqlite3.Row
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute(f"PRAGMA synchronous = {SYNCHRONOUS}")
            self._local.connection = connection
        return connection

    def exists(self) -> bool:
        """Return True if the file still exists. An open connection does not notice its deletion."""
        return (self.folder / DATABASE).exists()

    def close(self) -> None:
        """Close this thread's connection."""
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
            self._local.connection = None

    @contextmanager
    def plain_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            kind = DiskFullError if "full" in str(error) else StoreError
            raise kind(_sentence(quote_value(str(self.folder)), str(error))) from error

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Run the block in a transaction; an exception rolls it back. Nested transactions join the outer one."""
        with self.plain_errors():
            connection = self._connection()
            nested = connection.in_transaction
            if nested:
                yield connection
                return
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                # On a full disk, SQLite may already have rolled back.
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    def write(self, sql: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        """Execute one statement in the open transaction, or in a new one."""
        with self.transaction() as db:
            return db.execute(sql, values)

    def insert(self, table: str, *, replace: bool = False, **values: Any) -> None:
        """Insert a row, given by column. Args: replace: True to replace a row with the same key."""
        verb = "INSERT OR REPLACE" if replace else "INSERT"
        places = ", ".join("?" * len(values))
        self.write(f"{verb} INTO {table} ({', '.join(values)}) VALUES ({places})", tuple(values.values()))

    def despite_full_disk(self, change: Callable[[], Made]) -> Made:
        """Make a change to the database; on a full disk, delete the reserve and try once more.

        Raises: DiskFullError if there was no reserve, or it was not enough.
        """
        try:
            return change()
        except DiskFullError:
            path = self.folder / RESERVE
            if not path.exists():
                raise
            path.unlink()
            return change()

    def nearly_full(self) -> bool:
        """Return True if the disk has little space left."""
        return shutil.disk_usage(self.folder).free < NEARLY_FULL_BYTES

    def keep_reserve(self) -> None:
        """Write the reserve for a full disk unless it exists or the disk is nearly full."""
        path = self.folder / RESERVE
        with suppress(OSError):
            if not path.exists() and not self.nearly_full():
                path.write_bytes(os.urandom(RESERVE_BYTES))  # a file system cannot store random bytes as a hole

    def all(self, sql: str, values: Sequence[Any] = ()) -> list[sqlite3.Row]:
        with self.plain_errors():
            return self._connection().execute(sql, values).fetchall()


def build_record(kind: type[Record], row: sqlite3.Row, **computed: Any) -> Record:
    """Build a dataclass from a row's columns of the same names; `computed` provides the other fields."""
    names = [field.name for field in fields(kind) if field.name not in computed]  # type: ignore[arg-type]
    return kind(**{name: row[name] for name in names}, **computed)


def _sentence(folder: str, reason: str) -> Message:
    """Return the user-facing message for an SQLite error."""
    if "full" in reason:
        return Message("The disk of {folder} is full: free some space, or delete runs.", folder=folder)
    if "unable to open" in reason and not _has_handles():
        return Message(
            "The runs folder {folder} cannot be opened, because this process has too many open files: close pages, or "
            "raise the limit (ulimit -n).",
            folder=folder,
        )
    if "readonly" in reason or "unable to open" in reason:
        return Message("The runs folder {folder} is not writable: check its permissions.", folder=folder)
    if "locked" in reason:
        return Message("Another process is changing the runs folder {folder}: try again.", folder=folder)
    return Message("The runs folder {folder} cannot be used ({reason}).", folder=folder, reason=reason)


def _has_handles() -> bool:
    """Return True if this process can open another file."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return error.errno not in (errno.EMFILE, errno.ENFILE)
    return True
