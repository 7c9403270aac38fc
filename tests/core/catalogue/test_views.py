"""The literal list of views, and what a planner reads of it."""

from __future__ import annotations

import pytest

from core.catalogue.view_entry import ViewEntry
from core.catalogue.views import VIEWS
from core.errors import ConfigError
from core.registry import load
from tests.cases import each

READ_AGAIN = {
    "dropout", "eda", "token_shuffle", "token_cutoff", "feature_cutoff", "embedding_dropout", "adversarial",
    "back_translation",
}  # fmt: skip


@each("entry", VIEWS.values())
class TestEntries:
    def test_an_entry_is_found_by_its_name(self, entry: ViewEntry) -> None:
        assert VIEWS.entry(entry.name) is entry

    def test_its_functions_are_where_it_says(self, entry: ViewEntry) -> None:
        paths = (entry.text, entry.by_model, entry.tokens, entry.embedding, entry.preview, entry.notice)
        assert all(callable(load(path)) for path in paths if path)

    def test_the_defaults_are_valid(self, entry: ViewEntry) -> None:
        for parameter in entry.parameters:
            assert parameter.check(parameter.name, parameter.default) == parameter.default

    def test_it_says_what_it_is_and_where_it_comes_from(self, entry: ViewEntry) -> None:
        assert entry.label
        assert entry.summary.endswith(".")
        assert entry.source

    def test_its_settings_do_not_hide_the_name_of_the_view(self, entry: ViewEntry) -> None:
        names = [parameter.name for parameter in entry.parameters]
        assert "view" not in names
        assert len(set(names)) == len(names)

    def test_a_slider_lies_within_the_bounds(self, entry: ViewEntry) -> None:
        for parameter in entry.parameters:
            if parameter.slider:
                assert [parameter.check(parameter.name, end) for end in parameter.slider] == list(parameter.slider)


def test_only_masks_and_layers_need_no_further_reading() -> None:
    assert {name for name, entry in VIEWS.items() if entry.runs_encoder} == READ_AGAIN
    assert VIEWS.keys() - READ_AGAIN == {"head_dropout", "layers"}


def test_only_the_dropout_pass_reads_the_same_input_again() -> None:
    assert {name for name, entry in VIEWS.items() if entry.changes_input} == READ_AGAIN - {"dropout"}


def test_the_published_rates_are_the_defaults() -> None:
    rates = {name: p.default for name, entry in VIEWS.items() for p in entry.parameters if p.name == "rate"}
    assert rates == {
        "head_dropout": 0.1, "eda": 0.1, "token_cutoff": 0.15, "feature_cutoff": 0.2, "embedding_dropout": 0.2,
    }  # fmt: skip
    (epsilon,) = VIEWS["adversarial"].parameters
    assert epsilon.default == 0.01


@each("name", ["blur", "", "DROPOUT", None, [], {}])
def test_an_unknown_view_is_answered_with_those_that_exist(name: object) -> None:
    with pytest.raises(ConfigError, match=r"^view = .* choose one of dropout, head_dropout, layers, eda, "):
        VIEWS.entry(name)
