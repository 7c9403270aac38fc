"""Bytes that a browser fetches when a visitor navigates between pages by the bar at the top.

Home is loaded first. Then every page is visited twice by its link. The first visit also fetches shared components
(tables, charts), which the browser caches; the second gives the weight of a navigation. The count covers the bytes of
every response as received, and those of the messages of Streamlit's WebSocket before compression. Frames of maps (the
files below /media) are counted separately.

Target: at most 300 KB for a navigation after the first load, without frames.
"""

from __future__ import annotations

import base64
import re
from statistics import median
from typing import Any

from playwright.sync_api import Page

from benchmarks.browsing import VIEW, browsing, rest, served_app
from benchmarks.measure import options, own_folders, progress, report
from core.artifacts.replay import open_replay
from core.artifacts.shipped import SHIPPED
from core.store import Store

PAGES = ("Fine-tune", "Runs", "Explore", "Tokens", "Compare", "Experiments", "Data", "Loss lab", "Lessons", "Home")
FRAMES = "/media/"
START_MS, REST_MS = 300, 2500


class Meter:
    """Counts the bytes that a page fetches. Attributes: frames, rest: bytes since `reset`."""

    def __init__(self, page: Page) -> None:
        self.frames = self.rest = 0
        self._urls: dict[str, str] = {}
        session = page.context.new_cdp_session(page)
        session.send("Network.enable")
        session.on("Network.requestWillBeSent", lambda e: self._urls.update({e["requestId"]: e["request"]["url"]}))
        session.on("Network.loadingFinished", self._finished)
        session.on("Network.webSocketFrameReceived", self._message)

    def reset(self) -> None:
        self.frames = self.rest = 0

    def _finished(self, event: dict[str, Any]) -> None:
        size = int(event["encodedDataLength"])
        if FRAMES in self._urls.get(event["requestId"], ""):
            self.frames += size
        else:
            self.rest += size

    def _message(self, event: dict[str, Any]) -> None:
        text = event["response"]["payloadData"]
        self.rest += len(base64.b64decode(text)) if event["response"]["opcode"] == 2 else len(text.encode())


def visits(page: Page, meter: Meter, address: str) -> dict[str, list[tuple[int, int]]]:
    """Bytes (rest, frames) of two visits to every page."""
    page.goto(address)
    page.locator("h1").wait_for()
    page.wait_for_timeout(REST_MS)
    found: dict[str, list[tuple[int, int]]] = {}
    for _ in range(2):
        for name in PAGES:
            meter.reset()
            before = page.url
            page.locator("header").get_by_role("link", name=name, exact=True).click()
            page.wait_for_url(re.compile(f"^(?!{re.escape(before)}$)"))
            page.wait_for_timeout(START_MS)
            rest(page)
            page.wait_for_timeout(REST_MS)
            found.setdefault(name, []).append((meter.rest, meter.frames))
    return found


def main() -> None:
    given = options(__doc__, repeats=1)
    again: dict[str, list[float]] = {name: [] for name in PAGES}
    with own_folders() as folder:
        store = Store(folder)
        for one in SHIPPED.values():
            open_replay(store, one.path)
        store.close()
        with served_app(folder.with_name("server.log")) as url, browsing() as browser:
            for repetition in range(given.repeats):
                page = browser.new_context(viewport=VIEW).new_page()
                for name, ((first, frames), (second, _)) in visits(page, Meter(page), url).items():
                    again[name].append(second / 1000)
                    shown = {"first, KB": first / 1000, "again, KB": second / 1000, "frames, KB": frames / 1000}
                    progress(repetition + 1, {f"{name}: {what}": size for what, size in shown.items()}, 0)
                page.context.close()
    for name, sizes in sorted(again.items(), key=lambda page: -median(page[1])):
        report("KB", f"navigation after the first load, without frames, {name}", sizes, "≤ 300", 0)


if __name__ == "__main__":
    main()
