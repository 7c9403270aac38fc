"""The browser's data of a map, decoded here independently."""

from __future__ import annotations

import json
import math
import struct
from typing import Any

import numpy as np
import pytest

from core.figures.map_data import (
    MARGIN,
    PLACE_STEPS,
    SCALE,
    TEXT_CHARS,
    Bundle,
    box_of,
    categories_bundle,
    examples_bundle,
    places_bundle,
    values_bundle,
)
from tests.cases import each

HOSTILE = '<img src=x onerror="alert(1)">'
FORMATS = {"uint8": "B", "uint16": "H"}


def read(bundle: Bundle) -> dict[str, Any]:
    """Return the header, and its arrays as lists."""
    (length,) = struct.unpack_from("<I", bundle.content)
    found: dict[str, Any] = json.loads(bundle.content[4 : 4 + length])
    for name, table in found.pop("arrays").items():
        layout = f"<{table['length']}{FORMATS[table['type']]}"
        found[name] = list(struct.unpack_from(layout, bundle.content, 4 + length + table["start"]))
    return found


def places_of(bundle: Bundle) -> list[list[list[float]]]:
    """Return coordinates as the browser computes them: of every frame, point and axis."""
    given = read(bundle)
    axes, points = given["axes"], given["points"]
    frames = []
    for slot in range(len(given["present"])):
        frames.append([])
        for row in range(points):
            steps = given["places"][(slot * points + row) * axes : (slot * points + row + 1) * axes]
            place = [
                math.nan if s > PLACE_STEPS else m - given["half"] + 2 * given["half"] * s / PLACE_STEPS
                for s, m in zip(steps, given["middle"], strict=True)
            ]
            frames[-1].append(place)
    return frames


@each("axes", [2, 3])
def test_places_come_back_to_a_65534th_of_the_box(axes: int) -> None:
    frames = np.random.default_rng(0).normal(size=(4, 7, axes)) * [5, 1, 2][:axes] + 100
    bundle = places_bundle(frames)
    width = 2 * MARGIN * (frames.max((0, 1)) - frames.min((0, 1))).max() / 2
    np.testing.assert_allclose(places_of(bundle), frames, atol=width / PLACE_STEPS)
    assert (read(bundle)["frames"], bundle.present) == (4, (0, 1, 2, 3))


def test_a_frame_or_a_point_that_is_not_there_stays_away() -> None:
    frames = np.arange(24, dtype=float).reshape(4, 3, 2)
    frames[1] = np.nan
    frames[2, 1, 0] = np.nan
    bundle = places_bundle(frames)
    assert read(bundle)["frames"] == 4
    assert bundle.present == (0, 2, 3)
    missing = [[any(map(math.isnan, place)) for place in frame] for frame in places_of(bundle)]
    assert missing == [[False] * 3, [False, True, False], [False] * 3]


def test_the_box_holds_every_frame_of_every_stack() -> None:
    box = box_of([[[0.0, 5.0]], [[4.0, 5.0]]], [[[-6.0, 5.0], [np.nan, 900.0]]])
    assert box.middle == (-1.0, 5.0)
    assert box.reach[0] == pytest.approx(5 * MARGIN)
    assert 0 < box.reach[1] < box.reach[0]


@each("frames", [np.zeros((2, 3, 2)), np.zeros((0, 3, 2)), np.zeros((1, 0, 3)), np.full((1, 2, 2), 7.0)])
def test_a_map_without_width_still_has_a_box(frames: np.ndarray) -> None:
    assert all(reach > 0 for reach in box_of(frames).reach)
    np.testing.assert_allclose(np.array(places_of(places_bundle(frames))).reshape(-1), frames.reshape(-1), atol=1e-3)


def test_frames_drawn_in_one_box_have_the_same_axes_and_the_id_is_of_the_content() -> None:
    first, second = np.random.default_rng(1).normal(size=(2, 3, 5, 2))
    headers = [read(places_bundle(stack, box_of(first, second))) for stack in (first, second)]
    axes = [[header[name] for name in ("middle", "reach", "half")] for header in headers]
    assert axes[0] == axes[1]
    moved = first.copy()
    moved[1, 2, 0] += 0.1
    assert places_bundle(first).id == places_bundle(first.copy()).id != places_bundle(moved).id


def test_examples_keep_ids_labels_and_splits() -> None:
    splits = ["train", "validation", "test"]
    found = read(examples_bundle([7, 5, 6], ["a", "b", "c"], [1, 0, 0], ["no", "yes"], splits))
    assert (found["ids"], found["labels"], found["open"]) == ([7, 5, 6], [1, 0, 0], [1, 0, 2])
    assert (found["texts"], found["classes"], found["splits"]) == (["a", "b", "c"], ["no", "yes"], True)
    assert len(set(found["symbols"])) == 2


def test_texts_travel_as_they_are_and_no_longer_than_a_hover() -> None:
    found = read(examples_bundle([0, 1], [HOSTILE, f"x\n{'y' * 2_000}"], [0, 0], [HOSTILE + "z" * 500]))
    assert found["texts"][0] == HOSTILE
    assert found["texts"][1].startswith("x yyy")
    assert len(found["texts"][1]) == TEXT_CHARS
    assert found["classes"][0].startswith(HOSTILE)
    assert found["splits"] is False


def test_categories_keep_their_codes_and_none_is_255() -> None:
    bundle = categories_bundle([[0, 1, -1], [2, 2, 0]], ["a", "b", "c"], "Cluster")
    found = read(bundle)
    assert found["codes"] == [0, 1, 255, 2, 2, 0]
    assert (found["frames"], found["label"]) == (2, "Cluster")
    assert len(set(found["colours"])) == 3
    same = read(categories_bundle([1, 0], ["right", "wrong"], "Prediction", ["#0072b2", "#d55e00"]))
    assert (same["frames"], same["codes"], same["colours"]) == (0, [1, 0], ["#0072b2", "#d55e00"])


@each("codes", [[0, 2], [-2]])
def test_a_code_without_a_name_is_refused(codes: list[int]) -> None:
    with pytest.raises(ValueError, match="codes do not fit 2 names"):
        categories_bundle(codes, ["a", "b"], "Label")


def test_values_lie_on_one_scale_for_all_frames() -> None:
    values = [[0.0, 1.0, math.nan], [2.0, 4.0, math.inf]]
    found = read(values_bundle(values, "Loss", 0.0, 4.0))
    assert (found["low"], found["high"], found["scale"]) == (0.0, 4.0, list(SCALE))
    expected = [255 if not math.isfinite(v) else round(254 * v / 4) for row in values for v in row]
    assert found["codes"] == expected
    assert read(values_bundle([-5.0, 0.5, 9.0], "Confidence", 0, 1))["codes"] == [0, 127, 254]


@each(("values", "codes"), [([], []), ([math.nan], [255]), ([3.0, 3.0], [0, 0])])
def test_values_without_a_range_have_a_colour_all_the_same(values: list[float], codes: list[int]) -> None:
    assert read(values_bundle(values, "Loss", 3.0, 3.0))["codes"] == codes
