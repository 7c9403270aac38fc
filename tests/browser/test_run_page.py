"""Tests of a run's page opened from disk: it plays, responds, and requests nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from core.artifacts.replay import open_replay
from core.artifacts.shipped import SHIPPED
from core.exports.gallery import write_gallery
from core.exports.run_page import run_page
from core.store import Store
from tests.browser.hostile import hostile_draft, nothing_ran
from tests.browser.seen import LIGHT_AND_DARK, PHONE, box_of, drag, fits, resized
from tests.browser.test_every_page import violations
from tests.cases import slow_but
from tests.core.artifacts.made import recorded

LATER = re.compile(r"^[1-9]\d+$")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    store = Store(folder / "runs")
    runs = [store.run(open_replay(store, SHIPPED[name].path)) for name in ("ce-scl", "ce")]
    (folder / "one.html").write_text(run_page(store, runs[:1]), encoding="utf-8")
    (folder / "two.html").write_text(run_page(store, runs), encoding="utf-8")
    store.close()
    return folder


@pytest.fixture
def page(visit: Callable[..., Page]) -> Iterator[Page]:
    """Yield a page that may request only files and log no error."""
    opened = visit(1280, 720)
    complaints: list[str] = []
    opened.on("console", lambda message: complaints.append(message.text))
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on(
        "request", lambda request: request.url.startswith(("file:", "data:", "blob:")) or complaints.append(request.url)
    )
    yield opened
    assert complaints == []


def show(page: Page, path: Path) -> None:
    page.goto(path.as_uri())
    expect(page.locator(".map-view")).to_have_attribute("data-updates", re.compile(r"\d+"))


def pause(page: Page) -> None:
    page.get_by_role("button", name="Pause").click()


def test_it_plays_by_itself_and_the_curves_follow(page: Page, pages: Path) -> None:
    show(page, pages / "one.html")
    cursor = page.locator("figure .wide .cursor")
    expect(page.locator(".map-view")).to_have_attribute("data-step", LATER)
    pause(page)
    page.get_by_role("slider", name="Step").press("End")
    expect(page.locator(".map-view")).to_have_attribute("data-step", "120")
    svg = page.locator("figure .wide svg")
    expect(cursor).to_have_attribute("x1", svg.get_attribute("data-right") or "")
    expect(page.locator(".map-moment")).to_have_text("Step 120 · validation 88.9%")


def test_words_are_found_and_texts_are_read(page: Page, pages: Path) -> None:
    show(page, pages / "one.html")
    pause(page)
    page.get_by_role("searchbox", name="Search texts").fill("film SCHOOL")
    expect(page.get_by_text("1 found")).to_be_visible()
    note = page.get_by_text("Darker words receive more [CLS] attention")
    expect(note).to_be_hidden()
    hit = page.locator(".found")
    expect(hit).to_contain_text(re.compile(r"label positive · predicted (positive|negative), \d"))
    said = hit.locator(".quiet").inner_text()
    page.get_by_role("slider", name="Step").press("End")
    expect(hit.locator(".quiet")).not_to_have_text(said)
    said = hit.locator(".quiet").inner_text()
    line = box_of(hit.locator(".quiet"))
    page.mouse.move(line["x"] + 5, line["y"] + 5)
    page.mouse.down()
    page.get_by_role("slider", name="Step").press("Home")  # the step changes before the button is released
    page.get_by_role("slider", name="Step").press("End")
    page.mouse.up()
    expect(note).to_be_visible()
    expect(page.locator(".text .quiet")).to_have_text(said)
    page.get_by_role("slider", name="Step").press("Home")
    text = page.locator(".text")
    expect(text).to_contain_text("I actually saw this film in school")
    expect(text).to_contain_text("label positive · predicted")
    before = text.inner_text()
    assert text.locator("span[title*='of the attention of']").count() > 5
    page.get_by_role("slider", name="Step").press("End")
    expect(text).not_to_have_text(before)
    page.get_by_role("searchbox", name="Search texts").fill("no such words")
    expect(page.get_by_text("No text contains these words.")).to_be_visible()
    expect(note).to_be_hidden()


def test_a_box_selects_what_lies_inside_and_escape_takes_it_back(page: Page, pages: Path) -> None:
    show(page, pages / "two.html")
    pause(page)
    page.get_by_role("button", name="Select with a box").click()
    drag(page, page.locator(".map-canvas").first, (0.01, 0.01), (0.99, 0.99))
    expect(page.get_by_text("108 more are selected.")).to_be_visible()
    # Both runs show their prediction for it.
    expect(page.locator(".text").first).to_contain_text("CE + SCL, τ 0.3: label")
    expect(page.locator(".text").first).to_contain_text("CE: label")
    page.keyboard.press("Escape")
    expect(page.get_by_text("Click a point, or drag a box")).to_be_visible()


@pytest.mark.slow
def test_colours_say_what_is_predicted(page: Page, pages: Path) -> None:
    show(page, pages / "one.html")
    page.get_by_role("combobox", name="Colour").select_option("correct")
    expect(page.locator(".map-legend")).to_contain_text("Prediction is")
    expect(page.locator(".map-legend")).to_contain_text("wrong")


@pytest.mark.slow
def test_a_picture_is_saved(page: Page, pages: Path, tmp_path: Path) -> None:
    show(page, pages / "one.html")
    pause(page)
    for name in ("PNG", "SVG"):
        with page.expect_download() as waiting:
            page.get_by_role("button", name=f"Download as {name}").click()
        waiting.value.save_as(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 5_000


@pytest.mark.parametrize("name", slow_but(["two.html"], ["one.html", "two.html"]))
def test_axe_finds_nothing_serious_and_a_phone_is_wide_enough(page: Page, pages: Path, name: str) -> None:
    show(page, pages / name)
    pause(page)
    assert violations(page) == []
    resized(page, *PHONE)
    assert fits(page)
    expect(page.locator("figure .wide svg").first).to_be_hidden()
    expect(page.locator("figure .narrow svg").first).to_be_visible()
    assert page.evaluate(
        "[...document.querySelectorAll('.scroll')].every((node) => node.scrollWidth <= node.clientWidth)"
    )


@pytest.mark.slow
def test_it_rests_where_reduced_motion_is_preferred(page: Page, pages: Path) -> None:
    page.emulate_media(reduced_motion="reduce")
    page.goto((pages / "one.html").as_uri())
    expect(page.locator(".map-view")).to_have_attribute("data-step", "120")
    expect(page.get_by_role("button", name="Play")).to_be_visible()


def test_text_that_tries_to_close_its_element_stays_text(page: Page, draft: Any, tmp_path: Path) -> None:
    store = Store(tmp_path / "runs")
    run = recorded(store, hostile_draft(tmp_path, draft))
    (tmp_path / "page.html").write_text(run_page(store, [run]), encoding="utf-8")
    store.close()
    show(page, tmp_path / "page.html")
    page.get_by_role("searchbox", name="Search texts").fill("lovely")
    page.locator(".found").first.click()
    expect(page.locator(".text")).to_contain_text("<img src=x onerror=window.hacked=1>")
    nothing_ran(page)


@pytest.mark.slow
def test_the_gallery_leads_to_a_page_that_plays(page: Page, tmp_path: Path) -> None:
    write_gallery(tmp_path / "gallery")
    for scheme in LIGHT_AND_DARK:
        page.emulate_media(color_scheme=scheme)
        page.goto((tmp_path / "gallery" / "index.html").as_uri())
        assert violations(page) == []
    page.get_by_role("link", name="Collapsed").click()
    expect(page.locator(".map-view")).to_have_attribute("data-step", LATER)
    assert violations(page) == []
    page.get_by_role("link", name="Back to the gallery").click()
    expect(page.get_by_role("heading", name="Watch a text encoder learn")).to_be_visible()
