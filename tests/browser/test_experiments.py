"""Tests of Experiments in Chromium: levels with markup in a heat map and in a report."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from core.config import RunConfig
from core.config.edit import LAMBDA, TEMPERATURE, apply_settings
from core.config.fields import build
from core.experiments.design import Design, axis_of
from core.experiments.lifecycle import Experiments
from core.experiments.surface import surface_design
from core.store import Store
from core.workers import LocalEngine
from core.workers.run_rows import TaskSource
from tests.browser.conftest import Server
from tests.browser.seen import JOB_MS, box_of, quiet

CELLS = ".cell-table button"
HOSTILE = '<img src=x onerror="document.title=1">'


@pytest.fixture
def begin(server: Server, draft: Callable[..., RunConfig]) -> Callable[[], str]:
    """Return a function that begins four short runs on the tiny encoder and returns the experiment's id."""

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
    """Return the cells of the table once all four runs have ended. Each end redraws the table."""
    expect(page.get_by_text("4 of 4 runs finished")).to_be_visible(timeout=JOB_MS)
    expect(page.locator(CELLS).filter(has_text=re.compile(r"\d of 2"))).to_have_count(0)
    quiet(page)
    return page.locator(CELLS)


@pytest.mark.slow
def test_hostile_levels_are_text_in_the_map_and_in_a_report_that_is_printed_and_downloaded(
    page: Page, server: Server, begin: Callable[[], str], tmp_path: Path
) -> None:
    address = f"{server.url}/experiments?experiment={begin()}"
    page.goto(address)
    expect(complete(page)).to_have_count(2)
    assert page.title() != "1"
    page.goto(f"{address}&show=report")
    frame = page.frame_locator(".report iframe")
    expect(frame.get_by_text("4 of 4 runs have finished.")).to_be_visible(timeout=JOB_MS)
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


@pytest.mark.slow
def test_the_maps_of_a_surface_lie_in_a_grid_and_move(
    page: Page, server: Server, draft: Callable[..., RunConfig], tmp_path: Path
) -> None:
    base = apply_settings(draft(), {"preset": "ce-scl"})
    data = TaskSource(tmp_path)(base.task, 0)
    axes = [axis_of(TEMPERATURE, [0.1, 0.5], base), axis_of(LAMBDA, [0.2, 0.8], base)]
    engine = LocalEngine(Store(server.store_folder))
    page.goto(f"{server.url}/experiments?experiment={Experiments(engine).begin(surface_design(base, data, axes))}")
    expect(page.get_by_text("4 of 4 runs finished")).to_be_visible(timeout=JOB_MS)
    expect(page.locator(".map-panel")).to_have_count(4)
    quiet(page)
    boxes = [box_of(panel) for panel in page.locator(".map-panel").all()]
    rows = [round(box["y"]) for box in boxes]
    columns = [round(box["x"]) for box in boxes]
    assert rows[0] == rows[1] < rows[2] == rows[3]
    assert columns[0] == columns[2] < columns[1] == columns[3]
    expect(
        page.get_by_text("no distinguishable difference").or_(page.get_by_text("95% interval")).first
    ).to_be_visible()
    expect(page.locator(".map-panel").first).to_contain_text("step 24")
