"""Servers of Streamlit apps on free ports."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from core.workers.processes import ROOT, free_port

START_S = 60.0


@contextmanager
def served(app: Path, log: Path) -> Iterator[str]:
    """Yield the address of a `streamlit run` of `app`. The server ends with the context."""
    port = free_port()
    process = start(app, port, log)
    try:
        wait_for_answer(process, port, log)
        yield f"http://localhost:{port}"
    finally:
        process.kill()
        process.wait()


def start(app: Path, port: int, log: Path, **environment: str) -> subprocess.Popen[bytes]:
    """Start `streamlit run`, with more environment variables."""
    command = [sys.executable, "-m", "streamlit", "run", str(app)]
    command += ["--server.headless=true", f"--server.port={port}"]
    with log.open("ab") as output:
        return subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=os.environ | environment
        )


def wait_for_answer(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + START_S
    while not _healthy(port):
        assert process.poll() is None, f"the server ended: {log.read_text()[-2_000:]}"  # another one may have the port
        assert time.monotonic() < deadline, "the server does not answer"
        time.sleep(0.02)


def _healthy(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://localhost:{port}/_stcore/health", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
