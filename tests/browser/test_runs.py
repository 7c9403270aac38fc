"""The list of runs in a real Chromium: a click opens a run, a form renames and tags it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Browser, Page, expect

from core.config import RunConfig
from core.store import Store
from tests.browser.conftest import Server
from tests.core.artifacts.made import MORE, recorded

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

expect.set_options(timeout=20_000)
ROW_PX = 35


@pytest.fixture
def run_ids(server_store: Store, draft: Callable[..., RunConfig]) -> list[str]:
    """Two finished runs, the newer one second."""
    return [recorded(server_store, draft(more=MORE | {"seed": seed})).id for seed in (0, 1)]


def press(page: Page, x: float, *, row: int) -> None:
    """Click into the table, whose rows are painted, not elements; row 0 is the heading."""
    table = page.locator('[data-testid="stDataFrame"] canvas').first
    table.wait_for()
    page.locator('[data-testid="stApp"][data-test-script-state="notRunning"]').wait_for()
    page.wait_for_timeout(500)
    box = table.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + x, box["y"] + (row + 0.5) * ROW_PX)


def test_a_click_on_a_row_opens_the_run(browser: Browser, server: Server, run_ids: list[str]) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 720})
    page.goto(f"{server.url}/runs")
    press(page, 120, row=2)
    page.wait_for_url(f"**/fine_tune?run={run_ids[0]}")
    page.close()


def test_a_run_is_renamed_tagged_and_found_by_its_tag(
    browser: Browser, server: Server, server_store: Store, run_ids: list[str]
) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 720})
    page.goto(f"{server.url}/runs")
    press(page, 15, row=1)
    rename = page.get_by_role("button", name="Name and tags")
    rename.wait_for()
    page.locator('[data-testid="stApp"][data-test-script-state="notRunning"]').wait_for()
    rename.click()
    page.get_by_role("textbox", name="Name").fill("<b>Mine</b>")
    page.get_by_role("combobox", name="Tags").fill("thesis")
    page.keyboard.press("Enter")
    page.get_by_role("textbox", name="Name").click()  # closes the list; Escape might close the form as well
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("button", name="Save")).to_have_count(0)  # the form closes
    page.get_by_role("button", name="thesis", exact=True).click()
    page.wait_for_url("**/runs?tags=thesis")
    expect(page.get_by_role("heading", name="Runs")).to_be_in_viewport()
    run = server_store.run(run_ids[1])
    assert (run.title, run.tags) == ("<b>Mine</b>", ("thesis",))
    page.close()
