"""Refusals that several losses share; each names the argument, its value and what is expected."""

from __future__ import annotations

import math

from torch import Tensor


def check_positive(name: str, value: float) -> None:
    """Raises: ValueError unless the value is finite and above 0."""
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{name} = {value}: expected a finite number above 0")


def check_not_negative(name: str, value: float) -> None:
    """Raises: ValueError unless the value is finite and at least 0."""
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"{name} = {value}: expected a finite number of at least 0")


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Raises: ValueError unless the value is one of the choices."""
    if value not in choices:
        raise ValueError(f"{name} = {value!r}: expected one of {', '.join(choices)}")


def check_shape(name: str, tensor: Tensor, expected: tuple[int, ...], what: str = "") -> None:
    """Raises: ValueError unless the tensor has exactly this shape; `what` explains it."""
    if tuple(tensor.shape) != expected:
        shape = f"[{', '.join(map(str, expected))}]"
        raise ValueError(f"{name} of shape {tuple(tensor.shape)}: expected {shape}{what and ', ' + what}")


def check_logits(name: str, logits: Tensor) -> None:
    """Raises: ValueError unless the logits are a matrix."""
    if logits.ndim != 2:
        raise ValueError(f"{name} of shape {tuple(logits.shape)}: expected [N, C]")
