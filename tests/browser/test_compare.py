"""Tests of Compare in Chromium: linked maps, and a twin launched from the page."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from core.config.edit import twin
from core.store import Store
from tests.browser.conftest import Server
from tests.browser.hostile import HOSTILE, SCRIPT, hostile_draft, nothing_ran
from tests.browser.seen import drag, settled
from tests.browser.test_every_page import violations
from tests.browser.test_map_view import CANVAS, MAP, chosen, drawn, picture
from tests.core.artifacts.made import recorded

PANELS = "document.querySelector('.map-view').map.panels"
# Names of the runs. The second contains markup.
NAMES = ("first", f"{SCRIPT} {HOSTILE}")


@pytest.fixture(scope="module")
def pair(server: Server, draft: Any, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the ids of a finished run and its twin, whose texts and labels contain markup."""
    store = Store(server.store_folder)
    first = recorded(store, hostile_draft(tmp_path_factory.mktemp("compared"), draft, NAMES[0])).id
    made = twin(store.run(first).effective, "phases.0.optimiser.learning_rate", 1e-5, name=NAMES[1][:80])
    second = recorded(store, made).id
    store.close()
    return [first, second]


def opened(page: Page, server: Server, runs: list[str], query: str = "") -> None:
    page.goto(f"{server.url}/compare?runs={','.join(runs)}{query}")
    drawn(page)


def places(page: Page, panel: int) -> Any:
    """Return the positions of a map's points on the screen."""
    return page.evaluate(f"Array.from({PANELS}[{panel}].screen)")


@pytest.mark.slow
def test_a_selection_on_one_map_applies_to_all_and_survives_a_reload(
    page: Page, server: Server, pair: list[str]
) -> None:
    opened(page, server, pair, "&show=maps")
    assert page.evaluate(f"{PANELS}.length") == 2
    assert page.evaluate(f"{PANELS}.map(panel => panel.title)") == [NAMES[0], NAMES[1][:80]]
    # Twins show the same examples, so every id occurs twice.
    first, second = page.evaluate(f"{PANELS}.map(panel => [...panel.examples.ids])")
    assert first == second

    untouched = picture(page, 0)
    page.get_by_role("button", name="Select with a box").click()
    drag(page, page.locator(CANVAS).nth(1), (0.05, 0.05), (0.5, 0.95))
    expect(page.get_by_text(re.compile(r"^\d+ selected"))).to_be_visible()
    page.wait_for_url("**sel=*")
    ids = chosen(page)
    assert 0 < len(ids) < len(first)
    expect(page.get_by_text(f"{len(ids)} selected")).to_be_visible()
    # The other map shows it too.
    page.mouse.move(0, 0)
    unhovered = "document.querySelector('.map-view').map.hover === null"
    page.wait_for_function(f"before => {unhovered} && {PANELS}[0].canvas.toDataURL() !== before", arg=untouched)

    slider = page.get_by_label("Step", exact=True)
    slider.focus()
    page.keyboard.press("ArrowLeft")
    page.wait_for_url("**frame=8*")
    expect(page.locator(MAP)).to_have_attribute("data-step", "8")
    page.locator(f"{MAP}[data-settled=true]").wait_for()
    eighth = [places(page, 0), places(page, 1)]
    assert chosen(page) == ids

    page.reload()
    drawn(page)
    expect(page.locator(MAP)).to_have_attribute("data-step", "8")
    assert chosen(page) == ids
    expect(page.get_by_text(f"{len(ids)} selected")).to_be_visible()
    page.wait_for_function(
        f"before => JSON.stringify({PANELS}.map(panel => Array.from(panel.screen))) === JSON.stringify(before)",
        arg=eighth,
    )


@pytest.mark.slow
def test_hostile_names_and_texts_are_shown_and_never_run(page: Page, server: Server, pair: list[str]) -> None:
    for show in ("scores", "curves", "maps&sel=0-9", "twin"):
        settled(page, f"{server.url}/compare?runs={','.join(pair)}&show={show}")
        page.wait_for_load_state("networkidle")
        nothing_ran(page)


@pytest.mark.slow
def test_text_on_the_accent_colour_has_enough_contrast_under_the_pointer(
    page: Page, server: Server, pair: list[str]
) -> None:
    page.goto(f"{server.url}/compare?runs={','.join(pair)}&show=twin&change=phases.0.batch_size")
    launch = page.get_by_role("button", name="Launch the twin")
    expect(launch).to_be_enabled()
    launch.hover()
    assert violations(page) == []
