"""Tests of two browsers on a server that a class shares: one owns a run, the other watches it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from itsdangerous import URLSafeSerializer
from playwright.sync_api import Page, expect

from core.store import Status, Store
from core.store.secret import server_secret
from core.workers import LocalEngine
from pages.ui.visitor import COOKIE, SALT, default_name
from tests.browser.conftest import Server
from tests.browser.seen import press, settled
from tests.browser.test_link import copied

LONG = 100_000
ELSEWHERE = "http://192.168.1.20:8501"


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("shared"), SCL_SHARED="1", SCL_ADDRESS=ELSEWHERE) as made:
        yield made


def known_as(page: Page, url: str) -> str:
    """Return the visitor name of a browser, from the Runs page."""
    page.goto(f"{url}/runs")
    words = page.get_by_text(re.compile("^You are "))
    expect(words).to_be_visible()
    found = re.search(r"visitor \d{4}", words.inner_text())
    assert found is not None
    return found[0]


@pytest.mark.slow
def test_three_tabs_opened_at_once_are_one_visitor(shared_server: Server, newcomer: Page) -> None:
    tabs = [newcomer, newcomer.context.new_page(), newcomer.context.new_page()]
    for tab in tabs:
        tab.evaluate("url => { setTimeout(() => { location.href = url }, 100) }", f"{shared_server.url}/runs")
    for tab in tabs:
        expect(tab.get_by_text(re.compile("^You are "))).to_be_visible()
    deadline, said = time.monotonic() + 60, []
    while True:  # until all tabs agree with the cookie, which the last tab may still change
        first = default_name(owner_of(newcomer, shared_server))
        said = [tab.get_by_text(re.compile("^You are ")).inner_text() for tab in tabs]
        if all(f"You are {first}" in one for one in said):
            break
        assert time.monotonic() < deadline, (first, said)
        tabs[0].wait_for_timeout(200)

    tabs[0].get_by_role("button", name="Forget me").click()
    tabs[0].get_by_test_id("stPopoverBody").get_by_role("button", name="Forget me").click()
    expect(tabs[0].get_by_text(f"You are {first}")).to_have_count(0)
    expect(tabs[0].get_by_text(re.compile("^You are visitor"))).to_be_visible()
    assert known_as(tabs[0], shared_server.url) == known_as(tabs[1], shared_server.url) != first


@pytest.mark.slow
def test_others_watch_and_cannot_stop(shared_server: Server, visit: Callable[..., Page], draft: Any) -> None:
    ada, bob = visit(), visit()
    first, second = known_as(ada, shared_server.url), known_as(bob, shared_server.url)
    assert first != second
    assert known_as(ada, shared_server.url) == first  # a reload makes no new visitor
    again = ada.context.new_page()
    assert known_as(again, shared_server.url) == first  # another tab makes none either

    store = Store(shared_server.store_folder)
    run_id = LocalEngine(store).submit(draft(steps=LONG), owner_of(ada, shared_server))
    for page in (ada, bob):
        page.goto(f"{shared_server.url}/fine_tune?run={run_id}")
        expect(page.get_by_text(re.compile(r"^Step [1-9][\d,]* of "))).to_be_visible()
    expect(ada.get_by_role("button", name="Stop")).to_be_visible()
    expect(bob.get_by_text(f"{first}'s run")).to_be_visible()
    expect(bob.get_by_role("button", name="Stop")).to_have_count(0)
    expect(bob.get_by_role("slider", name="Temperature τ")).to_be_disabled()
    expect(ada.get_by_role("slider", name="Temperature τ")).to_be_enabled()

    press(ada, "Stop")
    expect(ada.get_by_text("stopped", exact=True)).to_be_visible()
    assert store.run(run_id).status == Status.STOPPED
    store.close()


def owner_of(page: Page, server: Server) -> str:
    """Return the visitor whose cookie the server signed for a browser."""
    (cookie,) = [one for one in page.context.cookies() if one["name"] == COOKIE]
    return str(URLSafeSerializer(server_secret(server.store_folder), salt=SALT).loads(str(cookie["value"])))


@pytest.mark.slow
def test_a_copied_link_uses_the_public_address_of_the_server(page: Page, shared_server: Server) -> None:
    settled(page, f"{shared_server.url}/?replay=ce")
    assert copied(page) == f"{ELSEWHERE}/?replay=ce&v=1"
    expect(page.get_by_text("on this machine only")).to_have_count(0)
