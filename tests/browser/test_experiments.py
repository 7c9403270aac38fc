"""Experiments in a browser: a map that fills as runs end, cells that are pressed, a report that is printed."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from core.config import RunConfig
from core.config.validation import build
from core.experiments.design import Design
from core.experiments.lifecycle import Experiments
from core.store import Store
from core.workers import LocalEngine
from tests.browser.conftest import Server
from tests.browser.seen import quiet

CELLS = ".cell-table button"
HOSTILE = '<img src=x onerror="document.title=1">'


@pytest.fixture
def begin(server: Server, draft: Callable[..., RunConfig]) -> Callable[[], str]:
    """Begins four short runs on the tiny encoder; returns the experiment's id."""

    def begun() -> str:
        levels = [{"label": HOSTILE, "settings": {"lambda": 0.1}}, {"label": "More", "settings": {"lambda": 0.9}}]
        design = build(
            Design,
            {
                "name": "Two weights",
                "base": draft(steps=3).model_dump(mode="json"),
                "axes": [{"name": "Weight", "levels": levels}],
                "seeds": 2,
                "baseline": {"Weight": HOSTILE},
            },
        )
        return Experiments(LocalEngine(Store(server.store_folder))).begin(design)

    return begun


def complete(page: Page) -> Locator:
    """The cells of the table once all four runs have ended: it is drawn again as each one ends."""
    expect(page.get_by_text("4 of 4 runs finished")).to_be_visible(timeout=90_000)
    expect(page.locator(CELLS).filter(has_text=re.compile(r"\d of 2"))).to_have_count(0)
    quiet(page)
    return page.locator(CELLS)


def test_the_map_is_full_at_the_end_and_a_cell_opens_its_runs(
    page: Page, server: Server, begin: Callable[[], str]
) -> None:
    experiment_id = begin()
    page.goto(f"{server.url}/experiments?experiment={experiment_id}")
    cells = complete(page)
    expect(cells).to_have_count(2)
    expect(cells.nth(1)).to_contain_text("%")
    cells.nth(1).click()
    expect(page.get_by_text("over 2 seeds")).to_be_visible()
    expect(page).to_have_url(re.compile("cell=1"))
    page.reload()
    expect(page.get_by_text("over 2 seeds")).to_be_visible()
    expect(page.locator(f"{CELLS}[aria-pressed=true]")).to_have_count(1)
    assert page.title() != "1"


def test_cells_are_reached_with_the_keyboard(page: Page, server: Server, begin: Callable[[], str]) -> None:
    page.goto(f"{server.url}/experiments?experiment={begin()}")
    cells = complete(page)
    cells.first.focus()
    page.keyboard.press("ArrowDown")
    expect(cells.nth(1)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("cell=1"))


def test_a_report_is_shown_printed_and_downloaded(
    page: Page, server: Server, begin: Callable[[], str], tmp_path: Path
) -> None:
    page.goto(f"{server.url}/experiments?experiment={begin()}&show=report")
    frame = page.frame_locator(".report iframe")
    expect(frame.get_by_text("4 of 4 runs have finished.")).to_be_visible(timeout=90_000)
    expect(frame.locator("img")).to_have_count(0)
    page.evaluate(
        "() => { document.querySelector('.report iframe').contentWindow.print = () => { window.printed = true; } }"
    )
    page.locator(".report button").click()
    assert page.evaluate("window.printed")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download as one HTML file").click()
    path = tmp_path / "report.html"
    download.value.save_as(path)
    messages: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    page.goto(path.as_uri())
    expect(page.locator("h1")).to_have_text("Two weights")
    expect(page.locator("svg circle").first).to_be_visible()
    assert messages == []


def test_a_grid_that_is_set_up_starts_and_is_found_again(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/experiments?new=grid&seeds=2&x=phases.0.objective.lambda&xs=0.1,0.9")
    start = page.get_by_role("button", name="Start the experiment")
    expect(start).to_be_enabled(timeout=30_000)
    start.click()
    expect(page.get_by_text("of 4 runs finished")).to_be_visible(timeout=30_000)
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("stopped")).to_be_visible(timeout=30_000)
    page.get_by_role("button", name="All experiments").click()
    expect(page.get_by_text("Begin another")).to_be_visible()
