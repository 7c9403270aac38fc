"""The forces that push and pull points on a map, in loops that numba compiles at the first call.

Coordinates are [3, N] in single precision, with a third row of zeros on a flat map, so one loop serves 2 and 3
dimensions and reads contiguous rows, which is fastest. Every point pushes every other; no pairs are sampled.
"""

# The loops are plain Python until `compiled`, because the server imports this module and must not import numba.
from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Coordinates = NDArray[np.float32]


@cache
def compiled(loop: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a loop to machine code for one thread, so that the same input gives the same digits."""
    import numba

    # Sums may be reordered and roots approximated, but always in the same way on one machine.
    return numba.njit(fastmath={"reassoc", "contract", "arcp", "nsz"}, error_model="numpy", nogil=True)(loop)


def push_by_table(
    moving: Coordinates, others: Coordinates, table: Coordinates, slope: Coordinates, per_unit: Any, out: Coordinates
) -> None:
    """Write to `out` [3, M]: Σ table(distance) · (difference) over the others; constant beyond the table's end."""
    x, y, z = others[0], others[1], others[2]
    last = np.float32(table.shape[0] - 1)
    for i in range(moving.shape[1]):
        at_x, at_y, at_z = moving[0, i], moving[1, i], moving[2, i]
        sum_x = sum_y = sum_z = np.float32(0)
        for k in range(x.shape[0]):
            dx, dy, dz = at_x - x[k], at_y - y[k], at_z - z[k]
            place = min(np.sqrt(dx * dx + dy * dy + dz * dz) * per_unit, last)
            cell = np.int32(place)
            force = table[cell] + (place - np.float32(cell)) * slope[cell]
            sum_x += dx * force
            sum_y += dy * force
            sum_z += dz * force
        out[0, i], out[1, i], out[2, i] = sum_x, sum_y, sum_z


def pull_by_power(
    moving: Coordinates,
    others: Coordinates,
    starts: NDArray[np.int64],
    columns: NDArray[np.int64],
    weights: Coordinates,
    a: Any,
    b: Any,
    out: Coordinates,
) -> None:
    """Add to `out` [3, M]: −Σ w · 4ab d^(2b−2) / (1 + a d^2b) · (difference) over each point's edges."""
    for i in range(moving.shape[1]):
        for edge in range(starts[i], starts[i + 1]):
            k = columns[edge]
            dx, dy, dz = moving[0, i] - others[0, k], moving[1, i] - others[1, k], moving[2, i] - others[2, k]
            square = dx * dx + dy * dy + dz * dz
            if square > 0:
                power = square ** (b - np.float32(1))
                force = weights[edge] * 4 * a * b * power / (1 + a * power * square)
                out[0, i] -= force * dx
                out[1, i] -= force * dy
                out[2, i] -= force * dz


def push_by_student(points: Coordinates, out: Coordinates) -> float:
    """Write to `out` [3, N]: Σ (difference) / (1 + d²)² over the others. Return Σ 1 / (1 + d²) over ordered pairs."""
    x, y, z = points[0], points[1], points[2]
    total = 0.0
    for i in range(x.shape[0]):
        at_x, at_y, at_z = x[i], y[i], z[i]
        near = sum_x = sum_y = sum_z = np.float32(0)
        for k in range(x.shape[0]):
            dx, dy, dz = at_x - x[k], at_y - y[k], at_z - z[k]
            weight = np.float32(1) / (np.float32(1) + dx * dx + dy * dy + dz * dz)
            near += weight
            weight *= weight
            sum_x += dx * weight
            sum_y += dy * weight
            sum_z += dz * weight
        total += float(near - np.float32(1))  # exclude the point itself
        out[0, i], out[1, i], out[2, i] = sum_x, sum_y, sum_z
    return total


def pull_by_student(
    points: Coordinates,
    starts: NDArray[np.int64],
    columns: NDArray[np.int64],
    weights: Coordinates,
    out: Coordinates,
) -> None:
    """Add to `out` [3, N]: −Σ w · (difference) / (1 + d²) over each point's edges."""
    for i in range(points.shape[1]):
        for edge in range(starts[i], starts[i + 1]):
            k = columns[edge]
            dx, dy, dz = points[0, i] - points[0, k], points[1, i] - points[1, k], points[2, i] - points[2, k]
            force = weights[edge] / (np.float32(1) + dx * dx + dy * dy + dz * dz)
            out[0, i] -= force * dx
            out[1, i] -= force * dy
            out[2, i] -= force * dz
