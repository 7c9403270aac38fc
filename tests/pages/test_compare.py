"""The Compare page, without a browser."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from statistics import mean, stdev
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from core.artifacts import maps
from core.artifacts.cache import write
from core.artifacts.changed_texts import CHANGED_TEXTS, ChangedTexts
from core.artifacts.measures import TRAINING_MEASURES, FrameMeasures, TrainingMeasures, measures_path
from core.artifacts.seeds import Spread
from core.artifacts.shared_examples import linked_ids
from core.events import Frame, Probe, Started, Step
from core.quantities import signed
from core.representation.agreement import agreement
from core.representation.projections import pca_map
from core.store import Status, Store
from core.workers import Jobs
from pages.ui.compare.curves import Record, records_csv
from pages.ui.compare.maps import turn_onto
from pages.ui.compare.pair import mcnemar_sentence, pair_text
from pages.ui.compare.picking import Compared
from pages.ui.compare.scores import scores_csv, spread_text
from tests.cases import each
from tests.core.representation.test_metrics import slow_silhouette
from tests.pages.conftest import Draft, Pages, checked
from tests.pages.test_pages import button, made_run, metrics, widget, words

HOSTILE = "<img src=x onerror=window.hacked=1> $x$ **bold**"
TEXTS = ("good film", "bad film", HOSTILE, "two $y$", "trained one", "trained two")
LABELS = (1, 0, 1, 0, 1, 0)
CLASSES = ("no", "<b>yes</b>")
SPLITS = ("validation",) * 4 + ("train",) * 2
# Predictions of the last frames for the four validation texts, then for the two training texts.
GOOD, BAD = (1, 0, 1, 1, 1, 0), (1, 1, 0, 0, 0, 0)


Opened, Made = Callable[..., AppTest], Callable[..., str]


@pytest.fixture
def opened(opened: Pages) -> Opened:
    return partial(opened, "compare")


@pytest.fixture
def made(folder: Path, draft: Draft) -> Made:
    """Return a function that makes a run with two frames. Returns: its id."""

    def make(
        name: str = "",
        *,
        seed: int = 0,
        said: Sequence[int] = GOOD,
        test_accuracy: float = 0.8,
        texts: Sequence[str] = TEXTS,
        status: Status | None = Status.FINISHED,
        **phase: Any,
    ) -> str:
        store, run_id = made_run(folder, draft(more={"name": name, "seed": seed}, **phase))
        attempt = store.attempt(run_id, 1)
        attempt.record_start(Started(0, 8, "cpu", Probe(tuple(range(6)), tuple(texts), LABELS, CLASSES, SPLITS), {}))
        values = {"loss": 1.0, "loss.cross_entropy": 0.7, "grad_norm": 1.0, "learning_rate": 1e-5, "step_s": 0.1}
        attempt.steps([Step(step, values | {"loss": 1 / step}) for step in range(1, 9)])
        for step in (0, 8):
            vectors = np.random.default_rng([step, seed]).normal(size=(6, 4)).astype(np.float32)
            logits = np.eye(2, dtype=np.float32)[list(said)] * 2
            attempt.frame(Frame(step, vectors, logits), pca_map(vectors))
            scores = {"accuracy": 0.75, "accuracy_low": 0.6, "accuracy_high": 0.9, "macro_f1": 0.7}
            attempt.evaluation(step, "validation", scores | {"cross_entropy": 0.5, "effective_rank": 2.0})
        attempt.evaluation(8, "test", {"accuracy": test_accuracy, "macro_f1": 0.7, "cross_entropy": 0.5})
        if status is not None:
            attempt.end(status)
        store.close()
        return run_id

    return make


def compared(folder: Path, runs: Sequence[str]) -> list[Compared]:
    every = [Store(folder).run(run) for run in runs]
    return [Compared(run, run.effective, run.title, None) for run in every]


def table(app: AppTest, *columns: str) -> Any:
    """Return the first table that has these columns."""
    return next(frame.value for frame in app.dataframe if set(columns) <= set(frame.value.columns))


def lists(app: AppTest) -> list[list[str]]:
    """Return the texts that B fixed, and those that it broke."""
    tables = [re.findall('<td class="wide"[^>]*>(.*?)</td>', one.body) for one in app.html if "A predicts" in one.body]
    return [[html.unescape(text) for text in texts] for texts in tables]


def address(app: AppTest) -> dict[str, str]:
    return {name: value if isinstance(value, str) else value[0] for name, value in app.query_params.items()}


def ids(app: AppTest) -> list[str]:
    """Return the runs in the address."""
    return address(app)["runs"].split(",")


def asked(app: AppTest, name: str) -> str | None:
    return address(app).get(name)


# Selection of runs


def test_the_only_run_is_offered_the_bundled_runs(opened: Opened, made: Made, folder: Path) -> None:
    assert "There is nothing to compare yet" in words(opened())
    only = made("only one")
    app = opened()
    button(app, "Compare with the bundled runs").click().run()
    assert not app.exception
    titles = {run.id: run.title for run in Store(folder).runs()}
    assert [titles[one] for one in ids(app)] == ["only one", "CE", "CE + SCL, τ 0.3"]
    assert ids(app)[0] == only


def test_the_only_run_is_offered_a_twin_that_joins_the_comparison(opened: Opened, made: Made, folder: Path) -> None:
    only = made("only one")
    app = opened()
    assert "A comparison needs two runs" in words(app)
    widget(app, "bound.change").set_value("phases.0.objective.lambda").run()
    checked(widget(app, "bound.to").set_value("0.1").run())
    assert "Differences:" in words(app)
    checked(button(app, "Launch the twin").click().run())
    store = Store(folder)
    newest, original = store.runs()[0], store.run(only)
    assert ids(app) == [only, newest.id]
    assert newest.config.phases[0].objective.weight == pytest.approx(0.1)
    assert newest.config.seed == original.config.seed
    assert newest.config.probe.frame_steps == original.config.probe.frame_steps
    assert newest.name == "only one, λ 0.1 instead of 0.9"
    assert f"step 0 of {newest.steps}" in words(app)


def test_where_the_address_names_no_run_the_newest_are_compared_and_an_unknown_one_is_left_out(
    opened: Opened, made: Made
) -> None:
    older, newer = made("a"), made("b")
    assert ids(opened()) == [newer, older]
    app = opened(runs="zzzz")
    assert any("runs = 'zzzz', but there is no such run" in warning.value for warning in app.warning)
    assert ids(app) == [newer, older]
    app = opened(runs=f"{older},<script>,{newer}")
    assert any("no run has this id" in warning.value for warning in app.warning)
    assert ids(app) == [older, newer]


def test_at_most_six_are_compared(opened: Opened, made: Made) -> None:
    every = [made(f"run {i}", seed=i) for i in range(7)]
    app = opened(runs=",".join(every))
    assert any("at most 6 can be compared" in warning.value for warning in app.warning)
    assert ids(app) == every[:6]
    app = opened(runs=",".join(every[:6]), show="twin")
    assert button(app, "Launch the twin").disabled


def test_taking_the_first_run_away_drops_what_was_selected_on_its_map(opened: Opened, made: Made) -> None:
    runs = [made("a"), made("b"), made("c")]
    app = opened(runs=",".join(runs), show="maps", sel="1", a=runs[1], b=runs[2])
    widget(app, "compare.runs").set_value(runs[:2]).run()
    assert asked(app, "sel") == "1"
    assert (asked(app, "a"), asked(app, "b")) == (runs[1], None)
    checked(widget(app, "compare.runs").set_value(runs[1:2]).run())
    assert asked(app, "sel") is None
    assert ids(app) == runs[1:2]


# Settings and scores


def test_only_what_differs_is_listed(opened: Opened, made: Made) -> None:
    one, other = made(HOSTILE), made("b", seed=1, batch_size=4)
    app = opened(runs=f"{one},{other}", show="scores")
    found = table(app, "Setting")
    assert list(found.columns) == ["Setting", HOSTILE, "b"]
    assert found.values.tolist() == [["Batch size", "8", "4"], ["Seed", "0", "1"]]


def test_identical_runs_differ_only_in_their_numbers(opened: Opened, made: Made) -> None:
    one, other = made("same"), made("same")
    app = opened(runs=f"{one},{other}", show="scores")
    assert "the same settings and the same seed" in words(app)
    app = opened(runs=f"{one},{other}", show="maps")
    assert widget(app, "bound.a").options == ["same (run 1)", "same (run 2)"]


def test_seeds_are_gathered_and_the_best_is_marked(opened: Opened, made: Made) -> None:
    accuracies = [0.80, 0.84, 0.88]
    runs = [made(f"seed {i}", seed=i, test_accuracy=accuracy) for i, accuracy in enumerate(accuracies)]
    runs += [made(f"small {i}", seed=i, batch_size=4, test_accuracy=0.83) for i in range(3)]
    app = opened(runs=",".join(runs), show="scores")
    found = table(app, "Measure").set_index("Measure")
    assert list(found.columns) == ["seed 0 and 2 more", "small 0 and 2 more", "Definition"]
    # The test split must not select the best.
    reported = f"{mean(accuracies):.1%} ± {stdev(accuracies):.1%}"
    assert found.loc["↑ Test accuracy"].tolist()[:2] == [reported, "83.0% ± 0.0%"]
    # Equal means are both best.
    assert found.loc["↑ Validation accuracy"].tolist()[:2] == ["★ 75.0% ± 0.0%", "★ 75.0% ± 0.0%"]
    assert "3 seeds" in words(app)
    app = opened(runs=",".join(runs[:4]), show="scores")
    found = table(app, "Measure").set_index("Measure")
    assert found.loc["↑ Validation accuracy"].tolist()[:2] == ["75.0% ± 0.0%", "75.0%"]


def test_scores_as_csv_are_numbers_with_names(made: Made, folder: Path) -> None:
    accuracies = [0.80, 0.84, 0.88]
    runs = [made(f"seed {i}", seed=i, test_accuracy=accuracy) for i, accuracy in enumerate(accuracies)]
    runs.append(made("=small", batch_size=4, test_accuracy=2 / 3))
    found = list(csv.DictReader(io.StringIO(scores_csv(Store(folder), compared(folder, runs)).decode("utf-8-sig"))))
    assert list(found[0]) == ["Measure", "Runs", "Mean", "Standard deviation", "Seeds", "How it is measured"]
    tested = [row for row in found if row["Measure"] == "Test accuracy"]
    assert [row["Runs"] for row in tested] == ["seed 0 and 2 more", "'=small"]
    assert [row["Seeds"] for row in tested] == ["3", "1"]
    assert float(tested[0]["Mean"]) == pytest.approx(mean(accuracies), rel=1e-9)
    assert float(tested[0]["Standard deviation"]) == pytest.approx(stdev(accuracies), rel=1e-9)
    assert float(tested[1]["Mean"]) == pytest.approx(2 / 3, rel=1e-9)
    assert tested[1]["Standard deviation"] == ""
    assert not any(sign in value for row in found for value in row.values() for sign in "★↑↓±%")


def test_scores_of_different_validation_rows_have_no_best(opened: Opened, made: Made, folder: Path) -> None:
    runs = [made("a"), made("b", batch_size=4)]
    said = "the runs were scored on different validation rows"
    assert said not in words(opened(runs=",".join(runs), show="scores"))
    with Store(folder).transaction() as db:
        db.execute("UPDATE runs SET config = json_set(config, '$.task.train_size', 4) WHERE id = ?", (runs[1],))
    app = opened(runs=",".join(runs), show="scores")
    assert "★ 75.0%" in table(app, "Measure").set_index("Measure").loc["↑ Validation accuracy"].tolist()
    with Store(folder).transaction() as db:
        db.execute("UPDATE runs SET config = json_set(config, '$.task.validation_size', 2) WHERE id = ?", (runs[1],))
    app = opened(runs=",".join(runs), show="scores")
    assert table(app, "Measure").set_index("Measure").loc["↑ Validation accuracy"].tolist()[:2] == ["75.0%", "75.0%"]
    assert said in words(app)


def test_rows_of_two_files_of_one_name_are_different_rows(opened: Opened, made: Made) -> None:
    said = "the runs were scored on different validation rows"
    runs = [made("a"), made("b", batch_size=4, texts=[f"other {text}" for text in TEXTS])]
    app = opened(runs=",".join(runs), show="scores")
    assert said in words(app)
    assert "★ 75.0%" not in table(app, "Measure").set_index("Measure").loc["↑ Validation accuracy"].tolist()


def test_a_turned_run_shows_what_it_did(opened: Opened, made: Made, folder: Path) -> None:
    runs = [made("plain"), made("turned", status=None)]
    attempt = Store(folder).attempt(runs[1], 1)
    attempt.record_knob_turn(5, "temperature", 0.08)
    attempt.end(Status.FINISHED)
    app = opened(runs=",".join(runs), show="scores")
    assert table(app, "Setting").values.tolist() == [["Temperature τ of SCL", "0.3", "0.3 → 0.08 at step 5"]]
    assert list(table(app, "Measure").columns)[1:3] == ["plain", "turned"]
    app = opened(runs=",".join(runs), show="twin", twin=runs[1])
    assert "The twin does not repeat turns of the setting that you change" in words(app)
    app = opened(runs=",".join(runs), show="twin", twin=runs[1], change="phases.0.batch_size")
    assert "repeats these knob turns of its original" in words(app)
    assert "0\\.3 → 0\\.08 at step 5" in words(app)


def test_the_list_of_runs_is_sent_at_every_run_of_the_script(opened: Opened, made: Made) -> None:
    # A list drawn for an interrupted run of the script starts empty in the browser, which reported no runs at all.
    runs = [made("a"), made("b", seed=1)]
    app = opened(runs=",".join(runs), show="scores")
    for _again in range(2):
        [listed] = [one for one in app.multiselect if one.label == "Runs"]
        assert listed.proto.set_value
        assert listed.value == runs
        app.run()


def test_last_frames_of_ended_runs_are_measured_by_themselves(opened: Opened, made: Made, folder: Path) -> None:
    runs = [made("a"), made("b", seed=1), made("going", seed=2, status=None)]
    store = Store(folder)
    for run in runs:  # the first frame is no substitute for the last
        write(measures_path(store.run_folder(run), 1, 0), FrameMeasures({"silhouette": 0.5}, np.zeros(6, np.int64)))
    app = opened(runs=",".join(runs), show="scores")
    assert "Silhouette" not in str(table(app, "Measure")["Measure"])
    assert sorted(job.request["run"] for job in Jobs(folder).jobs()) == sorted(runs[:2])
    assert {job.kind for job in Jobs(folder).jobs()} == {"measures"}


def test_accuracies_on_changed_texts_stand_side_by_side_with_the_exact_test(
    opened: Opened, made: Made, folder: Path
) -> None:
    runs, labels = [made("a"), made("b", batch_size=4)], np.zeros(8, np.int64)
    for run, wrong, names in zip(runs, (0, 6), (("typos", "swap"), ("typos",)), strict=True):
        predicted = np.array([[1] * wrong + [0] * (8 - wrong)] * len(names))
        where, cosines = np.ones((len(names), 8), bool), np.ones((2, len(names), 8), np.float32)
        result = ChangedTexts(names, (0.4,) * len(names), 8, labels, where, cosines, labels, predicted, 0)
        write(Store(folder).run_folder(run) / CHANGED_TEXTS, result)
    query = {"runs": ",".join(runs), "show": "scores"}
    assert "Measure changed texts" in [button.label for button in opened(**query).button]
    found = table(opened(**query, changed="on"), "Change").set_index("Change")
    assert found.loc["Unchanged"].tolist() == ["100.0%", "100.0%", "1"]
    # Six texts that only one of two runs gets right: p = 2 · 2⁻⁶.
    assert found.loc["Misspelt words, rate 0.4"].tolist() == ["100.0%", "25.0%", "0.0312"]
    assert found.iloc[2].tolist() == ["100.0%", "–", "–"]


def test_measures_of_training_rows_are_asked_for_and_stand_side_by_side(
    opened: Opened, made: Made, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [made("a"), made("b", batch_size=4), made("c", seed=1)]
    for run, value in zip(runs[:2], (0.25, 1.0), strict=True):
        result = TrainingMeasures({"linear_svm": value, "ari": None}, 2000, 20_000, 0)
        write(Store(folder).run_folder(run) / TRAINING_MEASURES, result)
    query = {"runs": ",".join(runs), "show": "scores"}
    app = opened(**query)
    assert "up to 2,000 training rows" in words(app)
    assert "Measure training rows" in [button.label for button in app.button]
    app = opened(**query, training="on")
    [found] = [one.value for one in app.dataframe if "Linear SVM accuracy" in list(one.value.get("Measure", []))]
    assert found.set_index("Measure").loc["Linear SVM accuracy"].tolist() == ["25.0%", "100.0%"]
    assert found.set_index("Measure").loc["Adjusted Rand index"].tolist() == ["–", "–"]
    assert "2,000 of 20,000 training rows" in words(app)
    assert "training rows flatter the vectors" in words(app)
    assert "the weights of the last step are not stored" in words(app)


def test_known_measures_are_listed_with_their_definitions_and_the_best_is_marked(
    opened: Opened, made: Made, folder: Path
) -> None:
    runs = [made("a"), made("b", batch_size=4)]
    store = Store(folder)
    for run, value in zip(runs, (0.0, 1.0), strict=True):
        measured = FrameMeasures({"silhouette": value, "alignment": value, "knn1": None}, np.zeros(6, np.int64))
        for step in (0, 8):
            write(measures_path(store.run_folder(run), 1, step), measured)
    app = opened(runs=",".join(runs), show="scores")
    found = table(app, "Measure").set_index("Measure")
    assert found.loc["↑ Silhouette"].tolist()[:2] == ["0.000", "★ 1.000"]
    assert "labels as clusters" in found.loc["↑ Silhouette"]["Definition"]
    assert found.loc["Alignment"].tolist()[:2] == ["0.000", "1.000"]
    assert found.loc["↑ 1-NN accuracy"].tolist()[0] == "–"
    assert Jobs(folder).jobs() == []


def test_the_probe_to_beat_is_shown_with_its_rows(opened: Opened, made: Made, folder: Path) -> None:
    runs = [made("a", status=None), made("b", batch_size=4, status=None)]
    for run, rows in zip(runs, (40, 1200), strict=True):
        Store(folder).attempt(run, 1).evaluation(0, "baseline", {"accuracy": 0.7, "train_rows": float(rows)})
    found = table(opened(runs=",".join(runs), show="scores"), "Measure").set_index("Measure")
    assert found.loc["Training rows of this probe"].tolist()[:2] == ["40", "1,200"]


# Curves


def test_curves_are_chosen_and_restored(opened: Opened, made: Made) -> None:
    runs = [made("a"), made("b", batch_size=4)]
    app = opened(runs=",".join(runs), show="curves")
    assert widget(app, "bound.curves").value == ["validation.accuracy", "loss"]
    widget(app, "bound.curves").set_value(["grad_norm", "validation.effective_rank"]).run()
    widget(app, "bound.axis").set_value("time").run()
    widget(app, "bound.smooth").set_value("exponential").run()
    checked(widget(app, "bound.beta").set_value(0.5).run())
    address = {name: asked(app, name) for name in ("curves", "axis", "smooth", "beta")}
    assert address == {
        "curves": "grad_norm,validation.effective_rank",
        "axis": "time",
        "smooth": "exponential",
        "beta": "0.5",
    }
    again = opened(runs=",".join(runs), show="curves", **address)
    assert widget(again, "bound.curves").value == ["grad_norm", "validation.effective_rank"]
    assert widget(again, "bound.axis").value == "time"
    assert "β 0.5" in words(again)


def test_the_mean_over_seeds_is_offered_where_there_are_seeds(opened: Opened, made: Made) -> None:
    runs = [made("a"), made("b", seed=1)]
    app = opened(runs=",".join(runs), show="curves", mean="on")
    assert "mean ± one standard deviation over seeds" in words(app)
    app = opened(runs=",".join(runs), show="curves", mean="on", axis="time")
    assert "standard deviation" not in words(app)
    other = made("c", batch_size=4)
    app = opened(runs=f"{runs[0]},{other}", show="curves", mean="on")
    assert not app.toggle


def test_losses_that_are_different_sums_are_said_to_be(opened: Opened, made: Made) -> None:
    runs = [made("a"), made("b", optimiser={"learning_rate": 1e-3}), made("c", batch_size=4)]
    assert "do not compare" not in words(opened(runs=",".join(runs[:2]), show="curves"))
    app = opened(runs=",".join(runs), show="curves", curves="loss,loss.cross_entropy,grad_norm")
    assert "Loss: the terms of these runs differ" in words(app)
    assert "Validation scores are comparable." in words(app)
    app = opened(runs=",".join(runs), show="curves", curves="loss.cross_entropy")
    assert "do not compare" not in words(app)


def test_curves_of_different_tasks_compare_neither_in_loss_nor_in_score(
    opened: Opened, made: Made, folder: Path
) -> None:
    runs = [made("a"), made("b", texts=[f"other {text}" for text in TEXTS])]
    with Store(folder).transaction() as db:
        db.execute("UPDATE runs SET config = json_set(config, '$.task.id', 'film_reviews') WHERE id = ?", (runs[1],))
    text = words(opened(runs=",".join(runs), show="curves"))
    assert "Loss: the terms of these runs differ (task, " in text
    assert "Validation scores are not comparable either" in text
    assert "Validation scores are comparable." not in text


def test_curves_as_csv_have_every_value_of_every_run() -> None:
    def record(name: str, losses: list[float]) -> Record:
        one = SimpleNamespace(name=name, run=SimpleNamespace(id=f"id-{name}", steps=4))
        steps = [Step(place, {"loss": loss}) for place, loss in enumerate(losses, start=1)]
        return Record(one, steps, {0: {"validation.accuracy": 0.5}, 2: {"validation.accuracy": None}})  # type: ignore[arg-type]

    records = [record("one", [0.5, 0.25]), record("=two", [1.0])]
    text = records_csv(records, ["loss", "validation.accuracy"], "progress").decode("utf-8-sig")
    found = [tuple(line.values()) for line in csv.DictReader(text.splitlines())]
    assert text.splitlines()[0] == "run,id,measure,step,progress,value"
    assert found == [
        ("one", "id-one", "loss", "1", "0.25", "0.5"),
        ("one", "id-one", "loss", "2", "0.5", "0.25"),
        ("one", "id-one", "validation.accuracy", "0", "0", "0.5"),
        ("one", "id-one", "validation.accuracy", "2", "0.5", ""),
        ("'=two", "id-=two", "loss", "1", "0.25", "1"),
        ("'=two", "id-=two", "validation.accuracy", "0", "0", "0.5"),
        ("'=two", "id-=two", "validation.accuracy", "2", "0.5", ""),
    ]


@each("amount", ["nan", "<b>", "-3", "1e9"])
def test_nonsense_for_the_smoothing_counts_as_a_number_that_works(opened: Opened, made: Made, amount: str) -> None:
    app = opened(runs=f"{made('a')},{made('b', seed=1)}", show="curves", smooth="exponential", beta=amount)
    assert 0 <= widget(app, "bound.beta").value < 1


# Maps and examples


def maps_of(app: AppTest) -> list[dict[str, Any]]:
    """Return the maps, as sent to the browser."""
    [view] = [one.proto for one in app.get("bidi_component") if one.proto.component_name == "map_view"]
    found: list[dict[str, Any]] = json.loads(view.json)[0]["panels"]
    return found


def test_it_opens_on_maps_whose_heads_give_the_separation_at_the_end(opened: Opened, made: Made, folder: Path) -> None:
    runs = [made("a"), made("going", seed=1, status=None)]
    ended, going = (panel["about"] for panel in maps_of(opened(runs=",".join(runs))))
    rows = Store(folder).embeddings(runs[0], 8)[:4].astype(float)  # the validation texts
    pairs: dict[bool, list[float]] = {True: [], False: []}
    for i, j in combinations(range(4), 2):
        cosine = rows[i] @ rows[j] / np.linalg.norm(rows[i]) / np.linalg.norm(rows[j])
        pairs[LABELS[i] == LABELS[j]].append(cosine)
    silhouette = slow_silhouette(rows, np.array(LABELS[:4]))
    said = f"within {mean(pairs[True]):.2f} · between {mean(pairs[False]):.2f} · silhouette {silhouette:.2f}"
    assert (ended, going) == (f"At step 8: {said.replace('-', '−')}", "")


def test_the_selection_of_the_address_is_told_with_what_each_run_says(opened: Opened, made: Made) -> None:
    runs = [made("a", said=BAD), made("b", said=GOOD)]
    app = opened(runs=",".join(runs), show="maps", sel="2")
    found = table(app, "Text", "Split")
    sure = 1 / (1 + np.exp(-2))
    assert found.to_dict("records") == [
        {
            "Text": HOSTILE,
            "Label": "<b>yes</b>",
            "a": f"✗ no {sure:.1%}",
            "b": f"✓ <b>yes</b> {sure:.1%}",
            "Split": "validation",
        }
    ]


def test_two_runs_are_compared_example_by_example(opened: Opened, made: Made) -> None:
    runs = [made("a", said=BAD), made("b", said=GOOD)]
    app = opened(runs=",".join(runs), show="maps")
    # Of the validation texts, A predicts 0 and 3 correctly, B 0, 1 and 2.
    assert metrics(app) == {
        "Both right": "1",
        "Only A right": "1",
        "Only B right": "2",
        "Neither": "0",
        "Cohen's κ": "-0.50",
    }
    assert lists(app)[0] == ["bad film", HOSTILE]
    assert lists(app)[1] == ["two $y$"]
    assert "4 common validation texts" in words(app)
    assert "p = 1" in words(app)
    checked(widget(app, "compare.fixed.select").click().run())
    assert asked(app, "sel") == "1-2"
    assert table(app, "Text", "Split")["Text"].tolist() == ["bad film", HOSTILE]


def test_runs_without_common_examples_stand_side_by_side(opened: Opened, made: Made) -> None:
    one, other = made("a"), made("b", texts=[f"other {i}" for i in range(6)])
    text = words(opened(runs=f"{one},{other}", show="maps"))
    assert "no examples in common, so their maps are shown side by side, unlinked" in text
    assert "no validation texts in common" in text


def test_another_map_is_asked_for_and_pca_stands_in_for_it_until_it_is_placed(
    opened: Opened, made: Made, folder: Path
) -> None:
    runs = [made("a"), made("b", seed=1)]
    address = {"runs": ",".join(runs), "show": "maps", "map": "tsne"}
    assert "t-SNE is not computed yet; showing PCA" in words(opened(**address))
    jobs = Jobs(folder).jobs()
    assert {(job.kind, job.request["spec"]["method"]) for job in jobs} == {("map", "tsne")}
    assert sorted(job.request["run"] for job in jobs) == sorted(runs)
    for job in jobs:
        maps.job(job.request, folder, lambda *_: None)
    text = words(opened(**address))
    assert "t-SNE (perplexity" in text
    assert "not computed yet" not in text


def test_the_separation_of_the_last_frame_has_an_interval_over_seeds(opened: Opened, made: Made, folder: Path) -> None:
    runs = [
        made(f"{name}{seed}", seed=seed, batch_size=size) for name, size in (("a", 8), ("b", 4)) for seed in (0, 1, 2)
    ]
    store = Store(folder)
    scores = [slow_silhouette(store.embeddings(run, 8)[:4], np.array(LABELS[:4])) for run in runs[:3]]
    text = words(opened(runs=",".join(runs), show="maps"))
    assert re.search(rf"a0 and 2 more: {signed(mean(scores), 2)} \(.* to .*, 3 seeds\), b0 and 2 more: ", text)
    # Both have the same vectors, so nothing differs.
    assert "paired by seed: 0.00 (0.00 to 0.00, 3 seeds)" in text
    assert "Silhouette of the last frame" not in words(opened(runs=",".join(runs[::3]), show="maps"))


def test_a_damaged_frame_is_a_sentence(opened: Opened, made: Made, folder: Path) -> None:
    runs = [made("a"), made("b", seed=1)]
    (Store(folder).run_folder(runs[1]) / "frame-0000008.safetensors").write_bytes(b"damaged")
    app = opened(runs=",".join(runs), show="maps")
    assert any("missing or damaged" in warning.value for warning in app.warning)


def test_a_live_run_shows_its_step_and_a_run_without_frames_is_named(
    opened: Opened, made: Made, folder: Path, draft: Draft
) -> None:
    going = made("going", status=None)
    _, queued = made_run(folder, draft(more={"name": "<b>waiting</b>", "seed": 3}), claim=False)
    app = opened(runs=f"{going},{queued}", show="maps")
    assert "step 8 of 8" in words(app)
    assert "No frames yet: \\<b\\>waiting\\</b\\>" in words(app)
    assert "Two runs with frames can be compared" in words(app)
    assert "Losses" not in words(opened(runs=f"{going},{queued}", show="scores"))
    assert "No curves yet" not in words(opened(runs=f"{going},{queued}", show="curves"))


# A twin


def test_a_twin_with_another_value_and_its_sentence(opened: Opened, made: Made) -> None:
    runs = [made("a"), made("b", seed=1)]
    path = "phases.0.optimiser.learning_rate"
    app = opened(runs=",".join(runs), show="twin", twin=runs[1], change=path, to="other")
    assert "Nothing would differ" in words(app)
    assert button(app, "Launch the twin").disabled
    number = app.number_input[0]
    checked(number.set_value(0.001).run())
    assert "1e\\-03" in words(app) or "0\\.001" in words(app)
    assert asked(app, "value") == "0.001"
    app = opened(runs=",".join(runs), show="twin", twin=runs[1], change=path, to="other", value="0.001")
    assert not button(app, "Launch the twin").disabled


def test_a_value_that_the_data_cannot_take_is_a_sentence_and_nothing_is_launched(
    opened: Opened, made: Made, folder: Path
) -> None:
    runs = [made("a"), made("b", seed=1)]
    path = "phases.0.batch_size"
    app = opened(runs=",".join(runs), show="twin", change=path, to="other", value="4000")
    checked(button(app, "Launch the twin").click().run())
    assert any("training rows" in error.value.replace("\\", "") for error in app.error)
    assert len(Store(folder).runs()) == 2
    assert ids(app) == runs


def test_every_setting_that_is_offered_can_be_chosen(opened: Opened, made: Made) -> None:
    runs = [made("a"), made("b", seed=1)]
    app = opened(runs=",".join(runs), show="twin")
    paths = list(widget(app, "bound.change").proto.options)
    assert len(paths) > 5
    for label in paths:
        app = checked(widget(app, "bound.change").select(label).run())
        checked(widget(app, "bound.to").set_value("other").run())


# Components


def test_the_same_example_has_one_id_in_all_runs_and_the_first_run_counts_from_0() -> None:
    first, second, third = ["x", "y", "x"], ["x", "z", "x", "x"], ["z", "w"]
    found = linked_ids([first, second, third])
    assert found == ((0, 1, 2), (0, 3, 2, 4), (3, 5))
    assert linked_ids([first, second])[:2] == found[:2]


def framed(keys: Sequence[str]) -> Any:
    """Return the attributes of a run's frames that the alignment of maps uses."""
    probe = Probe(tuple(range(len(keys))), tuple(keys), (0,) * len(keys), ("only",))
    run = SimpleNamespace(id="".join(keys), config=SimpleNamespace(branch=None))
    return SimpleNamespace(probe=probe, key=tuple(keys), run=run)


def test_a_map_is_turned_onto_the_first_at_the_last_common_step_and_never_stretched() -> None:
    rng = np.random.default_rng(0)
    first, other = framed("abcd"), framed("xdcba")
    still = {0: rng.normal(size=(4, 2)), 8: rng.normal(size=(4, 2))}
    turned = np.array([[0.6, 0.8], [0.8, -0.6]])  # and reflected
    moved = {
        8: np.vstack([rng.normal(size=(1, 2)), (still[8] @ turned + [3, -1])[::-1]]),
        20: rng.normal(size=(5, 2)),
    }
    turn = turn_onto(first, still, other, moved)
    assert turn.common == 4
    np.testing.assert_allclose(turn(moved[8])[:0:-1], still[8], atol=1e-6)
    apart = [np.linalg.norm(points[:, None] - points, axis=-1) for points in (moved[20], turn(moved[20]))]
    np.testing.assert_allclose(apart[0], apart[1], atol=1e-6)


def test_maps_without_a_common_step_meet_in_their_last_frames_and_without_common_examples_stay() -> None:
    rng = np.random.default_rng(1)
    points = rng.normal(size=(4, 2))
    turn = turn_onto(framed("abcd"), {7: points}, framed("dcba"), {5: points[::-1] + 2, 3: rng.normal(size=(4, 2))})
    np.testing.assert_allclose(turn(points[::-1] + 2), points[::-1], atol=1e-6)
    alone = turn_onto(framed("abcd"), {7: points}, framed("efgh"), {7: points + 2})
    assert alone.common == 0
    np.testing.assert_allclose(alone(points + 2), points + 2, atol=1e-6)


def test_a_score_is_told_with_its_deviation_and_with_the_seeds_that_lack_it() -> None:
    assert spread_text(None, "test.accuracy", 3) == "–"
    assert spread_text(Spread(0.5, None, 1), "test.accuracy", 1) == "50.0%"
    assert spread_text(Spread(0.5, 0.25, 2, best=True), "test.cross_entropy", 3) == "★ 0.500 ± 0.250 (2 of 3 seeds)"


def test_a_test_without_differences_says_so() -> None:
    same = agreement([[True, False], [True, False]])
    assert pair_text(same, "A", "B").endswith("so there is nothing to test.")
    other = agreement([[True] * 5, [False] * 5])
    assert "p = 0.0625" in mcnemar_sentence(other, "A", "B")  # 2 / 2⁵
    assert "“A” on 5, “B” on 0" in mcnemar_sentence(other, "A", "B")
