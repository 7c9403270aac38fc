"""What can be seen at once: the picture and what belongs to it, on two wide screens and on a phone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from core.config import parse_config
from core.store import Store
from tests.browser.conftest import Server
from tests.browser.hostile import wait_for
from tests.browser.seen import ADDRESSES, EMPTY, many_classes_csv, settled
from tests.core.artifacts.made import MORE, recorded

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

expect.set_options(timeout=20_000)
WIDE = ((1280, 720), (1400, 900))
PHONE = (390, 844)
STAGE, PLAYER = ".map-stage", ".map-player"
REFLOW_MS = 400
# What has to be seen of a page without scrolling.
MAIN = {
    "/": (PLAYER,),
    "/fine_tune": (".st-key-before_launch button",),
    "/fine_tune?run={0}": (PLAYER, ".live-figure .xy"),
    "/runs": ("[data-testid=stDataFrame] canvas",),
    "/explore?run={0}": (PLAYER, ".map-stages", ".text-table th"),
    "/explore?run={0}&panel=classes": (PLAYER,),
    "/explore?run={0}&panel=forces&sel=0": (PLAYER,),
    "/tokens?run={0}": (".token-text",),
    "/compare?runs={0},{1}": ("[data-testid=stButtonGroup]",),
    "/compare?runs={0},{1}&show=curves": (".live-figure .xy",),
    "/compare?runs={0},{1}&show=maps": (PLAYER, ".map-stages"),
    "/data?view=file": ("[data-testid=stFileUploader]",),
}


def opened(browser: Browser, address: str, size: tuple[int, int], **more: Any) -> Page:
    context = browser.new_context(viewport={"width": size[0], "height": size[1]}, **more)
    page = context.new_page()
    page.goto(address)
    expect(page.locator(".map-view")).to_have_attribute("data-updates", re.compile(r"\d+"))
    return page


def two_runs(server: Server, encoder: Path, rows: Path) -> list[str]:
    """The ids of two finished runs on these rows, with words and weights."""
    store = Store(server.store_folder)
    drafts = [
        parse_config(
            {
                "task": {"id": "file", "path": str(rows)},
                "encoder": {"id": str(encoder), "max_length": 32},
                "phases": [{"steps": 8, "batch_size": 8}],
                "seed": seed,
                "device": "cpu",
                **MORE,
            }
        )
        for seed in (0, 1)
    ]
    ids = [recorded(store, draft).id for draft in drafts]
    store.close()
    return ids


@pytest.fixture(scope="module")
def few(server: Server, tiny_encoder: Path, small_csv: Path) -> list[str]:
    """Two finished runs of two classes."""
    return two_runs(server, tiny_encoder, small_csv)


@pytest.fixture(scope="module")
def many(server: Server, tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Two finished runs of 77 classes."""
    return two_runs(server, tiny_encoder, many_classes_csv(tmp_path_factory.mktemp("many")))


def bottom(page: Page, selector: str) -> float:
    box = page.locator(selector).first.bounding_box()
    assert box is not None
    return box["y"] + box["height"]


@pytest.fixture
def screen(browser: Browser) -> Iterator[Page]:
    context = browser.new_context()
    yield context.new_page()
    context.close()


def fits(page: Page, address: str, main: Sequence[str]) -> None:
    """The main things of a page are on a wide screen without scrolling, and nothing is wider than any screen."""
    for width, height in (*WIDE, PHONE):
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_timeout(REFLOW_MS)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, (address, width)
        for selector in main if width > PHONE[0] else ():
            assert bottom(page, selector) <= height, (address, selector, width)


# Before any run: the server of this module has none until a fixture makes some.
@pytest.mark.parametrize("address", EMPTY)
def test_an_empty_page_fits(screen: Page, server: Server, address: str) -> None:
    settled(screen, server.url + address)
    fits(screen, address, MAIN["/"] if address == "/" else ())


@pytest.mark.parametrize("classes", ["few", "many"])
@pytest.mark.parametrize("address", ADDRESSES)
def test_a_page_fits(screen: Page, server: Server, request: pytest.FixtureRequest, classes: str, address: str) -> None:
    settled(screen, server.url + address.format(*request.getfixturevalue(classes)))
    fits(screen, address, MAIN.get(address, ()))


@pytest.mark.parametrize("size", WIDE)
def test_the_map_and_its_player_of_a_finished_run_are_on_the_screen(
    browser: Browser, server: Server, hostile_run: str, size: tuple[int, int]
) -> None:
    for address in (f"/explore?run={hostile_run}", f"/fine_tune?run={hostile_run}", "/"):
        page = opened(browser, server.url + address, size)
        assert bottom(page, PLAYER) <= size[1], address
        stage = page.locator(STAGE).bounding_box()
        assert stage is not None
        assert stage["height"] >= 280, address
        assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
        page.context.close()


def test_knobs_pause_map_and_loss_of_a_run_are_on_the_screen_together(
    browser: Browser, server: Server, server_store: Store, template: Any
) -> None:
    more = {"probe": {"frame_steps": list(range(0, 30_001, 100))}}
    page = browser.new_page(viewport={"width": 1280, "height": 720})
    page.goto(f"{server.url}/fine_tune?from={template(steps=30_000, more=more)}")
    launch = page.get_by_role("button", name="Launch")
    expect(launch).to_be_enabled()
    launch.click()
    page.wait_for_url("**/fine_tune?run=*")
    run_id = page.url.split("run=")[1]
    expect(page.locator(".live-figure")).to_have_attribute("data-updates", re.compile(r"\d+"), timeout=60_000)
    seen = [
        page.get_by_role("button", name="Pause"),
        page.get_by_role("slider", name="Temperature τ"),
        page.get_by_role("slider", name="Weight λ"),
        page.get_by_role("slider", name="Learning rate"),
        page.get_by_text(re.compile(r"Step [\d,]+ of 30,000")),
        page.locator(PLAYER),
        page.locator(".live-figure .xy"),  # the panel of the losses
    ]
    for element in seen:
        box = element.first.bounding_box()
        assert box is not None
        assert box["y"] > 0
        assert box["y"] + box["height"] <= 720, element
    server_store.send(run_id, "stop")
    wait_for(server_store, run_id, lambda run: run.status.ended)
    page.close()


def test_nothing_is_wider_than_a_phone(browser: Browser, server: Server, hostile_run: str) -> None:
    for address in (f"/explore?run={hostile_run}", f"/fine_tune?run={hostile_run}", "/"):
        page = opened(browser, server.url + address, PHONE)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0], address
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
    from core.workers import LocalEngine

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
