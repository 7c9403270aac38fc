"""Pages of runs on pairs with similarity scores: their score is Spearman's ρ wherever a score stands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from core.cli.main import _result, _sentence
from core.config import ReadingConfig
from core.events import Frame, Predictions, Probe, Started, Step
from core.exports.model_folder import _rows
from core.exports.run_page import _score
from core.representation.projections import pca_map
from core.store import Status, Store, TaskLibrary
from core.tasks.load import read_rows_of
from tests.core.training.made import scored_csv
from tests.pages.conftest import Draft, Pages
from tests.pages.test_compare import table
from tests.pages.test_pages import made_run, metrics, widget, words
from tests.pages.test_scored import GEOMETRY, LABELS, SCORES, TEXTS

Made = Callable[..., str]
OF_PROBE = SCORES | GEOMETRY | {"train_rows": 20.0}


@pytest.fixture
def made(folder: Path, draft: Draft, tmp_path: Path) -> Made:
    """Return a function that makes a finished run, whose ρ rises from 0.5 to 0.75 on validation and 0.7 on test."""
    path = str(scored_csv(tmp_path / "scored.csv"))

    def make(loss: str = "cosent", seed: int = 0) -> str:
        term = {"loss": loss} | ({"views": [{"view": "dropout"}]} if loss == "simcse" else {})
        more = {"name": loss, "seed": seed}
        store, run_id = made_run(folder, draft(task={"path": path}, more=more, objective={"terms": [term]}))
        attempt = store.attempt(run_id, 1)
        probe = Probe(tuple(range(4)), TEXTS, LABELS, ("0–1", "1–2"))
        attempt.record_start(Started(0, 8, "cpu", probe, {"scored_pairs": 40.0}))
        attempt.steps([Step(step, {"loss": 1.0, f"loss.{loss}": 1.0, "step_s": 0.1}) for step in range(1, 9)])
        attempt.evaluation(0, "baseline_test", OF_PROBE | {"spearman": 0.6})
        for step, spearman in ((0, 0.5), (8, 0.75)):
            vectors = np.random.default_rng(step).normal(size=(4, 4)).astype(np.float32)
            attempt.frame(Frame(step, vectors, vectors[:, :2]), pca_map(vectors))
            attempt.evaluation(step, "validation", OF_PROBE | {"spearman": spearman})
        attempt.predictions(Predictions("test", vectors[:, :2], LABELS))
        attempt.evaluation(8, "test", OF_PROBE | {"spearman": 0.7})
        attempt.end(Status.FINISHED)
        store.close()
        return run_id

    return make


@pytest.mark.parametrize("loss", ["cosent", "simcse"])
def test_a_run_shows_its_rank_correlation_and_that_of_the_untrained_encoder(
    opened: Pages, made: Made, loss: str
) -> None:
    app = opened("fine_tune", run=made(loss))
    assert metrics(app) == {
        "Spearman, validation": "0.750",
        "Before training": "0.500",
        "Spearman, test": "0.700",
    }
    assert "before training: 0.600" in [metric.delta for metric in app.metric]
    said = words(app).replace("\\", "")
    assert "No classifier is trained. The score is Spearman's ρ" in said.replace("’", "'")
    assert "linear probe" not in said


def test_lists_and_comparisons_of_runs_have_it(opened: Pages, made: Made) -> None:
    first, second = made(), made("cosine_mse")
    [runs] = [frame.value for frame in opened("runs").dataframe if "Validation" in frame.value]
    assert list(runs["Validation"]) == [75.0, 75.0]
    assert list(runs["Test"]) == [70.0, 70.0]
    assert set(runs["Scored"]) == {"Spearman × 100"}
    scores = table(opened("compare", runs=f"{first},{second}", show="scores"), "Measure")
    rows = dict(zip(scores["Measure"], scores["cosent"], strict=True))
    found = {name: value for name, value in rows.items() if "Spearman" in name or "ccuracy" in name}
    assert sorted(value.strip("★ ") for value in found.values()) == ["0.700", "0.750"]


def test_the_command_line_and_the_exports_report_it(made: Made, folder: Path) -> None:
    run_id = made()
    store = Store(folder)
    result = _result(store, run_id)
    assert (result["test_spearman"], result["validation_spearman"], result["baseline_test_spearman"]) == (
        0.7,
        0.75,
        0.6,
    )
    assert _sentence(store.run(run_id), result) == "cosent finished at step 8: test Spearman 0.700."
    of_split = {one.split: one for one in store.evaluations(run_id)}
    assert _rows(of_split)[0] == "| Test, Spearman's ρ | 0.700 | – | – |"
    assert _rows(of_split)[2] == "| Test, encoder before training, Spearman's ρ | 0.600 | – | – |"
    assert _score(of_split["test"]) == "Spearman 0.700"


def test_before_launch_the_form_says_what_is_compared_and_scored(opened: Pages, folder: Path, tmp_path: Path) -> None:
    rows, _ = read_rows_of((scored_csv(tmp_path / "scored.csv", 100),), ReadingConfig(), ())
    task = TaskLibrary(folder).add(rows, name="Alike", source="scored.csv.")
    app = opened("fine_tune", task=task.id)
    widget(app, "form.0.preset").set_value("cosent").run()
    said = words(app).replace("\\", "")
    assert "The loss compares the 16 pairs of a batch with their scores. 56 training pairs can be drawn." in said
    assert "Each step encodes the two texts of every pair in its batch." in said
    assert "The score is Spearman's ρ" in said.replace("’", "'")
    assert "cannot be used" not in said
