"""Cached values of a run: each is computed once and stored in the run's folder as one safetensors file.

Each kind of value is a dataclass. Its arrays become the file's tensors; its other fields become JSON metadata.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from core.atomic import atomic_write, remove_partial_files
from core.errors import StoreError

ABOUT = "about"
# Errors raised for a file that is missing, damaged, or of another kind.
UNREADABLE = (OSError, SafetensorError, KeyError, ValueError, TypeError)

Kept = TypeVar("Kept")
_adapter = cache(TypeAdapter)


def load_or_compute(
    kind: type[Kept],
    path: Path,
    compute: Callable[[Kept | None], Kept],
    is_current: Callable[[Kept], bool] = lambda _known: True,
) -> Kept:
    """Return the value in a file; compute and write it if the file is missing or outdated.

    Args:
        compute: receives the outdated value, or None.
    Raises: StoreError for a file that cannot be written; errors of `compute`.
    """
    known = read(kind, path)
    if known is not None and is_current(known):
        return known
    found = compute(known)
    write(path, found)
    return found


def read(kind: type[Kept], path: Path) -> Kept | None:
    """Return the value in a file, or None if the file is missing or damaged."""
    try:
        with safe_open(path, "np") as file:
            return _read_fields(kind, file, json.loads((file.metadata() or {})[ABOUT]))
    except UNREADABLE:
        return None


def write(path: Path, value: Any) -> None:
    """Write a dataclass to a file. Raises: StoreError."""
    arrays, about = _split_fields(value)
    write_arrays(path, arrays, about)


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]], about: Mapping[str, Any]) -> None:
    """Write a file atomically, so that a reader finds a complete file or none.

    The run's folder must exist; the folder of a deleted run is not created again.

    Raises: StoreError when the disk is full or the folder cannot be written.
    """
    try:
        path.parent.mkdir(exist_ok=True)
        remove_partial_files(path)
        whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        with atomic_write(path) as partial:
            save_file(whole, partial, metadata={ABOUT: json.dumps(dict(about))})
    except (OSError, SafetensorError) as error:
        raise StoreError(
            "The file {file} could not be written ({error}): free some disk space.", file=path.name, error=error
        ) from error


def numbered(folder: Path, number: int) -> Path:
    """Return the file of a step or layer in a folder of numbered files."""
    return folder / f"{number:07d}.safetensors"


def numbers(folder: Path) -> tuple[int, ...]:
    """Return the steps or layers that have a file in a folder, ascending; empty if the folder does not exist."""
    return tuple(sorted(int(path.stem) for path in folder.glob("*.safetensors") if path.stem.isdecimal()))


def _split_fields(value: Any) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Split a dataclass into its arrays and its other fields; the fields of nested dataclasses are merged in."""
    arrays: dict[str, NDArray[Any]] = {}
    about: dict[str, Any] = {}
    for field in fields(value):
        found = getattr(value, field.name)
        if isinstance(found, np.ndarray):
            arrays[field.name] = found
        elif is_dataclass(found):
            inner_arrays, inner_about = _split_fields(found)
            arrays, about = arrays | inner_arrays, about | inner_about
        else:
            about[field.name] = dict(found) if isinstance(found, Mapping) else found
    return arrays, about


def _read_fields(kind: type[Kept], file: Any, about: Mapping[str, Any]) -> Kept:
    values: dict[str, Any] = {}
    for name, hint in get_type_hints(kind).items():
        if get_origin(hint) is np.ndarray:
            values[name] = file.get_tensor(name)
        elif is_dataclass(hint):
            values[name] = _read_fields(hint, file, about)  # type: ignore[arg-type]  # a class, not an instance
        else:
            values[name] = _adapter(hint).validate_python(about[name])
    return kind(**values)
