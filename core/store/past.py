"""The past of a branch: what its parent recorded, and the state from which the branch goes on."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from core.config import BranchConfig
from core.errors import RunNotFoundError, StoreError
from core.store.frames import TOKENS
from core.store.store import Store
from core.weight_files import checkpoint_path, snapshot_path, snapshot_steps, state_path


def copy_past(store: Store, point: BranchConfig, branch_id: str) -> None:
    """Give a new branch the newest state that its parent has kept of the shared steps, and the records up to it.

    The branch then begins like a run that resumes from a checkpoint, and needs its parent no more. Without a state, or
    without a parent, it begins at step 0. Call this in the transaction that creates the branch.

    Raises: StoreError if the files cannot be written.
    """
    try:
        parent = store.run(point.run)
    except RunNotFoundError:
        return
    source, target = store.run_folder(parent.id), store.run_folder(branch_id)
    try:
        target.mkdir(parents=True, exist_ok=True)
        frames = [step for step in store.frame_steps(parent.id) if step <= point.step]
        begin = max((step for step in frames if state_path(source, step).exists()), default=0)
        if not _link(state_path(source, begin), checkpoint_path(target)):
            return
        with store.transaction() as db:
            for table, columns in (("steps", "at, measures"), ("evaluations", "split, measures"), ("frames", "file")):
                db.execute(
                    f"INSERT INTO {table} (run_id, step, {columns}) SELECT ?, step, {columns} FROM {table} "
                    "WHERE run_id = ? AND step <= ?",
                    (branch_id, parent.id, begin),
                )
            db.execute(
                "UPDATE runs SET last_step = ?, checkpoint_step = ?, (probe, facts, device) = "
                "(SELECT probe, facts, device FROM runs WHERE id = ?) WHERE id = ?",
                (begin, begin, parent.id, branch_id),
            )
            files = [str(row["file"]) for row in store.all("SELECT file FROM frames WHERE run_id = ?", (branch_id,))]
        files += [snapshot_path(source, step).name for step in snapshot_steps(source) if step <= begin]
        for name in (*files, TOKENS):
            _link(source / name, target / name)
    except OSError as error:
        shutil.rmtree(target, ignore_errors=True)
        raise StoreError(
            "The branch could not be created ({reason}): free some disk space.", reason=error.strerror
        ) from error


def _link(source: Path, target: Path) -> bool:
    """Link a file, or copy it if the file system has no links. Returns: False if it does not exist."""
    try:
        os.link(source, target)
    except FileNotFoundError:
        return False
    except OSError:
        shutil.copyfile(source, target)
    return True
