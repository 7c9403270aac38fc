"""Shared helpers of the browser benchmarks: the browser, the app's server, and a stopwatch inside the page.

Times are measured inside the page, because a round trip between Python and the browser takes longer than some of them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.measure import ROOT, end_processes
from tests.browser.apps.serving import served
from tests.browser.chromium import ARGUMENTS, find_chromium

VIEW = {"width": 1400, "height": 1000}
TIMEOUT_MS = 60_000
REST_S, REST_LIMIT_S, REST_SHARE = 1.0, 180.0, 0.15
# Records when the map was first on the screen and when the page exchanged messages with the server, in milliseconds
# since the navigation. A change is on the screen once the next frame has been drawn. Results are promises, because
# Playwright's own waiting requests frame after frame, which slows the page.
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
# Measure the time from the next press until the value of `look` changes.
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
    """A headless Chromium. Exits with a message if none is installed."""
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
    """Address of a server started by `streamlit run app.py`. The context ends it and its warm processes."""
    with served(ROOT / "app.py", log) as url:
        try:
            yield url
        finally:  # before the server is killed, while its children can still be identified
            end_processes(psutil.Process().children(recursive=True))


def server_of(address: str) -> psutil.Process:
    """Process that listens at the address."""
    port = urlsplit(address).port
    for process in psutil.Process().children(recursive=True):
        if any(one.laddr.port == port for one in process.net_connections() if one.status == psutil.CONN_LISTEN):
            return process
    raise RuntimeError("No process listens at the server's address.")


def new_page(browser: Browser) -> Page:
    """A page of a new visitor, with an empty browser cache."""
    page = browser.new_context(viewport=VIEW).new_page()
    page.set_default_timeout(TIMEOUT_MS)
    page.add_init_script(WATCH)
    return page


def open_map(page: Page, address: str) -> float:
    """Milliseconds from the navigation until the map was on the screen. Returns once the page's script has ended."""
    page.goto(address, wait_until="commit")
    shown_ms = float(awaited(page, "drawn"))
    rest(page)
    return shown_ms


def awaited(page: Page, promise: str) -> Any:
    """Value of a promise in the page's window."""
    late = f"new Promise((_, fail) => setTimeout(() => fail(new Error('no answer')), {TIMEOUT_MS}))"
    return page.evaluate(f"Promise.race([window.{promise}, {late}])")


def rest(page: Page) -> None:
    """Wait for the end of the page's script."""
    page.locator('[data-testid="stApp"][data-test-script-state="notRunning"]').wait_for()


def points_drawn(page: Page) -> tuple[int, int]:
    """Number of points within the first map, 0 if nothing is painted, and number of its frames."""
    points, frames = page.evaluate(POINTS)
    return points, frames


def press_ms(page: Page, x: float, y: float, look: str) -> dict[str, float]:
    """Press at a position and wait for the answer.

    Args:
        look: a JavaScript function whose value changes with the answer; an empty value is no answer.
    Returns: milliseconds in the page until it sent its request ("asking"), until the last message before the answer
        was in the page ("server"), from there to the screen ("showing"), and from press to screen ("all").
    """
    page.mouse.move(x, y)
    page.evaluate("new Promise((done) => afterPicture(() => afterPicture(done)))")  # the hover effect is drawn
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
    """Wait until this process's children, including server and browser, are nearly idle."""
    deadline = time.monotonic() + REST_LIMIT_S
    before = _cpu_s()
    while time.monotonic() < deadline:
        time.sleep(REST_S)
        now = _cpu_s()
        if now - before < REST_SHARE * REST_S:
            return
        before = now
    raise RuntimeError("The server or the browser does not become idle.")


def _cpu_s() -> float:
    total = 0.0
    for process in psutil.Process().children(recursive=True):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system
    return total
