"""Connection to a Ray cluster, for sending runs and controls to its nodes."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import socket
import time
from pathlib import Path
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from core.config import RunConfig
from core.config.run import translation_models
from core.errors import EngineError, first_line
from core.messages import N_
from core.models.source import SAFE_WEIGHTS, SMALL_FILES, TORCH_WEIGHTS, encoder_folder, has_safe_weights, model_folder
from core.settings import AUTO
from core.workers.cluster.node import Parcel, SentFile, work
from core.workers.cluster.ray_engine import Resources
from core.workers.processes import PATIENT, ROOT

CONNECT_S = 3.0
# Limit on unread messages, at which a node waits for the bridge.
MOST_WAITING = 64
# Patterns of .gitignore: nodes need only two folders of the app.
NOT_SENT = ["/*", "!.", "!/core", "!/assets", "__pycache__", "/assets/replays"]
POLL_S = 0.02


class Switchboard:
    """Ray actor on the bridge's node that keeps a list of controls per attempt, for the nodes to poll.

    Its methods run in one event loop. A control is a kind, a name and a value, as in `core.store.records.Control`.
    """

    def __init__(self) -> None:
        self._controls: dict[str, list[tuple[str, str | None, float | None]]] = {}

    async def send(self, key: str, *control: Any) -> None:
        self._controls.setdefault(key, []).append(control)

    async def controls(self, key: str, after: int, wait_s: float) -> list[tuple[str, str | None, float | None]]:
        """Return the controls after the first `after`, waiting up to `wait_s` for one; empty on timeout."""
        deadline = time.monotonic() + wait_s
        while not (new := self._controls.get(key, [])[after:]) and time.monotonic() < deadline:
            await asyncio.sleep(POLL_S)
        return new

    async def forget(self, key: str) -> None:
        """Delete the controls of an attempt that has ended."""
        self._controls.pop(key, None)


class RayCluster:
    """The bridge's connection to the cluster. Attributes: board: the `Switchboard`, as a Ray actor."""

    def __init__(self, address: str) -> None:
        """Connect. Raises: EngineError if the cluster does not answer or this machine is not one of its nodes."""
        if address != AUTO:  # Ray itself would try for a minute
            host, _colon, port = address.rpartition(":")
            try:
                socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_S).close()
            except (OSError, OverflowError) as error:
                cause = getattr(error, "strerror", None) or error
                raise EngineError(
                    "The Ray cluster at {address} does not answer ({reason}).", address=address, reason=cause
                ) from error
        logging.getLogger("ray").setLevel(logging.ERROR)
        variables = {**PATIENT, "HF_HUB_OFFLINE": "1"}
        code = {"working_dir": str(ROOT), "excludes": NOT_SENT, "env_vars": variables}
        try:
            ray.init(address=address, namespace="scl", runtime_env=code, log_to_driver=False)
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            raise EngineError(
                "The Ray cluster at {address} cannot be joined ({reason}).",
                address=address,
                reason=first_line(error).rstrip("."),
            ) from error
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        self.board: Any = ray.remote(Switchboard).options(num_cpus=0, scheduling_strategy=here).remote()
        # No retries by Ray: after a node loss, the bridge resumes the run from its checkpoint.
        # Ray's type hints lack streaming generators and their backpressure option.
        options: Any = {"num_returns": "streaming", "_generator_backpressure_num_objects": MOST_WAITING}
        self._work: Any = ray.remote(max_retries=0, **options)(work)
        self._models: dict[str, dict[str, Any]] = {}

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

    def models(self, config: RunConfig) -> dict[str, tuple[str, dict[str, Any]]]:
        """Return the models that a run loads, as in `Parcel`. A file is sent to a node once.

        Raises: EncoderError if a model is unavailable.
        """
        found = {}
        for name, paths in models_of(config).items():
            stamps = {file: (path.stat().st_size, path.stat().st_mtime_ns) for file, path in paths.items()}
            key = hashlib.sha256(json.dumps(sorted(stamps.items())).encode()).hexdigest()[:16]
            if key not in self._models:
                self._models[key] = {
                    file: ray.put(SentFile(file, path.read_bytes(), stamps[file][1])) for file, path in paths.items()
                }
            found[name] = (key, self._models[key])
        return found

    def start(self, parcel: Parcel, asked: Resources) -> Any:
        """Submit a run, which Ray starts once a node has free resources. Returns: a stream of report references."""
        options = {"num_cpus": asked.cpus, "num_gpus": asked.gpus, "name": f"run {parcel.key}"}
        return self._work.options(**options).remote(parcel, self.board)


def models_of(config: RunConfig) -> dict[str, dict[str, Path]]:
    """Return the files of each model that a run loads, by name and path in its folder.

    Raises: EncoderError if a model is unavailable.
    """
    folders = {config.encoder.id: encoder_folder(config.encoder.id)}
    for name in translation_models(config):
        folders[name] = model_folder(name, what=N_("Translation model"), check=lambda _: None)
    models = {}
    for name, folder in folders.items():
        patterns = (*SMALL_FILES, "*.spm", SAFE_WEIGHTS if has_safe_weights(folder) else TORCH_WEIGHTS)
        models[name] = {str(path.relative_to(folder)): path for one in patterns for path in sorted(folder.rglob(one))}
    return models
