"""Shared helpers of the benchmarks: data, a temporary runs folder, and the final line of each measure."""

from __future__ import annotations

import argparse
import gc
import importlib.util
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import psutil

from core.experiments.design import Design
from core.experiments.lifecycle import Experiments, is_complete, is_over
from core.store import ExperimentRun, RunRecord, Status, Store
from core.store.work import LOADING, RUNS
from core.tasks.files.reading import read_file
from core.tasks.registry import task_entry
from core.workers import LocalEngine

ROOT = Path(__file__).resolve().parents[1]
# The variable names a CSV of sentences, or a folder with a train.csv; columns text and label.
DATA = "SCL_BENCH_DATA"
FALLBACK_TASK = "film_reviews"
END_TIMEOUT_S, WARM_TIMEOUT_S, RUN_TIMEOUT_S, EXPERIMENT_TIMEOUT_S = 10.0, 120.0, 400.0, 3_000.0


def options(doc: str | None, **defaults: int | tuple[str, ...]) -> argparse.Namespace:
    """Parse the command line: counts of at least 1 such as `--repeats 7`, flags (False), and choices of words."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in defaults.items():
        if isinstance(default, tuple):
            parser.add_argument(f"--{name}", choices=default, default=default[0])
        elif isinstance(default, bool):
            parser.add_argument(f"--{name}", action="store_true")
        else:
            parser.add_argument(f"--{name}", type=_count, default=default, metavar="N", help=f"[default: {default}]")
    return parser.parse_args()


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("give at least 1")
    return number


def spread(values: Sequence[float], digits: int = 3) -> str:
    """Format values as `median (min–max)`."""
    return f"{median(values):.{digits}f} ({min(values):.{digits}f}–{max(values):.{digits}f})"


def report(kind: str, name: str, values: Sequence[float], target: str, digits: int = 3) -> None:
    """Print the final line of a measure. `kind` is its unit, such as ratio, seconds or milliseconds."""
    print(f"{kind} {name} {spread(values, digits)} over {len(values)} repetitions, target {target}", flush=True)


def elapsed_s(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def wait_until(happened: Callable[[], bool], timeout_s: float, poll_s: float = 0.05) -> None:
    """Wait for an event. Raises: TimeoutError."""
    deadline = time.monotonic() + timeout_s
    while not happened():
        if time.monotonic() > deadline:
            raise TimeoutError(f"It took more than {timeout_s:.0f} s.")
        time.sleep(poll_s)


def finished_run(store: Store, run_id: str, poll_s: float) -> RunRecord:
    """Wait for the end of a run. Raises: RuntimeError unless it has finished."""
    wait_until(lambda: store.run(run_id).status.ended, RUN_TIMEOUT_S, poll_s)
    run = store.run(run_id)
    if run.status != Status.FINISHED:
        raise RuntimeError(f"The run ended {run.status}: {run.message}")
    return run


def run_experiment(
    experiments: Experiments,
    design: Design,
    poll_s: float,
    see: Callable[[Sequence[ExperimentRun]], None] = lambda _: None,
) -> tuple[str, float]:
    """Run an experiment to its end.

    Args:
        see: called with the runs at every poll.
    Returns: its id, and the seconds from its start to the end of its last run.
    Raises: RuntimeError unless every run has finished.
    """
    start = time.perf_counter()
    experiment_id = experiments.begin(design)

    def over() -> bool:
        runs = experiments.table.runs(experiment_id)
        see(runs)
        if is_over(design, runs):
            return True
        experiments.engine.dispatch()
        return False

    wait_until(over, EXPERIMENT_TIMEOUT_S, poll_s)
    seconds, runs = time.perf_counter() - start, experiments.table.runs(experiment_id)
    if not is_complete(design, runs):
        raise RuntimeError(f"Not every run finished: {[run.message for run in runs if run.message]}")
    return experiment_id, seconds


class WarmEngine(LocalEngine):
    """Starts runs only in the warm process, because a fallback to a new interpreter would be measured as warm."""

    def __init__(self, store: Store) -> None:
        """Wait for the warm process. Raises: TimeoutError if there is none."""
        super().__init__(store)
        self.warm_up()
        wait_until(self._is_warm, WARM_TIMEOUT_S)  # a warm process needs Linux

    def dispatch(self) -> None:
        if not self._is_warm():
            raise RuntimeError("The warm process has ended. It ends when the code is edited.")
        super().dispatch()

    def _is_warm(self) -> bool:
        process = self.store.warm_process(RUNS)
        return process is not None and process.alive and process.doing != LOADING


def progress(repetition: int, values: Mapping[str, float], digits: int = 3) -> None:
    """Print the values of one repetition. Number 0 is a warm-up, which does not count."""
    name = f"repetition {repetition}" if repetition else "warm-up"
    print(f"{name}: " + ", ".join(f"{key} {value:.{digits}f}" for key, value in values.items()), flush=True)


def in_turn(repetition: int, names: Sequence[str]) -> list[str]:
    """The names, rotated by repetition, so that drift affects all of them alike."""
    turn = repetition % len(names)
    return [*names[turn:], *names[:turn]]


def take_turns(repetition: int, sides: Mapping[str, Callable[[], float]]) -> dict[str, float]:
    """The value of every side, computed in an order that rotates by repetition."""
    found = {}
    for name in in_turn(repetition, list(sides)):
        gc.collect()
        found[name] = sides[name]()
    return {name: found[name] for name in sides}


def repeated(
    repeats: int,
    measure: Callable[[int], Mapping[str, float]],
    digits: int = 3,
    *,
    warm_up: bool = True,
    title: str = "{}",
) -> dict[str, list[float]]:
    """The values of a measure by name, one per repetition; each is printed.

    Args:
        measure: receives the number of the repetition.
        warm_up: whether repetition 0 comes first, which does not count.
        title: printed for each name, such as "click, ms, {}".
    """
    found: dict[str, list[float]] = {}
    for repetition in range(0 if warm_up else 1, repeats + 1):
        values = measure(repetition)
        progress(repetition, {title.format(name): value for name, value in values.items()}, digits)
        for name, value in values.items():
            found.setdefault(name, []).extend([value] if repetition else [])
    return found


def ratios(found: Mapping[str, Sequence[float]], ours: str, peer: str) -> list[float]:
    """One side's values over those of its peer, by repetition."""
    return [one / other for one, other in zip(found[ours], found[peer], strict=True)]


@cache
def sentences_file() -> Path:
    """File of the sentences: that of SCL_BENCH_DATA, or the bundled film reviews. Prints the source once."""
    given = os.environ.get(DATA)
    path = Path(given).resolve() if given else task_entry(FALLBACK_TASK).folder
    path = path / "train.csv" if path.is_dir() else path
    if not path.is_file():
        sys.exit(f"{DATA} is {given}: give a CSV file, or a folder with a train.csv.")
    print(f"sentences: {path}" if given else f"sentences: the bundled film reviews ({DATA} is not set)", flush=True)
    return path


def sentences() -> tuple[dict[str, Any], int]:
    """The task field of a draft that reads the sentences, and the number of their rows."""
    path = sentences_file()
    task = {"id": "file", "path": str(path.absolute())} if os.environ.get(DATA) else {"id": FALLBACK_TASK}
    return task, len(read_file(path).rows)


@cache
def encoded_sentences() -> Any:
    """[N, 384] float32: at most 2,000 sentences, encoded by the bundled encoder without fine-tuning."""
    import torch

    from core.encoders.model import load_encoder
    from core.models.source import BUNDLED
    from core.training.encode import encode

    texts = read_file(sentences_file()).rows.texts[:2000]
    encoder, tokenizer = load_encoder(BUNDLED, classes=("first", "second"), pooling="mean")
    return encode(encoder, tokenizer, texts, autocast=torch.autocast("cpu", enabled=False)).pooled.numpy()


@contextmanager
def own_folders() -> Iterator[Path]:
    """A temporary runs folder, to which SCL_RUNS is set.

    The context deletes the folder and ends processes that the benchmark has left running, such as warm processes.
    """
    with tempfile.TemporaryDirectory(prefix="scl-bench-", ignore_cleanup_errors=True) as folder:
        os.environ["SCL_RUNS"] = str(Path(folder) / "runs")
        try:
            yield Path(folder) / "runs"
        finally:
            end_processes(psutil.Process().children(recursive=True))


def end_processes(processes: Sequence[psutil.Process]) -> None:
    """Send SIGTERM to these processes, then SIGKILL to those that do not end."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)
        _, processes = psutil.wait_procs(processes, timeout=END_TIMEOUT_S)


def need(package: str) -> None:
    """Exit with a message if a package that only a benchmark needs is missing."""
    if importlib.util.find_spec(package) is None:
        sys.exit(f"This benchmark needs {package}: .venv/bin/python -m pip install {package}")
