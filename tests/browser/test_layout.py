"""Tests that a figure and its controls fit on two wide screens and on a phone."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from core.advice.score_source import score_note
from core.artifacts.replay import open_replay, read_replay
from core.artifacts.shipped import SHIPPED
from core.store import Store
from tests.browser.conftest import Server
from tests.browser.seen import PHONE, PLAYER, WIDE, bottom, box_of, fits, quiet, resized

STAGE, LEGEND = ".map-stage", ".map-legend-row"


def opened(page: Page, address: str, size: tuple[int, int]) -> None:
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.goto(address)
    expect(page.locator(".map-view")).to_have_attribute("data-updates", re.compile(r"\d+"))


@pytest.mark.slow
def test_the_map_of_long_texts_is_large_and_a_phone_wide_enough(
    page: Page, server: Server, hostile_run: str, finished: list[str]
) -> None:
    compare = f"/compare?runs={finished[0]},{finished[1]}&show=maps"
    for address in (f"/explore?run={hostile_run}", f"/fine_tune?run={hostile_run}", "/", compare):
        opened(page, server.url + address, WIDE[0])
        assert bottom(page, PLAYER) <= WIDE[0][1], address
        stage, player = box_of(page.locator(STAGE).last), box_of(page.locator(PLAYER))
        assert stage["height"] >= 280, address
        assert stage["y"] + stage["height"] <= player["y"], address
        assert page.locator(LEGEND).evaluate("row => row.scrollWidth <= row.clientWidth"), address
        assert fits(page), address
        resized(page, *PHONE)
        assert fits(page), address


@pytest.mark.slow
def test_six_maps_and_their_player_fit_on_a_laptop(page: Page, server: Server, server_store: Store) -> None:
    names = ("ce", "ce-scl", "ce-scl-sharp", "r-drop", "token-scl", "exploded")
    runs = [open_replay(server_store, SHIPPED[name].path) for name in names]
    opened(page, f"{server.url}/compare?runs={','.join(runs)}", WIDE[0])
    expect(page.locator(STAGE)).to_have_count(len(names))
    player = box_of(page.locator(PLAYER))
    assert player["y"] + player["height"] <= WIDE[0][1]
    for box in map(box_of, page.locator(STAGE).all()):
        assert box["height"] >= 180
        assert box["y"] + box["height"] <= player["y"]


def test_home_shows_two_replays_in_step_with_their_numbers(page: Page, server: Server) -> None:
    shown = [read_replay(SHIPPED[name].path) for name in ("ce", "ce-scl")]
    for size in (*WIDE, PHONE):
        opened(page, server.url, size)
        quiet(page)
        page.get_by_role("slider", name="Step").press("End")
        notes = page.locator(".map-note")
        for number, replay in enumerate(shown):
            score = replay.scores[-1]
            assert score is not None
            said = f"step 120 · {score_note(score)} · spread ratio {replay.separations[-1]:.2f}"
            expect(notes.nth(number)).to_have_text(said)
        first, second = (box_of(page.locator(STAGE).nth(number)) for number in (0, 1))
        player, text = (box_of(page.locator(one)) for one in (PLAYER, "p:has-text('Pick a text task')"))
        assert first["y"] == second["y"]
        assert first["x"] + first["width"] <= second["x"]
        assert first["y"] + first["height"] <= player["y"]
        assert player["y"] + player["height"] <= size[1]
        assert bottom(page, ".stButton button[kind=primary]") <= first["y"]
        assert size != PHONE or text["y"] > first["y"]
        assert fits(page)


def test_the_replay_on_home_plays_until_it_is_paused(page: Page, server: Server) -> None:
    opened(page, server.url, WIDE[0])
    at = "document.querySelector('.map-view').map.at"
    page.wait_for_function(f"{at} > 0.5", timeout=5_000)
    page.get_by_role("button", name="Pause").click()
    rested = page.evaluate(at)
    page.wait_for_timeout(600)
    assert page.evaluate(at) == rested
    page.get_by_role("button", name="Play", exact=True).click()
    page.wait_for_function(f"{at} > {rested + 0.5}")


def test_the_bar_ends_before_its_controls_and_the_menu_of_a_narrow_window_closes(page: Page, server: Server) -> None:
    opened(page, server.url, (800, 720))
    page.get_by_test_id("stTopNavSection").wait_for()  # pages without room
    bar, switch = (box_of(page.locator(name)) for name in ("[data-testid=stTopNav]", ".language select"))
    assert bar["x"] + bar["width"] <= switch["x"]
    resized(page, *PHONE)
    page.get_by_test_id("stExpandSidebarButton").click()
    expect(page.locator(".language select")).to_be_hidden()  # it would cover the button that closes the menu
    page.get_by_test_id("stSidebarNavLink").get_by_text("Runs").click()
    expect(page.get_by_test_id("stSidebar")).to_have_attribute("data-collapsed", "true")
    expect(page.get_by_role("heading", name="Runs", exact=True)).to_be_visible()
    expect(page.locator(".language select")).to_be_visible()
