"""Vectors of the probe set after every encoder block, computed by `inspect_job` and read one layer at a time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError, safe_open

from core.artifacts.cache import numbered, numbers, read, write_arrays
from core.events import FloatArray


@dataclass(frozen=True, slots=True)
class LayerFile:
    """The number of layers in a file, and that of the first; `stamp` identifies the weights that produced them."""

    layers: int
    stamp: int
    first: int = 1  # files of earlier versions begin at the first block


def layers_path(folder: Path, step: int) -> Path:
    """Return the file of a step's layers in a run's folder."""
    return numbered(folder / "layers", step)


def layer_steps(folder: Path) -> tuple[int, ...]:
    """Return the steps with computed layers, ascending. Layers outlive the weights. Args: folder: the run's folder."""
    return numbers(folder / "layers")


def write_layers(folder: Path, step: int, layers: FloatArray, stamp: int, first: int = 1) -> None:
    """Write consecutive layers [L, N, H].

    Args:
        stamp: identifies the weights that produced them.
        first: number of the first layer; 0 is the embeddings.
    Raises: StoreError.
    """
    arrays = {_name(number): vectors for number, vectors in enumerate(layers, first)}
    write_arrays(layers_path(folder, step), arrays, {"layers": len(layers), "stamp": stamp, "first": first})


def layer_numbers(folder: Path, step: int, stamp: int | None = None) -> tuple[int, ...]:
    """Return the numbers of the layers stored for a step; none for layers from weights other than `stamp`, if given."""
    found = read(LayerFile, layers_path(folder, step))
    if found is None or stamp not in (None, found.stamp):
        return ()
    return tuple(range(found.first, found.first + found.layers))


def layer_vectors(folder: Path, step: int, layer: int) -> FloatArray | None:
    """Return the pooled vectors [N, H] after block `layer` (0: of the embeddings), or None before they are computed."""
    try:
        with safe_open(layers_path(folder, step), "np") as file:
            vectors: FloatArray = file.get_tensor(_name(layer))
    except (OSError, SafetensorError):
        return None
    return vectors


def _name(layer: int) -> str:
    return f"layer_{layer:02d}"
