"""Cost of watching a run: its throughput with its page open in Chromium, against the same run unwatched.

All three runs have the same config: the bundled encoder and film reviews with the default frames. The server and the
browser are up in each case; for the unwatched run the browser shows an empty page. The page of a watched run is opened
after its submission, so some steps may be over when it appears. It stays on PCA, or the script presses UMAP as soon as
it is offered, and the maps are computed during the run. Throughput is steps per second from the first recorded step to
the last, frames included. A short unwatched run serves as warm-up; the first watched ones count.

Target, watched / unwatched: at least 0.85, on PCA and on UMAP.
"""

from __future__ import annotations

from functools import partial

from playwright.sync_api import Browser

from benchmarks.browsing import VIEW, browsing, served_app, wait_until_quiet
from benchmarks.measure import (
    WarmEngine,
    finished_run,
    options,
    own_folders,
    ratios,
    repeated,
    report,
    spread,
    take_turns,
)
from core.config import parse_config
from core.store import Store
from core.workers import LocalEngine

WAYS = ("unwatched", "PCA", "UMAP")
POLL_S = 0.5


def main() -> None:
    given = options(__doc__, repeats=3, steps=120, precision=("auto", "float32", "bfloat16"))
    with own_folders() as folder, served_app(folder.with_name("server.log")) as url, browsing() as browser:
        store = Store(folder)
        engine = WarmEngine(store)
        watched(browser, url, engine, "unwatched", 2, given.precision)  # caches the untrained encoder's vectors
        sides = {way: partial(watched, browser, url, engine, way, given.steps, given.precision) for way in WAYS}
        found = repeated(given.repeats, lambda number: take_turns(number, sides), warm_up=False)
        store.close()
    for way, values in found.items():
        print(f"{way}: {spread(values)} steps/s")
    for way in WAYS[1:]:
        report("ratio", f"throughput, watched on {way} / unwatched", ratios(found, way, "unwatched"), "≥ 0.85", 2)


def watched(browser: Browser, url: str, engine: LocalEngine, way: str, steps: int, precision: str) -> float:
    """Steps per second of one run."""
    page = browser.new_context(viewport=VIEW).new_page()
    wait_until_quiet()
    draft = {"task": {"id": "film_reviews"}, "phases": [{"steps": steps}], "precision": precision}
    run_id = engine.submit(parse_config(draft))
    if way != "unwatched":
        page.goto(f"{url}/fine_tune?run={run_id}")
    if way == "UMAP":
        page.get_by_text("UMAP", exact=True).click(timeout=60_000)
    finished_run(engine.store, run_id, POLL_S)
    page.context.close()
    times = list(engine.store.newest_times(run_id, steps).values())
    return (len(times) - 1) / (times[-1] - times[0])


if __name__ == "__main__":
    main()
