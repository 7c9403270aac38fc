"""Texts, classes and a run that contain markup, and a check that the markup has no effect."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page

from core.config import RunConfig
from core.store import RunRecord, Store
from tests.browser.seen import fits, quiet
from tests.conftest import made_rows, write_csv

IMAGE = "<img src=x onerror=window.hacked=1>"
SCRIPT = "<script>window.hacked=1</script>"
HOSTILE = f"{IMAGE} lovely $x^2$ **film**"
CLASSES = (f"{IMAGE} $y$", f"{SCRIPT} :red[good]")
LONG = f"{IMAGE} $x^2$ **film** [link](javascript:window.hacked=1) lovely scene " + "W" * 2_000


def nothing_ran(page: Page) -> None:
    assert page.evaluate("window.hacked") is None
    assert page.locator("img[src='x']").count() == 0
    assert page.locator("a[href^='javascript:']").count() == 0


def shown_as_text(page: Page) -> None:
    """Check that nothing ran on a page once it is drawn, and that its long texts fit the screen."""
    quiet(page)
    nothing_ran(page)
    assert fits(page)


def hostile_draft(folder: Path, draft: Callable[..., RunConfig], name: str = f"{SCRIPT} $z$") -> RunConfig:
    """Return a draft of a short run on hostile rows, some of 2,000 characters, with frames at 0, 2, 4, 8 and 12."""
    rows = [
        (f"{HOSTILE} {i} {text} " + "long " * (400 * (i % 9 == 0)), "<b>bad</b> $y$" if label == "bad" else label)
        for i, (text, label) in enumerate(made_rows(90))
    ]
    return draft(
        task={"path": str(write_csv(folder / "hostile.csv", rows))},
        more={"name": name, "probe": {"frame_steps": [2, 4, 8]}},
        steps=12,
        optimiser={"learning_rate": 0.005},
    )


def wait_for(store: Store, run_id: str, holds: Callable[[RunRecord], bool], timeout_s: float = 60) -> RunRecord:
    deadline = time.monotonic() + timeout_s
    while not holds(run := store.run(run_id)):
        assert time.monotonic() < deadline, f"still {run.status} at step {run.last_step}: {run.message}"
        time.sleep(0.05)
    return run
