"""Tests of Tokens in Chromium: hostile texts stay text, and an address restores the view."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from core.config import RunConfig
from core.store import RunRecord, Status, Store
from tests.browser.conftest import Server
from tests.browser.hostile import CLASSES, IMAGE, nothing_ran, shown_as_text
from tests.browser.seen import JOB_MS, PHONE, quiet
from tests.conftest import made_rows, write_csv
from tests.core.artifacts.made import MORE, recorded

OWN = f"{IMAGE} $x^2$ **film** [link](javascript:window.hacked=1) </span></p> lovely scene " + "W" * 2_000


@pytest.fixture
def run(server_store: Store, draft: Callable[..., RunConfig], tmp_path: Path) -> RunRecord:
    """Return a finished run whose texts and classes contain markup."""
    rows = [(f"{IMAGE} {text} {i}", CLASSES[i % 2]) for i, (text, _) in enumerate(made_rows(60))]
    path = write_csv(tmp_path / "hostile.csv", rows)
    made = recorded(server_store, draft(task={"path": str(path)}, more=MORE))
    assert made.status == Status.FINISHED
    return made


def texts(page: Page) -> list[str]:
    """Return the highlighted texts, once they and every figure are drawn."""
    page.locator(".token-text").first.wait_for(timeout=JOB_MS)
    quiet(page)
    for number in range(page.locator(".live-figure").count()):
        expect(page.locator(".live-figure").nth(number)).to_have_attribute("data-updates", re.compile(r"\d+"))
    return page.locator(".token-text").evaluate_all("nodes => nodes.map(node => node.outerHTML)")


@pytest.mark.slow
def test_hostile_texts_stay_text_and_the_address_restores_the_view(
    page: Page, visit: Callable[..., Page], server: Server, run: RunRecord
) -> None:
    page.goto(f"{server.url}/tokens?run={run.id}&k=3")
    before = texts(page)
    assert len(before) == 2
    assert IMAGE in page.locator(".token-text p").first.inner_text()
    page.locator(".live-figure").first.hover()
    nothing_ran(page)

    page.get_by_role("slider", name="Layer").press("ArrowLeft")
    expect(
        page.get_by_text("Layer 1 of 2, mean of 2 heads, k 3, without punctuation. Attention on special tokens")
    ).to_be_visible()
    page.get_by_role("slider", name="Before (step)").press("ArrowRight")
    expect(page.get_by_text("Before (step 2)")).to_be_visible()
    shown = texts(page)
    assert shown != before
    phone = visit(*PHONE)
    phone.goto(page.url)
    assert texts(phone) == shown
    shown_as_text(phone)


@pytest.mark.slow
def test_a_hostile_text_of_ones_own_stays_text_in_every_view(page: Page, server: Server, run: RunRecord) -> None:
    page.goto(f"{server.url}/tokens?run={run.id}&k=3")
    page.get_by_text("Your own text").click()
    expect(page.locator(".token-text")).to_have_count(0)
    page.get_by_label("Your text").fill(OWN)
    page.get_by_role("button", name="Analyse").click()
    assert len(texts(page)) == 2
    written = "node => [...node.querySelectorAll('sup')].forEach((sign) => sign.remove()) || node.innerText"
    assert page.locator(".token-text p").first.evaluate(written) == OWN  # `sup` holds the signs of changed words
    assert page.locator(".token-text p[data-side]").count() == 2
    nothing_ran(page)

    page.get_by_text("Delete a word").click()
    page.get_by_role("button", name="Delete each word in turn").click()
    expect(page.get_by_text("Attention is not explanation")).to_be_visible(timeout=JOB_MS)
    assert "window.hacked=1" in texts(page)[0]
    expect(
        page.get_by_text(re.compile(r"(None|\d) of the 5 words with the most attention (is|are) among"))
    ).to_be_visible()
    shown_as_text(page)

    page.get_by_text("By class").click()
    expect(page.get_by_text("Selected words by class, step 8")).to_be_visible()
    expect(page.get_by_test_id("data-grid-canvas")).to_have_count(2)
    shown_as_text(page)
