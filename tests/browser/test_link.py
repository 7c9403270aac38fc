"""Tests of Copy link: the copied link opens the same view. test_visitor.py tests the address for other machines."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Server
from tests.browser.seen import PHONE, box_of, fits, settled

pytestmark = pytest.mark.usefixtures("laptop")


def copied(page: Page) -> str:
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_role("status").filter(has_text="Copied.")).to_be_visible()
    text = page.evaluate("navigator.clipboard.readText()")
    assert page.get_by_role("textbox", name="Link to this view").input_value() == text
    return str(text)


def test_the_copied_link_opens_the_same_view(page: Page, server: Server) -> None:
    settled(page, f"{server.url}/?replay=r-drop")
    link = copied(page)
    assert link == f"{server.url}/?replay=r-drop&v=1"
    expect(page.get_by_text("It opens on this machine only")).to_be_visible()
    settled(page, link)
    page.wait_for_url(f"{server.url}/?replay=r-drop")
    expect(page.get_by_text("Every review is encoded twice")).to_be_visible()


def test_escape_or_a_click_outside_closes_the_link(page: Page, server: Server) -> None:
    settled(page, f"{server.url}/loss_lab")
    page.get_by_role("button", name="Copy link").click()
    field = page.get_by_role("textbox", name="Link to this view")
    expect(field).to_be_visible()
    page.keyboard.press("Escape")
    expect(field).to_be_hidden()
    expect(page.get_by_role("button", name="Copy link")).to_be_focused()
    page.get_by_role("button", name="Copy link").click()
    page.locator("h1").click()
    expect(field).to_be_hidden()


def test_the_link_can_be_copied_by_hand_where_the_page_may_not_copy(page: Page, server: Server) -> None:
    page.add_init_script("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    settled(page, server.url)
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_text("Press Ctrl + C to copy it.")).to_be_visible()
    field = page.get_by_role("textbox", name="Link to this view")
    expect(field).to_be_focused()
    assert page.evaluate("getSelection().toString()") == field.input_value()


def test_it_hides_nothing_on_a_phone(page: Page, server: Server) -> None:
    page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    settled(page, server.url)
    page.get_by_role("button", name="Copy link").click()
    assert fits(page)
    assert box_of(page.locator(".copy-link-box"))["x"] >= 0
