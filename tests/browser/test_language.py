"""Tests of a visitor's language: the browser's, a link's or one chosen by hand."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from core.artifacts.replay import open_replay
from core.artifacts.shipped import SHIPPED
from core.store import Store
from tests.browser.conftest import Server
from tests.browser.language import NATIVE
from tests.browser.seen import PHONE, box_of, fits, settled
from tests.cases import slow_but

HOME = {"en": "Home", "zh": "首页", "ko": "홈"}


@pytest.fixture(scope="module")
def runs(server: Server) -> tuple[str, str]:
    store = Store(server.store_folder)
    found = open_replay(store, SHIPPED["ce-scl"].path), open_replay(store, SHIPPED["r-drop"].path)
    store.close()
    return found


@pytest.fixture
def chinese(visit: Callable[..., Page]) -> Page:
    return visit(locale="zh-CN")


@pytest.fixture
def page(newcomer: Page) -> Page:
    """Yield a page of a new context, so that tests do not share the remembered language."""
    return newcomer


def bar(page: Page, name: str) -> None:
    expect(page.locator("header").get_by_role("link", name=name, exact=True)).to_be_visible()


@pytest.mark.slow
def test_the_browser_sets_the_language(chinese: Page, page: Page, server: Server) -> None:
    settled(chinese, server.url)
    bar(chinese, HOME["zh"])
    expect(chinese.locator("html")).to_have_attribute("lang", "zh")
    assert "lang=" not in chinese.url
    settled(page, server.url)
    bar(page, HOME["en"])
    expect(page.locator("html")).to_have_attribute("lang", "en")


def test_a_chosen_language_survives_navigation_and_a_reload(page: Page, server: Server) -> None:
    settled(page, server.url)
    page.get_by_role("combobox", name="Language").select_option("ko")
    bar(page, HOME["ko"])
    expect(page).to_have_url(re.compile("lang=ko"))
    page.locator("header").get_by_role("link", name="수업", exact=True).click()
    expect(page.locator("h1")).to_have_text("수업")
    expect(page).to_have_url(re.compile("lessons.*lang=ko"))
    page.reload()
    expect(page.locator("h1")).to_have_text("수업")
    page.get_by_role("combobox", name="언어").select_option("en")
    bar(page, HOME["en"])
    expect(page).not_to_have_url(re.compile("lang="))


@pytest.mark.slow
def test_a_link_sets_the_language_and_an_unknown_code_is_reported(chinese: Page, page: Page, server: Server) -> None:
    settled(page, f"{server.url}/loss_lab?lang=zh")
    bar(page, HOME["zh"])
    expect(page.locator(".lab-play")).to_have_accessible_name("播放")
    settled(page, f"{server.url}/loss_lab?lang=xx")
    expect(page.get_by_text("The link asks for lang = 'xx'")).to_be_visible()
    settled(chinese, f"{server.url}/?lang=en")
    bar(chinese, HOME["en"])


@pytest.mark.slow
def test_a_download_is_in_the_language_of_the_page(page: Page, server: Server, runs: tuple[str, str]) -> None:
    settled(page, f"{server.url}/compare?runs={','.join(runs)}&lang=zh")
    with page.expect_download() as coming:
        page.get_by_role("button", name="两次运行导出为一个网页").click()
    text = Path(coming.value.path()).read_text(encoding="utf-8")
    assert '<html lang="zh">' in text
    assert "得分" in text
    assert "Scores" not in text


@pytest.mark.parametrize("code", slow_but(("ko",), NATIVE))
def test_the_bar_fits_on_a_phone(page: Page, server: Server, code: str) -> None:
    page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    settled(page, f"{server.url}/?lang={code}")
    switch, link = (box_of(page.locator(name)) for name in (".language select", ".copy-link-button"))
    assert switch["x"] + switch["width"] <= link["x"] + 1
    assert fits(page)
