"""The identity of a map, and its key in the cache."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from core.errors import ConfigError
from core.parameters import Parameter
from core.representation.geometry import Array
from core.representation.projections import (
    PROJECTIONS,
    MapSpec,
    Points,
    Projection,
    map_frames,
    stable_projections,
)
from core.representation.projections import entry as entry_module
from tests.cases import each


@each("name", PROJECTIONS)
class TestEveryProjection:
    def test_defaults_are_filled_in(self, name: str) -> None:
        spec = MapSpec(name)
        assert spec.settings == {p.name: p.default for p in PROJECTIONS.entry(name).parameters}
        assert spec == MapSpec(name, parameters=spec.parameters)
        assert hash(spec) == hash(MapSpec(name))

    def test_the_json_form_comes_back(self, name: str) -> None:
        for mode in PROJECTIONS.entry(name).modes:
            spec = MapSpec(name, 3, mode, seed=4)
            assert MapSpec(**json.loads(json.dumps(spec.as_dict()))) == spec
            assert spec.entry is PROJECTIONS.entry(name)


def test_maps_of_neighbourhoods_carry_a_caution() -> None:
    for name in ("tsne", "umap"):
        entry = PROJECTIONS.entry(name)
        assert entry.caution.startswith(f"{entry.label} shows neighbourhoods, not distances: a collapsed space")


def test_every_field_has_a_part_in_the_key() -> None:
    specs = [
        MapSpec("umap"),
        MapSpec("pca"),
        MapSpec("umap", 3),
        MapSpec("umap", mode="once"),
        MapSpec("umap", seed=1),
        MapSpec("umap", parameters=(("neighbours", 16),)),
        MapSpec("umap", parameters=(("min_dist", 0.2),)),
    ]
    assert len({spec.key for spec in specs}) == len(specs)
    assert MapSpec("umap", parameters=(("min_dist", 0.1), ("neighbours", 15))).key == MapSpec("umap").key
    assert MapSpec("umap", 3, "once").key.startswith("umap-3d-once-")
    assert all(letter.isalnum() or letter == "-" for letter in MapSpec("umap").key)


def test_another_version_has_another_key(monkeypatch: pytest.MonkeyPatch) -> None:
    before = MapSpec("umap").key
    monkeypatch.setattr(entry_module, "VERSION", entry_module.VERSION + 1)
    assert MapSpec("umap").key != before


@each(
    ("given", "field", "remedy"),
    [
        ({"method": "mds"}, "method", "choose one of pca, tsne, umap, umap-learn."),
        ({"dims": "2"}, "dims", "give 2 or 3."),
        ({"dims": True}, "dims", "give 2 or 3."),
        ({"method": "tsne", "mode": "once"}, "mode", "t-SNE has each."),
        ({"seed": -1}, "seed", "give a whole number from 0"),
        ({"seed": 1.5}, "seed", "give a whole number from 0"),
        ({"method": "umap", "parameters": {"neighbors": 5}}, "neighbors", "did you mean neighbours?"),
        ({"method": "umap", "parameters": {"neighbours": 1}}, "neighbours", "give a whole number from 2 up to 200."),
    ],
)
def test_what_cannot_be_used_is_named(given: dict[str, Any], field: str, remedy: str) -> None:
    with pytest.raises(ConfigError) as caught:
        MapSpec(**given)
    assert caught.value.field == field
    assert remedy in str(caught.value)


def test_a_projection_from_outside_is_offered_and_fits() -> None:
    """One entry is enough: no other code lists the projections."""

    def first_columns(rows: Array, dims: int, settings: Any, seed: int, before: Any) -> Points:
        return np.asarray(rows[:, :dims] * settings["stretch"], np.float32)

    stretch = Parameter("stretch", "Stretch", 2.0, "How far.", low=0.0)
    entry = Projection("columns", "Columns", 9, "us", "The first columns.", first_columns, parameters=(stretch,))
    PROJECTIONS.register(entry)
    try:
        spec = MapSpec("columns", 2, parameters=(("stretch", 3.0),))
        assert list(stable_projections())[-1] == "columns"
        rows = {0: np.arange(12.0).reshape(4, 3), 5: np.ones((4, 3))}
        placed = list(map_frames(spec, list(rows), list(rows), rows.__getitem__, lambda step: None, ended=True))
        assert [one.step for one in placed] == [0, 5]
        np.testing.assert_array_equal(placed[0].points, rows[0][:, :2] * 3)
    finally:
        del PROJECTIONS["columns"]
    assert "columns" not in stable_projections()
