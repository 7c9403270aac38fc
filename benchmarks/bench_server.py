"""Time from `streamlit run app.py` to a complete first page in a browser.

The browser starts before the clock, and each repetition has a new server and an empty cache. Home is complete when its
title is visible and its script has ended; its replay moves when the map shows another step. The script then reads the
server's memory maps: the server must have loaded neither torch (libtorch) nor numba (llvmlite) nor pandas, which an
existing store does not need.

Targets: at most 3 s to the page, at most 5 s to a moving replay.
"""

from __future__ import annotations

import time
from pathlib import Path

from playwright.sync_api import Browser

from benchmarks.browsing import TIMEOUT_MS, browsing, rest, server_of
from benchmarks.measure import ROOT, end_processes, options, own_folders, repeated, report
from core.store import Store
from tests.browser.apps.serving import served

TITLE = "Watch a text encoder learn"
# The map's `data-step` is the step it shows.
MOVED = """() => {
  const step = document.querySelector(".map-view[data-step]")?.dataset.step;
  if (step === undefined) return false;
  window.firstStep ??= step;
  return step !== window.firstStep;
}"""
UNWANTED = ("libtorch", "llvmlite", "pandas")


def start_s(browser: Browser, log: Path) -> dict[str, float]:
    """Seconds until the server answers, the title is visible, the script has ended and the replay moves."""
    page = browser.new_context().new_page()
    page.set_default_timeout(TIMEOUT_MS)
    start = time.perf_counter()
    with served(ROOT / "app.py", log) as url:
        server = server_of(url)
        try:
            found = {"healthy": time.perf_counter() - start}
            page.goto(url, wait_until="commit")
            page.get_by_role("heading", name=TITLE).wait_for()
            found["title"] = time.perf_counter() - start
            rest(page)
            found["page"] = time.perf_counter() - start
            page.wait_for_function(MOVED)
            found["moving"] = time.perf_counter() - start
            _check_maps(server.pid)
        finally:
            page.context.close()
            end_processes(server.children(recursive=True))  # a warm process in a separate session
    return found


def _check_maps(pid: int) -> None:
    maps = Path(f"/proc/{pid}/maps").read_text()
    loaded = [name for name in UNWANTED if name in maps]
    if loaded:
        raise RuntimeError(f"The server has loaded {' and '.join(loaded)}.")


def main() -> None:
    given = options(__doc__, repeats=7)
    with own_folders() as folder, browsing() as browser:
        Store(folder).close()
        # In the warm-up, files come from disk, and the browser opens its first page.
        found = repeated(given.repeats, lambda _: start_s(browser, folder / "server.log"), 2)
    report("seconds", "server start to first page, no torch, numba or pandas loaded", found["page"], "≤ 3", 2)
    report("seconds", "server start to a moving replay", found["moving"], "≤ 5", 2)


if __name__ == "__main__":
    main()
