"""Tasks marked as hard before launch."""

from __future__ import annotations

from core.config import TaskConfig
from core.quantities import percent
from core.tasks import load_task
from core.tasks.registry import TASKS, expectation
from tests.cases import each

HARD = {"nli", "paraphrase", "acceptability"}


@each("name", TASKS)
def test_pairs_and_acceptability_are_hard_and_the_others_are_not(name: str) -> None:
    data = load_task(TaskConfig(id=name), 0)
    sentence = expectation(name, data)
    assert (sentence is not None) == (name in HARD)
    if sentence:
        assert f"near the majority class ({percent(data.majority_rate(data.validation))})" in sentence


def test_pairs_of_a_file_are_hard_too() -> None:
    data = load_task(TaskConfig(id="nli"), 0)
    assert expectation("file", data) == expectation("nli", data)
    assert expectation("file", load_task(TaskConfig(id="film_reviews"), 0)) is None


@each(("rows", "said"), [(20, True), (49, True), (50, False), (100, False)])
def test_few_rows_may_end_below_the_probe(rows: int, said: bool) -> None:
    sentence = expectation("film_reviews", load_task(TaskConfig(id="film_reviews", train_size=rows), 0))
    assert (sentence is not None) == said
    assert not said or str(sentence).startswith(f"With {rows} training rows, whether a run beats the linear probe")


def test_a_hard_task_with_few_rows_is_hard() -> None:
    data = load_task(TaskConfig(id="nli", train_size=20), 0)
    assert "near the majority class" in str(expectation("nli", data))
