"""Chromium for the browser tests: the installed one, Playwright's download or Debian's package, in this order.

`python -m tests.browser.chromium` finds or installs one and prints its path. It fails if none can be installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

# The headless shell without window features draws in half the time.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
ARGUMENTS = (
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--no-first-run",
    # Pages draw on 2-D canvases. Emulating a graphics card on the processor only slows them down.
    "--disable-gpu",
    "--disable-software-rasterizer",
    # A page is too short-lived for optimised code to pay off.
    "--js-flags=--no-maglev --no-turbofan",
    # Containers have a small /dev/shm.
    "--disable-dev-shm-usage",
)
PACKAGE = "chromium-headless-shell"
DOWNLOAD_TIMEOUT_S = 240
INSTALL_TIMEOUT_S = 540


class NoChromiumError(Exception):
    """No Chromium was found, and none could be installed."""


def find_chromium() -> str | None:
    """Return the path of an installed Chromium that starts."""
    candidates = [os.environ.get("CHROMIUM"), *(shutil.which(name) for name in NAMES), _playwrights_own()]
    return next((path for path in candidates if path and _starts(path)), None)


def install_chromium() -> str:
    """Return the path of a Chromium, which is installed if necessary. Raises: NoChromiumError listing the attempts."""
    found = find_chromium()
    tried = []
    for name, install in (("Playwright's download", _download), (f"Debian's package {PACKAGE}", _install_package)):
        if found:
            return found
        problem = install()
        tried.append(f"{name}: {problem}" if problem else f"{name}: installed, but it does not start")
        found = find_chromium()
    if found:
        return found
    raise NoChromiumError(
        f"The browser tests need a Chromium and none could be had ({'; '.join(tried)}). "
        "Install one, or set CHROMIUM to its path."
    )


def _playwrights_own() -> str | None:
    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).exists() else None


def _starts(path: str) -> bool:
    """Test whether a browser starts. It may lack the libraries that it needs."""
    try:
        done = subprocess.run([path, "--version"], capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _download() -> str | None:
    return _run([sys.executable, "-m", "playwright", "install", "chromium"], DOWNLOAD_TIMEOUT_S)


def _install_package() -> str | None:
    if shutil.which("apt-get") is None:
        return "there is no apt-get"
    prefix = [] if os.geteuid() == 0 else ["sudo", "--non-interactive"]
    return _run([*prefix, "apt-get", "update"], INSTALL_TIMEOUT_S) or _run(
        [*prefix, "apt-get", "install", "--yes", "--no-install-recommends", PACKAGE], INSTALL_TIMEOUT_S
    )


def _run(command: list[str], timeout_s: int) -> str | None:
    """Run a command. Returns: None on success, else the last line of its output."""
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
            env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return None
    return ((done.stderr or done.stdout).strip().splitlines() or [f"exit status {done.returncode}"])[-1]


if __name__ == "__main__":
    try:
        print(install_chromium())
    except NoChromiumError as problem:
        sys.exit(str(problem))
