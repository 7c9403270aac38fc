"""Screen sizes of the browser tests, and functions that wait for a page."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

from playwright.sync_api import FloatRect, Locator, Page, TimeoutError, expect

from tests.conftest import made_rows, write_csv

LIGHT_AND_DARK = ("light", "dark")
WIDE = ((1280, 720), (1400, 900))
PHONE = (390, 844)
PLAYER = ".map-player"
REST_MS, FOLLOWS_MS, NEVER_MS = 80, 10_000, 16_000
# Time limit of a job or a run. Its process has the lowest priority, and loads torch before it begins.
JOB_MS = 200_000
MANY_CLASSES = 77
THINGS = ("account", "direct debit", "exchange rate", "pending transfer", "virtual card")
VERBS = ("block", "open", "change", "dispute")
WHERE = ("abroad", "online", "by card", "soon")
DRAWN = ".live-figure, .map-view"
# Resolves once no visible element has moved for several animation frames.
REST = """([rest, never]) => new Promise((resolve, reject) => {
    const things = "h1, button, canvas, .map-view, .live-figure";
    const places = () => JSON.stringify([...document.querySelectorAll(things)].map((node) => {
        const { left, top, width, height } = node.getBoundingClientRect();
        return [left, top, width, height].map(Math.round);
    }));
    const begun = performance.now();
    let before = places(), since = begun;
    const look = (now) => {
        const here = places();
        if (here !== before) [before, since] = [here, now];
        if (now - since >= rest) resolve();
        else if (now - begun > never) reject(new Error("the page never comes to rest"));
        else requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
})"""

FITS = """() => [document.scrollingElement, document.querySelector("[data-testid=stMain]")]
    .filter(Boolean).every((node) => node.scrollWidth <= node.clientWidth)"""


def quiet(page: Page) -> None:
    """Wait until the page has been drawn. A press is lost if its target moves before the release."""
    page.locator('[data-testid="stApp"][data-test-script-state="notRunning"]').wait_for()


def press(page: Page, name: str) -> None:
    """Press a button once the page has been drawn. Controls beside it may appear and disappear."""
    quiet(page)
    page.get_by_role("button", name=name).click()


def settled(page: Page, address: str) -> None:
    """Open an address, and wait until the page and its figures are drawn."""
    page.goto(address)
    page.locator("h1").first.wait_for()
    quiet(page)
    for place in range(page.locator(".lab-view").count()):
        expect(page.locator(".lab-view").nth(place)).to_have_attribute("data-answered", re.compile(r"\d+"))
    for place in range(page.locator(DRAWN).count()):
        expect(page.locator(DRAWN).nth(place)).to_have_attribute("data-updates", re.compile(r"\d+"))
    expect(page.locator('[data-testid="stSpinner"], [data-testid="stSkeleton"]')).to_have_count(0)
    quiet(page)  # a figure's event may start another rerun, which fades the elements it will replace


def at_rest(page: Page) -> None:
    """Wait until no element moves."""
    page.evaluate(REST, [REST_MS, NEVER_MS])


def resized(page: Page, width: int, height: int) -> None:
    """Resize the screen, and wait until no element moves."""
    page.set_viewport_size({"width": width, "height": height})
    at_rest(page)


def box_of(element: Locator) -> FloatRect:
    """Return the position and size of an element, once it is visible."""
    element.wait_for()  # a rerun draws a replaced element after a delay
    box = element.bounding_box()
    assert box is not None
    return box


def bottom(page: Page, selector: str) -> float:
    box = box_of(page.locator(selector).first)
    return box["y"] + box["height"]


def drag(page: Page, element: Locator, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Drag inside an element. Start and end are fractions of its size."""
    box = box_of(element)
    page.mouse.move(box["x"] + start[0] * box["width"], box["y"] + start[1] * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + end[0] * box["width"], box["y"] + end[1] * box["height"], steps=8)
    page.mouse.up()


def fits(page: Page) -> bool:
    """Test whether the page fits the width of its screen after resizing. Tables may scroll internally."""
    with contextlib.suppress(TimeoutError):
        page.wait_for_function(FITS, timeout=FOLLOWS_MS)
        return True
    return False


def many_classes_csv(folder: Path) -> Path:
    """Write a CSV with twelve rows of each of 77 classes, with names as long as those of intents."""
    names = [f"{verb} my {thing} {where}" for where in WHERE for verb in VERBS for thing in THINGS][:MANY_CLASSES]
    texts = [f"{text} {place % MANY_CLASSES}" for place, (text, _) in enumerate(made_rows(12 * MANY_CLASSES))]
    return write_csv(folder / "intents.csv", [(text, names[i % MANY_CLASSES]) for i, text in enumerate(texts)])
