"""The literal list of losses, and the bounds of their parameters."""

from __future__ import annotations

import pytest

import core.losses
from core.catalogue.loss_entry import LossEntry
from core.catalogue.losses import LOSSES
from core.errors import ConfigError
from core.registry import load
from tests.cases import each

# Numbers that are explained in words, not by the formula.
BESIDE_THE_EQUATION = {"momentum", "hard_negative_weight"}


@each("entry", LOSSES.values())
class TestEntries:
    def test_an_entry_is_found_by_its_name(self, entry: LossEntry) -> None:
        assert LOSSES.entry(entry.name) is entry

    def test_its_functions_are_where_it_says(self, entry: LossEntry) -> None:
        assert all(callable(load(path)) for path in (entry.compute, entry.lines) if path)

    def test_the_defaults_are_valid(self, entry: LossEntry) -> None:
        for parameter in entry.parameters:
            assert parameter.check(parameter.name, parameter.default) == parameter.default

    def test_the_equation_has_a_place_for_every_number_in_it(self, entry: LossEntry) -> None:
        equations = [entry.latex, *entry.latex_variants.values()]
        for name in {p.name for p in entry.parameters if p.kind == "number"} - BESIDE_THE_EQUATION:
            note = entry.latex_notes.get(name, "")
            assert all(f"{{{name}}}" in equation for equation in equations) or f"{{{name}}}" in note

    def test_a_note_or_variant_belongs_to_a_setting(self, entry: LossEntry) -> None:
        names = {p.name: p for p in entry.parameters}
        assert entry.latex_notes.keys() <= names.keys()
        if entry.latex_variants:
            assert entry.latex_variants.keys() < set(names["variant"].choices or ())

    def test_a_slider_lies_within_the_bounds(self, entry: LossEntry) -> None:
        for parameter in entry.parameters:
            if parameter.slider:
                assert [parameter.check(parameter.name, end) for end in parameter.slider] == list(parameter.slider)

    def test_a_knob_has_a_slider(self, entry: LossEntry) -> None:
        assert all(p.slider is not None for p in entry.parameters if p.knob)

    def test_no_setting_hides_a_field_of_the_term(self, entry: LossEntry) -> None:
        names = [p.name for p in entry.parameters]
        assert not {"loss", "weight", "views"} & set(names)
        assert len(set(names)) == len(names)

    def test_what_reads_logits_has_no_level_and_what_reads_vectors_has_one(self, entry: LossEntry) -> None:
        assert entry.contrastive == (entry.reads != "logits") == bool(entry.levels)
        assert ("level" in {p.name for p in entry.parameters}) == (entry.reads == "vectors")


def test_every_loss_has_a_symbol_of_its_own() -> None:
    assert len({entry.symbol for entry in LOSSES.values()}) == len(LOSSES)


def test_what_others_compute_is_said_where_they_differ() -> None:
    for name in ("cross_entropy", "supcon", "dscl", "simcse", "rdrop"):
        assert LOSSES[name].others_compute


@each("name", ["triplet", "", "SUPCON", None, [], {}])
def test_an_unknown_loss_is_refused_with_the_names_that_exist(name: object) -> None:
    with pytest.raises(ConfigError, match="cross_entropy, supcon"):
        LOSSES.entry(name)  # type: ignore[arg-type]


def test_every_exported_name_exists() -> None:
    assert all(hasattr(core.losses, name) for name in core.losses.__all__)
