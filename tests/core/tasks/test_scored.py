"""Tasks of pairs with similarity scores: their splits, their levels, and the stored rows of a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from core.config import TaskConfig
from core.errors import ConfigError, TaskError
from core.tasks import TaskData
from core.tasks.dataset import LEVELS, Split, read_data, write_data
from core.tasks.load import split_rows
from core.tasks.rows import Rows, SplitName
from tests.cases import each

COUNT = 100


def rows(splits: tuple[SplitName, ...] | None = None) -> Rows:
    """Return pairs with scores 1 to 5; the first texts of two neighbours are equal."""
    numbers = range(COUNT)
    return Rows(
        tuple(f"first {i // 2}" for i in numbers),
        tuple(f"{1 + 4 * (i * 37 % COUNT) / (COUNT - 1)}" for i in numbers),
        tuple(f"second {i}" for i in numbers),
        splits,
        "similarity",
    )


def scores_of(split: Split) -> dict[str, float]:
    """Return the score of each pair by its second text."""
    assert split.scores is not None
    assert split.scores[::2] == split.scores[1::2]
    assert [text[:6] for text in split.texts[::2]] == ["first "] * (len(split) // 2)
    return dict(zip(split.texts[1::2], split.scores[::2], strict=True))


def parts(data: TaskData) -> list[dict[str, float]]:
    return [scores_of(split) for split in (data.train, data.validation, data.test)]


def test_each_pair_is_in_one_split_with_its_score_scaled_to_1_and_labelled_with_a_fifth_of_the_scale() -> None:
    data = split_rows(rows(), "sts")
    found = parts(data)
    assert [len(part) for part in found] == [56, 24, 20]
    together = {text: score for part in found for text, score in part.items()}
    assert len(together) == COUNT
    for second, score in zip(rows().seconds or (), rows().labels, strict=True):
        assert together[second] == pytest.approx((float(score) - 1) / 4)
    assert data.classes == ("1–1.8", "1.8–2.6", "2.6–3.4", "3.4–4.2", "4.2–5")
    for label, scaled in zip(data.train.labels, data.train.scores or (), strict=True):
        assert label / LEVELS <= scaled <= (label + 1) / LEVELS
    # Pairs with the same first text share a split.
    firsts = [set(split.texts[::2]) for split in (data.train, data.validation, data.test)]
    assert sum(map(len, firsts)) == COUNT // 2


def test_given_splits_are_kept() -> None:
    given: list[SplitName] = ["train"] * 60 + ["validation"] * 30 + ["test"] * 10
    data = split_rows(rows(tuple(given)), "sts", TaskConfig(validation_size=20))
    assert [len(part) for part in parts(data)] == [60, 10, 10]
    assert set(scores_of(data.test)) == {f"second {i}" for i in range(90, 100)}


def test_a_few_shot_sample_takes_whole_pairs() -> None:
    every = scores_of(split_rows(rows(), "sts").train)
    few = [scores_of(split_rows(rows(), "sts", TaskConfig(train_size=20), seed).train) for seed in (0, 1)]
    assert all(len(sample) == 10 and sample.items() <= every.items() for sample in few)
    assert few[0] != few[1]


def test_the_rows_of_a_run_are_stored_with_their_scores(tmp_path: Path) -> None:
    data = split_rows(rows(), "sts")
    write_data(tmp_path / "rows.parquet", data)
    assert read_data(tmp_path / "rows.parquet", data.content_hash) == data
    changed = replace(data.train, scores=(0.5, *(data.train.scores or ())[1:]))
    assert replace(data, train=changed).content_hash != data.content_hash


@each("setting", [{"imbalance": 2.0}, {"label_noise": 0.1}, {"text_noise": 0.1}, {"back_translation": 0.5}])
def test_noise_and_imbalance_are_refused(setting: dict[str, float]) -> None:
    [name] = setting
    with pytest.raises(ConfigError, match=f"{name} = .*sts has similarity scores, and its pairs stay unchanged"):
        split_rows(rows(), "sts", TaskConfig(**setting))


def test_what_cannot_be_learned_is_refused() -> None:
    few = rows().take(range(9))
    with pytest.raises(TaskError, match="'sts' has too few scored pairs to learn from: give it at least 10"):
        split_rows(few, "sts")
    with pytest.raises(TaskError, match="'sts' has only the score 2"):
        split_rows(replace(rows(), labels=("2",) * COUNT), "sts")
    with pytest.raises(ConfigError, match=r"train_size = 3 .*give 4 to 112"):
        split_rows(rows(), "sts", TaskConfig(train_size=3))
    with pytest.raises(ConfigError, match=r"validation_size = 160 .*'sts' has 160 rows; leave at least 4"):
        split_rows(rows(), "sts", TaskConfig(validation_size=160))
