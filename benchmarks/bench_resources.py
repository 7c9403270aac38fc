"""Memory, open files, threads and processes that the server keeps after many page loads and many runs.

Each page load is a new visitor of the next of ten pages in Chromium, who leaves once the page is drawn. The runs have
two steps each and follow each other. Streamlit keeps a session, with three open files of its event loop, for two
minutes after its visitor has left, and forgets it when the next one leaves. So the figures are read again after
`LEAVE_S` and one more visit.
"""

from __future__ import annotations

import time
from pathlib import Path

import psutil

from benchmarks.bench_visitors import begun_and_ended, resident
from benchmarks.bench_weight import PAGES
from benchmarks.browsing import browsing, new_page, rest, served_app, server_of
from benchmarks.measure import WarmEngine, options, own_folders
from core.store import Store

LEAVE_S, SETTLE_S = 150.0, 5.0
MIB = 2**20


def figures(server: psutil.Process) -> str:
    with server.oneshot():
        held = f"{server.num_fds()} open files, {server.num_threads()} threads"
    children = [child for child in server.children(recursive=True) if child.status() != psutil.STATUS_ZOMBIE]
    return f"{resident(server) / MIB:.0f} MiB, {held}, {len(children)} child processes"


def main() -> None:
    given = options(__doc__, loads=100, runs=30)
    with own_folders() as folder, served_app(Path(folder).with_name("server.log")) as address, browsing() as browser:
        engine, server = WarmEngine(Store(folder)), server_of(address)

        def load(name: str) -> None:
            page = new_page(browser)
            page.goto(f"{address}/{'' if name == 'Home' else name.lower().replace(' ', '_').replace('-', '_')}")
            page.locator("h1").first.wait_for()
            rest(page)
            page.context.close()

        def leave() -> None:
            time.sleep(LEAVE_S)
            load("Home")
            time.sleep(SETTLE_S)

        for name in PAGES:
            load(name)
        begun_and_ended(engine)
        leave()
        print(f"before, each page loaded once: {figures(server)}", flush=True)
        for number in range(given.loads):
            load(PAGES[number % len(PAGES)])
        print(f"after {given.loads} page loads: {figures(server)}", flush=True)
        leave()
        print(f"{LEAVE_S:.0f} s later: {figures(server)}", flush=True)
        for _ in range(given.runs):
            begun_and_ended(engine)
        leave()
        print(f"after {given.runs} runs: {figures(server)}", flush=True)
        engine.store.close()


if __name__ == "__main__":
    main()
