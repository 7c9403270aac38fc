"""Adding a view takes one registry entry. Config, command line, training and previews then include it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from core.advice.prepare import prepare
from core.catalogue.views import VIEWS
from core.cli.main import draft_from
from core.config import RunConfig
from core.config.describe import term_words
from core.config.plan import Pass
from core.encoders.model import load_encoder
from core.events import Step
from core.texts.preview import text_views
from core.training.loop import train
from core.training.passes import Setup, StepInputs
from tests.core.training.made import CPU
from tests.core.views.toy import TOY


@pytest.fixture
def _toy() -> Iterator[None]:
    VIEWS.register(TOY)
    yield
    del VIEWS[TOY.name]


pytestmark = pytest.mark.usefixtures("_toy")
VIEW = {"view": "backwards", "between": "and"}
OBJECTIVE = {"terms": [{"loss": "simcse", "views": [VIEW]}]}


def test_the_encoder_reads_what_it_makes(draft: Callable[..., RunConfig]) -> None:
    config, data = prepare(draft(objective=OBJECTIVE, steps=2), gpu=False)
    (view,) = config.phases[0].objective.terms[0].views
    encoder, tokenizer = load_encoder(config.encoder.id, classes=data.classes, pooling="mean", max_length=32)
    inputs = StepInputs(Setup(data, encoder, tokenizer, CPU, 0), [Pass("rows", view)])
    text = data.train.texts[0]
    assert inputs.tokens(0, 1, [0]) == tokenizer(["and".join(reversed(text.split()))])
    assert [event.step for event in train(config, data) if isinstance(event, Step)] == [1, 2]


def test_config_command_line_words_and_previews_know_it() -> None:
    made = draft_from({"settings": ('objective.terms=[{"loss": "simcse", "views": [{"view": "backwards"}]}]',)})
    term = made.phases[0].objective.terms[0]
    assert term.views[0].parameters == {"between": "|"}
    assert "backwards" in term_words(term)
    shown = text_views("one two", seed=0, rate=0.1)[-1]
    assert (shown.name, shown.label, shown.sentence) == ("backwards", "Backwards", TOY.summary)
