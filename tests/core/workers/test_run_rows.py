"""A run's rows are stored by their hash, independently of their source, and deleted with the last run."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from core.config import RunConfig, TaskConfig
from core.errors import StoreError, TaskError
from core.store import Store, TaskLibrary, rows_path
from core.store.records import RunRecord
from core.tasks import TaskData
from core.tasks.dataset import read_data
from core.tasks.rows import Rows
from core.workers import LocalEngine
from core.workers.run_rows import TaskSource, train_counts
from tests.conftest import made_rows, write_csv


@pytest.fixture
def engine(store: Store, monkeypatch: pytest.MonkeyPatch) -> LocalEngine:
    """Return an engine that queues runs and starts none."""
    monkeypatch.setattr(LocalEngine, "dispatch", lambda _: None)
    return LocalEngine(store)


def rows_of(store: Store, run: RunRecord) -> TaskData:
    """Return the rows that a worker reads."""
    return TaskSource(store.folder).rows_of(run.config.task, run.config.seed)


def stored(store: Store) -> list[str]:
    return sorted(path.stem for path in (store.folder / "rows").glob("*"))


def test_a_run_reads_its_rows_when_the_file_is_gone(
    engine: LocalEngine, draft: Callable[..., RunConfig], tmp_path: Path
) -> None:
    path = write_csv(tmp_path / "gone.csv", made_rows(120))
    run = engine.store.run(engine.submit(draft(task={"path": str(path), "label_noise": 0.2})))
    path.unlink()
    data = rows_of(engine.store, run)
    assert data.content_hash == run.config.task.content_hash
    assert run.config.task.name == data.name == "gone.csv"
    rows = dict(made_rows(120))
    wrong = [text for text, y in zip(data.train.texts, data.train.labels, strict=True) if rows[text] != data.classes[y]]
    assert len(wrong) == pytest.approx(0.2 * len(data.train), abs=2)


def test_the_training_rows_of_each_class_are_counted_until_they_are_gone(
    engine: LocalEngine, draft: Callable[..., RunConfig], tmp_path: Path
) -> None:
    path = write_csv(tmp_path / "tail.csv", made_rows(120))
    run = engine.store.run(engine.submit(draft(task={"path": str(path), "imbalance": 4.0})))
    labels = rows_of(engine.store, run).train.labels
    expected = (labels.count(0), labels.count(1))
    assert train_counts(engine.store.folder, run.config.task, run.config.seed) == expected
    assert expected[0] // 4 == expected[1] > 0
    path.unlink()
    rows_path(engine.store.folder, run.config.task.content_hash).unlink()
    assert train_counts(engine.store.folder, run.config.task, 99) is None


def test_a_run_is_read_and_repeated_when_its_task_was_deleted(
    engine: LocalEngine, draft: Callable[..., RunConfig]
) -> None:
    tasks = TaskLibrary(engine.store.folder)
    task = tasks.add(Rows(*zip(*made_rows(120), strict=True)), name="Mine", source="")
    config = draft().model_copy(update={"task": TaskConfig(id=task.id, train_size=20)})
    run = engine.store.run(engine.submit(config))
    tasks.discard(task.id)
    tasks.purge_discarded(0.0)
    assert rows_of(engine.store, run).name == "Mine"
    with pytest.raises(TaskError, match="not in this library"):
        engine.submit(config)
    again = engine.store.run(engine.submit(run.config))
    assert again.config.task == run.config.task


def test_runs_with_the_same_rows_share_a_file_that_is_freed_with_the_last_of_them(
    engine: LocalEngine, draft: Callable[..., RunConfig]
) -> None:
    store = engine.store
    first, second = (engine.submit(draft(steps=steps)) for steps in (5, 6))
    (only,) = stored(store)

    def delete(run_id: str, age_s: float) -> list[str]:
        os.utime(rows_path(store.folder, only), (time.time() - age_s,) * 2)
        engine.stop(run_id)
        store.discard(run_id)
        store.purge_discarded(0.0)
        return stored(store)

    assert delete(first, 7200) == [only]
    assert delete(second, 0) == [only]  # a new run may be about to use these rows
    assert delete(engine.submit(draft(steps=7)), 7200) == []


class TestDamage:
    def test_damaged_rows_without_a_source_are_said(
        self, engine: LocalEngine, draft: Callable[..., RunConfig], tmp_path: Path
    ) -> None:
        path = write_csv(tmp_path / "gone.csv", made_rows(120))
        run = engine.store.run(engine.submit(draft(task={"path": str(path)})))
        path.unlink()
        rows_path(engine.store.folder, stored(engine.store)[0]).write_bytes(b"PAR1")
        with pytest.raises(TaskError, match=r"'gone\.csv' was not found"):
            rows_of(engine.store, run)

    def test_damaged_rows_are_read_from_their_source_again_and_the_next_run_mends_them(
        self, engine: LocalEngine, draft: Callable[..., RunConfig]
    ) -> None:
        run = engine.store.run(engine.submit(draft()))
        path = rows_path(engine.store.folder, stored(engine.store)[0])
        whole, rows = path.read_bytes(), rows_of(engine.store, run)
        path.write_bytes(whole[: len(whole) // 2])
        assert rows_of(engine.store, run) == rows
        engine.submit(draft())
        assert read_data(path, run.config.task.content_hash or "") == rows


def test_a_hash_that_is_none_never_reaches_a_path(store: Store) -> None:
    with pytest.raises(StoreError, match="not the hash"):
        rows_path(store.folder, "../" + "0" * 61)
