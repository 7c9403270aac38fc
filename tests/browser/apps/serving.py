"""A server for one small app on a free port."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
START_S = 60.0


@contextmanager
def served(app: Path, log: Path) -> Iterator[str]:
    """Yield the address of a `streamlit run` of `app`. The server ends with the context."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", str(app)]
    command += ["--server.headless=true", f"--server.port={port}"]
    with log.open("ab") as output:
        process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        deadline = time.monotonic() + START_S
        while not _healthy(port):
            assert process.poll() is None, f"the server ended: {log.read_text()[-2_000:]}"
            assert time.monotonic() < deadline, "the server does not answer"
            time.sleep(0.02)
        yield f"http://localhost:{port}"
    finally:
        process.kill()
        process.wait()


def _healthy(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://localhost:{port}/_stcore/health", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
