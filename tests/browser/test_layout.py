"""What can be seen at once: the picture and what belongs to it, on two wide screens and on a phone."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import Browser, Page, expect

from core.store import Store
from core.workers import LocalEngine
from tests.browser.conftest import Server
from tests.browser.hostile import wait_for
from tests.browser.seen import PHONE, PLAYER, WIDE, bottom, fits, resized

STAGE = ".map-stage"


def opened(browser: Browser, address: str, size: tuple[int, int], **more: Any) -> Page:
    context = browser.new_context(viewport={"width": size[0], "height": size[1]}, **more)
    page = context.new_page()
    page.goto(address)
    expect(page.locator(".map-view")).to_have_attribute("data-updates", re.compile(r"\d+"))
    return page


def test_the_map_of_long_texts_is_large_and_a_phone_wide_enough(
    browser: Browser, server: Server, hostile_run: str
) -> None:
    for address in (f"/explore?run={hostile_run}", f"/fine_tune?run={hostile_run}", "/"):
        page = opened(browser, server.url + address, WIDE[0])
        assert bottom(page, PLAYER) <= WIDE[0][1], address
        stage = page.locator(STAGE).bounding_box()
        assert stage is not None
        assert stage["height"] >= 280, address
        assert fits(page), address
        resized(page, *PHONE)
        assert fits(page), address
        page.context.close()


def test_the_replay_on_home_plays_until_it_is_paused(browser: Browser, server: Server) -> None:
    page = opened(browser, server.url, WIDE[0])
    at = "document.querySelector('.map-view').map.at"
    page.wait_for_function(f"{at} > 0.5")
    page.get_by_role("button", name="Pause").click()
    rested = page.evaluate(at)
    page.wait_for_timeout(1_200)
    assert page.evaluate(at) == rested
    page.get_by_role("button", name="Play", exact=True).click()
    page.wait_for_function(f"{at} > {rested + 0.5}")
    page.context.close()


def test_the_replay_on_home_rests_where_reduced_motion_is_preferred(browser: Browser, server: Server) -> None:
    page = opened(browser, server.url, WIDE[0], reduced_motion="reduce")
    page.wait_for_timeout(1_500)
    view = page.evaluate("(({ map }) => [map.playing, map.at, map.timeline.playable.length - 1])"
                         "(document.querySelector('.map-view'))")  # fmt: skip
    assert view == [False, view[2], view[2]]
    page.context.close()


def test_a_watched_run_is_followed_from_its_newest_frame_only(
    browser: Browser, server: Server, server_store: Store, template: Any
) -> None:
    started = template(steps=30_000, more={"probe": {"frame_steps": list(range(0, 30_001, 100))}})
    run_id = LocalEngine(server_store).submit(server_store.run(started).config)
    wait_for(server_store, run_id, lambda run: run.last_step > 300)
    page = opened(browser, f"{server.url}/fine_tune?run={run_id}", WIDE[1])
    slider = page.get_by_label("Step", exact=True)

    def frames() -> list[int]:
        view = "(({ map }) => [map.timeline.playable.length - 1, Math.round(map.at)])"
        return list(page.evaluate(f"{view}(document.querySelector('.map-view'))"))

    slider.press("Home")
    known = frames()[0]
    page.wait_for_function(f"document.querySelector('.map-view').map.timeline.playable.length - 1 > {known + 2}")
    assert frames()[1] == 0
    slider.press("End")
    known = frames()[0]
    page.wait_for_function(f"document.querySelector('.map-view').map.at > {known + 2}")
    server_store.send(run_id, "stop")
    wait_for(server_store, run_id, lambda run: run.status.ended)
    page.context.close()
