"""Back-translations and paraphrases added to the training rows at the start of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from core.advice.prepare import prepare
from core.config import RunConfig
from core.config.edit import apply_settings
from core.events import Started, Step
from core.tasks import TaskData
from core.training.loop import train, with_back_translations
from core.views.back_translation import MemoryTranslationCache, RoundTrip
from tests.core.training.made import Draft
from tests.core.views.test_back_translation import make_marian

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def translators(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("marian")
    return [str(make_marian(folder / name, seed)) for name, seed in (("there", 1), ("back", 2))]


def translated(
    draft: Draft, translators: list[str], temperature: float | None = 0.7, **more: Any
) -> tuple[RunConfig, TaskData]:
    asked = {"task.back_translation": temperature, "task.translators": translators, "task.train_size": 20}
    return prepare(apply_settings(draft(), asked | more), gpu=False)


def test_back_translations_follow_the_original_rows_with_the_same_labels(draft: Draft, translators: list[str]) -> None:
    config, data = translated(draft, translators)
    found = with_back_translations(data, config.task, 3, kept=None, device=CPU)
    assert found.train.texts[:20] == data.train.texts
    assert found.train.labels == data.train.labels * 2
    forward, backward = translators
    trip = RoundTrip(forward, backward, temperature=0.7, seed=3, cache=MemoryTranslationCache())
    assert list(found.train.texts[20:]) == trip.translate(data.train.texts)
    assert (found.validation, found.test) == (data.validation, data.test)
    assert found.train.texts[20:] != data.train.texts


def test_without_a_temperature_nothing_is_added_and_no_model_is_needed(draft: Draft) -> None:
    config, data = translated(draft, ["/no/such", "/model"], None)
    assert with_back_translations(data, config.task, 0, kept=None, device=CPU) is data


def test_translations_are_kept_for_other_runs(draft: Draft, translators: list[str], tmp_path: Path) -> None:
    config, data = translated(draft, translators)
    kept = tmp_path / "translations.db"
    first = with_back_translations(data, config.task, 0, kept=kept, device=CPU)
    assert kept.exists()
    assert with_back_translations(data, config.task, 0, kept=kept, device=CPU) == first


def test_an_epoch_counts_the_rows_that_are_added(draft: Draft, translators: list[str]) -> None:
    plain, _ = translated(draft, translators, None, epochs=2.0)
    config, _ = translated(draft, translators, epochs=2.0)
    assert (plain.steps, config.steps) == (4, 10)  # 20 and 40 rows in batches of 8


def test_a_run_trains_on_originals_and_translations(draft: Draft, translators: list[str]) -> None:
    config, data = translated(draft, translators, steps=3)
    events = list(train(config, data))
    started = next(event for event in events if isinstance(event, Started))
    assert started.facts["train_rows"] == 40
    assert sum(isinstance(event, Step) for event in events) == 3


def test_a_run_trains_on_originals_and_paraphrases(draft: Draft) -> None:
    task = {"id": "nli", "path": None, "paraphrases": "strong", "train_size": 24}
    config, data = prepare(draft(task=task, epochs=2.0, steps=None), gpu=False)
    assert config.steps == 12  # 48 rows in batches of 8
    events = list(train(config, data))
    started = next(event for event in events if isinstance(event, Started))
    assert started.facts["train_rows"] == 48
    assert sum(isinstance(event, Step) for event in events) == 12
