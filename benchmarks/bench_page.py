"""A run as one HTML file: its size for 200 points × 50 frames with tokens, and the time until its map moves.

Targets: at most 3 MB; at most a second from the navigation to the file on disk until the map has moved. The first time
of each does not count.
"""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser

from benchmarks.browsing import awaited, browsing, new_page
from benchmarks.invented_run import make_run
from benchmarks.measure import elapsed_s, options, own_folders, report
from core.exports.run_page import run_page
from core.store import Store

POINTS, FRAMES, STEPS = 200, 50, 400
# Milliseconds from the navigation to the file until the map shows a later step than its first.
WATCH = """
    window.moved = new Promise((done) => {
      new MutationObserver((_, observer) => {
        if (!(Number(document.querySelector('.map-view')?.dataset.step) > 0)) return;
        observer.disconnect();
        afterPicture(done);
      }).observe(document, { subtree: true, attributes: true, attributeFilter: ['data-step'] });
    });
"""


def main() -> None:
    given = options(__doc__, repeats=7)
    with own_folders() as folder:
        store = Store(folder)
        run = store.run(make_run(store, "page", STEPS, FRAMES, POINTS, attention=True))
        texts = list[str]()
        written_s = [elapsed_s(lambda: texts.append(run_page(store, [run]))) for _ in range(given.repeats + 1)]
        store.close()
        path = folder.with_name("page.html")
        path.write_text(texts[-1], encoding="utf-8")
        report("MB", f"{POINTS} points, {FRAMES} frames with tokens", [path.stat().st_size / 1e6], "≤ 3", 2)
        report("seconds", "writing the file", written_s[1:], "none", 2)
        with browsing() as browser:
            seconds = [moved_s(browser, path) for _ in range(given.repeats + 1)]
            report("seconds", "until it moves", seconds[1:], "≤ 1", 2)


def moved_s(browser: Browser, path: Path) -> float:
    page = new_page(browser)
    page.add_init_script(WATCH)
    page.goto(path.as_uri())
    found = awaited(page, "moved") / 1000
    page.context.close()
    return float(found)


if __name__ == "__main__":
    main()
