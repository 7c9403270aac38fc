"""Tests of the cards over terms, the glossary, and the softmax that follows τ."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from core.glossary import GLOSSARY
from tests.browser.conftest import Server
from tests.browser.seen import settled


@pytest.mark.slow
def test_every_term_has_its_picture_and_its_formula(page: Page, server: Server) -> None:
    settled(page, f"{server.url}/lessons")
    pictures = page.locator("img[src*='glossary/']")
    expect(pictures).to_have_count(len(GLOSSARY))
    for place, term in enumerate(GLOSSARY.values()):
        picture = pictures.nth(place)
        picture.scroll_into_view_if_needed()
        expect(picture).to_have_attribute("alt", term.picture)
        expect(picture).to_have_js_property("naturalWidth", 220)
    expect(page.locator(".katex")).to_have_count(len(GLOSSARY))
    expect(page.locator(".katex-error")).to_have_count(0)


def heights(page: Page) -> list[float]:
    return [
        float(h)
        for h in page.locator(".softmax-bars i").evaluate_all("bars => bars.map(b => parseFloat(b.style.height))")
    ]


@pytest.mark.slow
def test_the_temperature_of_the_form_has_a_card_and_moves_the_bars(page: Page, server: Server) -> None:
    settled(page, f"{server.url}/fine_tune")
    knob = page.locator("[class*=st-key-form-0-knob-temperature]")
    knob.get_by_test_id("stTooltipIcon").hover()
    card = page.get_by_test_id("stTooltipContent")
    expect(card.get_by_text("Divides every similarity before the softmax: the lower")).to_be_visible()
    expect(card.locator(".katex").first).to_be_visible()
    expect(card.locator("img")).to_have_js_property("naturalWidth", 220)

    expect(page.locator(".softmax-bars i")).to_have_count(15)
    before = heights(page)
    assert sum(before) == pytest.approx(100, abs=0.2)
    assert before == sorted(before, reverse=True)
    slider = knob.get_by_role("slider")
    slider.focus()
    slider.press("Home")
    expect(page.get_by_text(re.compile(r"At τ 0\.01, the text most similar to the anchor"))).to_be_visible()
    page.wait_for_function(
        f"parseFloat(document.querySelector('.softmax-bars i').style.height) > {2 * before[0]}", timeout=60_000
    )
    after = heights(page)
    assert sum(after) == pytest.approx(100, abs=0.2)


@pytest.mark.slow
def test_the_lab_shows_the_softmax_of_the_selected_point(page: Page, server: Server) -> None:
    settled(page, f"{server.url}/loss_lab?anchor=3")
    bars = page.locator(".softmax-bars")
    expect(bars).to_be_visible()
    expect(bars.locator("i")).to_have_count(29)
    first = heights(page)
    assert sum(first) == pytest.approx(100, abs=0.3)
    settled(page, f"{server.url}/loss_lab?anchor=3&a=out_1_0.5_0.5")
    expect(bars.locator("i")).to_have_count(29)
    assert heights(page)[0] < first[0]
    settled(page, f"{server.url}/loss_lab")
    expect(bars).to_be_hidden()
