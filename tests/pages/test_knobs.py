"""The knobs of a live run: a slider shows the value in effect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from core.errors import StoreError
from core.events import Frame, Step
from core.store import Status
from core.store.attempt import Attempt
from core.workers import LocalEngine
from pages.ui.parameter_widget import Scale, slider_scale
from tests.cases import each
from tests.pages.conftest import Draft, Pages
from tests.pages.test_pages import made_run, progress, trained, words


@pytest.fixture
def attempt(folder: Path, draft: Draft) -> Attempt:
    """Return an attempt at step 4 whose worker is alive."""
    store, run_id = made_run(folder, draft(steps=20))
    trained(store, run_id)
    return store.attempt(run_id, 1)


@pytest.fixture
def live(opened: Pages, attempt: Attempt) -> AppTest:
    return opened("fine_tune", run=attempt.run_id)


def knob(app: AppTest, label: str) -> Any:
    return next(slider for slider in app.slider if slider.label.startswith(label))


def pressed(app: AppTest, label: str, value: float) -> None:
    knob(app, label).set_value(value).run()
    assert not app.exception


def test_a_slider_keeps_its_place_through_its_own_turns(live: AppTest, attempt: Attempt) -> None:
    store, widget = attempt.store, knob(live, "Temperature").id
    pressed(live, "Temperature", 0.31)
    pressed(live, "Temperature", 0.32)
    assert store.knob_state(attempt.run_id).pending == {"temperature": 0.32}
    assert "Temperature τ 0.32 from the next step" in progress(live)
    attempt.record_knob_turn(5, "temperature", 0.31)
    attempt.record_knob_turn(5, "temperature", 0.32)
    live.run()
    assert (knob(live, "Temperature").value, knob(live, "Temperature").id) == (0.32, widget)
    assert "τ 0.3 → 0.32" in progress(live)
    assert "next step" not in progress(live)
    assert knob(live, "Temperature").label == "Temperature τ"  # a longer label would take a second line


def test_a_turn_from_elsewhere_moves_the_slider(opened: Pages, live: AppTest, attempt: Attempt) -> None:
    other = opened("fine_tune", run=attempt.run_id)
    pressed(other, "Temperature", 0.08)
    pressed(other, "Learning rate", 0.5)
    live.run()
    assert (knob(live, "Temperature").value, knob(live, "Learning rate").value) == (0.08, 0.5)
    attempt.record_knob_turn(5, "temperature", 0.08)
    attempt.store.send(attempt.run_id, "turn", "temperature", 0.5)
    for app in (live, other):
        assert knob(app.run(), "Temperature").value == 0.5
    pressed(live, "Temperature", 0.51)
    assert knob(other.run(), "Temperature").value == 0.51
    assert attempt.store.knob_state(attempt.run_id).pending["temperature"] == 0.51


def test_a_page_that_is_opened_again_shows_what_counts(opened: Pages, live: AppTest, attempt: Attempt) -> None:
    pressed(live, "Temperature", 0.08)
    attempt.record_knob_turn(5, "temperature", 0.08)
    assert knob(opened("fine_tune", run=attempt.run_id), "Temperature").value == 0.08
    live.switch_page("pages/runs.py").run()
    attempt.store.send(attempt.run_id, "turn", "temperature", 0.2)
    live.query_params["run"] = attempt.run_id
    assert knob(live.switch_page("pages/fine_tune.py").run(), "Temperature").value == 0.2


def test_a_turn_that_the_run_refuses_goes_back_with_a_sentence(live: AppTest, attempt: Attempt) -> None:
    pressed(live, "Temperature", 0.08)
    attempt.record_refused_turn("temperature", 0.08, "this objective has no such knob.")
    live.run()
    assert knob(live, "Temperature").value == 0.3
    assert "this objective has no such knob" in words(live)


def test_a_turn_that_cannot_be_sent_goes_back_with_a_sentence(
    live: AppTest, attempt: Attempt, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise StoreError("The disk is full.")

    monkeypatch.setattr(LocalEngine, "turn", full)
    pressed(live, "Temperature", 0.08)
    for _ in range(2):  # it stays long enough to be read while the page reruns
        assert knob(live, "Temperature").value == 0.3
        assert "The disk is full" in words(live)
        live.run()


def test_after_the_last_step_nothing_is_turned_or_paused(attempt: Attempt, live: AppTest) -> None:
    pressed(live, "Temperature", 0.08)
    assert "from the next step" in progress(live)
    attempt.steps([Step(step, {"loss": 1.0}) for step in range(5, 21)])
    live.run()
    assert "measuring the last frame" in progress(live)
    assert "next step" not in progress(live)
    assert all(slider.disabled for slider in live.slider if not slider.key.startswith("branch."))
    assert next(button for button in live.button if button.label == "Pause").disabled
    assert not next(button for button in live.button if button.label == "Stop").disabled


def test_after_the_last_frame_the_page_says_what_is_done_and_the_bar_still_moves(
    attempt: Attempt, live: AppTest
) -> None:
    vectors = np.zeros((3, 4), np.float32)
    attempt.steps([Step(step, {"loss": 1.0}) for step in range(5, 21)])
    attempt.frame(Frame(20, vectors, vectors[:, :2]), vectors[:, :2])
    bars = []
    for doing in ("scoring the test split", "checking and saving the weights"):
        live.run()
        assert doing in progress(live)
        bars.append(live.get("progress")[0].proto.value)
        attempt.evaluation(20, "test", {"accuracy": 0.5, "accuracy_low": 0.4, "accuracy_high": 0.6, "macro_f1": 0.5})
    assert bars[0] < bars[1] < 100


def test_the_value_of_a_finished_run_is_that_of_its_last_turn(opened: Pages, attempt: Attempt, live: AppTest) -> None:
    attempt.record_knob_turn(5, "temperature", 0.08)
    attempt.end(Status.FINISHED)
    assert not [slider for slider in live.run().slider if not slider.key.startswith("branch.")]
    assert "τ 0\\.3 → 0\\.08" in words(live)
    assert opened("runs").dataframe[0].value["Objective"][0] == "0.1 CE + 0.9 SCL, τ 0.3 → 0.08"
    assert "τ 0\\.3 → 0\\.08" in words(opened("home"))
    explore = opened("explore", run=attempt.run_id)
    assert "τ 0.3 → 0.08" in explore.selectbox(key="explore.run").options[0]


@each(
    ("span", "values", "scale"),
    [
        ((0.02, 1.0), [0.3], Scale(0.02, 1.0, 2)),
        ((0.02, 1.0), [0.3, 0.08, 0.31], Scale(0.02, 1.0, 2)),
        ((0.02, 1.0), [0.3, 3.0], Scale(0.02, 3.0, 2)),
        ((0.02, 1.0), [0.3, 0.075], Scale(0.02, 1.0, 3)),
        ((0.0, 0.1), [0.05], Scale(0.0, 0.1, 3)),
        ((0.0, 1.0), [0.12345], Scale(0.0, 1.0, 4)),
        ((5.0, 100.0), [30.0], Scale(5.0, 100.0, 0)),
        ((5.0, 100.0), [29.5], Scale(5.0, 100.0, 2)),
    ],
)
def test_a_scale_has_a_place_for_every_value(span: tuple[float, float], values: list[float], scale: Scale) -> None:
    assert slider_scale(span, values) == scale
