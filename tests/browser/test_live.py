"""A visitor's journey through the app, in Chromium."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from core.store import Status, Store
from core.workers import LocalEngine
from tests.browser.conftest import Server
from tests.browser.hostile import nothing_ran, wait_for
from tests.browser.seen import at_rest, drag, press, settled

# Steps of a run that outlasts every test, and the steps of its frames.
LONG = 30_000
FRAMES = list(range(0, LONG + 1, 60))
UPDATES = 4
MAP, CURVES = ".map-view", ".live-figure >> nth=0"


def launched(page: Page, server: Server, template_id: str) -> str:
    """Launch from the form. Returns: the run's id, from the address."""
    page.goto(f"{server.url}/fine_tune?from={template_id}")
    launch = page.get_by_role("button", name="Launch")
    expect(launch).to_be_enabled()
    launch.click()
    page.wait_for_url("**/fine_tune?run=*")
    return page.url.split("run=")[1]


def drawn(page: Page, figure: str) -> None:
    """Wait until a map or a figure is drawn."""
    expect(page.locator(figure)).to_have_attribute("data-updates", re.compile(r"\d+"))


def updates(page: Page, figure: str) -> int:
    return int(page.locator(figure).get_attribute("data-updates") or 0)


def points(page: Page) -> Any:
    """Return the positions of the map's points on the screen."""
    return page.locator(MAP).evaluate("node => [...node.map.panels[0].screen]")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="reads which libraries a process has loaded")
def test_the_first_page_waits_for_no_large_library(page: Page, tmp_path: Path) -> None:
    Store(tmp_path / "runs").close()  # creating a store imports pandas indirectly
    with Server(tmp_path) as server:
        page.goto(server.url)
        drawn(page, MAP)
        loaded = Path(f"/proc/{server.pid}/maps").read_text()
    assert "numpy" in loaded
    assert [name for name in ("libtorch", "llvmlite", "pandas") if name in loaded] == []


@pytest.mark.slow
def test_a_run_survives_a_closed_tab_and_a_killed_server(
    page: Page, server: Server, server_store: Store, template: Any
) -> None:
    run_id = launched(page, server, template(steps=LONG, more={"probe": {"frame_steps": FRAMES}}))
    expect(page.get_by_text(re.compile(r"Step [\d,]+ of 30,000"))).to_be_visible()
    wait_for(server_store, run_id, lambda run: run.last_step > 100)
    drawn(page, MAP)
    before = points(page)
    while points(page) == before:
        page.wait_for_timeout(100)
    address = page.url
    page.goto("about:blank")
    step = server_store.run(run_id).last_step
    wait_for(server_store, run_id, lambda run: run.last_step > step + 20)

    page.goto(address)
    expect(page.get_by_text("running", exact=True)).to_be_visible()
    server.kill()
    step = server_store.run(run_id).last_step
    wait_for(server_store, run_id, lambda run: run.last_step > step + 20)
    server.start()
    page.goto(address)
    expect(page.get_by_text(re.compile(r"Step [\d,]+ of 30,000"))).to_be_visible()
    drawn(page, CURVES)
    press(page, "Stop")
    wait_for(server_store, run_id, lambda run: run.status == Status.STOPPED)
    expect(page.get_by_text("stopped", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Resume")).to_be_visible()


@pytest.fixture(scope="module")
def going(server: Server, draft: Any) -> str:
    """Return the id of a run that outlasts the tests."""
    store = Store(server.store_folder)
    run_id = LocalEngine(store).submit(draft(steps=LONG, more={"probe": {"frame_steps": FRAMES}}))
    wait_for(store, run_id, lambda run: run.last_step > 60)
    store.close()
    return run_id


@pytest.mark.slow
def test_zoom_and_nodes_outlive_updates(page: Page, server: Server, server_store: Store, going: str) -> None:
    page.goto(f"{server.url}/fine_tune?run={going}")
    drawn(page, MAP)
    drawn(page, CURVES)
    page.evaluate("document.querySelectorAll('.live-figure, .map-view').forEach(node => { node.mark = 'mine'; })")

    plot = page.locator(f"{CURVES} >> .nsewdrag >> nth=0")
    plot.scroll_into_view_if_needed()
    at_rest(page)
    drag(page, plot, (0.2, 0.2), (0.7, 0.8))
    zoom = page.locator(CURVES).evaluate("node => node.layout.xaxis.range")
    assert zoom != [0, LONG]
    started = {figure: updates(page, figure) for figure in (MAP, CURVES)}
    while min(updates(page, figure) - started[figure] for figure in (MAP, CURVES)) < UPDATES:
        page.wait_for_timeout(200)
        assert server_store.run(going).status == Status.RUNNING, "the run ended too early to see the updates"
    for figure in (MAP, CURVES):
        assert page.locator(figure).evaluate("node => node.mark") == "mine"
    assert page.locator(CURVES).evaluate("node => node.layout.xaxis.range") == zoom


@pytest.mark.slow
def test_the_map_follows_a_run_only_from_its_newest_frame(page: Page, server: Server, going: str) -> None:
    page.goto(f"{server.url}/fine_tune?run={going}")
    drawn(page, MAP)
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


def hide(page: Page, hidden: bool) -> None:
    """Report to the page that its tab was hidden, or shown again."""
    page.evaluate(
        """hidden => {
            Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
            document.dispatchEvent(new Event("visibilitychange"));
        }""",
        hidden,
    )


@pytest.mark.slow
def test_a_hidden_tab_sends_no_requests(page: Page, server: Server, server_store: Store, going: str) -> None:
    page.goto(f"{server.url}/fine_tune?run={going}")
    drawn(page, CURVES)
    shown = page.get_by_text(re.compile(r"Step [\d,]+ of 30,000"))
    hide(page, True)
    page.wait_for_timeout(1_500)  # all earlier requests have been answered
    before, step = shown.inner_text(), server_store.run(going).last_step
    wait_for(server_store, going, lambda run: run.last_step > step + 100)
    page.wait_for_timeout(1_500)
    assert shown.inner_text() == before
    hide(page, False)
    expect(shown).not_to_have_text(before)
    press(page, "Stop")
    wait_for(server_store, going, lambda run: run.status == Status.STOPPED)


@pytest.mark.slow
def test_pause_and_resume_from_the_page(page: Page, server: Server, server_store: Store, template: Any) -> None:
    run_id = launched(page, server, template(steps=50_000, more={"probe": {"frame_steps": [10]}}))
    wait_for(server_store, run_id, lambda run: run.last_step > 20)
    press(page, "Pause")
    wait_for(server_store, run_id, lambda run: run.status == Status.PAUSED)
    press(page, "Resume")
    wait_for(server_store, run_id, lambda run: run.status == Status.RUNNING)
    press(page, "Stop")
    wait_for(server_store, run_id, lambda run: run.status == Status.STOPPED)
    step = server_store.run(run_id).last_step
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    press(page, "Resume")
    wait_for(server_store, run_id, lambda run: run.last_step > step + 20)
    server_store.send(run_id, "stop")
    wait_for(server_store, run_id, lambda run: run.status.ended)


@pytest.mark.slow
def test_hostile_texts_are_shown_and_never_run(page: Page, server: Server, hostile_run: str) -> None:
    for address in (f"/explore?run={hostile_run}", f"/fine_tune?run={hostile_run}", "/runs", "/"):
        settled(page, f"{server.url}{address}")
        page.wait_for_load_state("networkidle")
        nothing_ran(page)


@pytest.mark.slow
def test_a_map_is_drawn_again_only_for_a_new_frame(
    page: Page, server: Server, server_store: Store, template: Any
) -> None:
    # The form spreads frames over the steps.
    started = server_store.run(template(steps=LONG, more={"probe": {"frame_steps": [1, 2]}}))
    run_id = LocalEngine(server_store).submit(started.config)
    page.goto(f"{server.url}/fine_tune?run={run_id}")
    drawn(page, CURVES)
    expect(page.locator(MAP)).to_have_attribute("data-step", "2")
    map_updates, curve_updates = updates(page, MAP), updates(page, CURVES)
    page.wait_for_function(
        f"Number(document.querySelector('.live-figure').dataset.updates) > {curve_updates + 2}", timeout=60_000
    )
    assert updates(page, MAP) == map_updates
    press(page, "Stop")
    wait_for(server_store, run_id, lambda run: run.status == Status.STOPPED)
