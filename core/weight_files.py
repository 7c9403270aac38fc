"""Where a run's weights lie in its folder, and of which steps they are."""

from __future__ import annotations

from pathlib import Path

from safetensors import SafetensorError, safe_open

from core.errors import TrainingError

CHECKPOINT_NAME = "checkpoint.safetensors"
SNAPSHOTS = "snapshot-*.safetensors"


def checkpoint_path(folder: Path) -> Path:
    """Where the rolling checkpoint lies."""
    return folder / CHECKPOINT_NAME


def checkpoint_step(folder: Path) -> int | None:
    """The step that the rolling checkpoint holds, None when there is none. Raises: TrainingError for a damaged one."""
    path = checkpoint_path(folder)
    if not path.exists():
        return None
    try:
        with safe_open(path, "np") as file:
            return int(file.metadata()["step"])
    except (SafetensorError, KeyError, TypeError, ValueError, OSError) as error:
        raise TrainingError("The checkpoint cannot be read ({problem}): start a new run.", problem=error) from error


def weight_files(folder: Path) -> list[Path]:
    """Where the rolling checkpoint and the snapshots of a folder lie, those that are there."""
    return sorted((*folder.glob(CHECKPOINT_NAME), *folder.glob(SNAPSHOTS)))


def snapshot_path(folder: Path, step: int) -> Path:
    """Where the snapshot of a step lies."""
    return folder / f"snapshot-{step:07d}.safetensors"


def snapshot_steps(folder: Path) -> tuple[int, ...]:
    """The steps that have a snapshot, in order."""
    names = (path.name.removeprefix("snapshot-").removesuffix(".safetensors") for path in folder.glob(SNAPSHOTS))
    return tuple(sorted(int(name) for name in names if name.isdecimal()))
