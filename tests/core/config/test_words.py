"""Translation of a config: every text is marked for translation, and stored text stays English."""

from __future__ import annotations

import re

import pytest

from core.catalogue.losses import LOSSES
from core.catalogue.views import VIEWS
from core.config import RunConfig, parse_config
from core.config.describe import settings
from core.config.edit import twin, twin_name
from core.config.fields import fields_of
from core.config.presets import GROUPS, PRESETS
from core.config.vary import sweepable, twin_settings
from core.messages import in_language
from core.parameters import Parameter
from tests.cases import each
from tests.catalogues import code_messages
from tests.core.config.test_fields import sections

# Names that are the same in every language.
NAMES = {"AdamW", "Adafactor", "SGD", "CPU", "CUDA", "MPS", "LoRA", "MLP", "UTF-8", "UTF-16", "[CLS]", "L_out", "L_in"}
NAMES |= {"CE", "CE + SCL", "CoSENT", "DSCL", "R-Drop", "Mixup", "float32", "bfloat16", "–"}
LETTERS = re.compile("[A-Za-z]{2}")


def with_preset(name: str) -> RunConfig:
    return parse_config({"phases": PRESETS[name].phases({"steps": 40})})


def test_every_text_of_fields_losses_views_and_presets_is_marked() -> None:
    marked = {message.id if isinstance(message.id, str) else message.id[0] for message in code_messages()}
    parameters = [parameter for section in sections(RunConfig) for parameter in fields_of(section).values()]
    found = [*GROUPS]
    for entry in (*LOSSES.values(), *VIEWS.values()):
        parameters += entry.parameters
        found += [entry.label, entry.summary, entry.others_compute]
    found += [text for entry in LOSSES.values() for text in entry.pieces.values()]
    found += [view.cost for view in VIEWS.values()]
    found += [text for preset in PRESETS.values() for text in (preset.label, preset.summary)]
    found += [text for parameter in parameters for text in texts(parameter)]
    assert {text for text in found if LETTERS.search(text)} - NAMES - marked == set()


def texts(parameter: Parameter) -> list[str]:
    words = [*(parameter.choices or {}).values(), *parameter.words.values()]
    return [parameter.label, parameter.help, parameter.unit, parameter.automatic, *words]


@each("name", PRESETS)
@pytest.mark.usefixtures("foreign")
def test_every_setting_is_labelled_in_the_language(name: str) -> None:
    config = with_preset(name)
    labels = [setting.label for setting in (*settings(config), *twin_settings(config), *sweepable(config).values())]
    assert [label for label in labels if "«" not in label] == []


@pytest.mark.usefixtures("foreign")
def test_what_can_be_varied_is_kept_for_each_language() -> None:
    config = with_preset("scl-classifier")
    path = "phases.1.optimiser.learning_rate"
    assert "«" in sweepable(config)[path].label
    with in_language("en"):
        assert sweepable(config)[path].label == "Phase 2: Learning rate"


@pytest.mark.usefixtures("foreign")
def test_a_twin_has_an_english_name_for_everybody() -> None:
    config = with_preset("ce-scl")
    other = twin(config, "phases.0.objective.terms.supcon.temperature", 0.1)
    assert twin_name("Run 7", config, other) == "Run 7, τ 0.1 instead of 0.3"


@pytest.mark.usefixtures("foreign")
@each(
    ("task", "said"),
    [
        ({"id": "film_reviews", "name": "Film reviews"}, "«Film reviews»"),
        ({"id": "own-0123456789abcdef", "name": "Test"}, "Test"),
        ({"id": "file", "path": "a/test.csv", "name": "Test"}, "Test"),
    ],
)
def test_the_name_of_a_task_is_translated_where_it_is_ours(task: dict[str, str], said: str) -> None:
    assert settings(parse_config({"task": task}))[0].text == said
