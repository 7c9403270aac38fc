"""Tests of the list of runs in Chromium: presses on its table, and a file that is no replay."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page, expect

from core.store import Store
from tests.browser.conftest import Server
from tests.browser.seen import box_of, quiet

ROW_PX = 35


def press(page: Page, x: float, *, row: int) -> None:
    """Click into the table, whose rows are painted on a canvas. Row 0 is the header."""
    table = page.locator('[data-testid="stDataFrame"] canvas').first
    table.wait_for()
    table.locator("[role=gridcell]").first.wait_for(state="attached")
    quiet(page)
    box = box_of(table)
    page.mouse.click(box["x"] + x, box["y"] + (row + 0.5) * ROW_PX)


def open_names(page: Page) -> None:
    """Open the form for the name and tags of the first run."""
    press(page, 15, row=1)
    rename = page.get_by_role("button", name="Name and tags")
    rename.wait_for()
    quiet(page)
    rename.click()


def test_a_file_that_is_no_replay_is_refused_in_a_sentence(
    page: Page, server: Server, server_store: Store, tmp_path: Path
) -> None:
    (tmp_path / "<img src=x onerror=alert(1)>.zip").write_bytes(b"no archive")
    before = [run.id for run in server_store.runs()]
    page.goto(f"{server.url}/runs")
    page.get_by_role("button", name="Import a run").click()
    page.locator('[data-testid="stFileUploader"] input').set_input_files(tmp_path / "<img src=x onerror=alert(1)>.zip")
    expect(page.get_by_text("<img src=x onerror=alert(1)>.zip is damaged, or not a replay")).to_be_visible()
    assert [run.id for run in server_store.runs()] == before
