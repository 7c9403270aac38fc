"""Files that would occupy a server for seconds."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core.config import ReadingConfig, TaskConfig
from core.errors import ConfigError, StoreError, TaskError
from core.store import Store
from core.tasks import load_task
from core.tasks.files import uploads
from core.tasks.files.uploads import FOLDER
from core.workers import Jobs, run_rows
from pages.ui import add_file
from tests.attacks.conftest import page

TIMEOUT_S = 100.0
spawn = Jobs._spawn


def csv_of(count: int, open_quote: int | None = None) -> bytes:
    """Return a CSV with this many rows, 57 bytes each, and perhaps a quote in one that is not closed."""
    rows = [f"a row number {i} of a file with some words in its text,{'ab'[i % 2]}\n" for i in range(count)]
    if open_quote is not None:
        rows[open_quote] = '"a quote,a\n'
    return ("text,label\n" + "".join(rows)).encode()


@pytest.fixture
def add(shared: Store, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that uploads a file, and draws the page once it is read, but not by this process."""
    monkeypatch.setattr(Jobs, "_spawn", spawn)
    monkeypatch.setattr(add_file, "read_upload", lambda *_: pytest.fail("the server read the file"))

    def upload(content: bytes, *test: bytes) -> AppTest:
        drawn, began = page("data", view="file"), time.monotonic()
        for place, more in enumerate((content, *test)):
            drawn.file_uploader[place].set_value(("rows.csv", more, ""))
        before, now = None, 1
        while before != 0 or now != 0:  # no job was active at the last run of the page, and it started none
            assert time.monotonic() < began + TIMEOUT_S
            time.sleep(0.3)
            before = sum(job.active for job in Jobs(shared.folder).jobs())
            drawn.run()
            now = sum(job.active for job in Jobs(shared.folder).jobs())
        return drawn

    return upload


def test_a_large_file_with_an_open_quote_is_refused_outside_the_server(add: Any, shared: Store) -> None:
    drawn = add(csv_of(200_000, open_quote=20_000))  # 11 MB
    assert not drawn.exception
    [error] = drawn.error
    assert error.value.replace("\\", "").startswith("'rows.csv', line 20,002 has a quotation mark that is not closed")
    assert len(Jobs(shared.folder).jobs()) == 1
    assert list((shared.folder / FOLDER).iterdir()) == []


def test_a_large_file_is_added_as_a_small_one_is_and_read_once(add: Any, shared: Store) -> None:
    drawn = add(csv_of(30_000))
    for _ in range(2):
        assert not drawn.exception
        assert any("CSV, UTF-8, comma; 30,000 rows" in text.value.replace("\\", "") for text in drawn.caption)
        assert any(button.label == "Add 30,000 rows" and not button.disabled for button in drawn.button)
        drawn.run()
    assert len(Jobs(shared.folder).jobs()) == 1
    assert list((shared.folder / FOLDER).iterdir()) == []


def test_a_large_test_file_is_read_with_it(add: Any, shared: Store) -> None:
    drawn = add(csv_of(20_000), csv_of(2_000))
    assert [text.value.rpartition(" ")[0].rpartition(" ")[2] for text in drawn.caption[:2]] == ["20,000", "2,000"]
    assert len(Jobs(shared.folder).jobs()) == 2


def test_a_large_file_that_a_config_names_is_read_outside_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_rows, "read_rows_of", lambda *_: pytest.fail("the server read the file"))
    source, path = run_rows.TaskSource(tmp_path / "runs"), tmp_path / "rows.csv"
    path.write_bytes(csv_of(200_000, open_quote=20_000))  # 11 MB
    named = TaskConfig(id="file", path=str(path), validation_size=20)
    with pytest.raises(TaskError, match=r"'rows\.csv', line 20,002 has a quotation mark that is not closed"):
        source(named, 0)
    with pytest.raises(ConfigError, match="the file has the columns 'text, label'") as refused:
        source(named.model_copy(update={"reading": ReadingConfig(text="body")}), 0)
    assert refused.value.value == "body"
    path.write_bytes(csv_of(20_000))
    assert source(named, 0).content_hash == load_task(named, 0).content_hash


def test_a_reader_that_is_killed_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed = tmp_path / "python"
    killed.write_text("#!/bin/sh\nkill -9 $$\n", encoding="utf-8")
    killed.chmod(0o700)
    monkeypatch.setattr(run_rows.sys, "executable", str(killed))
    path = tmp_path / "rows.csv"
    path.write_bytes(csv_of(20_000))
    with pytest.raises(TaskError, match=r"'rows\.csv' could not be read because the process that reads it ended"):
        run_rows.TaskSource(tmp_path / "runs")(TaskConfig(id="file", path=str(path)), 0)


def test_a_full_disk_is_one_sentence(tmp_path: Path, shared: Store) -> None:
    (shared.folder / FOLDER).write_text("a file in place of the folder")
    request = uploads.upload_request([("1", "rows.csv")], ReadingConfig())
    with pytest.raises(StoreError, match=r"'rows\.csv' could not be written"):
        uploads.store_uploads(shared.folder, request, [b"text"])
