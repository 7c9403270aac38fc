"""Files that would occupy a server for seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core.config import ReadingConfig, TaskConfig
from core.errors import ConfigError, TaskError
from core.store import Store
from core.tasks import load_task
from core.tasks.files import reading
from core.workers import run_rows
from tests.pages.conftest import page


def csv_of(count: int, open_quote: int | None = None) -> bytes:
    """Return a CSV with this many rows, 57 bytes each, and perhaps a quote in one that is not closed."""
    rows = [f"a row number {i} of a file with some words in its text,{'ab'[i % 2]}\n" for i in range(count)]
    if open_quote is not None:
        rows[open_quote] = '"a quote,a\n'
    return ("text,label\n" + "".join(rows)).encode()


@pytest.fixture
def add(shared: Store, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that uploads files, and draws the page once they are read, but not by this process."""
    monkeypatch.setattr(reading, "read_rows", lambda *_: pytest.fail("the server read the file"))

    def upload(*contents: bytes) -> AppTest:
        drawn = page("data", view="file")
        for place, content in enumerate(contents):
            drawn.file_uploader[place].set_value(("rows.csv", content, ""))
        return drawn.run()

    return upload


def test_a_large_file_with_an_open_quote_is_refused_outside_the_server(add: Any) -> None:
    drawn = add(csv_of(200_000, open_quote=20_000))  # 11 MB
    assert not drawn.exception
    [error] = drawn.error
    assert error.value.replace("\\", "").startswith("'rows.csv', line 20,002 has a quotation mark that is not closed")


def test_a_large_file_is_added_as_a_small_one_is_and_read_once(add: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = add(csv_of(30_000))
    for _ in range(2):
        assert not drawn.exception
        assert any("CSV, UTF-8, comma; 30,000 rows" in text.value.replace("\\", "") for text in drawn.caption)
        assert any(button.label == "Add 30,000 rows" and not button.disabled for button in drawn.button)
        monkeypatch.setattr(run_rows.subprocess, "run", lambda *_, **__: pytest.fail("it was read again"))
        drawn.run()


@pytest.mark.slow
def test_a_large_test_file_is_read_with_it(add: Any) -> None:
    drawn = add(csv_of(20_000), csv_of(2_000))
    assert [text.value.rpartition(" ")[0].rpartition(" ")[2] for text in drawn.caption[:2]] == ["20,000", "2,000"]


def test_a_large_file_that_a_config_names_is_read_outside_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.tasks.load.read_files", lambda *_: pytest.fail("the server read the file"))
    source, path = run_rows.TaskSource(tmp_path / "runs"), tmp_path / "rows.csv"
    path.write_bytes(csv_of(200_000, open_quote=20_000))  # 11 MB
    named = TaskConfig(id="file", path=str(path), validation_size=20)
    with pytest.raises(TaskError, match=r"'rows\.csv', line 20,002 has a quotation mark that is not closed"):
        source(named, 0)
    with pytest.raises(ConfigError, match="the file has the columns 'text, label'") as refused:
        source(named.model_copy(update={"reading": ReadingConfig(text="body")}), 0)
    assert refused.value.value == "body"
    path.write_bytes(csv_of(20_000))
    apart = source(named, 0).content_hash
    monkeypatch.undo()
    assert load_task(named, 0).content_hash == apart


def test_a_reader_that_is_killed_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed = tmp_path / "python"
    killed.write_text("#!/bin/sh\nkill -9 $$\n", encoding="utf-8")
    killed.chmod(0o700)
    monkeypatch.setattr(run_rows.sys, "executable", str(killed))
    path = tmp_path / "rows.csv"
    path.write_bytes(csv_of(20_000))
    with pytest.raises(TaskError, match=r"'rows\.csv' could not be read because the process that reads it ended"):
        run_rows.TaskSource(tmp_path / "runs")(TaskConfig(id="file", path=str(path)), 0)
