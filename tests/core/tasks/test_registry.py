"""The bundled tasks, and the promises that their README makes."""

from __future__ import annotations

from collections import Counter

import pytest

from core.config import TaskConfig
from core.errors import ConfigError
from core.tasks import TASKS, load_task, task_entry
from core.tasks.csv_file import Rows, read_csv

Files = tuple[Rows, Rows]


@pytest.fixture(scope="module")
def film_reviews() -> Files:
    folder = task_entry("film_reviews").folder
    return read_csv(folder / "train.csv"), read_csv(folder / "test.csv")


def test_film_reviews_has_400_and_300_rows_of_two_balanced_classes(film_reviews: Files) -> None:
    train, test = (rows.labels for rows in film_reviews)
    assert Counter(train) == {"negative": 200, "positive": 200}
    assert Counter(test) == {"negative": 150, "positive": 150}


def test_film_reviews_repeats_no_text(film_reviews: Files) -> None:
    train, test = (rows.texts for rows in film_reviews)
    plain = [" ".join(text.lower().split()) for text in train + test]
    assert Counter(plain).most_common(1)[0][1] == 1


def test_film_reviews_repeats_no_six_word_run(film_reviews: Files) -> None:
    train, test = (rows.texts for rows in film_reviews)
    rows_with_run = Counter[tuple[str, ...]]()
    for text in train + test:
        words = text.lower().split()
        rows_with_run.update({tuple(words[i : i + 6]) for i in range(len(words) - 5)})
    assert rows_with_run.most_common(1)[0][1] <= 2


@pytest.mark.parametrize("name", TASKS)
def test_a_bundled_task_loads_and_is_described(name: str) -> None:
    entry = task_entry(name)
    data = load_task(TaskConfig(id=name), 0)
    assert entry.name == data.name == name
    assert (entry.folder / "README.md").is_file()
    assert len(data.train) > len(data.validation) > 0
    assert len(data.test) > 0


def test_an_unknown_task_names_those_that_exist() -> None:
    with pytest.raises(ConfigError, match=", ".join(TASKS)):
        task_entry("nothing")
