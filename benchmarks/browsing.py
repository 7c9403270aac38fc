"""What benchmarks in a browser share: the browser, the app's server, and a stopwatch that runs within the page.

Times are taken where things happen: a round trip between Python and the browser costs more than some of what is timed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.measure import ROOT, end_processes
from tests.browser.apps.serving import served
from tests.browser.chromium import ARGUMENTS, find_chromium

VIEW = {"width": 1400, "height": 1000}
TIMEOUT_MS = 60_000
REST_S, REST_LIMIT_S, REST_SHARE = 1.0, 180.0, 0.15
# When the map was first on the screen, and when the page spoke to the server and heard from it; milliseconds since the
# browser set out for the address. What is changed before a picture is on the screen once that picture is through.
# Everything is a promise: Playwright's own waiting asks for picture after picture, which takes the page's time.
WATCH = """
    window.traffic = { sent: [], heard: [] };
    window.afterPicture = (call) => requestAnimationFrame(() => setTimeout(() => call(performance.now())));
    const send = WebSocket.prototype.send;
    WebSocket.prototype.send = function (data) {
      traffic.sent.push(performance.now());
      if (!this.watched) {
        const hear = ({ data }) => traffic.heard.push([performance.now(), data.byteLength ?? data.size]);
        this.addEventListener('message', hear, { capture: true });
        this.watched = true;
      }
      return send.call(this, data);
    };
    window.drawn = new Promise((done) => {
      new MutationObserver((_, observer) => {
        if (!document.querySelector('.map-view[data-updates]')) return;
        observer.disconnect();
        afterPicture(done);
      }).observe(document, { subtree: true, attributes: true, attributeFilter: ['data-updates'] });
    });
"""
# From the next press on: until what is looked at differs from what it is now.
ARM = """(look) => {
    const [seen, marks] = [eval(look), {}];
    const before = seen();
    Object.assign(traffic, { sent: [], heard: [] });
    for (const [kind, name] of [['pointerdown', 'pressed'], ['pointerup', 'released']]) {
      addEventListener(kind, (event) => (marks[name] = event.timeStamp), { capture: true, once: true });
    }
    window.answered = new Promise((done) => {
      const observer = new MutationObserver(() => {
        const after = marks.released && seen();
        if (!after || after === before) return;
        observer.disconnect();
        marks.heard = Math.max(0, ...traffic.heard.map(([at]) => at));
        afterPicture((now) => done({ ...marks, sent: traffic.sent[0], shown: now }));
      });
      const attributes = { attributes: true, attributeFilter: ['data-updates'] };
      observer.observe(document.body, { subtree: true, childList: true, characterData: true, ...attributes });
    });
}"""
POINTS = """() => {
    const { panels, timeline } = document.querySelector('.map-view').map;
    const [{ screen, width, height, canvas }] = panels;
    let points = 0;
    for (let at = 0; at < screen.length; at += 3) {
      const [x, y] = [screen[at], screen[at + 1]];
      points += x >= 0 && y >= 0 && x <= width && y <= height;
    }
    const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
    const inked = pixels.some((value, at) => at % 4 === 3 && value > 0);
    return [inked ? points : 0, timeline.playable.length];
}"""


@contextmanager
def browsing() -> Iterator[Browser]:
    """A headless Chromium; ends with a sentence where there is none."""
    path = find_chromium()
    if path is None:
        sys.exit("This benchmark needs a Chromium: .venv/bin/python -m tests.browser.chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def served_app(log: Path) -> Iterator[str]:
    """The address of `streamlit run app.py`, which ends with the context, with its warm processes."""
    with served(ROOT / "app.py", log) as url:
        try:
            yield url
        finally:  # before the server is killed, and nobody knows any more whose children they are
            end_processes(psutil.Process().children(recursive=True))


def new_page(browser: Browser) -> Page:
    """A page of a visitor whom nobody knows: nothing is in the browser's cache."""
    page = browser.new_context(viewport=VIEW).new_page()
    page.set_default_timeout(TIMEOUT_MS)
    page.add_init_script(WATCH)
    return page


def open_map(page: Page, address: str) -> float:
    """Milliseconds from setting out for the address until the map was on the screen; returns once the page rests."""
    page.goto(address, wait_until="commit")
    shown_ms = float(awaited(page, "drawn"))
    rest(page)
    return shown_ms


def awaited(page: Page, promise: str) -> Any:
    """What a promise of the page's window gives."""
    late = f"new Promise((_, fail) => setTimeout(() => fail(new Error('no answer')), {TIMEOUT_MS}))"
    return page.evaluate(f"Promise.race([window.{promise}, {late}])")


def rest(page: Page) -> None:
    """Wait for the end of the page's script."""
    page.locator('[data-testid="stApp"][data-test-script-state="notRunning"]').wait_for()


def points_drawn(page: Page) -> tuple[int, int]:
    """How many points lie within the first map, 0 where nothing is painted; and how many frames it has."""
    points, frames = page.evaluate(POINTS)
    return points, frames


def press_ms(page: Page, x: float, y: float, look: str) -> dict[str, float]:
    """Press at a place and wait for what is looked at.

    Args:
        look: a function in JavaScript, whose value changes with the answer; what is empty is no answer.
    Returns: milliseconds in the page until it asked the server ("asking"), until the last message before the answer
        stood in the page ("server"), from there to the screen ("showing"), and from press to screen ("all").
    """
    page.mouse.move(x, y)
    page.evaluate("new Promise((done) => afterPicture(() => afterPicture(done)))")  # what the pointer lies on is shown
    page.evaluate(ARM, look)
    page.mouse.click(x, y)
    marks = awaited(page, "answered")
    return {
        "asking": marks["sent"] - marks["pressed"],
        "server": marks["heard"] - marks["sent"],
        "showing": marks["shown"] - marks["heard"],
        "all": marks["shown"] - marks["pressed"],
    }


def wait_until_quiet() -> None:
    """Until this process's children, the server's and the browser's among them, compute hardly anything."""
    deadline = time.monotonic() + REST_LIMIT_S
    before = _cpu_s()
    while time.monotonic() < deadline:
        time.sleep(REST_S)
        now = _cpu_s()
        if now - before < REST_SHARE * REST_S:
            return
        before = now
    raise RuntimeError("The server or the browser does not come to rest.")


def _cpu_s() -> float:
    total = 0.0
    for process in psutil.Process().children(recursive=True):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system
    return total
