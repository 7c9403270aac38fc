"""The bundled tasks load and are described. test_bundled.py tests their texts."""

from __future__ import annotations

import pytest

from core.config import TaskConfig
from core.errors import ConfigError
from core.tasks import TASKS, load_task, task_entry
from tests.cases import each


@each("name", TASKS)
def test_a_bundled_task_loads_and_is_described(name: str) -> None:
    entry = task_entry(name)
    data = load_task(TaskConfig(id=name), 0)
    assert entry.name == name
    assert entry.label == data.name
    assert (entry.folder / "README.md").is_file()
    assert len(data.train) > len(data.validation) > 0
    assert len(data.test) > 0
    assert data.notes == ()


def test_the_inference_task_gives_a_triplet_for_every_training_premise() -> None:
    data = load_task(TaskConfig(id="nli"), 0)
    assert len(data.triplets) == len(set(data.train.texts))
    assert not set(data.train.texts) & set(data.validation.texts)


def test_an_unknown_task_names_those_that_exist() -> None:
    with pytest.raises(ConfigError, match=", ".join(TASKS)):
        task_entry("nothing")
