"""The other processes of a run that trains in several: started beside the worker, ended with it.

`python -m core.workers.followers ORDERS` is one of them.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch

from core.config import RunConfig, parse_config
from core.errors import TrainingError
from core.tasks import TaskData
from core.tasks.kept import read_data, write_data
from core.training.checkpoints import Checkpoints
from core.training.data_parallel import Ranks
from core.training.loop import follow
from core.workers.processes import ROOT, child_environment, free_port

# How long a follower may take to import torch, and to end once it is asked to.
READY_S, END_S = 120.0, 5.0
LOOK_EVERY_S = 0.05
THREADS = "OMP_NUM_THREADS"


@contextmanager
def ranks_of(
    config: RunConfig, data: TaskData, *, weights: Path, start: Path | None, translations: Path | None
) -> Iterator[Ranks | None]:
    """The processes of a run, this one first; None for a run in one process.

    Args:
        weights: the folder of its checkpoint; start: as `train` takes it.
    Raises: TrainingError where one of them does not start.
    """
    if config.processes == 1:
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        orders = Path(folder) / "orders.json"
        write_data(orders.with_name("rows.parquet"), data)
        said = {"weights": weights, "start": start, "translations": translations}
        texts = {name: None if path is None else str(path.absolute()) for name, path in said.items()}
        orders.write_text(json.dumps({"config": config.to_json(), "content_hash": data.content_hash} | texts))
        threads = torch.get_num_threads()
        share = str(max(1, threads // config.processes))
        common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(config.processes)}
        others = [_started(orders, common | _of_rank(rank) | {THREADS: share}) for rank in range(1, config.processes)]
        try:
            _wait_until_ready(orders.parent, others)
            torch.set_num_threads(int(share))
            with _environment(common | _of_rank(0)):
                ranks = Ranks(config.device)
                try:
                    yield ranks
                finally:
                    ranks.leave()
        finally:
            torch.set_num_threads(threads)
            for other in others:
                _end(other)


def _of_rank(rank: int) -> dict[str, str]:
    return {"RANK": str(rank), "LOCAL_RANK": str(rank)}


def _started(orders: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """In our own session and with our output, so that whatever ends us ends it."""
    command = [sys.executable, "-m", "core.workers.followers", str(orders)]
    return subprocess.Popen(command, cwd=ROOT, env=child_environment(environment), stdin=subprocess.DEVNULL)


def _wait_until_ready(folder: Path, others: Sequence[subprocess.Popen[bytes]]) -> None:
    deadline = time.monotonic() + READY_S
    while len(list(folder.glob("ready.*"))) < len(others):
        if any(other.poll() is not None for other in others) or time.monotonic() > deadline:
            raise TrainingError("A process of the run did not start: its log has the details; try fewer processes.")
        time.sleep(LOOK_EVERY_S)


def _end(other: subprocess.Popen[bytes]) -> None:
    try:
        other.wait(timeout=END_S)
    except subprocess.TimeoutExpired:
        other.kill()
        other.wait()


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def main(arguments: Sequence[str]) -> int:
    """Take the steps that the first process leads. Returns: exit status."""
    # The first process hears what is asked of the run; a Ctrl-C in a terminal reaches every process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    orders = Path(arguments[0])
    said = json.loads(orders.read_text())
    config = parse_config(said["config"])
    data = read_data(orders.with_name("rows.parquet"), said["content_hash"])
    path = {name: None if said[name] is None else Path(said[name]) for name in ("weights", "start", "translations")}
    assert path["weights"] is not None
    orders.with_name(f"ready.{os.environ['RANK']}").touch()
    ranks = Ranks(config.device)
    try:
        follow(
            config,
            data,
            ranks,
            checkpoints=Checkpoints(path["weights"]),
            translations=path["translations"],
            start=path["start"],
        )
    finally:
        ranks.leave()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
