"""One array file per frame: embeddings, logits and the flat map, readable one by one."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from core.errors import StoreError
from core.events import FloatArray, Frame
from core.representation.projections import Points

MAP = "map"


def write_frame(path: Path, frame: Frame, points: Points) -> None:
    """Write under a temporary name, then rename, so that a reader finds a whole file or none.

    Raises: StoreError when the disk is full or the folder cannot be written.
    """
    partial = path.with_suffix(f".{os.getpid()}.partial")
    arrays = {"embeddings": frame.embeddings, "logits": frame.logits, MAP: points}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        save_file({name: np.ascontiguousarray(a, np.float32) for name, a in arrays.items()}, partial)
        os.replace(partial, path)
    except (OSError, SafetensorError) as error:
        partial.unlink(missing_ok=True)
        raise StoreError(
            f"The frame of step {frame.step} could not be written ({error}): make room on the disk."
        ) from error


def read_array(path: Path, name: str) -> FloatArray:
    """One array of a frame, without reading the others.

    Raises: StoreError for a file that is missing or damaged.
    """
    try:
        with safe_open(path, "np") as file:
            return file.get_tensor(name)
    except (OSError, SafetensorError, ValueError) as error:
        raise StoreError(
            f"The frame file {path.name} is missing or damaged ({error}); the other frames are not."
        ) from error


def read_frame(path: Path, step: int) -> Frame:
    """Raises: StoreError for a file that is missing or damaged."""
    return Frame(step, read_array(path, "embeddings"), read_array(path, "logits"))
