"""Encode the maps of a run as small binary bundles for the browser.

A bundle is named by a hash of its content and sent once. It is a JSON header followed by little-endian arrays.
Coordinates are quantised to 16 bits within one box around all frames, so that the axes do not move.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.figures.template import HOVER_LINES, HOVER_WIDTH, QUIET, class_colour, class_symbol
from core.messages import _

MARGIN = 1.04
# Largest code of a coordinate and of a colour. The next code marks a missing value.
PLACE_STEPS, COLOUR_STEPS = 65_534, 254
NO_PLACE, NO_COLOUR = 65_535, 255
TEXT_CHARS = HOVER_WIDTH * HOVER_LINES
NAME_CHARS = 120
TRAIN, TEST = "train", "test"
CORRECT_COLOURS = (QUIET, "#d55e00")
# Viridis without its ends, which are invisible on near-black and on white (van der Walt & Smith 2015).
SCALE = ("#453781", "#39558c", "#2d708e", "#238a8d", "#1f9e89", "#3dbc74", "#73d056", "#addc30")


@dataclass(frozen=True, slots=True)
class Bundle:
    """Bytes for the browser, named by a hash of their content.

    Attributes:
        id: equal for equal content.
        present: indices of the frames that have a map.
    """

    id: str
    content: bytes
    present: tuple[int, ...] = ()


class Box(NamedTuple):
    """A box around all frames: its centre and half its width along each of the map's D axes."""

    middle: tuple[float, ...]
    reach: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Arrow:
    """A pull (weight > 0) or push (weight < 0) between two examples; weights are from −1 to 1.

    The arrow runs from the example with id `start` to that with id `end`; `text` is shown on hover over either end.
    """

    start: int
    end: int
    weight: float
    text: str = ""


@dataclass(frozen=True, slots=True)
class OwnPoint:
    """A visitor's sentence: one position per frame in map coordinates, None if there is none.

    `exact` is True for each frame whose position was computed (filled star) and False if estimated (hollow star).
    """

    name: str
    text: str
    places: tuple[tuple[float, ...] | None, ...]
    exact: tuple[bool, ...]


def box_of(*stacks: ArrayLike) -> Box:
    """Return the box around all given stacks of frames [F, N, D], so that they can share one scale."""
    flat = [np.asarray(stack, np.float64).reshape(-1, np.shape(stack)[-1]) for stack in stacks]
    points = np.concatenate(flat)
    points = points[np.isfinite(points).all(1)]
    if not len(points):
        return Box((0.0,) * points.shape[1], (1.0,) * points.shape[1])
    low, high = points.min(0), points.max(0)
    reach = (high - low) / 2 * MARGIN
    # A map that has collapsed onto a point or a line still needs a width.
    least = 1e-3 * reach.max() or 1.0
    return Box(tuple(map(float, (low + high) / 2)), tuple(map(float, np.maximum(reach, least))))


def examples_bundle(
    ids: Sequence[int], texts: Sequence[str], labels: Sequence[int], classes: Sequence[str], splits: Sequence[str] = ()
) -> Bundle:
    """Encode the N examples of a map, which are the same in every frame.

    Args:
        labels: N indices into `classes`.
        splits: N split names; training examples are drawn hollow, and test examples outlined. Empty if all are of the
            validation split.
    """
    header = {
        "kind": "examples",
        "ids": [int(i) for i in ids],
        "texts": [_cut(text, TEXT_CHARS) for text in texts],
        "classes": [_cut(name, NAME_CHARS) for name in classes],
        "symbols": [class_symbol(label) for label in range(len(classes))],
        "splits": not {TRAIN, TEST}.isdisjoint(splits),
    }
    # 1 if hollow, 2 if outlined.
    looks = np.asarray([(split == TRAIN) + 2 * (split == TEST) for split in splits], "u1")
    return _bundle(header, {"labels": np.asarray(labels, "<u2"), "open": looks})


def places_bundle(frames: ArrayLike, box: Box | None = None) -> Bundle:
    """Encode the coordinates of the points in every frame.

    Args:
        frames: [F, N, D] with D = 2 or 3; NaN for a point without a position; a frame of only NaN has no map yet.
        box: range of the axes, from `box_of`; the box of these frames if None.
    Returns: coordinates to 1/65,534 of the box's longest side.
    """
    stack = np.asarray(frames, np.float64)
    box = box or box_of(stack)
    half = max(box.reach)
    inside: NDArray[np.bool_] = np.asarray(np.isfinite(stack).all(2))  # [F, N]
    unit = (stack - np.asarray(box.middle)) / half
    present = np.flatnonzero(inside.any(1))
    steps = np.rint((np.where(inside[..., None], unit, 0.0) + 1) / 2 * PLACE_STEPS)
    steps = np.where(inside[..., None], np.clip(steps, 0, PLACE_STEPS), NO_PLACE)[present]
    header = {
        "kind": "places",
        "frames": len(stack),
        "points": stack.shape[1],
        "axes": stack.shape[2],
        "present": present.tolist(),
        "middle": box.middle,
        "reach": box.reach,
        "half": half,
    }
    return _bundle(header, {"places": steps.astype("<u2")}, tuple(present.tolist()))


def categories_bundle(
    codes: ArrayLike, names: Sequence[str], label: str, colours: Sequence[str] | None = None
) -> Bundle:
    """Encode colours by category, such as label, prediction or cluster.

    Args:
        codes: [N], or [F, N] if they change between frames; indices into `names`, −1 for none.
        label: heading of the legend, such as "Prediction".
        colours: one per name; the class colours if None.
    Raises: ValueError for a code without a name, or too many names.
    """
    given = np.asarray(codes, np.int64)
    if len(names) > COLOUR_STEPS or given.max(initial=-1) >= len(names) or given.min(initial=-1) < -1:
        raise ValueError(f"codes do not fit {len(names)} names: give indices below it, at most {COLOUR_STEPS} names.")
    header = {
        "kind": "categories",
        "label": _cut(label, NAME_CHARS),
        "names": [_cut(name, NAME_CHARS) for name in names],
        "colours": list(colours) if colours else [class_colour(i) for i in range(len(names))],
    }
    return _colours_bundle(header, np.where(given < 0, NO_COLOUR, given))


def label_colours(labels: Sequence[int], classes: Sequence[str]) -> Bundle:
    return categories_bundle(labels, classes, _("Label"))


def prediction_colours(predicted: NDArray[np.integer], classes: Sequence[str]) -> Bundle:
    """Encode colours by prediction. Args: predicted: [F, N] class numbers."""
    return categories_bundle(predicted, classes, _("Prediction"))


def correct_colours(correct: NDArray[np.bool_]) -> Bundle:
    """Encode colours by correctness. Args: correct: [F, N]."""
    # Translators: the head of a legend, above "correct" and "wrong".
    label = _("Prediction is")
    return categories_bundle(~correct, (_("correct"), _("wrong")), label, CORRECT_COLOURS)


def values_bundle(values: ArrayLike, label: str, low: float, high: float) -> Bundle:
    """Encode colours by a number, such as confidence or loss, on one scale for all frames.

    Args:
        values: [N], or [F, N] if they change between frames; NaN for none.
        low, high: the ends of the scale; values beyond them are clipped.
        label: heading of the legend, such as "Loss".
    """
    given: NDArray[np.float64] = np.asarray(values, np.float64)
    known: NDArray[np.bool_] = np.asarray(np.isfinite(given))
    # If low equals high, every value gets the colour of the scale's lower end.
    shares = (np.where(known, given, low) - low) / (high - low if high > low else 1.0)
    codes = np.where(known, np.rint(np.clip(shares, 0, 1) * COLOUR_STEPS), NO_COLOUR)
    header = {
        "kind": "values",
        "label": _cut(label, NAME_CHARS),
        "low": float(low),
        "high": float(high),
        "scale": SCALE,
    }
    return _colours_bundle(header, codes)


def _colours_bundle(header: Mapping[str, Any], codes: NDArray[Any]) -> Bundle:
    frames = len(codes) if codes.ndim == 2 else 0
    return _bundle({**header, "none": QUIET, "frames": frames}, {"codes": codes.astype("u1")})


def _cut(text: str, most: int) -> str:
    """Return untrusted text as one line of at most `most` characters. The browser renders it as plain text."""
    text = " ".join(text[: 8 * most].split())
    return text if len(text) <= most else f"{text[: most - 2]} …"


def _bundle(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], present: tuple[int, ...] = ()) -> Bundle:
    """Pack the header's length (uint32), the header as JSON with the offset of each array, and the arrays."""
    table, start = {}, 0
    for name, array in arrays.items():
        table[name] = {"type": array.dtype.name, "start": start, "length": int(array.size)}
        start += array.nbytes
    text = json.dumps({**header, "arrays": table}, allow_nan=False).encode()
    content = b"".join([struct.pack("<I", len(text)), text, *(array.tobytes() for array in arrays.values())])
    return Bundle(hashlib.sha256(content).hexdigest()[:24], content, present)
