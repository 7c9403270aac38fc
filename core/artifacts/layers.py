"""The probe behind every block of a run's encoder, once `inspect_job` has computed it."""

from __future__ import annotations

from pathlib import Path

from core.artifacts.array_files import read_about, read_array, write_arrays
from core.events import FloatArray


def layers_path(folder: Path, step: int) -> Path:
    """Where the vectors of a step lie in a run's folder."""
    return folder / "layers" / f"{step:07d}.safetensors"


def layer_steps(folder: Path) -> tuple[int, ...]:
    """The steps whose layers are computed, in order; `folder` is the run's. They outlive the weights."""
    names = (path.stem for path in (folder / "layers").glob("*.safetensors"))
    return tuple(sorted(int(name) for name in names if name.isdecimal()))


def write_layers(folder: Path, step: int, layers: FloatArray, stamp: int) -> None:
    """Keep [L, N, H]; `stamp` identifies the weights that made them. Raises: StoreError."""
    arrays = {_name(number): vectors for number, vectors in enumerate(layers, start=1)}
    write_arrays(layers_path(folder, step), arrays, {"layers": len(layers), "stamp": stamp})


def layer_count(folder: Path, step: int, stamp: int | None = None) -> int:
    """How many layers of a step are there, 0 before they are computed; with `stamp`, only those of these weights."""
    about = read_about(layers_path(folder, step))
    if about is None or (stamp is not None and about.get("stamp") != stamp):
        return 0
    return int(about.get("layers", 0))


def layer_vectors(folder: Path, step: int, layer: int) -> FloatArray | None:
    """Pooled vectors [N, H] of the probe behind block `layer`, 1 … L; None before they are computed."""
    return read_array(layers_path(folder, step), _name(layer))


def _name(layer: int) -> str:
    return f"layer_{layer:02d}"
