"""Connection to a Ray cluster, for sending runs and controls to its nodes."""

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
# Limit on unread messages, at which a node waits for the bridge.
MOST_WAITING = 64
# Folders of the app that a node needs.
CODE = ("core", "assets")
NOT_SENT = shutil.ignore_patterns("__pycache__", "replays")


# A control: kind, name and value, as in `core.store.records.Control`.
Asking = tuple[str, str | None, float | None]


@dataclass(frozen=True, slots=True)
class Model:
    """An encoder or translation model on this machine.

    Attributes:
        name: as in the run's config.
        key: hash of the names, sizes and times of its files.
        paths: its files, by path relative to the model's folder.
    """

    name: str
    key: str
    paths: Mapping[str, Path]


class Switchboard:
    """Ray actor on the bridge's node that keeps a list of controls per attempt, for the nodes to poll.

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
        """Return the controls after the first `after`, waiting up to `wait_s` for one; empty on timeout."""
        async with self._news:
            try:
                await asyncio.wait_for(self._news.wait_for(lambda: len(self._asked[key]) > after), wait_s)
            except TimeoutError:
                return []
            return self._asked[key][after:]

    async def forget(self, key: str) -> None:
        """Delete the controls of an attempt that has ended."""
        async with self._news:
            self._asked.pop(key, None)


class RayCluster:
    """The bridge's connection to the cluster. Attributes: board: the `Switchboard`, as a Ray actor."""

    def __init__(self, address: str) -> None:
        """Connect. Raises: EngineError if the cluster does not answer or this machine is not one of its nodes."""
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
        self.board: Any = board.remote()
        # No retries by Ray: after a node loss, the bridge resumes the run from its checkpoint.
        # Ray's type hints lack streaming generators and their backpressure option.
        task: Any = ray.remote
        self._work = task(num_returns="streaming", max_retries=0, _generator_backpressure_num_objects=MOST_WAITING)(
            work
        )
        self._models: dict[str, list[Any]] = {}
        # Warm up a process on each node, without waiting for it.
        for node_id, has in self.nodes().items():
            if has.cpus:
                there = NodeAffinitySchedulingStrategy(node_id, soft=True)
                ray.remote(warm).options(num_cpus=0, scheduling_strategy=there).remote()

    def nodes(self) -> dict[str, Resources]:
        """Return the total resources of each living node, by id."""
        alive = {node["NodeID"]: node["Resources"] for node in ray.nodes() if node["Alive"]}
        return {name: Resources(has.get("CPU", 0.0), has.get("GPU", 0.0)) for name, has in alive.items()}

    def name_of(self, node_id: str) -> str:
        """Return the display name of a node: its name and address, or the start of its id if it is gone."""
        for node in ray.nodes():
            if node["NodeID"] == node_id:
                name, address = node["NodeName"], node["NodeManagerAddress"]
                return str(address) if name in ("", address) else f"{name} ({address})"
        return node_id[:8]

    def start(self, parcel: Parcel, models: list[Model], asked: Resources) -> Any:
        """Submit a run, which Ray starts once a node has free resources. Returns: a stream of report references."""
        for model in models:
            if model.key not in self._models:
                self._models[model.key] = [
                    ray.put(SentFile(name, path.read_bytes(), path.stat().st_mtime_ns))
                    for name, path in model.paths.items()
                ]
        sent = {model.key: self._models[model.key] for model in models}
        options = {"num_cpus": asked.cpus, "num_gpus": asked.gpus, "name": f"run {parcel.run_id}"}
        return self._work.options(**options).remote(parcel, sent, self.board)


def _check_answer(address: str) -> None:
    """Check quickly that the cluster answers: Ray itself would try for a minute. Raises: EngineError."""
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
