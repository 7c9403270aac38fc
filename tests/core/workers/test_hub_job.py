"""The kind of job with the most stages: real clients, from the start of the process to the library."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.store.library import TaskLibrary
from core.workers import Jobs
from tests.core.workers.watching import ended, is_gone, process_of, wait_until
from tests.hub_server import OPINIONS, HubServer, add_tiny_sets, opinions, parquet_file

TINY = {"repository": "acme/tiny", "text": "text", "label": "label", "test": "test", "name": "Tiny opinions"}


@pytest.fixture(autouse=True)
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    with HubServer() as hub:
        add_tiny_sets(hub)
        for name, value in hub.environment(tmp_path / "home").items():
            monkeypatch.setenv(name, value)
        yield hub


def test_a_data_set_is_fetched_into_the_library(own_jobs: Jobs) -> None:
    job_id = own_jobs.start("hub", TINY, "Tiny")
    record = wait_until(own_jobs, job_id, ended)
    assert record.status == "finished", record
    assert record.done == record.total == 80
    library = TaskLibrary(own_jobs.folder)
    [task] = library.tasks()
    reported = {"task": task.id, "name": "Tiny opinions", "was_here": False}
    assert record.result == reported
    assert task.name == "Tiny opinions"
    assert task.source.startswith("acme/tiny from the Hugging Face Hub, revision ")
    assert task.splits == {"train": 60, "test": 20}
    expected = [*opinions(60)["text"], *opinions(20, 72)["text"]]
    assert list(library.rows(task.id).texts) == expected
    again = wait_until(own_jobs, own_jobs.start("hub", TINY | {"name": "Other"}, "Other"), ended)
    assert again.result == reported | {"was_here": True}


@pytest.mark.slow
def test_cancelled_while_the_hub_is_slow(own_jobs: Jobs, hub: HubServer) -> None:
    texts = [f"{i} {os.urandom(400).hex()}" for i in range(8000)]
    columns = {"text": texts, "label": [i % 2 for i in range(8000)]}
    hub.add("dataset", "acme/slow", {"train.parquet": parquet_file(columns, classes={"label": OPINIONS})})
    hub.bytes_per_s = 1_000_000
    job_id = own_jobs.start("hub", {"repository": "acme/slow", "text": "text", "label": "label"}, "Slow")
    first = wait_until(own_jobs, job_id, lambda record: str(record.message).startswith("downloading"))
    later = wait_until(own_jobs, job_id, lambda record: str(record.message) != str(first.message))
    assert later.status == "running"
    assert float(str(later.message).split()[2]) > float(str(first.message).split()[2])
    pid = process_of(own_jobs, job_id).pid
    started = time.monotonic()
    assert own_jobs.cancel(job_id).status == "stopped"
    assert is_gone(pid)
    assert time.monotonic() - started < 2
    assert TaskLibrary(own_jobs.folder).tasks() == []
