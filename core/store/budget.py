"""The disk budget. Over budget, the store deletes weights of finished runs, which the same settings can reproduce."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from filelock import FileLock, ReadWriteLock, Timeout

from core.errors import StoreError
from core.messages import Message
from core.quantities import day_text
from core.settings import settings
from core.store.records import RunSummary, Status
from core.store.sizes import CHECKPOINT, SNAPSHOT, STATE, Dropped, size_text
from core.store.store import Store

GB = 2**30
BUDGET_LOCK, WEIGHTS_LOCK = "budget.lock", "weights.lock"
# Deleting is quick, but a reader loads a model and encodes texts.
BUDGET_TIMEOUT_S, READING_TIMEOUT_S = 10.0, 60.0
# The snapshots of all runs are dropped before the final weights of any run.
ORDER: tuple[Dropped, ...] = ("snapshots", "weights")
FILES: dict[Dropped, tuple[str, ...]] = {"snapshots": (f"{SNAPSHOT}*", f"{STATE}*"), "weights": (f"{CHECKPOINT}*",)}


def keep_within(store: Store, budget_gb: float | None = None) -> int:
    """Drop weights of finished runs, oldest first, until all runs fit into the budget.

    Some runs are exempt: unfinished runs (a stopped, failed or interrupted run resumes from its weights), runs that
    queued or active runs start from, runs whose weights the user chose to keep, and runs whose weights are being read.
    Frames, curves, tokens and everything computed from them stay. Any number of processes may call this concurrently.

    Args:
        budget_gb: in units of 2**30 bytes; None for the setting SCL_DISK_GB.
    Returns: the number of bytes by which the runs still exceed the budget; 0 if they fit.
    Raises: ConfigError for an invalid setting, StoreError for a store that cannot be written.
    """
    budget_gb = settings().disk_gb if budget_gb is None else budget_gb
    try:
        store.keep_reserve()
        with FileLock(store.folder / BUDGET_LOCK, timeout=BUDGET_TIMEOUT_S):
            excess, runs = _total(store) - budget_gb * GB, store.runs()
            # Queued and active runs start from these.
            needed = {run.config.start for run in runs if run.status == Status.QUEUED or run.status.active}
            finished = [r for r in runs if r.status == Status.FINISHED and not r.keep_weights and r.id not in needed]
            for what in ORDER:
                for run in sorted(finished, key=lambda run: run.ended_at or run.created_at):
                    if excess <= 0:
                        return 0
                    excess -= _drop(store, run, what, budget_gb)
    except Timeout:
        excess = _total(store) - budget_gb * GB  # another process is freeing space
    except OSError as error:
        raise StoreError(
            "No weights could be dropped ({reason}): delete runs to free space.", reason=error.strerror
        ) from error
    return max(0, round(excess))


def over_budget_sentence(excess: int) -> Message:
    """Return the warning that runs exceed the budget by `excess` bytes and no more weights can be dropped."""
    budget_gb = settings().disk_gb
    return Message(
        "Runs use {size}, more than SCL_DISK_GB = {budget:g}, and no more weights can be dropped: delete runs, "
        "or raise SCL_DISK_GB.",
        size=size_text(budget_gb * GB + excess),
        budget=budget_gb,
    )


@contextmanager
def reading_weights(store: Store, run_id: str) -> Iterator[None]:
    """Keep the budget from dropping a run's weights within the block. Several processes may read at once.

    Raises: RunNotFoundError; StoreError if the lock cannot be acquired.
    """
    path = store.run_folder(run_id) / WEIGHTS_LOCK
    try:
        lock = ReadWriteLock(path, READING_TIMEOUT_S, is_singleton=False)
        lock.acquire_read()
    except (Timeout, OSError) as error:
        raise StoreError(
            "The weights of run {id} cannot be read now ({reason}): try again.", id=run_id, reason=error
        ) from error
    try:
        yield
    finally:
        lock.release()
        lock.close()


def dropped_sentence(run: RunSummary) -> Message | None:
    """Describe the weights that the budget dropped from a run, with the date; None if it dropped none."""
    if run.weights_dropped_at is not None:
        return Message(
            "Its weights were dropped on {day} to stay within {budget:g} GB; curves and frames are kept.",
            day=day_text(run.weights_dropped_at, short=True),
            budget=run.dropped_gb,
        )
    if run.snapshots_dropped_at is not None:
        return Message(
            "Its snapshots were dropped on {day} to stay within {budget:g} GB; the weights of its last step, curves "
            "and frames are kept.",
            day=day_text(run.snapshots_dropped_at, short=True),
            budget=run.dropped_gb,
        )
    return None


def missing_sentence(run: RunSummary) -> Message | None:
    """Explain why a run's weights are missing and how to get them back; None if the budget dropped none of them."""
    dropped = dropped_sentence(run)
    if dropped is None:
        return None
    remedy = Message("To get them back, raise SCL_DISK_GB and run the same settings again, which gives the same curve.")
    return Message("{first} {next}", first=dropped, next=remedy)


def _total(store: Store) -> int:
    return sum(size.total for size in store.sizes().values())


def _drop(store: Store, run: RunSummary, what: Dropped, budget_gb: float) -> int:
    """Drop one kind of a run's weights and return the bytes freed; 0 while another process is reading them."""
    folder = store.folder / "files" / run.id
    sizes = {path: path.stat().st_size for pattern in FILES[what] for path in folder.glob(pattern)}
    if not sizes:
        return 0
    lock = ReadWriteLock(folder / WEIGHTS_LOCK, blocking=False, is_singleton=False)
    try:
        # Record first, so that a missing file is always accounted for.
        with lock.write_lock():
            if not store.record_drop(run.id, what, budget_gb):
                return 0
            for path in sizes:
                path.unlink(missing_ok=True)
    except Timeout:
        return 0
    finally:
        lock.close()
    return sum(sizes.values())
