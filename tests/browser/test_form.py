"""Tests of the form in Chromium: it shows the draft, after a link and after a config file."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from core.cli.main import draft_from
from tests.browser.conftest import Server
from tests.browser.seen import box_of, settled
from tests.cases import slow_but

pytestmark = pytest.mark.usefixtures("laptop")


def shows(page: Page, pooling: str, seed: str) -> None:
    field = page.locator("[class*=st-key-form-pooling] input")
    expect(field).to_have_count(1)  # wait until the previous field is removed
    expect(field).to_have_value(pooling)
    expect(page.get_by_text(f"Seed {seed} · 24 frames")).to_be_visible()
    expect(page.get_by_label("Seed", exact=True)).to_have_value(seed)


def open_config(page: Page, content: bytes) -> None:
    page.get_by_role("button", name="Open a config").click()
    file = {"name": "mine.json", "mimeType": "application/json", "buffer": content}
    page.locator('input[type="file"]').set_input_files(file)
    page.get_by_role("button", name="Use it").click()


@pytest.mark.parametrize("task", slow_but(["film_reviews"], ["film_reviews", "nli"]))
def test_the_main_controls_need_no_scrolling(page: Page, server: Server, task: str) -> None:
    """Task, preset, λ, τ, the equation, the effect of τ, time, memory and Launch need no scrolling."""
    settled(page, f"{server.url}/fine_tune?task={task}")
    expect(page.locator(".softmax-bars i")).to_have_count(15)
    knobs = ('[class*="st-key-form-0-knob-lambda"]', '[class*="st-key-form-0-knob-temperature"]')
    selects = ('[class*="st-key-form-task"]', '[class*="st-key-form-0-preset"]')
    launch = '[data-testid="stBaseButton-primary"]'
    for selector in (*selects, *knobs, ".katex-display", ".softmax-bars", '[data-testid="stMetric"]', launch):
        for box in map(box_of, page.locator(selector).all()):
            assert box["y"] >= 60, selector
            assert box["y"] + box["height"] <= 720, selector


def test_a_section_shows_its_values_in_its_title_and_stays_open_when_they_change(page: Page, server: Server) -> None:
    settled(page, f"{server.url}/fine_tune")
    expect(page.get_by_text("All training rows · random batches")).to_be_visible()
    expect(page.get_by_text("Encoder: all-MiniLM-L6-v2 · mean pooling · up to 128 tokens")).to_be_visible()
    page.get_by_text("Training: all weights · 120 steps, batch size 16 · learning rate 1e-4").click()
    steps = page.get_by_label("Steps", exact=True)
    steps.fill("60")
    steps.press("Enter")
    expect(page.get_by_text("Training: all weights · 60 steps, batch size 16 · learning rate 1e-4")).to_be_visible()
    expect(steps).to_be_visible()


@pytest.mark.slow
def test_a_config_file_fills_a_form_that_showed_something_else(page: Page, server: Server) -> None:
    """A browser keeps the value of a widget as long as its key stays the same."""
    page.goto(f"{server.url}/fine_tune?set=seed%3D5")
    shows(page, "Encoder's own: mean", "5")
    open_config(page, draft_from({"pooling": "cls", "seed": 7}).to_json().encode())
    page.keyboard.press("Escape")
    page.wait_for_url(re.compile(r"set=seed%3D7"))
    shows(page, "[CLS]", "7")
    other = page.context.new_page()
    other.goto(page.url)
    shows(other, "[CLS]", "7")
    other.close()


@pytest.mark.slow
def test_an_invalid_config_file_changes_nothing(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/fine_tune?set=seed%3D5")
    open_config(page, b'{"seed": -3}')
    expect(page.get_by_text("give a whole number from 0")).to_be_visible()
    page.keyboard.press("Escape")
    shows(page, "Encoder's own: mean", "5")
