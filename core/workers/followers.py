"""The additional processes of a data-parallel run, which the worker starts and ends."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

import torch

from core.config import RunConfig
from core.errors import TrainingError
from core.tasks import TaskData
from core.training.checkpoints import Checkpoints
from core.training.data_parallel import Ranks
from core.training.loop import follow
from core.workers.processes import free_port

# Time for a follower to import torch, and to end at the end of the run.
READY_S, END_S = 120.0, 5.0
THREADS = "OMP_NUM_THREADS"


@contextmanager
def ranks_of(
    config: RunConfig, data: TaskData, *, weights: Path, start: Path | None, translations: Path | None
) -> Iterator[Ranks | None]:
    """Start the processes of a run, with this one as rank 0; yield None for a run in one process.

    Args:
        weights: the folder of its checkpoint.
        start: see `core.training.loop.train`.
    Raises: TrainingError if one of them does not start.
    """
    if config.processes == 1:
        yield None
        return
    threads = torch.get_num_threads()
    share = max(1, threads // config.processes)
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(config.processes)}
    others: list[SpawnProcess] = []
    try:
        ready = _start(others, config, data, weights, start, translations, environment=common | {THREADS: str(share)})
        if not ready:
            raise TrainingError("A process of the run did not start: its log has the details; try fewer processes.")
        torch.set_num_threads(share)
        with _environment(common | _of_rank(0)):
            ranks = Ranks(config.device)
            try:
                yield ranks
            finally:
                ranks.leave()
    finally:
        torch.set_num_threads(threads)
        for other in others:
            if other.pid is not None:
                other.join(END_S)
                other.kill()
                other.join()


def _of_rank(rank: int) -> dict[str, str]:
    return {"RANK": str(rank), "LOCAL_RANK": str(rank)}


def _start(others: list[SpawnProcess], config: RunConfig, *given: Any, environment: Mapping[str, str]) -> bool:
    """Start the other processes in this session, with this output, so that they end with this process.

    Args:
        others: receives each process as it is started.
        given: the remaining arguments of `_follow`.
    Returns: True if all of them have imported torch.
    """
    spawning = multiprocessing.get_context("spawn")
    readers = []
    try:
        for rank in range(1, config.processes):
            reader, writer = spawning.Pipe(duplex=False)
            readers.append(reader)
            others.append(spawning.Process(target=_follow, args=(writer, config, *given), daemon=True))
            with _environment({**environment, **_of_rank(rank)}):
                others[-1].start()
            writer.close()
        return all(reader.poll(READY_S) and reader.recv() for reader in readers)
    except (OSError, EOFError):
        return False


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


def _follow(
    ready: Connection, config: RunConfig, data: TaskData, weights: Path, start: Path | None, translations: Path | None
) -> None:
    """Train in a follower process, in lockstep with the first process."""
    # A Ctrl-C in a terminal reaches every process, but only the first one handles controls.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ready.send(True)
    ranks = Ranks(config.device)
    try:
        follow(config, data, ranks, checkpoints=Checkpoints(weights), translations=translations, start=start)
    finally:
        ranks.leave()
