"""The bundled tasks load, and hard ones are marked. test_bundled.py tests their texts."""

from __future__ import annotations

import pytest

from core.config import TaskConfig
from core.errors import ConfigError
from core.quantities import percent
from core.tasks import TASKS, load_task, task_entry
from core.tasks.registry import expectation
from tests.cases import each

HARD = {"nli", "paraphrase", "acceptability"}


@each("name", TASKS)
def test_a_bundled_task_loads_and_is_described_with_its_difficulty(name: str) -> None:
    entry = task_entry(name)
    data = load_task(TaskConfig(id=name), 0)
    assert entry.name == name
    assert entry.label == data.name
    assert (entry.folder / "README.md").is_file()
    assert len(data.train) > len(data.validation) > 0
    assert len(data.test) > 0
    assert data.notes == ()
    sentence = expectation(name, data)
    assert (sentence is not None) == (name in HARD)
    if sentence:
        assert f"near the majority class ({percent(data.majority_rate(data.validation))})" in sentence


def test_an_unknown_task_names_those_that_exist() -> None:
    with pytest.raises(ConfigError, match=", ".join(TASKS)):
        task_entry("nothing")


def test_pairs_of_a_file_are_hard_too() -> None:
    data = load_task(TaskConfig(id="nli", train_size=20), 0)
    assert "near the majority class" in str(expectation("file", data))
    assert expectation("file", load_task(TaskConfig(id="film_reviews"), 0)) is None


@each(("rows", "said"), [(49, True), (50, False)])
def test_few_rows_may_end_below_the_probe(rows: int, said: bool) -> None:
    sentence = expectation("film_reviews", load_task(TaskConfig(id="film_reviews", train_size=rows), 0))
    assert (sentence is not None) == said
    assert not said or str(sentence).startswith(f"With {rows} training rows, whether a run beats the linear probe")
