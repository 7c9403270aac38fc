"""Zip archives of named members. Equal content gives equal bytes; files are read as untrusted input."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError
from safetensors import SafetensorError
from safetensors.numpy import load

from core.atomic import atomic_write
from core.errors import StoreError, quote_value
from core.messages import N_, _, join_list

# Maximum size of an archive, packed and unpacked; archives written here are far smaller.
BYTES_MAX = 64 * 2**20
# Maximum length of an error text, which may quote the file.
CHARS_MAX = 300
PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# Errors that the library raises for damaged archives, including undocumented ones.
UNREADABLE = (OSError, KeyError, EOFError, RuntimeError, ValueError, OverflowError, zipfile.BadZipFile, zlib.error)

Array = NDArray[Any]
Form = TypeVar("Form", bound=BaseModel)


class StrictForm(BaseModel):
    """A frozen JSON object with exactly the declared fields and types, and finite numbers only."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class DamagedError(Exception):
    """A damaged file. The message describes the damage in a few words."""

    @property
    def why(self) -> str:
        """The message on one line, truncated to fit into a sentence."""
        return " ".join(str(self).split())[:CHARS_MAX]


def demand(condition: bool, otherwise: str, **values: object) -> None:
    """Raise DamagedError unless the condition holds.

    Args:
        otherwise: the message, marked for translation; values: for its placeholders.
    """
    if not condition:
        raise DamagedError(_(otherwise, **values))


def write_members(path: Path, members: Mapping[str, str | bytes]) -> None:
    """Write members to a compressed, reproducible archive. Raises: StoreError if the file cannot be written."""
    try:
        with (
            atomic_write(path) as partial,
            zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file,
        ):
            for name, content in members.items():
                # A bare ZipInfo has a fixed date, which keeps the bytes reproducible.
                file.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED, 9)
    except OSError as error:
        raise StoreError(
            "{file} could not be written ({error}): choose another location.", file=path.name, error=error.strerror
        ) from error


def read_members(path: Path, names: Sequence[str]) -> dict[str, bytes]:
    """Read an archive that holds exactly these members. Raises: DamagedError."""
    try:
        demand(path.stat().st_size <= BYTES_MAX, N_("it is larger than {most} MB"), most=BYTES_MAX // 2**20)
        with zipfile.ZipFile(path) as file:
            infos = file.infolist()
            there = [info.filename for info in infos]
            lacking = [name for name in names if name not in there]
            demand(not lacking, N_("it lacks {files}"), files=join_list(lacking))
            foreign = next((name for name in there if name not in names), None)
            demand(foreign is None, N_("{file} does not belong in it"), file=quote_value(foreign))
            demand(len(there) == len(names), N_("it contains a file twice"))
            unpacked = sum(info.file_size for info in infos)
            demand(unpacked <= BYTES_MAX, N_("it unpacks to more than {most} MB"), most=BYTES_MAX // 2**20)
            demand(all(info.compress_type in PACKED for info in infos), N_("its compression is not supported"))
            members = {}
            for info in infos:
                with file.open(info) as member:
                    # Without a limit, the library unpacks the whole member before it checks the size.
                    members[info.filename] = member.read(info.file_size + 1)
                demand(len(members[info.filename]) == info.file_size, N_("it states a wrong size"))
            return members
    except UNREADABLE as error:
        raise DamagedError(str(error) or _("it cannot be unpacked")) from error


def parse_member(form: type[Form], text: bytes, name: str) -> Form:
    """Parse a JSON member. Raises: DamagedError."""
    try:
        return form.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise DamagedError(f"{name}{', ' if place else ''}{place}: {first['msg']}") from error


def arrays(text: bytes, name: str) -> dict[str, Array]:
    """Load the arrays of a safetensors member. Raises: DamagedError."""
    try:
        return load(text)
    # The library raises errors such as KeyError for types that NumPy lacks.
    except (SafetensorError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise DamagedError(f"{name}: {error}") from error


def is_whole(array: Array, shape: Sequence[int]) -> bool:
    """Return whether an array has this shape and holds finite numbers in half or single precision."""
    return array.shape == tuple(shape) and array.dtype in (np.float16, np.float32) and bool(np.isfinite(array).all())


def are_labels(array: Array, classes: int) -> bool:
    """Return whether an array holds valid class numbers, at least one."""
    return (
        array.ndim == 1
        and array.size > 0
        and array.dtype == np.int32
        and bool(((array >= 0) & (array < classes)).all())
    )
