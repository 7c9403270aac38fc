"""What the browser needs to draw the maps of a run: arrays in, small bundles of bytes out.

A bundle is sent once and named by its content. It is a line of JSON and, after it, arrays in little-endian order;
places on the map are quantised to 16 bits of one box that holds every frame, so that the axes hold still.
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

from core.errors import shown
from core.figures.template import HOVER_LINES, HOVER_WIDTH, QUIET, class_colour, class_symbol
from core.messages import _

MARGIN = 1.04
# The whole numbers that a coordinate, or a colour, can be; the one after them says that there is none.
PLACE_STEPS, COLOUR_STEPS = 65_534, 254
NO_PLACE, NO_COLOUR = 65_535, 255
TEXT_CHARS = HOVER_WIDTH * HOVER_LINES
NAME_CHARS = 120
TRAIN = "train"
CORRECT_COLOURS = (QUIET, "#d55e00")
# Viridis without its ends, which would not be seen on near-black and on white (van der Walt & Smith 2015).
SCALE = ("#453781", "#39558c", "#2d708e", "#238a8d", "#1f9e89", "#3dbc74", "#73d056", "#addc30")


@dataclass(frozen=True, slots=True)
class Bundle:
    """Bytes for the browser, named by what they hold.

    Attributes:
        id: the same content, the same id.
        frames: how many frames it covers, 0 when it is the same for all.
        present: which of these frames have a map.
    """

    id: str
    content: bytes
    frames: int = 0
    present: tuple[int, ...] = ()


class Box(NamedTuple):
    """A box around every frame: its middle and half its width along each of the map's D axes."""

    middle: tuple[float, ...]
    reach: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Arrow:
    """A pull (weight > 0) or a push (weight < 0) of one example on another, weight −1 to 1.

    The arrow runs from the example with id `start` to the one with id `end`; `text` is shown over both ends.
    """

    start: int
    end: int
    weight: float
    text: str = ""


@dataclass(frozen=True, slots=True)
class OwnPoint:
    """A visitor's sentence: one place per frame in the map's own coordinates, None where there is none.

    `exact` says of each frame whether the place was computed (filled star) or estimated (hollow star).
    """

    name: str
    text: str
    places: tuple[tuple[float, ...] | None, ...]
    exact: tuple[bool, ...]


def box_of(*stacks: ArrayLike) -> Box:
    """The box that holds every given stack of frames [F, N, D]; give it to each of them to draw them alike."""
    flat = [np.asarray(stack, np.float64).reshape(-1, np.shape(stack)[-1]) for stack in stacks]
    points = np.concatenate(flat)
    points = points[np.isfinite(points).all(1)]
    if not len(points):
        return Box((0.0,) * points.shape[1], (1.0,) * points.shape[1])
    low, high = points.min(0), points.max(0)
    reach = (high - low) / 2 * MARGIN
    # A map that has collapsed onto a point or a line has a width all the same.
    least = 1e-3 * reach.max() or 1.0
    return Box(tuple(map(float, (low + high) / 2)), tuple(map(float, np.maximum(reach, least))))


def examples_bundle(
    ids: Sequence[int], texts: Sequence[str], labels: Sequence[int], classes: Sequence[str], splits: Sequence[str] = ()
) -> Bundle:
    """What the N points of a map are, the same in every frame.

    Args:
        labels: N indices into `classes`.
        splits: N names, those of training examples are drawn open; empty when all are held out.
    Raises: ValueError where the lengths differ.
    """
    for name, values in (("texts", texts), ("labels", labels), ("splits", splits or ids)):
        if len(values) != len(ids):
            raise ValueError(f"{name} has {len(values)} values: give one for each of the {len(ids)} ids.")
    header = {
        "kind": "examples",
        "ids": [int(i) for i in ids],
        "texts": [_cut(text, TEXT_CHARS) for text in texts],
        "classes": [_cut(name, NAME_CHARS) for name in classes],
        "symbols": [class_symbol(label) for label in range(len(classes))],
        "splits": bool(splits),
    }
    trained = np.asarray([split == TRAIN for split in splits], "u1")
    return _bundle(header, {"labels": np.asarray(labels, "<u2"), "open": trained})


def places_bundle(frames: ArrayLike, box: Box | None = None) -> Bundle:
    """Where the points are in every frame.

    Args:
        frames: [F, N, D] with D = 2 or 3; NaN for a point that has no place, a frame of NaN alone for a map that does
            not exist yet.
        box: what the axes hold, from `box_of`; of these frames when None.
    Returns: coordinates to 1/65,534 of the box's longest side.
    Raises: ValueError for another shape, or a box that does not hold the points.
    """
    stack = np.asarray(frames, np.float64)
    if stack.ndim != 3 or stack.shape[2] not in (2, 3):
        raise ValueError(f"frames has the shape {stack.shape}: give [F, N, 2] or [F, N, 3].")
    box = box or box_of(stack)
    half = max(box.reach)
    inside: NDArray[np.bool_] = np.asarray(np.isfinite(stack).all(2))  # [F, N]
    unit = (stack - np.asarray(box.middle)) / half
    if np.abs(unit[inside]).max(initial=0.0) > 1 + 1e-9:
        raise ValueError(f"box = {shown(box)} does not hold all points: make it with box_of from the same frames.")
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
    return _bundle(header, {"places": steps.astype("<u2")}, frames=len(stack), present=tuple(present.tolist()))


def categories_bundle(
    codes: ArrayLike, names: Sequence[str], label: str, colours: Sequence[str] | None = None
) -> Bundle:
    """Colour by category, such as label, prediction or cluster.

    Args:
        codes: [N], or [F, N] when they change with the frames; indices into `names`, −1 for none.
        label: what the colours say, such as "Prediction".
        colours: of each name; those of the classes when None.
    Raises: ValueError for a code without a name.
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
    """Args: predicted: [F, N] class numbers."""
    return categories_bundle(predicted, classes, _("Prediction"))


def correct_colours(correct: NDArray[np.bool_]) -> Bundle:
    """Args: correct: [F, N]."""
    # Translators: the head of a legend, above "correct" and "wrong".
    label = _("Prediction is")
    return categories_bundle(~correct, (_("correct"), _("wrong")), label, CORRECT_COLOURS)


def values_bundle(values: ArrayLike, label: str, low: float, high: float) -> Bundle:
    """Colour by a number, such as confidence or loss, on one scale for all frames.

    Args:
        values: [N], or [F, N] when they change with the frames; NaN for none.
        low, high: the ends of the scale. Values beyond get the end's colour.
        label: what the colours say, such as "Loss".
    """
    given: NDArray[np.float64] = np.asarray(values, np.float64)
    known: NDArray[np.bool_] = np.asarray(np.isfinite(given))
    # One value everywhere has the colour of the scale's lower end.
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
    return _bundle({**header, "none": QUIET, "frames": frames}, {"codes": codes.astype("u1")}, frames=frames)


def _cut(text: str, most: int) -> str:
    """Text from outside as one line, never longer than a hover; the browser shows it as text and nothing else."""
    text = " ".join(text[: 8 * most].split())
    return text if len(text) <= most else f"{text[: most - 2]} …"


def _bundle(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], **about: Any) -> Bundle:
    """Length of the header (uint32), header as JSON with where each array lies after it, arrays."""
    table, start = {}, 0
    for name, array in arrays.items():
        table[name] = {"type": array.dtype.name, "start": start, "length": int(array.size)}
        start += array.nbytes
    text = json.dumps({**header, "arrays": table}, allow_nan=False).encode()
    content = b"".join([struct.pack("<I", len(text)), text, *(array.tobytes() for array in arrays.values())])
    return Bundle(hashlib.sha256(content).hexdigest()[:24], content, **about)
