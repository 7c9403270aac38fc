"""What the benchmarks share: the data, a folder of their own, and the line that each of them ends with."""

from __future__ import annotations

import argparse
import csv
import importlib.util
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import psutil

from core.store import Store
from core.store.work import LOADING, RUNS
from core.tasks.files.reading import read_file
from core.tasks.registry import task_entry
from core.workers import LocalEngine

ROOT = Path(__file__).resolve().parents[1]
# Names a CSV of sentences, or a folder with its train.csv; columns text and label.
DATA = "SCL_BENCH_DATA"
FALLBACK_TASK = "film_reviews"
END_TIMEOUT_S, WARM_TIMEOUT_S = 10.0, 120.0


def options(doc: str | None, **defaults: int) -> argparse.Namespace:
    """Counts from the command line, all whole numbers of at least 1, such as `--repeats 7`."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in defaults.items():
        parser.add_argument(f"--{name}", type=_count, default=default, metavar="N", help=f"[default: {default}]")
    return parser.parse_args()


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("give at least 1")
    return number


def spread(values: Sequence[float], digits: int = 3) -> str:
    """`median (min–max)`."""
    return f"{median(values):.{digits}f} ({min(values):.{digits}f}–{max(values):.{digits}f})"


def report(kind: str, name: str, values: Sequence[float], target: str, digits: int = 3) -> None:
    """The last line of a measure; `kind` is ratio, seconds or milliseconds."""
    print(f"{kind} {name} {spread(values, digits)} over {len(values)} repetitions, target {target}", flush=True)


class WarmEngine(LocalEngine):
    """Starts runs by the warm process alone: a silent fall back to a new interpreter would be measured as warm."""

    def __init__(self, store: Store) -> None:
        """Raises: RuntimeError where there is no warm process."""
        super().__init__(store)
        self.warm_up()
        deadline = time.monotonic() + WARM_TIMEOUT_S
        while not self._is_warm():
            if time.monotonic() > deadline:
                raise RuntimeError("There is no warm process on this system: it needs Linux.")
            time.sleep(0.05)

    def dispatch(self) -> None:
        if not self._is_warm():
            raise RuntimeError("The warm process is gone: it leaves when the code is edited.")
        super().dispatch()

    def _is_warm(self) -> bool:
        process = self.store.warm_process(RUNS)
        return process is not None and process.alive and process.doing != LOADING


def progress(repetition: int, values: Mapping[str, float], digits: int = 3) -> None:
    """One repetition as it ends; number 0 is a warm-up, which does not count."""
    name = f"repetition {repetition}" if repetition else "warm-up"
    print(f"{name}: " + ", ".join(f"{key} {value:.{digits}f}" for key, value in values.items()), flush=True)


def in_turn(repetition: int, names: Sequence[str]) -> list[str]:
    """The names, another one first in each repetition, so that drift hits all alike."""
    turn = repetition % len(names)
    return [*names[turn:], *names[:turn]]


@cache
def sentences_file() -> Path:
    """The sentences that SCL_BENCH_DATA names, else the bundled film reviews; says once which they are."""
    given = os.environ.get(DATA)
    path = Path(given).resolve() if given else task_entry(FALLBACK_TASK).folder
    path = path / "train.csv" if path.is_dir() else path
    if not path.is_file():
        sys.exit(f"{DATA} is {given}: give a CSV file, or a folder with a train.csv.")
    print(f"sentences: {path}" if given else f"sentences: the bundled film reviews ({DATA} is not set)", flush=True)
    return path


def sentences() -> tuple[dict[str, Any], int]:
    """The task field of a draft that reads those sentences, and how many rows their file has."""
    path = sentences_file()
    task = {"id": "file", "path": str(path.absolute())} if os.environ.get(DATA) else {"id": FALLBACK_TASK}
    return task, len(read_file(path).rows)


@cache
def encoded_sentences() -> Any:
    """[N, 384] float32: the texts of those sentences, at most 2,000, by the bundled encoder as it comes."""
    import torch

    from core.encoders.model import load_encoder
    from core.models.source import BUNDLED
    from core.training.encode import encode

    with sentences_file().open(encoding="utf-8", newline="") as file:
        texts = [row["text"] for row in islice(csv.DictReader(file), 2000)]
    encoder, tokenizer = load_encoder(BUNDLED, classes=("first", "second"), pooling="mean")
    return encode(encoder, tokenizer, texts, autocast=torch.autocast("cpu", enabled=False)).pooled.numpy()


@contextmanager
def own_folders() -> Iterator[Path]:
    """A runs folder that SCL_RUNS names, which goes at the end.

    Processes that this one started, and that outlived the benchmark, are ended: warm processes are made to.
    """
    with tempfile.TemporaryDirectory(prefix="scl-bench-", ignore_cleanup_errors=True) as folder:
        os.environ["SCL_RUNS"] = str(Path(folder) / "runs")
        try:
            yield Path(folder) / "runs"
        finally:
            end_processes(psutil.Process().children(recursive=True))


def end_processes(processes: Sequence[psutil.Process]) -> None:
    """Ask these very processes to end, and insist with those that do not."""
    for process in processes:
        _signal(process, signal.SIGTERM)
    _, alive = psutil.wait_procs(processes, timeout=END_TIMEOUT_S)
    for process in alive:
        _signal(process, signal.SIGKILL)


def _signal(process: psutil.Process, number: signal.Signals) -> None:
    with suppress(psutil.NoSuchProcess):
        process.send_signal(number)


def need(package: str) -> None:
    """End with a sentence where a package is missing that only a benchmark needs."""
    if importlib.util.find_spec(package) is None:
        sys.exit(f"This benchmark needs {package}: .venv/bin/python -m pip install {package}")
