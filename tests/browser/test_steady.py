"""Tests of pages that rerun while they are used: no control jumps, and focus and typed text stay."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from core.store import Status, Store
from core.workers import LocalEngine
from tests.browser.conftest import Server
from tests.browser.hostile import wait_for
from tests.browser.seen import box_of, settled
from tests.browser.test_runs import open_names

pytestmark = pytest.mark.usefixtures("laptop")

UPDATES = 4
DRAGGED = 3
PRESSES = 8
POLL_MS = 2_000
FRAMES = {"probe": {"frame_steps": list(range(0, 100_001, 100))}}
FIGURE = "document.querySelector('.live-figure').dataset.updates"
# Positions of everything that can be pressed, changed or typed in, by name. For a slider, only its thumb.
PLACES = """() => Object.fromEntries(
  [...document.querySelectorAll('main button, main input, main a, main canvas, main [data-testid=stSlider]')]
    .filter((node) => node.checkVisibility() && !node.matches('[data-testid=stSlider] input'))
    .map((node) => [node, node.getBoundingClientRect()])
    .map(([node, { x, y, width, height }], place) => [
      `${place} ${node.tagName} ${node.ariaLabel ?? node.textContent.replace(/[\\d.]+/g, '').slice(0, 30)}`,
      [x + scrollX, y + scrollY, width, height].map(Math.round),
    ]),
)"""
MARK = "() => { const node = document.activeElement; node.mark = 'held'; return node.outerHTML.slice(0, 150); }"
HELD = "() => document.activeElement?.mark === 'held' && document.activeElement.isConnected"


@pytest.fixture
def going(server_store: Store, template: Any) -> Iterator[str]:
    """Return the id of a run that outlasts the test."""
    run_id = LocalEngine(server_store).submit(server_store.run(template(steps=100_000, more=FRAMES)).config)
    wait_for(server_store, run_id, lambda run: run.last_step > 100)
    yield run_id
    server_store.send(run_id, "stop")
    wait_for(server_store, run_id, lambda run: run.status.ended)


def updates(page: Page) -> int:
    return int(page.evaluate(FIGURE))


def see_updates(page: Page, more: int = 1) -> None:
    page.wait_for_function(f"Number({FIGURE}) >= {updates(page) + more}")


def moved(before: dict[str, list[int]], after: dict[str, list[int]]) -> list[str]:
    """Return the controls that moved, appeared or disappeared."""
    return [
        f"{name}: {before.get(name)} → {after.get(name)}"
        for name in before.keys() | after.keys()
        if name not in before
        or name not in after
        or any(abs(a - b) > 1 for a, b in zip(before[name], after[name], strict=True))
    ]


@pytest.mark.slow
def test_a_live_page_is_steady_while_it_is_updated(page: Page, server: Server, server_store: Store, going: str) -> None:
    settled(page, f"{server.url}/fine_tune?run={going}")
    expect(page.locator(".live-figure")).to_have_attribute("data-updates", re.compile(r"\d+"))
    see_updates(page)
    first, places = updates(page), page.evaluate(PLACES)
    lost, visited = [], set()
    while updates(page) < first + UPDATES:
        page.keyboard.press("Tab")
        here = page.evaluate(MARK)
        visited.add(here)
        see_updates(page)
        if not page.evaluate(HELD):
            lost.append(here)
    assert lost == []
    assert len(visited) > UPDATES / 2
    assert not moved(places, page.evaluate(PLACES))

    knob = page.get_by_role("slider", name="Temperature τ")
    box = box_of(knob.locator("xpath=.."))
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    shown = []
    page.mouse.move(x, y)
    page.mouse.down()
    for step in range(1, DRAGGED + 1):
        page.mouse.move(x + 2 * step, y)
        see_updates(page)
        shown.append(float(knob.get_attribute("aria-valuetext") or "nan"))
    page.mouse.up()
    assert shown == sorted(shown)
    assert shown[-1] > shown[0]
    wait_for(server_store, going, lambda run: run.effective.knob_turns[-1:] != ())
    assert server_store.run(going).effective.knob_turns[-1].value == pytest.approx(shown[-1])
    see_updates(page, 2)  # the message about the turn is drawn
    assert not moved(places, page.evaluate(PLACES))


@pytest.mark.slow
def test_the_map_stays_in_place_from_the_first_frame_to_the_end(
    page: Page, server: Server, server_store: Store, template: Any
) -> None:
    config = server_store.run(template(steps=400, more={"probe": {"frame_steps": [0, 20, 400]}})).config
    run_id = LocalEngine(server_store).submit(config)
    wait_for(server_store, run_id, lambda run: run.last_step > 20)
    server_store.send(run_id, "pause")  # the run does not end before its page is drawn
    wait_for(server_store, run_id, lambda run: run.status == Status.PAUSED)
    settled(page, f"{server.url}/fine_tune?run={run_id}")
    parts = [page.locator(one) for one in (".map-stage", ".map-player", ".live-figure", ".st-key-live_words")]
    first = [box_of(part) for part in parts]
    server_store.send(run_id, "resume")
    wait_for(server_store, run_id, lambda run: run.status == Status.FINISHED)
    expect(page.get_by_text("finished", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="Reuse settings")).to_be_visible()
    assert [box_of(part) for part in parts] == first


@pytest.mark.slow
def test_words_are_typed_while_explore_follows_a_run(page: Page, server: Server, going: str) -> None:
    settled(page, f"{server.url}/explore?run={going}")
    field = page.get_by_role("textbox", name=re.compile("Search"))
    frames = "document.querySelector('.map-view').map.timeline.playable.length"
    typed = ""
    field.focus()
    for letter in "lovely":
        known = page.evaluate(frames)
        page.keyboard.type(letter)
        typed += letter
        page.wait_for_function(f"{frames} > {known}")
        expect(field).to_have_value(typed)
        expect(field).to_be_focused()
    field.press("Enter")
    expect(page.get_by_text(re.compile("Found in"))).to_be_visible()
    expect(field).to_be_focused()


@pytest.mark.slow
def test_a_name_is_typed_while_the_list_of_runs_follows_a_run(
    page: Page, server: Server, server_store: Store, going: str
) -> None:
    settled(page, f"{server.url}/runs")
    open_names(page)
    field = page.get_by_role("textbox", name="Name")
    field.focus()
    page.keyboard.type("My ")
    page.wait_for_timeout(3 * POLL_MS)
    page.keyboard.type("thesis")
    page.wait_for_timeout(3 * POLL_MS)
    expect(field).to_have_value("My thesis")
    expect(field).to_be_focused()
    page.get_by_role("button", name="Save").click()
    wait_for(server_store, going, lambda run: run.title == "My thesis")


@pytest.mark.slow
def test_eight_presses_are_eight_steps_and_the_focus_stays(
    page: Page, server: Server, server_store: Store, going: str
) -> None:
    settled(page, f"{server.url}/fine_tune?run={going}")
    knob = page.get_by_role("slider", name="Temperature τ")
    expect(knob).to_have_attribute("aria-valuetext", "0.30")
    knob.focus()
    page.evaluate(MARK)
    # First one by one, then as fast as the keyboard repeats.
    for key, rest_ms, value in (("ArrowRight", 150, 0.38), ("ArrowLeft", 0, 0.30)):
        for _ in range(PRESSES):
            page.keyboard.press(key)
            page.wait_for_timeout(rest_ms)
        used = [value]
        wait_for(server_store, going, lambda run, used=used: [t.value for t in run.effective.knob_turns][-1:] == used)
        see_updates(page, 2)
        expect(knob).to_have_attribute("aria-valuetext", f"{value:.2f}")
        assert page.evaluate(HELD)
