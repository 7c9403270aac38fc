"""Tests of Explore in Chromium: select, read, neighbours, scrub, and the same view after a reload."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from core.config import BranchConfig
from core.store import Store
from tests.browser.conftest import Server
from tests.browser.hostile import HOSTILE, nothing_ran
from tests.browser.seen import JOB_MS, drag, quiet
from tests.browser.test_map_view import CANVAS, chosen, drawn, lonely, picture, place, points_at_rest, step_of

TABLE = ".text-table"


def opened(page: Page, server: Server, run: str, query: str = "") -> Page:
    page.goto(f"{server.url}/explore?run={run}{query}")
    drawn(page)
    return page


def click_point(page: Page) -> int:
    """Click an example that no other point overlaps. Returns: its id."""
    example = lonely(page)
    page.mouse.click(*place(page, example))
    page.wait_for_url("**sel=*")
    assert chosen(page) == [example]
    return example


def test_a_selection_is_read_followed_to_its_neighbours_and_kept_while_scrubbing(
    page: Page, server: Server, hostile_run: str
) -> None:
    opened(page, server, hostile_run)
    example = click_point(page)
    expect(page.get_by_text("1 selected")).to_be_visible()
    expect(page.locator(TABLE)).to_contain_text(f"{HOSTILE} ")
    page.get_by_text("Neighbours", exact=True).click()
    expect(
        page.get_by_text(re.compile(r"\d+ of its 10 nearest neighbours were already neighbours at step 0"))
    ).to_be_visible()
    expect(page.locator(f"{TABLE} tbody")).to_have_count(10)
    # The response to a click is drawn before the map.
    page.wait_for_function("document.querySelector('.map-view').map.lit?.size === 10")
    slider = page.get_by_label("Step", exact=True)
    slider.focus()
    page.keyboard.press("Home")
    expect(
        page.get_by_text(re.compile(r"10 of its 10 nearest neighbours were already neighbours at step 0;"))
    ).to_be_visible()
    assert step_of(page) == 0
    assert chosen(page) == [example]
    nothing_ran(page)


@pytest.mark.slow
def test_a_popover_opened_late_shows_the_values_in_effect(page: Page, server: Server, hostile_run: str) -> None:
    """The page reruns while the projection library is imported and while its maps are computed."""
    opened(page, server, hostile_run, "&map=umap&layout=library")
    page.wait_for_timeout(4_000)
    page.get_by_role("button", name="More").click()
    expect(page.get_by_role("radio", name="umap-learn")).to_be_checked()
    page.get_by_role("radio", name=re.compile("This app")).check(force=True)
    page.wait_for_url(lambda address: "layout" not in address)
    expect(page.get_by_role("radio", name=re.compile("This app"))).to_be_checked()


@pytest.mark.slow
def test_a_reload_restores_the_very_same_view(page: Page, server: Server, hostile_run: str) -> None:
    opened(page, server, hostile_run, "&colour=confidence&panel=neighbours&k=5&metric=euclidean")
    page.get_by_role("button", name="Select with a box").click()
    drag(page, page.locator(CANVAS), (0.05, 0.05), (0.6, 0.95))
    page.wait_for_url("**sel=*")
    page.get_by_role("button", name="Zoom in").click()
    page.wait_for_url("**view=*")
    drawn(page)
    before, ids, address = picture(page), chosen(page), page.url
    assert len(ids) > 1
    page.reload()
    drawn(page)
    expect(page.locator(f"{TABLE} tbody")).to_have_count(5)
    assert page.url == address
    assert chosen(page) == ids
    assert picture(page) == before


@pytest.mark.slow
def test_a_selection_outlives_another_map_which_a_second_browser_sees_too(
    page: Page, visit: Callable[..., Page], server: Server, hostile_run: str
) -> None:
    opened(page, server, hostile_run)
    example = click_point(page)
    page.get_by_text("t-SNE", exact=True).click()
    expect(page.get_by_text(re.compile("2-D t-SNE"))).to_be_visible(timeout=JOB_MS)
    drawn(page)
    assert chosen(page) == [example]
    second = visit()
    second.goto(page.url)
    drawn(second)
    expect(second.get_by_text(re.compile("2-D t-SNE"))).to_be_visible(timeout=JOB_MS)
    assert chosen(second) == [example]
    # Relative to the first point, because a map in a wider column lies further to the right.
    first, twin = (np.array(points_at_rest(one)).reshape(-1, 3) for one in (page, second))
    np.testing.assert_allclose(twin - twin[0], first - first[0], atol=0.01)


def test_a_search_lights_up_its_texts_and_selects_them_without_a_pointer(
    page: Page, server: Server, hostile_run: str
) -> None:
    opened(page, server, hostile_run)
    field = page.get_by_placeholder("Search all texts")
    field.fill("lovely")
    field.press("Enter")
    expect(page.get_by_text(re.compile(r"Found in \d+ of \d+ texts"))).to_be_visible()
    quiet(page)
    page.get_by_role("button", name="Select them").click()
    selected = page.get_by_text(re.compile(r"^\d+ selected"))
    expect(selected).to_be_visible()
    # The previous table stays until the selection's table arrives.
    texts = page.locator(f"{TABLE} td.wide")
    expect(texts).to_have_count(int(selected.inner_text().split()[0]))
    assert all("lovely" in text for text in texts.all_inner_texts())


def test_a_cell_of_the_confusion_matrix_selects_its_examples(page: Page, server: Server, hostile_run: str) -> None:
    opened(page, server, hostile_run, "&panel=classes")
    cells = page.locator(".cell-table button")
    cells.first.wait_for()
    counts = [int(text) for text in cells.all_inner_texts()]
    largest = counts.index(max(counts))
    label, prediction = (cells.nth(largest).get_attribute(f"data-{name}") for name in ("row", "column"))
    expect(page.locator(".cell-table thead th").first).to_have_attribute("title", re.compile("bad|good"))
    cells.nth(largest).click()
    page.wait_for_url("**sel=*")
    page.wait_for_function(f"document.querySelector('.map-view').map.chosen.size === {counts[largest]}")
    page.get_by_text("Texts", exact=True).click()
    names = page.locator(f"{TABLE} td.words")
    expect(names).to_have_count(2 * counts[largest])
    pairs = set(zip(*[iter(names.all_inner_texts())] * 2, strict=True))
    assert len(pairs) == 1
    ((first, second),) = pairs
    assert (first == second) == (label == prediction)
    nothing_ran(page)


@pytest.mark.slow
def test_forces_draw_arrows_and_follow_the_temperature(page: Page, server: Server, hostile_run: str) -> None:
    opened(page, server, hostile_run, "&panel=forces&batch=16")
    example = click_point(page)
    expect(page.get_by_text("Share of push, strongest 5%").first).to_be_attached(timeout=60_000)
    arrows = "document.querySelector('.map-view').map.panels[0].arrows.length"
    page.wait_for_function(f"document.querySelector('.map-view').map.panels[0].anchor === {example}")
    page.wait_for_function(f"{arrows} > 0")
    first = page.locator(f"{TABLE} td.number").first.inner_text()
    slider = page.get_by_role("slider", name="Temperature τ")
    slider.focus()
    place = int(slider.input_value())
    for _ in range(8):
        page.keyboard.press("ArrowLeft")
    expect(slider).to_have_value(str(place - 8))
    page.wait_for_url(f"**tau={slider.get_attribute('aria-valuetext')}*")
    expect(slider).to_have_value(str(place - 8))
    expect(page.locator(f"{TABLE} td.number").first).not_to_have_text(first)
    nothing_ran(page)


@pytest.mark.slow
def test_a_typed_sentence_is_placed_in_every_frame(page: Page, server: Server, hostile_run: str) -> None:
    opened(page, server, hostile_run)
    page.get_by_role("button", name="Type a sentence").click()
    page.get_by_label("Your sentence").fill(f"a lovely film {HOSTILE}")
    page.get_by_role("button", name="Place it").click()
    expect(page.get_by_text(re.compile("computed with the weights of this step"))).to_be_visible(timeout=JOB_MS)
    page.wait_for_function("document.querySelector('.map-view').map.panels[0].own.length === 1")
    nothing_ran(page)
    page.reload()
    drawn(page)
    expect(page.get_by_text(re.compile("computed with the weights of this step"))).to_be_visible(timeout=JOB_MS)


@pytest.mark.slow
def test_layers_are_scrubbed_like_steps(page: Page, server: Server, hostile_run: str) -> None:
    opened(page, server, hostile_run, "&layers=12")
    moment = page.locator(".map-moment").last  # the map of the steps may still be there
    expect(moment).to_have_text(re.compile("^Layer 2"), timeout=JOB_MS)
    page.get_by_role("button", name="Previous frame").click()
    expect(moment).to_have_text(re.compile("^Layer 1"))


@pytest.mark.slow
def test_a_branch_goes_on_with_another_temperature_beside_its_parent(
    page: Page, server: Server, server_store: Store, hostile_run: str
) -> None:
    opened(page, server, hostile_run)
    page.get_by_role("button", name="Branch this run").click()
    # The last frame has no steps after it, so the form suggests one in the middle.
    steps = [step for step in server_store.frame_steps(hostile_run) if step <= 6]
    expect(page.get_by_role("combobox", name="After step")).to_be_visible()
    slider = page.get_by_role("slider", name="Temperature τ").last
    slider.focus()
    slider.press("ArrowLeft")
    quiet(page)
    page.get_by_role("button", name="Start the branch").click()
    page.wait_for_url(re.compile("/compare"))
    branch = server_store.runs()[0]
    assert branch.config.branch == BranchConfig(run=hostile_run, step=steps[-1])
    [turn] = branch.config.knob_turns
    assert (turn.step, turn.name) == (steps[-1] + 1, "temperature")
    expect(page.get_by_text("branch", exact=True).first).to_be_visible()
    nothing_ran(page)
