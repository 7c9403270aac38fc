"""The list of runs in a real Chromium: a click opens a run, a form renames and tags it."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from core.config import RunConfig
from core.store import Store
from tests.browser.conftest import Server
from tests.browser.seen import JOB_MS, quiet
from tests.core.artifacts.made import MORE, recorded

ROW_PX = 35


@pytest.fixture
def run_ids(server_store: Store, draft: Callable[..., RunConfig]) -> list[str]:
    """Two finished runs, the newer one second."""
    return [recorded(server_store, draft(more=MORE | {"seed": seed})).id for seed in (0, 1)]


def press(page: Page, x: float, *, row: int) -> None:
    """Click into the table, whose rows are painted, not elements; row 0 is the heading."""
    table = page.locator('[data-testid="stDataFrame"] canvas').first
    table.wait_for()
    table.locator("[role=gridcell]").first.wait_for(state="attached")
    quiet(page)
    box = table.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + x, box["y"] + (row + 0.5) * ROW_PX)


def opened_on_run(page: Page, server: Server, run_id: str) -> None:
    page.goto(f"{server.url}/fine_tune?run={run_id}")
    export(page)


def export(page: Page) -> None:
    button = page.get_by_role("button", name="Export")
    button.wait_for()
    quiet(page)
    button.click()


def choose(page: Page, form: str) -> None:
    page.get_by_role("combobox", name="Export as").click()
    page.get_by_role("option", name=form, exact=True).click()


@pytest.mark.slow
def test_the_model_of_a_run_is_downloaded(browser: Browser, server: Server, run_ids: list[str], tmp_path: Path) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 720}, accept_downloads=True)
    page = context.new_page()
    opened_on_run(page, server, run_ids[0])
    choose(page, "Model")
    expect(page.get_by_text("A folder with a model card")).to_be_visible()
    with page.expect_download(timeout=JOB_MS) as waiting:
        page.get_by_role("button", name="Download", exact=True).click()
    waiting.value.save_as(tmp_path / "model.zip")
    with zipfile.ZipFile(tmp_path / "model.zip") as archive:
        assert {"README.md", "config.json", "model.safetensors"} <= {Path(name).name for name in archive.namelist()}
    context.close()


def test_a_file_that_is_no_replay_is_refused_in_a_sentence(
    browser: Browser, server: Server, server_store: Store, tmp_path: Path
) -> None:
    (tmp_path / "<img src=x onerror=alert(1)>.zip").write_bytes(b"no archive")
    before = [run.id for run in server_store.runs()]
    page = browser.new_page(viewport={"width": 1280, "height": 720})
    page.goto(f"{server.url}/runs")
    page.get_by_role("button", name="Import a replay").click()
    page.locator('[data-testid="stFileUploader"] input').set_input_files(tmp_path / "<img src=x onerror=alert(1)>.zip")
    expect(page.get_by_text("<img src=x onerror=alert(1)>.zip is damaged, or not a replay")).to_be_visible()
    assert [run.id for run in server_store.runs()] == before
    page.close()
