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
    address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(config.processes)}
    environments = [address | {"RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(config.processes)]
    others: list[SpawnProcess] = []
    try:
        # The others share this process's session and output, so that they end with it.
        spawning, readers = multiprocessing.get_context("spawn"), []
        for environment in environments[1:]:
            reader, writer = spawning.Pipe(duplex=False)
            readers.append(reader)
            given = (writer, environment, share, config, data, weights, start, translations)
            others.append(spawning.Process(target=_follow, args=given, daemon=True))
            others[-1].start()
            writer.close()
        if not all(_is_ready(reader) for reader in readers):
            raise TrainingError("A process of the run did not start: its log has the details; try fewer processes.")
        torch.set_num_threads(share)
        os.environ.update(environments[0])
        ranks = Ranks(config.device)
        try:
            yield ranks
        finally:
            ranks.leave()
    finally:
        for name in environments[0]:
            os.environ.pop(name, None)
        torch.set_num_threads(threads)
        for other in others:
            if other.pid is not None:
                other.join(END_S)
                other.kill()
                other.join()


def _is_ready(reader: Connection) -> bool:
    """Wait until a follower has imported torch. Returns: False if it ended first."""
    try:
        return reader.poll(READY_S) and bool(reader.recv())
    except (OSError, EOFError):
        return False


def _follow(
    ready: Connection,
    environment: Mapping[str, str],
    threads: int,
    config: RunConfig,
    data: TaskData,
    weights: Path,
    start: Path | None,
    translations: Path | None,
) -> None:
    """Train in a follower process, in lockstep with the first process.

    Args:
        environment: torchrun's variables.
        threads: this process's share of the run's threads.
    """
    # A Ctrl-C in a terminal reaches every process, but only the first one handles controls.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.update(environment, OMP_NUM_THREADS=str(threads))  # else accelerate chooses
    torch.set_num_threads(threads)
    ready.send(True)
    ranks = Ranks(config.device)
    try:
        follow(config, data, ranks, checkpoints=Checkpoints(weights), translations=translations, start=start)
    finally:
        ranks.leave()
