"""The form in a real Chromium: what is shown is what the draft holds, after a link and after a config file."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from core.cli.main import draft_from
from tests.browser.conftest import Server

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]


def shows(page: Page, pooling: str, seed: str) -> None:
    expect(page.get_by_role("combobox", name=re.compile("One vector per text"))).to_have_value(pooling)
    page.get_by_text("Name, seed, precision").click()
    expect(page.get_by_role("spinbutton", name="Seed")).to_have_value(seed)
    page.get_by_text("Name, seed, precision").click()


def test_a_config_file_fills_a_form_that_showed_something_else(browser: Browser, server: Server) -> None:
    """A browser keeps what a widget showed as long as its key stays the same."""
    page = browser.new_page(viewport={"width": 1280, "height": 720})
    page.goto(f"{server.url}/fine_tune?set=seed%3D5")
    shows(page, "Its own: mean", "5")
    config = draft_from({"pooling": "cls", "seed": 7}).to_json().encode()
    page.get_by_role("button", name="Open a config").click()
    page.locator('input[type="file"]').set_input_files(
        {"name": "mine.json", "mimeType": "application/json", "buffer": config}
    )
    page.get_by_role("button", name="Use it").click()
    page.keyboard.press("Escape")
    page.wait_for_url(re.compile(r"set=seed%3D7"))
    shows(page, "[CLS]", "7")
    other = browser.new_page()
    other.goto(page.url)
    shows(other, "[CLS]", "7")
    other.close()
    page.close()


def test_a_file_that_is_no_config_changes_nothing(browser: Browser, server: Server) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 720})
    page.goto(f"{server.url}/fine_tune?set=seed%3D5")
    page.get_by_role("button", name="Open a config").click()
    page.locator('input[type="file"]').set_input_files(
        {"name": "mine.json", "mimeType": "application/json", "buffer": b'{"seed": -3}'}
    )
    page.get_by_role("button", name="Use it").click()
    expect(page.get_by_text("give a whole number from 0")).to_be_visible()
    page.keyboard.press("Escape")
    shows(page, "Its own: mean", "5")
    page.close()
