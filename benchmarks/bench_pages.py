"""Rerun time of Runs, Fine-tune (a run's view) and Explore, with 50 runs in the store.

One run has 5,000 steps and 200 frames of 1,000 points; Fine-tune and Explore show it. The other 49 are small. A rerun
goes through Streamlit's AppTest: the script, its messages, and AppTest's parsing of them. The first run of a page,
which fills the caches, does not count. The pages take turns.

Target: a median of at most 200 ms each.
"""

from __future__ import annotations

from functools import partial

import psutil
from streamlit.testing.v1 import AppTest

from benchmarks.invented_run import make_run
from benchmarks.measure import ROOT, elapsed_s, end_processes, options, own_folders, repeated, report, take_turns
from core.store import Store

SMALL_RUNS, SMALL_STEPS, SMALL_FRAMES, SMALL_POINTS = 49, 60, 8, 60
FRAMES, POINTS = 200, 1_000
PAGES = {"Runs": "pages/runs.py", "Fine-tune": "pages/fine_tune.py", "Explore": "pages/explore.py"}
# An element that each page must have, so that no empty page is measured.
SHOWN = {"Runs": "dataframe", "Fine-tune": "bidi_component", "Explore": "bidi_component"}
TIMEOUT_S = 120.0


def open_page(name: str, run_id: str) -> AppTest:
    """Open a page and run it once, which fills the caches."""
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=TIMEOUT_S)
    app.run()
    app.switch_page(PAGES[name])
    if name != "Runs":
        app.query_params["run"] = run_id
    rerun_ms(app, name)
    if not app.get(SHOWN[name]):
        raise RuntimeError(f"{name} shows no {SHOWN[name]}.")
    return app


def rerun_ms(app: AppTest, name: str) -> float:
    elapsed = elapsed_s(app.run) * 1000
    problems = [*app.exception, *app.error, *app.warning]
    if problems:
        raise RuntimeError(f"{name} shows a problem: {problems[0]}")
    return elapsed


def main() -> None:
    given = options(__doc__, repeats=21, steps=5_000)
    with own_folders() as folder:
        store = Store(folder)
        big = make_run(store, "big", given.steps, min(FRAMES, given.steps), POINTS)
        for number in range(SMALL_RUNS):
            make_run(store, f"small {number}", SMALL_STEPS, SMALL_FRAMES, SMALL_POINTS)
        frames = len(store.frame_steps(big))
        print(f"{len(store.runs())} runs, one of {given.steps:,} steps and {frames} frames", flush=True)
        store.close()
        sides = {name: partial(rerun_ms, open_page(name, big), name) for name in PAGES}
        # The warm process of the app would still be importing during the first reruns.
        end_processes(psutil.Process().children(recursive=True))
        times = repeated(given.repeats, lambda number: take_turns(number, sides), 0, warm_up=False)
    for name, values in times.items():
        report("milliseconds", f"rerun of {name}", values, "median ≤ 200", 0)


if __name__ == "__main__":
    main()
