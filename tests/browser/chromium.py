"""Chromium for the browser tests: the installed one, Playwright's download or Debian's package, in this order.

`python -m tests.browser.chromium` finds or installs one and prints its path. It fails if none can be installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

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
    # Containers have a small /dev/shm.
    "--disable-dev-shm-usage",
)
# For tests, whose pages are too short-lived for optimised code to pay off. Benchmarks measure optimised code.
UNOPTIMISED = "--js-flags=--no-maglev --no-turbofan"
PACKAGE = "chromium-headless-shell"
INSTALL_TIMEOUT_S = 540


class NoChromiumError(Exception):
    """No Chromium was found, and none could be installed."""


def find_chromium() -> str | None:
    """Return the path of an installed Chromium that starts."""
    with sync_playwright() as playwright:
        playwrights = playwright.chromium.executable_path
    candidates = [os.environ.get("CHROMIUM"), *(shutil.which(name) for name in NAMES), playwrights]
    return next((path for path in candidates if path and _starts(path)), None)


def install_chromium() -> str:
    """Return the path of a Chromium, which is installed if necessary. Raises: NoChromiumError listing the attempts."""
    apt_get = ["apt-get"] if os.geteuid() == 0 else ["sudo", "--non-interactive", "apt-get"]
    ways = {
        "Playwright's download": [[sys.executable, "-m", "playwright", "install", "chromium"]],
        f"Debian's package {PACKAGE}": [
            [*apt_get, "update"],
            [*apt_get, "install", "--yes", "--no-install-recommends", PACKAGE],
        ],
    }
    found = find_chromium()
    tried = []
    for name, commands in ways.items():
        if found:
            return found
        problem = next(filter(None, map(_run, commands)), "installed, but it does not start")
        tried.append(f"{name}: {problem}")
        found = find_chromium()
    if found:
        return found
    raise NoChromiumError(
        f"The browser tests need a Chromium and none could be had ({'; '.join(tried)}). "
        "Install one, or set CHROMIUM to its path."
    )


def _starts(path: str) -> bool:
    """Test whether a browser starts. It may be missing, or lack the libraries that it needs."""
    try:
        done = subprocess.run([path, "--version"], capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _run(command: list[str]) -> str | None:
    """Run a command. Returns: None on success, else the last line of its output."""
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=INSTALL_TIMEOUT_S,
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
