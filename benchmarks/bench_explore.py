"""Explore in a browser: time to open, to show neighbours, and to respond while UMAP computes.

Opening: from the navigation to a run with 200 frames of 2,000 points, width 384, until its map with all points is on
the screen. The server is warm and has served another, small run. Either nothing of the measured run is in memory
("first") or the run has been opened before ("again"). The browser's cache is empty each time. The time of the small
run shows the share of Streamlit and of the page's scripts.

Neighbours: from the press of the pointer on a point of a run with 5,000 points, width 768, until the table of its
neighbours is on the screen. The script checks the table's first row against a scan of all vectors. The first click,
which prepares the frame's vectors, does not count.

While UMAP computes: one visitor has started UMAP for another such run, whose page stays open. A second visitor clicks
points and changes the colours of the first run. A response counts only if the same UMAP job is active before and
after it.

The page's clock measures all times. Targets: at most 2 s, 100 ms and 300 ms.
"""

from __future__ import annotations

import argparse
import os
import re
import time
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

import numpy as np
import psutil
from numpy.typing import NDArray
from playwright.sync_api import Browser, Page

from benchmarks.browsing import (
    browsing,
    new_page,
    open_map,
    points_drawn,
    press_ms,
    rest,
    served_app,
    wait_until_quiet,
)
from benchmarks.invented_run import make_run
from benchmarks.measure import in_turn, options, own_folders, repeated, report, wait_until
from core.representation.geometry import normalised
from core.store import Store
from core.store.job_table import JobTable
from core.workers import JobRecord, Jobs
from tests.browser.test_map_view import lonely, place

STEPS, WIDTH = 400, 384
SMALL_FRAMES, SMALL_POINTS = 2, 60
# Sizes of the run whose points are clicked, and the frames of the run that UMAP maps: the most that UMAP fits.
CLICKED_FRAMES, CLICKED_WIDTH, UMAP_FRAMES = 4, 768, 24
JOB_LIMIT_S = 240.0
PAUSE_MS = 300
PARTS = {
    "asking": "until the page asked the server",
    "server": "until the last message of the answer",
    "showing": "until it was on the screen",
}
COLOURINGS = ("Prediction", "Confidence", "Label")
TABLE = "() => document.querySelector('.text-table')?.textContent"
COLOURS = "() => document.querySelector('.map-view').map.panels[0].colours.label"

Found = dict[str, list[float]]


def see_map(page: Page, points: int, frames: int) -> None:
    drawn = points_drawn(page)
    if drawn != (points, frames):
        raise RuntimeError(f"The map has {drawn[0]:,} points and {drawn[1]} frames: expected {points:,} and {frames}.")


def opening(browser: Browser, address: str, points: int, frames: int) -> float:
    """Open an address in a new browser context. Returns: seconds until the map is on the screen."""
    wait_until_quiet()
    page = new_page(browser)
    seconds = open_map(page, address) / 1000
    see_map(page, points, frames)
    page.context.close()
    return seconds


def measure_opening(browser: Browser, url: str, store: Store, repeats: int, frames: int, points: int) -> Found:
    """Opening times in seconds, with a new run in each repetition, so that each is opened for the first time."""
    small = make_run(store, "small", STEPS, SMALL_FRAMES, SMALL_POINTS)
    opening(browser, f"{url}/explore?run={small}", SMALL_POINTS, SMALL_FRAMES)

    def opened(repetition: int) -> dict[str, float]:
        run = make_run(store, f"big {repetition}", STEPS, frames, points, WIDTH)
        seconds = {}
        for name in in_turn(repetition, ["small", "big"]):
            if name == "small":
                seconds[name] = opening(browser, f"{url}/explore?run={small}", SMALL_POINTS, SMALL_FRAMES)
                continue
            for which in ("first", "again"):
                seconds[which] = opening(browser, f"{url}/explore?run={run}", points, frames)
                # Opening a page starts jobs for the sections below the map; the next opening must not wait for them.
                end_jobs(Jobs(store.folder))
        store.discard(run)
        return seconds

    found = repeated(repeats, opened, 2)
    print(f"Each map had all {points:,} points of its run, and {frames} frames.", flush=True)
    return found


def end_jobs(jobs: Jobs) -> None:
    for job in jobs.jobs():
        if job.active:
            jobs.cancel(job.id)


def open_clicked(browser: Browser, url: str, run: str, points: int) -> Page:
    """Open the run whose points are clicked, and wait until its jobs have ended."""
    page = new_page(browser)
    open_map(page, f"{url}/explore?run={run}&panel=neighbours")
    see_map(page, points, CLICKED_FRAMES)
    page.get_by_text(re.compile("Trustworthiness")).wait_for(timeout=JOB_LIMIT_S * 1000)
    wait_until_quiet()
    return page


class Clicks:
    """Clicks on different points of one run; each table of neighbours is checked."""

    def __init__(self, page: Page, store: Store, run: str) -> None:
        self.page = page
        record = store.run(run)
        assert record.probe is not None
        self._texts = record.probe.texts
        self._vectors: NDArray[np.float64] = normalised(store.embeddings(run, store.frame_steps(run)[-1]))
        self.tops: list[str] = []

    def next_ms(self) -> dict[str, float]:
        example = lonely(self.page, len(self.tops))
        taken = press_ms(self.page, *place(self.page, example), TABLE)
        rest(self.page)
        self._check(example)
        self.page.wait_for_timeout(PAUSE_MS)
        return taken

    def _check(self, example: int) -> None:
        """Compare the table's first row with a scan of all rows."""
        cosines = self._vectors @ self._vectors[example]
        cosines[example] = -np.inf
        nearest = int(cosines.argmax())
        row = self.page.locator(".text-table tbody").first
        value, text = row.locator("td.number").first.inner_text(), row.locator("td.wide").text_content() or ""
        if abs(float(value) - cosines[nearest]) > 6e-4 or text != " ".join(self._texts[nearest].split()):
            raise RuntimeError(f"The nearest of {example} is {nearest}; the page shows {value}, {text!r}.")
        self.tops.append(f"{example} → {nearest} at {value}")


def change_colours_ms(page: Page, name: str) -> dict[str, float]:
    """Milliseconds from the press on an entry of the list of colours to the map in these colours."""
    page.get_by_role("combobox", name=re.compile("Colour by")).click()
    box = page.get_by_role("option", name=f"Colour: {name.lower()}", exact=True).bounding_box()
    assert box is not None
    taken = press_ms(page, box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, COLOURS)
    rest(page)
    page.wait_for_timeout(PAUSE_MS)
    return taken


class UmapAtWork:
    """A UMAP job that a visitor has started from the page."""

    def __init__(self, browser: Browser, url: str, folder: Path, run: str) -> None:
        self._jobs, self._table = Jobs(folder), JobTable(folder)
        page = new_page(browser)
        open_map(page, f"{url}/explore?run={run}")
        end_jobs(self._jobs)  # otherwise the measures of PCA would run first
        page.get_by_text("UMAP", exact=True).click()
        seen: list[JobRecord] = []

        def is_mapping() -> bool:
            """Return whether the code is compiled and a frame is mapped."""
            seen[:] = [job for job in [self._at_work()] if job is not None]
            return bool(seen and seen[0].done)

        wait_until(is_mapping, JOB_LIMIT_S, 0.2)
        self._id = seen[0].id
        print(f"UMAP is running: {seen[0].done} of {seen[0].total} frames", flush=True)
        self._seen = self._process_cpu_s(), time.monotonic()

    def _process_cpu_s(self) -> float:
        process = self._table.warm_process("maps")
        assert process is not None
        times = psutil.Process(process.worker.pid).cpu_times()
        return float(times.user + times.system)

    def _at_work(self) -> JobRecord | None:
        """The job that the warm process executes, if it is a UMAP job."""
        process = self._table.warm_process("maps")
        job = next((j for j in self._jobs.jobs() if process is not None and j.id == process.doing), None)
        is_umap = job is not None and job.kind == "map" and job.request["spec"]["method"] == "umap"
        return job if is_umap and job is not None and job.active else None

    def measure_during(self, call: Callable[[], dict[str, float]]) -> dict[str, float]:
        """Measure a call while UMAP runs. Raises: RuntimeError unless the job is active before and after the call."""
        self._check()
        taken = call()
        self._check()
        return taken

    def _check(self) -> None:
        job = self._at_work()
        if job is None or job.id != self._id or not str(job.message).startswith("Placing"):
            raise RuntimeError("The UMAP job has ended. Use fewer repeats.")

    def report(self) -> None:
        job = self._at_work()
        (cpu_s, at), now = self._seen, time.monotonic()
        share = (self._process_cpu_s() - cpu_s) / (now - at)
        print(f"UMAP used {share:.0%} of a core, and is at {job and job.done} of {job and job.total} frames")


def tell_answers(title: str, found: Found, target: str) -> None:
    report("milliseconds", title, found["all"], target, 0)
    for name, words in PARTS.items():
        report("milliseconds", f"{title}: {words}", found[name], "–", 0)


def measure(browser: Browser, url: str, folder: Path, given: argparse.Namespace) -> None:
    store, repeats = Store(folder), given.repeats
    seconds = measure_opening(browser, url, store, repeats, given.frames, given.points)
    big = f"{given.frames} frames of {given.points:,} points"
    report("seconds", f"opening {big}, first", seconds["first"], "≤ 2", 2)
    report("seconds", f"opening {big}, again", seconds["again"], "≤ 2", 2)
    report("seconds", f"opening {SMALL_FRAMES} frames of {SMALL_POINTS} points", seconds["small"], "–", 2)
    end_jobs(Jobs(folder))
    run, other = (
        make_run(store, name, STEPS, count, given.clicked, CLICKED_WIDTH)
        for name, count in (("clicked", CLICKED_FRAMES), ("mapped", UMAP_FRAMES))
    )
    clicks = Clicks(open_clicked(browser, url, run, given.clicked), store, run)
    names = cycle(COLOURINGS)  # of one series, because a colouring that is set already changes nothing
    title = f"{given.clicked:,} points × {CLICKED_WIDTH}"

    def change() -> dict[str, float]:
        return change_colours_ms(clicks.page, next(names))

    found = repeated(repeats, lambda _: clicks.next_ms(), 0, title="click, ms, {}")
    if len(set(clicks.tops)) != len(clicks.tops):
        raise RuntimeError("The table shows the same neighbours for two points.")
    print(f"First rows of the tables, checked: {'; '.join(clicks.tops[:4])} …", flush=True)
    tell_answers(f"click to neighbours, {title}", found, "≤ 100")
    for _ in COLOURINGS:  # the first use of each is slower
        change()
    tell_answers(f"colours, {title}", repeated(repeats, lambda _: change(), 0, title="colours, ms, {}"), "–")
    umap = UmapAtWork(browser, url, folder, other)
    during = umap.measure_during
    clicked = repeated(repeats, lambda _: during(clicks.next_ms), 0, title="click beside UMAP, ms, {}")
    coloured = repeated(repeats, lambda _: during(change), 0, title="colours beside UMAP, ms, {}")
    umap.report()
    tell_answers(f"click to neighbours while UMAP computes, {title}", clicked, "≤ 300")
    tell_answers(f"colours while UMAP computes, {title}", coloured, "≤ 300")
    store.close()


def main() -> None:
    given = options(__doc__, repeats=7, frames=200, points=2_000, clicked=5_000)
    print(f"load average before: {os.getloadavg()[0]:.2f} on {os.cpu_count()} cores", flush=True)
    with own_folders() as folder, served_app(folder.with_name("server.log")) as url, browsing() as browser:
        measure(browser, url, folder, given)
    print(f"load average after: {os.getloadavg()[0]:.2f}", flush=True)


if __name__ == "__main__":
    main()
