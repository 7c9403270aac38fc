"""Metadata of a field, shared by the form, the command line, differences and errors."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from core.config import Change, RunConfig, parse_config
from core.config.describe import problem_text
from core.config.fields import FieldDisplay, Section, build, field_at, fields_of
from core.errors import ConfigError
from core.parameters import Parameter
from core.tasks.hub.registry import HubRequest
from tests.cases import each

# Identifiers, containers, and fields set by the app. Users set none of them in a form.
UNTITLED = {"version", "phases", "task", "encoder", "probe", "checkpoint", "knob_turns", "path", "content_hash"}
UNTITLED |= {"changes", "run", "reading", "trainable", "objective", "optimiser", "every_steps", "snapshot_steps"}
UNTITLED |= {"step", "value", "name", "resources", "terms", "combine", "loss", "weight", "views", "view", "id"}


class Toy(Section):
    width: Annotated[float, Field(gt=0, le=9.5, title="Width w", description="Of it."), FieldDisplay(unit="metres")] = (
        1.0
    )
    count: Annotated[int | None, Field(ge=2, title="Count"), FieldDisplay({None: "All"}, listed=True)] = None
    kind: Annotated[Literal["a", "b"], Field(title="Kind"), FieldDisplay({"a": "First"})] = "a"
    sure: Annotated[bool | None, Field(title="Sure"), FieldDisplay({None: "?", True: "Yes", False: "No"})] = None
    silent: int = 0


def sections(root: type[BaseModel]) -> Iterator[type[BaseModel]]:
    yield root
    for info in root.model_fields.values():
        for kind in (info.annotation, *getattr(info.annotation, "__args__", ())):
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield from sections(kind)


def test_a_field_is_read_with_all_that_it_says() -> None:
    fields = fields_of(Toy)
    assert list(fields) == ["width", "count", "kind", "sure"]
    assert fields["width"] == Parameter(
        "width", "Width w", 1.0, "Of it.", "number", low=0, high=9.5, above=True, unit="metres"
    )
    assert fields["count"] == Parameter("count", "Count", None, "", "integer", low=2, words={None: "All"}, listed=True)
    assert fields["kind"].choices == {"a": "First", "b": "b"}
    assert fields["kind"].options == ["a", "b"]
    assert fields["sure"].options == [None, True, False]


@each(
    ("given", "sentence"),
    [
        ({"width": 10}, "width = 10 cannot be used: give a number of metres above 0 and at most 9.5."),
        ({"width": "wide"}, "width = 'wide' cannot be used: give a number of metres above 0 and at most 9.5."),
        ({"width": math.nan}, "width = nan cannot be used: give a number of metres above 0 and at most 9.5."),
        ({"count": 1}, "count = 1 cannot be used: give a whole number of at least 2."),
        ({"silent": 0.5}, "silent = 0.5 cannot be used: give a whole number."),
    ],
)
def test_an_error_says_the_bounds_of_the_field(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError) as raised:
        build(Toy, given)
    assert str(raised.value) == sentence


def test_every_field_of_a_run_and_of_a_request_has_a_title_and_a_help() -> None:
    for root in (RunConfig, HubRequest):
        for section in sections(root):
            if section is Change:  # its fields have the titles of those that they replace
                continue
            described = fields_of(section)
            silent = {name for name, field in described.items() if not field.help}
            missing = set(section.model_fields) - set(described) - UNTITLED - {"label_names"}
            assert not silent | missing, section


def test_a_field_that_may_be_empty_has_words_for_that() -> None:
    for section in sections(RunConfig):
        for name, field in fields_of(section).items():
            assert (section.model_fields[name].default is None) <= (None in field.words), (section, name)


def test_a_title_names_one_field_of_a_form() -> None:
    titles = [field.label for section in sections(RunConfig) for field in fields_of(section).values()]
    assert len(titles) == len(set(titles))


LABELS = {
    "phases.1.optimiser.learning_rate": "Learning rate",
    "learning_rate": "Learning rate",
    "train_size": "Training rows",
    "probe.train_size": "Training texts on the map",
} | dict.fromkeys(["", "0", "nothing", "task.path", "nothing.seed"])


@each("path", LABELS)
def test_a_path_leads_to_its_field_or_nowhere(path: str) -> None:
    found = field_at(RunConfig, path)
    assert (found and found.label) == LABELS[path]


def test_a_page_names_the_field_by_its_title() -> None:
    with pytest.raises(ConfigError) as raised:
        parse_config({"probe": {"train_size": -1}})
    expected = "Training texts on the map = -1 cannot be used: give a whole number of texts from 0 up to 500."
    assert problem_text(raised.value) == expected
