"""A connection to a Ray cluster: runs are sent to its nodes, and what is asked of them is heard there."""

from __future__ import annotations

import asyncio
import logging
import shutil
import socket
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from core.errors import EngineError, first_line
from core.settings import AUTO
from core.workers.cluster.node import Parcel, SentFile, warm, work
from core.workers.cluster.ray_engine import Resources
from core.workers.processes import PATIENT, ROOT

CONNECT_S = 3.0
# Messages that wait for the bridge before a node stops to wait for it.
MOST_WAITING = 64
# What a node needs of the app.
CODE = ("core", "assets")
NOT_SENT = shutil.ignore_patterns("__pycache__", "replays")


# A control: kind, name and value, as `core.store.Control` has them.
Asking = tuple[str, str | None, float | None]


@dataclass(frozen=True, slots=True)
class Model:
    """An encoder or translation model on this machine.

    Attributes:
        name: as the run's config calls it.
        key: the same for the same files.
    """

    name: str
    key: str
    paths: Mapping[str, Path]

    def read(self) -> list[SentFile]:
        return [SentFile(name, path.read_bytes(), path.stat().st_mtime_ns) for name, path in self.paths.items()]


class Switchboard:
    """An actor beside the bridge that holds a list of controls per attempt at a run until the nodes hear them.

    Its methods run in one event loop.
    """

    def __init__(self) -> None:
        self._asked: dict[str, list[Asking]] = defaultdict(list)
        self._news = asyncio.Condition()

    async def ask(self, key: str, control: Asking) -> None:
        """Add a control."""
        async with self._news:
            self._asked[key].append(control)
            self._news.notify_all()

    async def hear(self, key: str, after: int, wait_s: float) -> list[Asking]:
        """The controls behind the first `after`, as soon as there is one; none where none came in `wait_s`."""
        async with self._news:
            try:
                await asyncio.wait_for(self._news.wait_for(lambda: len(self._asked[key]) > after), wait_s)
            except TimeoutError:
                return []
            return self._asked[key][after:]

    async def forget(self, key: str) -> None:
        """An attempt has ended."""
        async with self._news:
            self._asked.pop(key, None)


class RayCluster:
    """The cluster as its bridge sees it."""

    def __init__(self, address: str) -> None:
        """Connect. Raises: EngineError where nobody answers, or this machine is no node of the cluster."""
        _check_answer(address)
        logging.getLogger("ray").setLevel(logging.ERROR)
        with tempfile.TemporaryDirectory() as staged:
            for name in CODE:
                shutil.copytree(ROOT / name, Path(staged) / name, ignore=NOT_SENT)
            try:
                ray.init(
                    address=address,
                    namespace="scl",
                    runtime_env={"working_dir": staged, "env_vars": {**PATIENT, "HF_HUB_OFFLINE": "1"}},
                    log_to_driver=False,
                )
            except (ConnectionError, RuntimeError, ValueError, OSError) as error:
                raise EngineError(
                    "The Ray cluster at {address} cannot be joined ({reason}).",
                    address=address,
                    reason=first_line(error).rstrip("."),
                ) from error
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        board = ray.remote(Switchboard).options(num_cpus=0, max_concurrency=1_000, scheduling_strategy=here)
        self._board: Any = board.remote()
        # A run whose node is lost goes on from its checkpoint, not from its beginning: the bridge sees to that.
        # Ray's types know neither generators nor how many of their results may wait.
        task: Any = ray.remote
        self._work = task(num_returns="streaming", max_retries=0, _generator_backpressure_num_objects=MOST_WAITING)(
            work
        )
        self._models: dict[str, list[Any]] = {}
        # Nobody waits until a process on each node has imported what a run needs.
        for node_id, has in self.nodes().items():
            if has.cpus:
                there = NodeAffinitySchedulingStrategy(node_id, soft=True)
                ray.remote(warm).options(num_cpus=0, scheduling_strategy=there).remote()

    def nodes(self) -> dict[str, Resources]:
        """What each living node has in all, by id."""
        alive = {node["NodeID"]: node["Resources"] for node in ray.nodes() if node["Alive"]}
        return {name: Resources(has.get("CPU", 0.0), has.get("GPU", 0.0)) for name, has in alive.items()}

    def name_of(self, node_id: str) -> str:
        """What people call a node: its name and its address."""
        for node in ray.nodes():
            if node["NodeID"] == node_id:
                name, address = node["NodeName"], node["NodeManagerAddress"]
                return str(address) if name in ("", address) else f"{name} ({address})"
        return node_id[:8]

    def start(self, parcel: Parcel, models: list[Model], asked: Resources) -> Any:
        """Send a run to whichever node has room, or will have. Returns: references to its reports, as they come."""
        for model in models:
            if model.key not in self._models:
                self._models[model.key] = [ray.put(file) for file in model.read()]
        sent = {model.key: self._models[model.key] for model in models}
        options = {"num_cpus": asked.cpus, "num_gpus": asked.gpus, "name": f"run {parcel.run_id}"}
        return self._work.options(**options).remote(parcel, sent, self._board)

    def ask(self, key: str, control: Asking) -> None:
        """Ask something of an attempt at a run."""
        self._board.ask.remote(key, control)

    def forget(self, key: str) -> None:
        self._board.forget.remote(key)


def _check_answer(address: str) -> None:
    """Ray itself would try for a minute. Raises: EngineError."""
    if address == AUTO:
        return
    host, _colon, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_S).close()
    except (OSError, OverflowError) as error:
        cause = getattr(error, "strerror", None) or error
        raise EngineError(
            "The Ray cluster at {address} does not answer ({reason}).", address=address, reason=cause
        ) from error
