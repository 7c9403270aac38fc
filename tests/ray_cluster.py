"""Demo of the app on a Ray cluster of two nodes on this machine: `make ray-demo`.

The nodes have separate root folders, so they exchange data only through Ray.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from core.errors import EngineError
from core.workers.processes import ROOT, free_port

START_S = 60.0
# Exists on Linux and macOS; mkdtemp creates a private folder in it.
SHORT = "/tmp"
NAMES = ("one", "two", "three", "four")
OBJECT_STORE_BYTES = 512 * 2**20


class DemoCluster:
    """Context manager of a Ray cluster with several nodes on this machine."""

    def __init__(self, *cpus: int) -> None:
        """Args: cpus: number of cores of each node."""
        self.address = f"127.0.0.1:{free_port()}"
        # Ray creates sockets in this folder, and a socket's path is limited to about a hundred characters.
        short = SHORT if Path(SHORT).is_dir() else None
        self.folder = Path(tempfile.mkdtemp(prefix="scl-ray-", dir=short))
        self._cpus = cpus
        self._nodes: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> DemoCluster:
        try:
            for name, cpus in zip(NAMES, self._cpus, strict=False):
                self.add(name, cpus)
        except BaseException:
            self.__exit__()
            raise
        return self

    def add(self, name: str, cpus: int) -> None:
        """Start a node and wait until it has joined the cluster; the first one is its head. Raises: EngineError."""
        root = self.folder / name
        root.mkdir(exist_ok=True)
        options = {"node-name": name, "temp-dir": root, "num-cpus": cpus, "num-gpus": 0}
        options["object-store-memory"] = OBJECT_STORE_BYTES
        if self._nodes:
            options["address"] = self.address
        else:
            options |= {"port": self.address.rpartition(":")[2], "include-dashboard": "false"}
        flags = [*([] if self._nodes else ["--head"]), "--disable-usage-stats", "--block"]
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", *flags]
        command += [f"--{option}={value}" for option, value in options.items()]
        log_path = root / "node.log"
        with log_path.open("wb") as log:
            self._nodes[name] = subprocess.Popen(
                command, cwd=root, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        deadline = time.monotonic() + START_S
        while b"Ray runtime started" not in log_path.read_bytes():
            if self._nodes[name].poll() is not None or time.monotonic() > deadline:
                last = log_path.read_text(errors="replace").strip().splitlines()[-1:]
                raise EngineError(f"Node {name} did not start: {' '.join(last) or 'it said nothing'}.")
            time.sleep(0.1)

    def kill(self, name: str) -> None:
        """Kill a node abruptly, as a power failure would, with its child processes, which are in separate groups."""
        node = self._nodes.pop(name)
        with contextlib.suppress(psutil.NoSuchProcess):
            for process in psutil.Process(node.pid).children(recursive=True):
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
        node.kill()
        node.wait()

    def __exit__(self, *_: object) -> None:
        for name in [*reversed(self._nodes)]:
            self.kill(name)
        shutil.rmtree(self.folder, ignore_errors=True)


def main() -> int:
    """Run the app on a cluster of two nodes until the app exits."""
    cores = max(1, (os.cpu_count() or 2) // 2)
    print("Starting two nodes…", flush=True)
    with DemoCluster(cores, cores) as cluster:
        print(f"Ray cluster of two nodes with {cores} cores each at {cluster.address}", flush=True)
        environment = {**os.environ, "SCL_ENGINE": cluster.address, "SCL_RAY_CPUS": str(cores)}
        command = [sys.executable, "-m", "streamlit", "run", "app.py", *sys.argv[1:]]
        app = subprocess.Popen(command, cwd=ROOT, env=environment)
        try:
            return app.wait()
        except KeyboardInterrupt:
            return app.wait()


if __name__ == "__main__":
    sys.exit(main())
