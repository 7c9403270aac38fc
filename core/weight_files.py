"""Paths of a run's weight files, and the steps that they hold."""

from __future__ import annotations

from pathlib import Path

from safetensors import SafetensorError, safe_open

from core.errors import TrainingError

CHECKPOINT_NAME = "checkpoint.safetensors"
SNAPSHOTS = "snapshot-*.safetensors"


def checkpoint_path(folder: Path) -> Path:
    """Return the path of the rolling checkpoint."""
    return folder / CHECKPOINT_NAME


def checkpoint_step(folder: Path) -> int | None:
    """Return the step of the rolling checkpoint; None if there is none. Raises: TrainingError for a damaged one."""
    path = checkpoint_path(folder)
    if not path.exists():
        return None
    try:
        with safe_open(path, "np") as file:
            return int(file.metadata()["step"])
    except (SafetensorError, KeyError, TypeError, ValueError, OSError) as error:
        raise TrainingError("The checkpoint cannot be read ({problem}): start a new run.", problem=error) from error


def weight_files(folder: Path) -> list[Path]:
    """Return the paths of the rolling checkpoint and the snapshots that exist in a folder."""
    return sorted((*folder.glob(CHECKPOINT_NAME), *folder.glob(SNAPSHOTS)))


def snapshot_path(folder: Path, step: int) -> Path:
    """Return the path of a step's snapshot."""
    return folder / f"snapshot-{step:07d}.safetensors"


def state_path(folder: Path, step: int) -> Path:
    """Return the path of the state kept at a frame, in the form of the rolling checkpoint."""
    return folder / f"state-{step:07d}.safetensors"


def snapshot_steps(folder: Path) -> tuple[int, ...]:
    """Return the steps that have a snapshot, in order."""
    names = (path.name.removeprefix("snapshot-").removesuffix(".safetensors") for path in folder.glob(SNAPSHOTS))
    return tuple(sorted(int(name) for name in names if name.isdecimal()))
