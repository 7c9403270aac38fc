"""Argument checks shared by the losses; each error names the argument, its value and the expected values."""

from __future__ import annotations

import math

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
    """Check that the tensor has exactly this shape. Args: what: explains the shape in the error. Raises: ValueError."""
    if tuple(tensor.shape) != expected:
        shape = f"[{', '.join(map(str, expected))}]"
        raise ValueError(f"{name} of shape {tuple(tensor.shape)}: expected {shape}{what and ', ' + what}")


def check_logits(name: str, logits: Tensor) -> None:
    """Check that the logits are a matrix. Raises: ValueError."""
    if logits.ndim != 2:
        raise ValueError(f"{name} of shape {tuple(logits.shape)}: expected [N, C]")
