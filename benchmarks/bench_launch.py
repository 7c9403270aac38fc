"""From a submitted draft to the first step in the store: a warm process against a new interpreter.

The clock starts before `LocalEngine.submit`, which checks the draft and which the Launch button also calls, and stops
when the store has a step. The script calls it in this process, so the path from the button through browser and server
is not included. Runs are tiny (bundled encoder and film reviews, two steps, eight probe points), so that each ends
soon. The two kinds of start take turns. A browser shows the list of runs meanwhile, as it does when a user presses
Launch.

Target: at most 1.5 s with a warm process.
"""

from __future__ import annotations

import time
from functools import partial

from benchmarks.browsing import browsing, new_page, served_app
from benchmarks.measure import WarmEngine, finished_run, options, own_folders, repeated, report, take_turns, wait_until
from core.config import RunConfig, parse_config
from core.store import Store
from core.workers import LocalEngine

POLL_S = 0.005
TIMEOUT_S = 120.0
# After a run ends, its process briefly looks for the next run and frees its memory.
SETTLE_S = 2.0
PROBE = 8


def first_step_s(engine: LocalEngine, draft: RunConfig) -> float:
    """Launch a run and wait for its end. Returns: seconds until its first step."""
    store, start = engine.store, time.perf_counter()
    run_id = engine.submit(draft)
    wait_until(lambda: bool(store.steps(run_id)) or store.run(run_id).status.ended, TIMEOUT_S, POLL_S)
    seconds = time.perf_counter() - start
    finished_run(store, run_id, POLL_S)
    time.sleep(SETTLE_S)
    return seconds


def main() -> None:
    given = options(__doc__, repeats=7, steps=2)
    draft = parse_config(
        {
            "task": {"id": "film_reviews", "validation_size": PROBE},
            "phases": [{"steps": given.steps}],
            "probe": {"size": PROBE, "frame_steps": ()},
        }
    )
    with own_folders() as folder, served_app(folder.with_name("server.log")) as url, browsing() as browser:
        new_page(browser).goto(f"{url}/runs")
        store = Store(folder)
        engines = {"warm": WarmEngine(store), "spawned": LocalEngine(store, forks=False)}
        sides = {name: partial(first_step_s, engine, draft) for name, engine in engines.items()}
        # The warm-up caches the untrained vectors.
        seconds = repeated(given.repeats, lambda number: take_turns(number, sides))
        store.close()
    report("seconds", "launch to first step, new interpreter", seconds["spawned"], "none")
    report("seconds", "launch to first step, warm", seconds["warm"], "≤ 1.5")


if __name__ == "__main__":
    main()
