"""The literal lists of losses, views and encoders, and the bounds of their parameters."""

from __future__ import annotations

from typing import Any

import pytest

import core.losses
from core.catalogue.loss_entry import LossEntry
from core.catalogue.losses import LOSSES
from core.catalogue.views import VIEWS, ViewEntry
from core.errors import ConfigError
from core.registry import Registry, load
from tests.cases import each

# Numbers that the help explains in words, outside the formula.
BESIDE_THE_EQUATION = {"momentum", "hard_negative_weight"}


@each("entry", [*LOSSES.values(), *VIEWS.values()])
class TestEntries:
    def test_it_is_found_by_its_name_and_says_where_it_comes_from(self, entry: LossEntry | ViewEntry) -> None:
        registry: Registry[Any] = LOSSES if isinstance(entry, LossEntry) else VIEWS
        assert registry.entry(entry.name) is entry
        assert entry.label
        assert entry.summary.endswith(".")
        assert entry.source

    def test_its_functions_are_where_it_says(self, entry: LossEntry | ViewEntry) -> None:
        paths = [entry.compute, entry.lines] if isinstance(entry, LossEntry) else []
        if isinstance(entry, ViewEntry):
            paths += [entry.text, entry.by_model, entry.tokens, entry.embedding, entry.preview]
        assert all(callable(load(path)) for path in paths if path)

    def test_defaults_and_sliders_lie_within_the_bounds(self, entry: LossEntry | ViewEntry) -> None:
        for parameter in entry.parameters:
            for value in (parameter.default, *(parameter.slider or ())):
                assert parameter.check(parameter.name, value) == value
            assert parameter.slider is not None or not parameter.knob

    def test_no_setting_hides_a_field(self, entry: LossEntry | ViewEntry) -> None:
        names = [parameter.name for parameter in entry.parameters]
        assert not {"loss", "weight", "views", "view"} & set(names)
        assert len(set(names)) == len(names)


def test_every_exported_name_exists() -> None:
    assert all(hasattr(core.losses, name) for name in core.losses.__all__)


@each("entry", LOSSES.values())
class TestLosses:
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

    def test_what_reads_logits_has_no_level_and_what_reads_vectors_has_one(self, entry: LossEntry) -> None:
        assert entry.contrastive == (entry.reads != "logits") == bool(entry.levels)
        assert ("level" in {p.name for p in entry.parameters}) == (entry.reads == "vectors")


def test_every_loss_has_a_symbol_of_its_own() -> None:
    assert len({entry.symbol for entry in LOSSES.values()}) == len(LOSSES)


@each("name", ["blur", "", "SUPCON", None, [], {}])
def test_an_unknown_name_is_answered_with_those_that_exist(name: object) -> None:
    with pytest.raises(ConfigError, match=r"^loss = .* choose one of cross_entropy, supcon"):
        LOSSES.entry(name)
    with pytest.raises(ConfigError, match=r"^view = .* choose one of dropout, head_dropout, layers, eda, "):
        VIEWS.entry(name)
