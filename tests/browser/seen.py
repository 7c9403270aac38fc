"""The screens on which pages are looked at, and how a page is waited for."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.conftest import made_rows, write_csv

LIGHT_AND_DARK = ("light", "dark")
WIDE = ((1280, 720), (1400, 900))
PHONE = (390, 844)
PLAYER = ".map-player"
REFLOW_MS = 400
MANY_CLASSES = 77
THINGS = ("account", "direct debit", "exchange rate", "pending transfer", "virtual card")
VERBS = ("block", "open", "change", "dispute")
WHERE = ("abroad", "online", "by card", "soon")
DRAWN = ".live-figure, .map-view"


def settled(page: Page, address: str) -> None:
    """Go there, and wait until the page and its figures are drawn."""
    page.goto(address)
    page.locator("h1").first.wait_for()
    page.locator('[data-testid="stApp"][data-test-script-state="notRunning"]').wait_for()
    for place in range(page.locator(DRAWN).count()):
        expect(page.locator(DRAWN).nth(place)).to_have_attribute("data-updates", re.compile(r"\d+"))
    expect(page.locator('[data-testid="stSpinner"], [data-testid="stSkeleton"]')).to_have_count(0)


def many_classes_csv(folder: Path) -> Path:
    """Twelve rows of each of 77 classes, whose names are as long as those of intents are."""
    names = [f"{verb} my {thing} {where}" for where in WHERE for verb in VERBS for thing in THINGS][:MANY_CLASSES]
    texts = [f"{text} {place % MANY_CLASSES}" for place, (text, _) in enumerate(made_rows(12 * MANY_CLASSES))]
    return write_csv(folder / "intents.csv", [(text, names[i % MANY_CLASSES]) for i, text in enumerate(texts)])
