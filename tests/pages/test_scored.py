"""Scores on pages of a run whose classifier never learns: a linear probe's, or none if none was recorded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.advice.score_source import classifier_note
from core.artifacts.text_history import Biography
from core.cli.main import _result, _sentence
from core.config.objective import ObjectiveConfig
from core.events import Frame, Notice, Probe, Started, Step
from core.representation.projections import pca_map
from core.store import Status, Store
from pages.ui.explore.run_reads import frames_of
from pages.ui.explore.sentence import predicted_steps
from tests.pages.conftest import Draft, Pages
from tests.pages.test_compare import table
from tests.pages.test_pages import made_run, metrics, widget, words

TEXTS, LABELS = ("one", "two", "three", "four"), (0, 1, 0, 1)
SCORES = {"accuracy": 0.75, "accuracy_low": 0.6, "accuracy_high": 0.9, "macro_f1": 0.7, "cross_entropy": 0.4}
GEOMETRY = {"mean_cosine": 0.5, "within_cosine": 0.6, "between_cosine": 0.4, "effective_rank": 2.5}


@pytest.fixture
def made(folder: Path, draft: Draft) -> Callable[..., str]:
    """Return a function that makes a finished run of 8 steps with λ.

    `rows`: training rows of the linear probe, None to score the classifier itself.
    """

    def make(
        weight: float, rows: int | None, *, turned: int | None = None, name: str = "run", noise: float = 0.0
    ) -> str:
        objective = ObjectiveConfig().with_knob("lambda", weight).model_dump(mode="json")
        task = {"label_noise": noise}
        store, run_id = made_run(folder, draft(task=task, more={"name": name}, objective=objective))
        attempt = store.attempt(run_id, 1)
        attempt.record_start(Started(0, 8, "cpu", Probe(tuple(range(4)), TEXTS, LABELS, ("no", "yes")), {}))
        note = classifier_note(store.run(run_id).config)
        if note is not None and rows is not None:
            attempt.notice(Notice(0, note).message)
        if turned is not None:
            attempt.record_knob_turn(turned, "lambda", 0.5)
        values = {"loss": 1.0, "loss.cross_entropy": 0.7, "loss.supcon": 1.0, "step_s": 0.1}
        attempt.steps([Step(step, values) for step in range(1, 9)])
        attempt.evaluation(0, "baseline", SCORES | {"accuracy": 0.5, "train_rows": 90.0})
        for step in (0, 4, 8):
            vectors = np.random.default_rng(step).normal(size=(4, 4)).astype(np.float32)
            attempt.frame(Frame(step, vectors, vectors[:, :2]), pca_map(vectors))
            of_probe = {} if rows is None or (turned is not None and step >= turned) else {"train_rows": float(rows)}
            attempt.evaluation(step, "validation", SCORES | of_probe | GEOMETRY)
        attempt.evaluation(8, "test", SCORES | of_probe | {"accuracy": 0.625})
        attempt.end(Status.FINISHED)
        store.close()
        return run_id

    return make


Made, Opened = Callable[..., str], Pages


class TestLive:
    def test_a_probe_is_named_as_one(self, opened: Opened, made: Made) -> None:
        app = opened("fine_tune", run=made(1.0, 80))
        found = metrics(app)
        assert found["Probe now"] == "75.0%"
        assert found["Probe, test"] == "62.5%"
        assert found["Probe at step 0"] == "75.0%"
        assert not {"Validation", "Test", "Probe at start"} & set(found)
        assert "At λ = 1 the classifier is not trained" in words(app)
        assert "Set λ below 1" not in words(app)  # the run has ended
        helps = " ".join(metric.proto.help for metric in app.metric)
        assert "fitted on 80 training rows" in helps
        assert "fitted on 90 training rows" not in helps  # a probe of another kind is not comparable

    @pytest.mark.parametrize(
        ("weight", "probes"), [(0.9, ["Probe at start"]), (1.0, ["Probe now", "Probe at step 0", "Probe, test"])]
    )
    def test_a_probe_of_noisy_labels_says_so(
        self, opened: Opened, made: Made, weight: float, probes: list[str]
    ) -> None:
        said = "The probe is trained on the same noisy labels as the run (ρ 0.2)."
        rows = 80 if weight == 1.0 else None
        noisy, clean = (opened("fine_tune", run=made(weight, rows, noise=noise)) for noise in (0.2, 0.0))
        assert [metric.label for metric in noisy.metric if said in metric.proto.help] == probes
        assert all("noisy" not in metric.proto.help for metric in clean.metric)

    def test_an_older_run_shows_no_accuracy_of_a_random_classifier(self, opened: Opened, made: Made) -> None:
        app = opened("fine_tune", run=made(1.0, None))
        found = metrics(app)
        assert found["Probe now"] == found["Probe, test"] == found["Macro-F1"] == "–"
        assert "75.0%" not in found.values()

    def test_after_lambda_was_turned_the_classifier_counts(self, opened: Opened, made: Made) -> None:
        app = opened("fine_tune", run=made(1.0, 80, turned=5))
        assert metrics(app)["Validation"] == "75.0%"
        assert "is trained from step 5" in words(app)
        assert "is not trained" not in words(app)


def test_the_form_says_it_before_launch(opened: Opened) -> None:
    app = opened("fine_tune")
    assert "classifier" not in " ".join(warning.value for warning in app.warning)
    widget(app, "form.0.knob.lambda").set_value(1.0).run()
    assert "At λ = 1 the classifier is not trained" in " ".join(warning.value for warning in app.warning)


def test_the_list_of_runs_says_what_was_scored(opened: Opened, made: Made) -> None:
    made(0.9, None, name="learns")
    assert "Scored" not in table(opened("runs"), "Run").columns
    made(1.0, 80, name="probed")
    made(1.0, None, name="older")
    made(1.0, 80, turned=5, name="turned")
    found = table(opened("runs"), "Run").set_index("Run")
    assert found["Scored"].to_dict() == {
        "learns": "classifier",
        "probed": "linear probe",
        "older": "",
        "turned": "classifier",
    }
    assert found["Test"].dropna().to_dict() == dict.fromkeys(("learns", "probed", "turned"), 62.5)


def test_compare_ranks_no_probe_against_a_classifier_and_leaves_out_one_that_learned_nothing(
    opened: Opened, made: Made
) -> None:
    runs = [made(0.9, None, name="learns"), made(1.0, 80, name="probed"), made(1.0, None, name="older", noise=0.2)]
    found = table(opened("compare", runs=",".join(runs), show="scores"), "Measure").set_index("Measure")
    assert found.loc["↑ Test accuracy"].tolist()[:3] == ["62.5%", "–", "–"]
    assert found.loc["↑ Test accuracy, linear probe"].tolist()[:3] == ["–", "62.5%", "–"]
    assert "never learned" in found.loc["↑ Test accuracy, linear probe"].iloc[3]
    app = opened("compare", runs=",".join(runs[:2]), show="curves")  # two measures
    chosen = next(w for w in app.multiselect if w.label == "Measures")
    assert chosen.value == ["validation.accuracy", "validation.probe.accuracy", "loss"]
    assert {"Cosine within classes", "Cosine between classes"} <= set(chosen.options)


def test_explore_says_whose_predictions_it_shows(opened: Opened, made: Made) -> None:
    assert "come from a linear probe, fitted on 80 training rows" in words(opened("explore", run=made(1.0, 80)))
    assert "mean nothing" in words(opened("explore", run=made(1.0, None)))
    text = words(opened("explore", run=made(0.9, None)))
    assert "linear probe" not in text
    assert "mean nothing" not in text


def test_the_command_line_names_the_probe(made: Made, folder: Path) -> None:
    store = Store(folder)
    found: dict[str, Any] = {weight: _result(store, made(weight, rows)) for weight, rows in ((0.9, None), (1.0, 80))}
    assert (found[0.9]["scored"], found[1.0]["scored"]) == ("classifier", "linear probe")
    assert found[1.0]["test_accuracy"] == 0.625
    run = store.run(found[1.0]["run_id"])
    assert "test accuracy of a linear probe 62.5%" in _sentence(run, found[1.0])
    older = _result(store, made(1.0, None))
    assert (older["scored"], older["test_accuracy"], older["validation_accuracy"]) == (None, None, None)
    assert older["baseline_accuracy"] == 0.5
    assert _sentence(run, older) == "run finished at step 8."
    store.close()


@pytest.mark.parametrize(
    ("weight", "rows", "turned", "steps"),
    [
        (0.9, None, None, (0, 4, 8)),
        (1.0, 80, None, ()),
        (1.0, None, None, ()),
        (1.0, 80, 3, (4, 8)),
        (1.0, 80, 5, (8,)),
    ],
)
def test_of_a_sentence_only_a_classifier_that_has_learned_is_quoted(
    made: Made, folder: Path, weight: float, rows: int | None, turned: int | None, steps: tuple[int, ...]
) -> None:
    """The classifier's own weights are known at all three frames, but not between them."""
    store = Store(folder)
    frames = frames_of(store, store.run(made(weight, rows, turned=turned)), None)
    nothing = np.zeros((3, 1), np.int64)
    reported = Biography((0, 4, 8), (True, True, True), np.zeros((3, 4)), np.zeros((3, 2)), nothing, (1, 1, 1))
    assert predicted_steps(frames, reported) == steps
    between = Biography((0, 4, 8), (True, False, True), np.zeros((3, 4)), np.zeros((3, 2)), nothing, (1, 1, 1))
    assert predicted_steps(frames, between) == (steps if weight < 1 else steps[-1:])
    store.close()
