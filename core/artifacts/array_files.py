"""Arrays beside a run, with what is known about them, in one safetensors file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from core.atomic import atomic_write, drop_left
from core.errors import StoreError

ABOUT = "about"


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]], about: Mapping[str, Any]) -> None:
    """Write under a temporary name, then rename, so that a reader finds a whole file or none.

    The run's folder has to be there: that of a deleted run is not made again.

    Raises: StoreError when the disk is full or the folder cannot be written.
    """
    try:
        path.parent.mkdir(exist_ok=True)
        drop_left(path)
        whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        with atomic_write(path) as partial:
            save_file(whole, partial, metadata={ABOUT: json.dumps(dict(about))})
    except (OSError, SafetensorError) as error:
        raise StoreError(
            "The file {file} could not be written ({error}): make room on the disk.", file=path.name, error=error
        ) from error


def read_about(path: Path) -> dict[str, Any] | None:
    """What is known about the arrays; None where there is no file, or a damaged one, which counts as none."""
    try:
        with safe_open(path, "np") as file:
            about = json.loads((file.metadata() or {})[ABOUT])
    except (OSError, SafetensorError, KeyError, ValueError):
        return None
    return about if isinstance(about, dict) else None


def read_array(path: Path, name: str) -> NDArray[Any] | None:
    """One array, without reading the others; None where it cannot be had."""
    try:
        with safe_open(path, "np") as file:
            array: NDArray[Any] = file.get_tensor(name)
    except (OSError, SafetensorError):
        return None
    return array
