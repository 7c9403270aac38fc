"""Time from `streamlit run app.py` to a complete first page in a browser.

The browser starts before the clock, and each repetition has a new server and an empty cache. Home is complete when its
title is visible and its script has ended; its replay moves when the map shows another step. The script then reads the
server's memory maps: the server must have loaded neither torch (libtorch) nor numba (llvmlite) nor pandas, which an
existing store does not need.

Targets: at most 3 s to the page, at most 5 s to a moving replay.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import psutil
from playwright.sync_api import sync_playwright

from benchmarks.measure import ROOT, end_processes, options, own_folders, progress, report
from core.store import Store
from tests.browser.chromium import ARGUMENTS, find_chromium

TITLE = "Watch a text encoder learn"
# The map's `data-step` is the step it shows.
MOVED = """() => {
  const step = document.querySelector(".map-view[data-step]")?.dataset.step;
  if (step === undefined) return false;
  window.firstStep ??= step;
  return step !== window.firstStep;
}"""
POLL_S = 0.02
TIMEOUT_S = 60.0
UNWANTED = ("libtorch", "llvmlite", "pandas")


def start_s(browser: Any, log: Path) -> dict[str, float]:
    """Seconds until the server answers, the title is visible, the script has ended and the replay moves."""
    port = _free_port()
    command = [sys.executable, "-m", "streamlit", "run", "app.py"]
    command += ["--server.headless", "true", "--server.port", str(port)]
    context = browser.new_context()
    page = context.new_page()
    with log.open("ab") as output:
        start = time.perf_counter()
        server = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    process = psutil.Process(server.pid)
    try:
        found = {"healthy": _wait_healthy(server, port) - start}
        page.goto(f"http://localhost:{port}/", wait_until="commit")
        page.get_by_role("heading", name=TITLE).wait_for(timeout=TIMEOUT_S * 1000)
        found["title"] = time.perf_counter() - start
        page.locator('[data-testid="stApp"][data-test-script-state="notRunning"]').wait_for(timeout=TIMEOUT_S * 1000)
        found["page"] = time.perf_counter() - start
        page.wait_for_function(MOVED, timeout=TIMEOUT_S * 1000)
        found["moving"] = time.perf_counter() - start
        _check_maps(server.pid)
    finally:
        context.close()
        # The server's child is a warm process in a separate session.
        end_processes([*process.children(recursive=True), process])
        server.wait()
    return found


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("localhost", 0))
        return int(listener.getsockname()[1])


def _wait_healthy(server: subprocess.Popen[bytes], port: int) -> float:
    """Wait for the server. Returns: the time at which it first reported itself healthy."""
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(f"http://localhost:{port}/_stcore/health", timeout=1):
                return time.perf_counter()
        except OSError:
            time.sleep(POLL_S)
    raise RuntimeError("The server did not start.")


def _check_maps(pid: int) -> None:
    maps = Path(f"/proc/{pid}/maps").read_text()
    loaded = [name for name in UNWANTED if name in maps]
    if loaded:
        raise RuntimeError(f"The server has loaded {' and '.join(loaded)}.")


def main() -> None:
    given = options(__doc__, repeats=7)
    chromium = find_chromium()
    if chromium is None:
        sys.exit("This benchmark needs a Chromium: .venv/bin/python -m tests.browser.chromium")
    seconds, moving = [], []
    with own_folders() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(ARGUMENTS))
        Store(folder).close()
        # Repetition 0 does not count: files come from disk, and the browser opens its first page.
        for repetition in range(given.repeats + 1):
            found = start_s(browser, folder / "server.log")
            progress(repetition, found, 2)
            if repetition:
                seconds.append(found["page"])
                moving.append(found["moving"])
        browser.close()
    report("seconds", "server start to first page, no torch, numba or pandas loaded", seconds, "≤ 3", 2)
    report("seconds", "server start to a moving replay", moving, "≤ 5", 2)


if __name__ == "__main__":
    main()
