"""Knobs of a live run under keyboard and mouse, in one browser and in two."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from core.store import Status, Store
from core.workers import LocalEngine
from tests.browser.conftest import Server
from tests.browser.hostile import wait_for
from tests.browser.prepared import set_up

PRESSES = 8


@pytest.fixture
def other(browser: Browser) -> Iterator[Page]:
    """A second visitor."""
    context = browser.new_context(viewport={"width": 1400, "height": 1000})
    yield context.new_page()
    context.close()


@pytest.fixture(scope="module")
def going(server: Server, tiny_encoder: Path, small_csv: Path) -> str:
    """The id of a run that goes on for longer than the tests."""
    store = Store(server.store_folder)
    run_id = LocalEngine(store).submit(set_up(tiny_encoder, small_csv, steps=50_000, probe={"frame_steps": [10]}))
    wait_for(store, run_id, lambda run: run.last_step > 20)
    store.close()
    return run_id


def slider(page: Page, name: str) -> Locator:
    return page.get_by_role("slider", name=name)


def shows(page: Page, name: str, value: float) -> None:
    """Wait until the page has one slider of that name, at that value."""
    page.wait_for_function(
        "([name, text]) => [...document.querySelectorAll('input[type=range]')]"
        ".filter(node => node.ariaLabel === name).map(node => node.getAttribute('aria-valuetext')).join() === text",
        arg=[name, f"{value:.2f}"],
        timeout=20_000,
    )


def drawn_again(page: Page) -> None:
    """Wait until the run's figure has been drawn twice more."""
    updates = "Number(document.querySelector('.live-figure').dataset.updates)"
    page.wait_for_function(f"{updates} >= {page.evaluate(updates) + 2}")


def focused(page: Page, name: str) -> bool:
    return bool(slider(page, name).evaluate("node => node === document.activeElement"))


@pytest.mark.slow
def test_eight_presses_are_eight_steps_and_the_focus_stays(
    page: Page, server: Server, server_store: Store, going: str
) -> None:
    page.goto(f"{server.url}/fine_tune?run={going}")
    knob = slider(page, "Temperature τ")
    shows(page, "Temperature τ", 0.30)
    knob.focus()
    knob.evaluate("node => { node.mark = 'mine'; }")
    for _ in range(PRESSES):
        page.keyboard.press("ArrowRight")
        page.wait_for_timeout(150)
    shows(page, "Temperature τ", 0.38)
    wait_for(server_store, going, lambda run: used(run.effective.knob_turns) == 0.38)
    drawn_again(page)
    assert focused(page, "Temperature τ")
    assert knob.evaluate("node => node.mark") == "mine"
    for _ in range(PRESSES):  # as fast as the keyboard gives them
        page.keyboard.press("ArrowLeft")
    shows(page, "Temperature τ", 0.30)
    wait_for(server_store, going, lambda run: used(run.effective.knob_turns) == 0.30)
    drawn_again(page)
    shows(page, "Temperature τ", 0.30)
    assert focused(page, "Temperature τ")


def used(turns: Any) -> float | None:
    """The τ that was turned to last."""
    return next((turn.value for turn in reversed(turns) if turn.name == "temperature"), None)


@pytest.mark.slow
def test_a_turn_is_seen_wherever_the_run_is_shown(
    page: Page, other: Page, server: Server, server_store: Store, going: str
) -> None:
    label = re.compile(r"τ 0\.3 → (0\.\d+ → )*0\.08")
    page.goto(f"{server.url}/fine_tune?run={going}")
    shows(page, "Temperature τ", 0.30)
    other.goto(f"{server.url}/fine_tune?run={going}")
    shows(other, "Temperature τ", 0.30)
    slider(page, "Temperature τ").focus()
    for _ in range(22):
        page.keyboard.press("ArrowLeft")
    wait_for(server_store, going, lambda run: used(run.effective.knob_turns) == 0.08)
    for one in (page, other):
        shows(one, "Temperature τ", 0.08)
        expect(one.get_by_text(label)).to_be_visible()
    assert focused(page, "Temperature τ")
    other.reload()
    shows(other, "Temperature τ", 0.08)
    slider(other, "Temperature τ").focus()
    other.keyboard.press("ArrowRight")
    for one in (page, other):
        shows(one, "Temperature τ", 0.09)
    other.keyboard.press("ArrowLeft")
    wait_for(server_store, going, lambda run: used(run.effective.knob_turns) == 0.08)
    shows(page, "Temperature τ", 0.08)
    server_store.send(going, "stop")
    wait_for(server_store, going, lambda run: run.status == Status.STOPPED)
    other.goto(f"{server.url}/explore?run={going}")
    expect(other.get_by_role("combobox", name="Run")).to_have_value(label)
    other.goto(server.url)
    expect(other.get_by_text(label).first).to_be_visible()
