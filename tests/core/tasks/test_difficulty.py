"""Which tasks are said to be hard before launch."""

from __future__ import annotations

import pytest

from core.config import TaskConfig
from core.quantities import percent
from core.tasks import load_task
from core.tasks.difficulty import expectation
from core.tasks.registry import TASKS

HARD = {"nli", "paraphrase", "acceptability"}


@pytest.mark.parametrize("name", TASKS)
def test_pairs_and_acceptability_are_hard_and_the_others_are_not(name: str) -> None:
    data = load_task(TaskConfig(id=name), 0)
    sentence = expectation(name, data)
    assert (sentence is not None) == (name in HARD)
    if sentence:
        assert f"near the majority class ({percent(data.majority_rate)})" in sentence


def test_pairs_of_a_file_are_hard_too() -> None:
    data = load_task(TaskConfig(id="nli"), 0)
    assert expectation("file", data) == expectation("nli", data)
    assert expectation("file", load_task(TaskConfig(id="film_reviews"), 0)) is None
