"""1,000 queued runs of 20 visitors on a shared server that is killed three times: each must begin once and in turn.

The runs have one step and a random encoder of two narrow blocks. They belong to experiments, so one process executes
them in sequence. The script first times the list of runs, the whole queue, and a claim without a free slot, with all
runs queued and no server. With the server up, it times reruns of the Runs page, which lists all of them. Opening the
page starts the queue, so the first runs execute during the reruns. The script then starts a worker process for the
remaining runs and, while they execute and the server has no visitors, kills the server three times by kill −9.

Limits: each run begins once and finishes, and between two turns of a visitor no other visitor has more than two;
otherwise the script fails. A rerun of the page takes at most 1 s; the script prints the limit beside the times.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from streamlit.testing.v1 import AppTest

from benchmarks.measure import ROOT, elapsed_s, options, report
from core.config import RunConfig, parse_config
from core.store import ExperimentTable, Status, Store
from core.workers import LocalEngine
from tests.browser.conftest import Server
from tests.conftest import made_rows, write_csv, write_tiny_encoder

VISITORS, KILLS, MOST_TURNS = 20, 3, 2
LOOKS = 7
TIMEOUT_S = 3_000.0


def drafts(folder: Path, count: int) -> list[RunConfig]:
    """Configs of one step, each with a different seed."""
    rows = write_csv(folder / "rows.csv", made_rows(40))
    given = {
        "task": {"id": "file", "path": str(rows)},
        "encoder": {"id": str(write_tiny_encoder(folder / "encoder")), "max_length": 16},
        "phases": [{"steps": 1, "batch_size": 8}],
        "device": "cpu",
        "probe": {"frame_steps": []},
        "checkpoint": {"snapshot_steps": []},
    }
    return [parse_config(given | {"seed": seed}) for seed in range(count)]


def queue_all(store: Store, wanted: Sequence[RunConfig]) -> None:
    """Queue the runs visitor by visitor, so that only the turns mix them."""
    engine, table = LocalEngine(store, slots=range(0)), ExperimentTable(store.folder)
    share = len(wanted) // VISITORS
    first, data = engine.prepared(wanted[0])
    for visitor in range(VISITORS):
        experiment = table.create(f"of {visitor}", json.dumps({}), f"visitor{visitor:02d}")
        for seed, config in enumerate(wanted[visitor * share : (visitor + 1) * share]):
            prepared = first.model_copy(update={"seed": config.seed})
            engine.queue(prepared, data, (experiment, 0, seed), f"visitor{visitor:02d}")


def look_s(store: Store) -> dict[str, list[float]]:
    """Seconds of frequent queries to the store, with all runs queued."""
    asks: dict[str, Callable[[], object]] = {
        "list of runs": store.runs,
        "claim": lambda: store.claim_next((), None, 1),
        "the whole queue": store.queued_runs,
    }
    taken = [{name: elapsed_s(ask) for name, ask in asks.items()} for _ in range(LOOKS)]
    return {name: [one[name] for one in taken] for name in asks}


def rerun_s(folder: Path) -> list[float]:
    """Seconds of reruns of the Runs page with all runs of experiments shown, while the queue moves."""
    os.environ["SCL_RUNS"] = str(folder)
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    app.run()
    app.query_params["experiments"] = "on"
    app.switch_page("pages/runs.py").run()
    found = [elapsed_s(app.run) for _ in range(LOOKS)]
    if not app.dataframe:
        raise RuntimeError("The Runs page shows no table.")
    return found


def wait_for_end(server: Server, store: Store, count: int) -> None:
    """Wait until all runs have ended, while the server is killed and restarted."""
    kill_at = [count * (i + 1) // (KILLS + 1) for i in range(KILLS)]
    deadline = time.monotonic() + TIMEOUT_S
    LocalEngine(store).warm_up()
    LocalEngine(store).dispatch()
    while (done := sum(run.status.ended for run in store.runs())) < count:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{done} of {count} runs ended.")
        if kill_at and done >= kill_at[0]:
            kill_at.pop(0)
            server.kill()
            server.start()
            print(f"server killed and restarted after {done} runs", flush=True)
        time.sleep(2.0)


def unfair(store: Store) -> int:
    """The most turns of one visitor between two turns of another, who was waiting."""
    order = [run.owner for run in sorted(store.runs(), key=lambda run: run.started_at or 0.0)]
    worst, last = 0, dict[str | None, int]()
    for at, owner in enumerate(order):
        if owner in last:
            between = Counter(order[last[owner] + 1 : at])
            worst = max([worst, *between.values()])
        last[owner] = at
    return worst


def main() -> None:
    given = options(__doc__, runs=1_000)
    os.environ.update(SCL_SHARED="1", OMP_NUM_THREADS="1")
    with tempfile.TemporaryDirectory(prefix="scl-queue-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        server = Server(folder)
        store = Store(server.store_folder)
        seconds = elapsed_s(lambda: queue_all(store, drafts(folder, given.runs)))
        print(f"{given.runs} runs queued in {seconds:.1f} s", flush=True)
        for what, taken in look_s(store).items():
            report("seconds", f"{what}, {given.runs} queued", taken, "none", digits=4)
        server.start()
        try:
            report("seconds", "rerun of the Runs page with all of them", rerun_s(server.store_folder), "≤ 1")
            print(f"all ended after {elapsed_s(lambda: wait_for_end(server, store, given.runs)):.0f} s", flush=True)
            runs = store.runs()
            print(f"statuses {dict(Counter(str(run.status) for run in runs))}", flush=True)
            print(f"begun more than once: {sum(run.attempt != 1 for run in runs)}", flush=True)
            turns = unfair(store)
            print(f"most turns of another visitor between two turns of one: {turns}", flush=True)
            if turns > MOST_TURNS or any(run.status != Status.FINISHED or run.attempt != 1 for run in runs):
                raise RuntimeError("A run did not finish, began twice, or missed its turn.")
        finally:
            server.close()


if __name__ == "__main__":
    main()
