"""Tests of Explore during activity: a run that still trains, and a map that is being computed."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from core.config import parse_config
from core.events import Frame, Probe, Started
from core.representation.projections import pca_map
from core.store import Status, Store
from core.store.attempt import Attempt
from tests.browser.conftest import Server
from tests.browser.seen import JOB_MS
from tests.browser.test_explore import opened
from tests.browser.test_map_view import drawn, step_of
from tests.core.store.claims import claimed

STEPS, POINTS, WIDTH = 6, 800, 16
SOON_S = 20


@pytest.fixture
def learning(server_store: Store) -> Iterator[Attempt]:
    """Return a run whose worker is this process. It has reported only its start and two frames."""
    steps = range(STEPS + 1)
    draft = {"name": "Learning", "phases": [{"steps": STEPS}], "probe": {"size": POINTS, "frame_steps": list(steps)}}
    attempt = claimed(server_store, parse_config(draft))
    labels = tuple(i % 2 for i in range(POINTS))
    probe = Probe(tuple(range(POINTS)), tuple(f"text {i}" for i in range(POINTS)), labels, ("even", "odd"))
    attempt.record_start(Started(0, STEPS, "cpu", probe, {}))
    for step in (0, 1):
        grow(attempt, step)
    yield attempt
    if server_store.run(attempt.run_id).status.active:
        attempt.end(Status.STOPPED)


def grow(attempt: Attempt, step: int) -> None:
    """Add the next frame, in which two classes move apart."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(POINTS, WIDTH)).astype(np.float32)
    vectors[:, 0] += np.arange(POINTS) % 2 * step
    attempt.frame(Frame(step, vectors, vectors[:, :2]), pca_map(vectors))


@pytest.mark.slow
def test_a_running_run_is_followed_unless_a_frame_was_chosen(page: Page, server: Server, learning: Attempt) -> None:
    opened(page, server, learning.run_id)
    assert step_of(page) == 1
    grow(learning, 2)
    expect(page.get_by_text(re.compile(r"^Step 2\b")).first).to_be_visible(timeout=SOON_S * 1000)
    slider = page.get_by_label("Step", exact=True)
    slider.focus()
    page.keyboard.press("Home")
    page.wait_for_url("**frame=0*")
    grow(learning, 3)
    # The slider has one more position, and the page keeps its step.
    expect(slider).to_have_attribute("max", re.compile("^3"))
    assert step_of(page) == 0
    learning.end(Status.STOPPED)
    page.wait_for_timeout(2_500)
    assert step_of(page) == 0


@pytest.mark.slow
def test_a_cancelled_map_can_be_requested_again(page: Page, server: Server, learning: Attempt) -> None:
    for step in range(2, STEPS + 1):
        grow(learning, step)
    learning.end(Status.STOPPED)
    opened(page, server, learning.run_id)
    cancel = page.get_by_role("button", name="Cancel")
    # A job also measures the trustworthiness of PCA's map, with a button of the same name.
    expect(page.get_by_text(re.compile("Trustworthiness"))).to_be_visible(timeout=JOB_MS)
    expect(cancel).to_have_count(0)
    page.get_by_role("radio", name="t-SNE").or_(page.get_by_text("t-SNE", exact=True)).first.click()
    cancel.click(timeout=SOON_S * 1000)
    again = page.get_by_role("button", name="Try again")
    expect(again).to_be_visible(timeout=SOON_S * 1000)
    expect(page.get_by_text(re.compile("t-SNE: Cancelled"))).to_be_visible()
    # The previous map is still shown under its name.
    drawn(page)
    expect(page.get_by_text(re.compile("2-D PCA"))).to_be_visible()
    again.click()
    expect(page.get_by_text(re.compile("2-D t-SNE"))).to_be_visible(timeout=JOB_MS)
    expect(again).to_have_count(0)
    expect(page.get_by_text(re.compile("Trustworthiness"))).to_be_visible(timeout=JOB_MS)
