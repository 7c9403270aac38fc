"""The probe behind every block of a run's encoder, once `inspect_job` has computed it: one layer is read at a time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError, safe_open

from core.artifacts.cache import numbered, numbers, read, write_arrays
from core.events import FloatArray


@dataclass(frozen=True, slots=True)
class LayerFile:
    """How many layers a file holds; `stamp` identifies the weights that made them."""

    layers: int
    stamp: int


def layers_path(folder: Path, step: int) -> Path:
    """Where the vectors of a step lie in a run's folder."""
    return numbered(folder / "layers", step)


def layer_steps(folder: Path) -> tuple[int, ...]:
    """The steps whose layers are computed, in order; `folder` is the run's. They outlive the weights."""
    return numbers(folder / "layers")


def write_layers(folder: Path, step: int, layers: FloatArray, stamp: int) -> None:
    """Keep [L, N, H]; `stamp` identifies the weights that made them. Raises: StoreError."""
    arrays = {_name(number): vectors for number, vectors in enumerate(layers, start=1)}
    write_arrays(layers_path(folder, step), arrays, {"layers": len(layers), "stamp": stamp})


def layer_count(folder: Path, step: int, stamp: int | None = None) -> int:
    """How many layers of a step are there, 0 before they are computed; with `stamp`, only those of these weights."""
    found = read(LayerFile, layers_path(folder, step))
    return 0 if found is None or stamp not in (None, found.stamp) else found.layers


def layer_vectors(folder: Path, step: int, layer: int) -> FloatArray | None:
    """Pooled vectors [N, H] of the probe behind block `layer`, 1 … L; None before they are computed."""
    try:
        with safe_open(layers_path(folder, step), "np") as file:
            vectors: FloatArray = file.get_tensor(_name(layer))
    except (OSError, SafetensorError):
        return None
    return vectors


def _name(layer: int) -> str:
    return f"layer_{layer:02d}"
