"""Helpers of the losses: argument checks and unit vectors.

An error names the argument, its value and the expected values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor


def check_positive(name: str, value: float) -> None:
    """Check that the value is finite and above 0. Raises: ValueError."""
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{name} = {value}: expected a finite number above 0")


def check_not_negative(name: str, value: float) -> None:
    """Check that the value is finite and at least 0. Raises: ValueError."""
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"{name} = {value}: expected a finite number of at least 0")


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Check that the value is one of the choices. Raises: ValueError."""
    if value not in choices:
        raise ValueError(f"{name} = {value!r}: expected one of {', '.join(choices)}")


def check_shape(name: str, tensor: Tensor, expected: tuple[int, ...], what: str = "") -> None:
    """Check that the tensor has exactly this shape.

    Args:
        what: explains the shape in the error.
    Raises: ValueError.
    """
    if tuple(tensor.shape) != expected:
        shape = f"[{', '.join(map(str, expected))}]"
        raise ValueError(f"{name} of shape {tuple(tensor.shape)}: expected {shape}{what and ', ' + what}")


def check_matrix(name: str, tensor: Tensor, axes: str = "[N, d]") -> None:
    """Check that the tensor has two axes. Raises: ValueError."""
    if tensor.ndim != 2:
        raise ValueError(f"{name} of shape {tuple(tensor.shape)}: expected {axes}")


def to_full_precision(tensor: Tensor) -> Tensor:
    """Convert to float32, but keep float64."""
    return tensor if tensor.dtype == torch.float64 else tensor.float()


def unit_rows(rows: Tensor) -> Tensor:
    """Scale each row to Euclidean length 1; differentiable.

    Args:
        rows: [M, d], float32 or float64, any scale.
    Returns: [M, d].
    Edge: a row of zeros stays zero and gets a finite gradient.
    """
    # Scaling by the largest entry first prevents under- and overflow in the norm of tiny and huge vectors.
    largest = rows.detach().abs().amax(1, keepdim=True)
    rows = rows / torch.where(largest > 0, largest, torch.ones_like(largest))
    norm = rows.square().sum(1, keepdim=True)
    return rows * torch.where(norm > 0, norm, torch.ones_like(norm)).rsqrt()


def mean_of(losses: Sequence[Tensor]) -> Tensor:
    """Return the mean of scalars. A single scalar is returned unchanged, to the last bit."""
    return losses[0] if len(losses) == 1 else torch.stack(list(losses)).mean()
