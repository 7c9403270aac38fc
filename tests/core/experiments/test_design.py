"""Designs: their runs, the baseline of a cell, and their form in a file."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from core.config.fields import build
from core.errors import ConfigError
from core.experiments.design import MOST_RUNS, Axis, Cell, Design, axis_of, parse_design
from tests.cases import each
from tests.core.experiments.conftest import CE

MOST = f"2,040 runs cannot be used: an experiment has at most {MOST_RUNS:,}"
UNKNOWN_SOURCE = {"label": "Films", "settings": {"start": "Films"}}
GRID: dict[str, Any] = {
    "name": "λ × τ",
    "base": {"task.id": "film_reviews", "steps": 20},
    "axes": [
        {"setting": "lambda", "values": [0.1, 0.5, 0.9]},
        {"setting": "temperature", "values": [0.1, 0.3]},
    ],
    "seeds": 3,
}


def test_every_combination_runs_under_every_seed_and_changes_its_settings_alone() -> None:
    design = build(Design, GRID | {"reference": CE})
    assert design.shape == (3, 2)
    assert [cell.levels for cell in design.cells] == [*product(range(3), range(2)), None]
    assert [cell.number for cell in design.cells] == list(range(7))
    assert (design.seeds, design.runs) == ((0, 1, 2), 21)
    draft = design.draft(design.cells[5], 2)
    assert (draft.phases[0].objective.weight, draft.phases[0].objective.temperature, draft.seed) == (0.9, 0.3, 2)
    assert (draft.phases[0].steps, draft.task.id) == (20, "film_reviews")
    assert [axis.name for axis in design.axes] == ["Weight λ", "Temperature τ"]
    assert [design.title_of(cell) for cell in (design.cells[0], design.cells[-1])] == ["λ 0.1, τ 0.1", "CE"]
    assert design.draft(design.cells[-1], 0).phases[0].objective.contrastive == ()
    assert parse_design(design.to_json()) == design
    more = design.revised(seeds=[*design.seeds, 3, 4])
    assert (more.seeds, more.cells) == ((0, 1, 2, 3, 4), design.cells)


def test_without_axes_it_is_seeds_alone() -> None:
    design = build(Design, {"seeds": [4, 7]})
    assert design.cells == (Cell(0, ()),)
    assert (design.runs, design.title_of(design.cells[0])) == (2, "all runs")
    assert [design.draft(design.cells[0], seed).seed for seed in design.seeds] == [4, 7]


def test_an_axis_of_levels_changes_several_settings_at_once() -> None:
    levels = [
        {"label": "CE", "settings": {"preset": "ce"}},
        {"label": "Sharp", "settings": {"preset": "dscl", "temperature": 0.05}},
    ]
    design = build(Design, {"axes": [{"name": "Objective", "levels": levels}]})
    draft = design.draft(design.cells[1], 0)
    assert draft.phases[0].objective.temperature == 0.05


@each(
    ("more", "compared_with"),
    [
        ({"baseline": {"Weight λ": 0.1}}, [None, None, 0, 1, 0, 1]),
        ({"reference": CE}, [6, 6, 6, 6, 6, 6, None]),
        ({}, [None] * 6),
    ],
)
def test_cells_are_compared_with_the_levels_of_the_baseline_or_the_reference(
    more: dict[str, Any], compared_with: list[int | None]
) -> None:
    design = build(Design, GRID | more)
    assert [other and other.number for other in map(design.baseline_of, design.cells)] == compared_with
    assert design.compares == bool(more)


def test_an_axis_over_a_setting_has_its_label_and_its_values_in_words() -> None:
    levels = [{"label": label, "settings": {"task.train_size": value}} for label, value in (("20", 20), ("All", None))]
    assert axis_of("task.train_size", [20, None]) == Axis.model_validate({"name": "Training rows", "levels": levels})
    assert [level.label for level in axis_of("preset", ["ce", "ce-scl"]).levels] == ["CE", "CE + SCL"]
    assert axis_of("objective.terms.0.variant", ["out", "in"]).name == "Variant of SCL"
    assert axis_of("phases.0.optimiser.learning_rate", [1e-4]).levels[0].label == "1e-04"


@each(
    ("given", "sentence"),
    [
        ({"axes": [{"setting": "lambda"}]}, "give setting and values"),
        ({"axes": [{"setting": "lambda", "values": 3}]}, "give setting and values"),
        ({"axes": [{"setting": "lambda", "values": [0.1], "colour": 1}]}, "give setting and values"),
        ({"axes": [{"setting": "lambda", "values": [0.1, 0.1]}]}, "levels of Weight λ = '0.1'"),
        ({"axes": [{"setting": "lambda", "values": []}]}, "levels = []"),
        ({"axes": GRID["axes"][:1] * 2}, "axes = 'Weight λ' cannot be used: it occurs twice"),
        ({"seeds": 0}, "seeds = 0 cannot be used: give 1 to 100"),
        ({"seeds": [1, 1]}, "it occurs twice"),
        ({"seeds": [-1]}, "seeds"),
        ({"seeds": []}, "seeds"),
        ({"baseline": {"Nothing": "0.1"}}, "baseline = 'Nothing' cannot be used: name an axis"),
        (GRID | {"baseline": {"Weight λ": 0.2}}, "choose a level of Weight λ: 0.1, 0.5, 0.9"),
        ({"colour": 1}, "colour = 1 cannot be used: colour is not a field"),
        ({"base": {"lambda": 3}}, "lambda = 3"),
        ({"base": {"task.no_such": 3}}, "no_such"),
        ({"axes": 5}, "axes = 5 cannot be used: give a list"),
        ({"version": 2}, "version = 2"),
        ({"axes": [{"name": "Start", "levels": [UNKNOWN_SOURCE]}]}, "start = 'Films' cannot be used: name a source"),
        ({"axes": [{"setting": "task.text_noise", "values": [i / 100 for i in range(60)]}], "seeds": 34}, MOST),
    ],
)
def test_what_cannot_be_a_design_is_one_sentence(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError) as error:
        build(Design, given)
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


@each("text", ["{", "3", "[" * 100_000])
def test_text_that_is_no_design_is_one_sentence(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_design(text)


def test_sources_run_once_under_every_seed_and_runs_start_from_that_of_their_seed() -> None:
    levels = [{"label": "Pre-trained", "settings": {}}, {"label": "Films", "settings": {"start": "Films"}}]
    sources = [{"label": "Films", "settings": {"steps": 50}}]
    design = build(Design, {"axes": [{"name": "Start", "levels": levels}], "sources": sources, "seeds": 2})
    assert design.runs == 6
    [source] = design.source_cells
    assert (source.number, design.title_of(source)) == (-1, "Films")
    assert design.draft(source, 1).phases[0].steps == 50
    starts = [design.draft(cell, 0, {"Films": "abcdefghijkm"}).start for cell in design.cells]
    assert starts == [None, "abcdefghijkm"]
