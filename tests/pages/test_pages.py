"""Forms, lists and states of the pages, without a browser."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Widget

from core import __version__
from core.advice.idle_terms import STEPS_IN_A_ROW, starving_sentences
from core.advice.prepare import prepare
from core.artifacts.replay import open_replay, read_replay
from core.artifacts.shipped import SHIPPED, draft_of
from core.catalogue.losses import LOSSES
from core.catalogue.views import VIEWS
from core.config import RunConfig, parse_config
from core.config.edit import apply_settings
from core.config.presets import PRESETS
from core.events import Frame, Probe, Started, Step
from core.figures.run_curves import MOST_RUNS
from core.models import source
from core.representation.projections import pca_map
from core.store import Status, Store, TaskLibrary
from core.store.budget import keep_within
from core.tasks.rows import Rows
from pages.ui.parts import duration, escaped
from tests.cases import each, slow_but
from tests.conftest import made_rows
from tests.core.losses.triplet import TRIPLET
from tests.core.store.claims import DEAD
from tests.core.views.toy import TOY as BACKWARDS
from tests.pages.conftest import Draft, Pages

ROOT = Path(__file__).resolve().parents[2]
# Links of a replay on Home.
ON_HOME = (
    "Sweep loss weight λ and temperature τ on my data",
    "Start a run",
    "Take a lesson",
    "Explore",
    "Tokens",
    "Compare with other runs",
)


def words(app: AppTest) -> str:
    """Return all text on the page."""
    kinds = ("title", "header", "subheader", "markdown", "caption", "error", "warning", "info")
    return "\n".join(str(element.value) for kind in kinds for element in app.get(kind) if hasattr(element, "value"))


def button(app: AppTest, label: str) -> Any:
    return next(b for b in app.button if b.label == label)


def widget(app: AppTest, key: str) -> Any:
    """Return the widget with a key, which may end with the form's revision, or a number for the widget's options."""
    pattern = re.compile(rf"{re.escape(key)}(\.[0-9a-f]{{8}})?(\.\d+)?")
    return next(one for one in app.main if isinstance(one, Widget) and pattern.fullmatch(one.key or ""))


def control(app: AppTest, name: str) -> Any:
    """Return the control that the address restores under a name."""
    return widget(app, f"bound.{name}")


def options(app: AppTest, key: str) -> Any:
    return widget(app, key).options


def metrics(app: AppTest) -> dict[str, str]:
    return {metric.label: str(metric.value) for metric in app.metric}


def progress(app: AppTest) -> str:
    return str(app.get("progress")[0].proto.text)


def made_run(folder: Path, draft: RunConfig, claim: bool = True) -> tuple[Store, str]:
    config, _ = prepare(draft, gpu=False)
    store = Store(folder)
    run_id = store.create(config)
    if claim:
        store.claim_next(range(1000))
        store.attempt(run_id, 1).register()
    return store, run_id


def trained(store: Store, run_id: str, steps: int = 4, cosines: tuple[float, float] = (0.3, 0.999)) -> None:
    """Record a short run with hostile texts, as a worker does. `cosines` are the means of its two frames."""
    attempt = store.attempt(run_id, 1)
    texts = ("<b>one</b>", "two $x$", "three " * 500)
    attempt.record_start(
        Started(0, steps, "cpu", Probe((0, 1, 2), texts, (0, 1, 0), ("no", "yes")), {"majority_rate": 0.5})
    )
    values = {"loss": 1.0, "loss.cross_entropy": 0.7, "loss.supcon": 1.94, "collapse_line.supcon": 1.946}
    values["lower_bound.supcon"] = 1.0
    for step in range(1, steps + 1):
        attempt.steps([Step(step, values | {"step_s": 0.1, "tokens": 50.0, "lambda": 0.9, "temperature": 0.3})])
    scores = {"accuracy": 0.75, "accuracy_low": 0.6, "accuracy_high": 0.9, "macro_f1": 0.7}
    for step, cosine in zip((0, steps), cosines, strict=True):
        vectors = np.random.default_rng(step).normal(size=(3, 4)).astype(np.float32)
        attempt.frame(Frame(step, vectors, vectors[:, :2]), pca_map(vectors))
        attempt.evaluation(step, "validation", scores | {"mean_cosine": cosine, "effective_rank": 2.0})


# A cluster


def test_on_a_cluster_the_form_asks_for_cores_and_the_list_says_where(
    opened: Pages, folder: Path, draft: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from core.workers.cluster.ray_engine import RayEngine

    monkeypatch.setenv("SCL_ENGINE", "head:6379")
    monkeypatch.setenv("SCL_RAY_CPUS", "4")
    monkeypatch.setattr(RayEngine, "_ensure_process", lambda _: None)
    app = opened("fine_tune")
    assert widget(app, "form.cpus").placeholder == "default 4"
    widget(app, "form.gpus").set_value(0.5).run()
    button(app, "Launch").click().run()
    [run] = Store(folder).runs()
    assert (run.config.resources.cpus, run.config.resources.gpus) == (4.0, 0.5)
    assert "Next in the queue, waiting for the cluster." in words(app)
    store = Store(folder)
    store.claim_next(range(1))
    store.attempt(run.id, 1).register()
    assert "Being sent to a node of the cluster." in words(opened("fine_tune", run=run.id))
    store.attempt(run.id, 1).record_node("two (10.0.0.2)")
    [table] = opened("runs").dataframe
    assert list(table.value["Where"]) == ["two (10.0.0.2)"]


def test_on_this_machine_nobody_is_asked_for_cores(opened: Pages, folder: Path, draft: Any) -> None:
    made_run(folder, draft())
    assert all(field.label != "CPU cores" for field in opened("fine_tune").number_input)
    [table] = opened("runs").dataframe
    assert "Where" not in table.value


# Fine-tune, the form


def equations(app: AppTest) -> str:
    return "\n".join(latex.value for latex in app.latex)


def test_the_equation_follows_a_slider(opened: Pages) -> None:
    app = opened("fine_tune")
    widget(app, "form.0.knob.lambda").set_value(0.4).run()
    widget(app, "form.0.knob.temperature").set_value(0.07).run()
    assert r"0.60\,\text{CE}+0.40\,\text{SCL}" in equations(app)
    assert "/0.07" in equations(app)


@pytest.mark.parametrize("name", slow_but(("ce-scl", "scl-classifier", "simcse-supervised", "cert", "cosent"), PRESETS))
def test_every_preset_can_be_picked_and_is_recognised_or_explained(
    opened: Pages, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "hub_answers", lambda: False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    app = opened("fine_tune")
    widget(app, "form.0.preset").set_value(name).run()
    assert not app.exception
    assert widget(app, "form.0.preset").value == name
    assert PRESETS[name].summary in words(app)
    assert bool(app.tabs) == (len(PRESETS[name].objectives) == 2)
    # Film reviews have no triplets and no scores, and there are no translation models here.
    reasons = {"simcse-supervised": "has no triplets", "cert": "use the bundled paraphrases instead"}
    reasons |= dict.fromkeys(("cosent", "cosine-mse"), "has no similarity scores")
    assert button(app, "Launch").disabled == (name in reasons)
    found = [error.value.replace("\\", "") for error in app.error]
    assert any(reasons.get(name, "has no") in error for error in found) == (name in reasons)


def test_a_preset_keeps_steps_and_batch_and_loses_the_trained_parts_of_the_one_before(opened: Pages) -> None:
    app = opened("fine_tune")
    widget(app, "form.0.steps").set_value(31).run()
    widget(app, "form.0.batch_size").set_value(12).run()
    widget(app, "form.0.preset").set_value("scl-classifier").run()
    assert [widget(app, f"form.{number}.steps").value for number in (0, 1)] == [16, 15]
    assert [widget(app, f"form.{number}.batch_size").value for number in (0, 1)] == [12, 12]
    assert [widget(app, f"form.{number}.trainable").value for number in (0, 1)] == ["all", "classifier"]
    widget(app, "form.0.preset").set_value("ce").run()
    assert widget(app, "form.0.steps").value == 31
    assert widget(app, "form.0.trainable").value == "all"


def test_terms_are_added_changed_and_removed(opened: Pages) -> None:
    app = opened("fine_tune")
    widget(app, "form.0.preset").set_value("ce").run()
    widget(app, "form.0.add_term").click().run()
    assert r"1.00\,\text{CE}+0.50\,\text{SCL}" in equations(app)
    widget(app, "form.0.term.1.loss").set_value("dscl").run()
    assert r"\text{DSCL}" in equations(app)
    assert widget(app, "form.0.term.1.views").value == ["dropout"]
    assert not button(app, "Launch").disabled
    widget(app, "form.0.combine").click().run()
    assert r"0.67\,\text{CE}+0.33\,\text{DSCL}" in equations(app)
    widget(app, "form.0.term.0.remove").click().run()
    assert not app.exception
    assert r"\text{CE}" not in equations(app)


def test_a_mix_that_cannot_go_together_is_explained_and_mended(opened: Pages) -> None:
    app = opened("fine_tune")
    widget(app, "form.0.preset").set_value("dscl").run()
    widget(app, "form.0.term.0.views").set_value([]).run()
    assert button(app, "Launch").disabled
    assert any("at least two views" in error.value.replace("\\", "") for error in app.error)
    widget(app, "form.0.term.0.views").set_value(["eda"]).run()
    assert not button(app, "Launch").disabled


def test_settings_of_a_term_come_from_the_registry(opened: Pages, folder: Path) -> None:
    app = opened("fine_tune")
    widget(app, "form.0.term.0.level").set_value("token").run()
    next(box for box in app.number_input if box.label == "Custom value").set_value(12).run()
    widget(app, "form.0.term.0.clusters").set_value(3).run()
    widget(app, "form.0.term.0.layers").set_value("chosen").run()
    revision = widget(app, "form.0.term.0.layers").key.rpartition(".")[2]
    widget(app, f"form.0.term.0.layers.{revision}.blocks").set_value("2, 5").run()
    button(app, "Launch").click().run()
    term = Store(folder).runs()[0].config.phases[0].objective.terms[0]
    assert (term.level, term.parameters["k"], term.parameters["clusters"], term.layers) == ("token", 12, 3, (2, 5))


def test_two_phases_are_made_and_unmade_by_hand(opened: Pages) -> None:
    app = opened("fine_tune")
    widget(app, "form.0.add_phase").click().run()
    assert len(app.tabs) == 2
    assert not button(app, "Launch").disabled
    widget(app, "form.0.remove_phase").click().run()
    assert not app.tabs
    assert widget(app, "form.0.steps").value == 120


@pytest.mark.parametrize("part", ["last_blocks", "lora"])
def test_what_learns_is_chosen_and_launched(opened: Pages, folder: Path, part: str) -> None:
    app = opened("fine_tune")
    widget(app, "form.0.preset").set_value("ce").run()
    widget(app, "form.0.trainable").set_value(part).run()
    button(app, "Launch").click().run()
    assert not app.exception
    assert Store(folder).runs()[0].config.phases[0].trainable.part == part


def test_launching_creates_one_run_and_shows_it(opened: Pages, folder: Path, draft: Draft) -> None:
    store, template = made_run(folder, draft(), claim=False)
    app = opened("fine_tune", **{"from": template})
    button(app, "Launch").click().run()
    assert not app.exception
    newest = store.runs()[0]
    assert newest.id != template
    assert app.query_params["run"] == newest.id
    assert newest.config.model_dump() == store.run(template).config.model_dump()
    assert "Run 2" in words(app)


@pytest.mark.parametrize(("choice", "tau", "rate"), [("ended", 0.08, 0.5), ("launched", 0.3, 1.0)])
def test_settings_of_a_turned_run_are_used_as_it_ended_or_as_launched(
    opened: Pages, folder: Path, draft: Draft, choice: str, tau: float, rate: float
) -> None:
    store, template = made_run(folder, draft())
    store.attempt(template, 1).steps([Step(5, {"loss": 1.0})])
    store.attempt(template, 1).record_knob_turn(4, "temperature", 0.08)
    store.attempt(template, 1).record_knob_turn(4, "learning_rate", 0.5)
    app = opened("fine_tune", **{"from": template})
    assert "Temperature τ of SCL 0\\.3 → 0\\.08" in words(app)
    assert widget(app, "form.0.knob.temperature").value == 0.08
    next(group for group in app.button_group if group.label == "Settings").set_value(choice).run()
    assert widget(app, "form.0.knob.temperature").value == tau
    button(app, "Launch").click().run()
    assert not app.exception
    launched = store.runs()[0].config
    assert (launched.phases[0].objective.temperature, launched.knob_turns) == (tau, ())
    before = store.run(template).config.phases[0].optimiser.learning_rate
    assert launched.phases[0].optimiser.learning_rate == before * rate
    assert "as" not in app.query_params


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("form.0.batch_size", 4096, "training rows; give at most"),
        ("form.probe", 20_000, "validation split has"),
    ],
)
def test_a_number_that_cannot_be_used_is_explained_and_nothing_is_created(
    opened: Pages, folder: Path, key: str, value: int, sentence: str
) -> None:
    app = opened("fine_tune")
    widget(app, key).set_value(value).run()
    assert not app.exception
    assert button(app, "Launch").disabled
    assert any(sentence in error.value.replace("\\", "") for error in app.error)
    assert Store(folder).runs() == []


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"task": {"id": "file", "path": "/no/such/<script>.csv"}}, "was not found"),
        ({"encoder": {"id": "/no/such/folder"}}, "is not a folder"),
    ],
)
def test_a_file_or_an_encoder_that_cannot_be_used_is_explained_and_nothing_is_created(
    opened: Pages, folder: Path, given: dict[str, Any], sentence: str
) -> None:
    run_id = Store(folder).create(parse_config(given | {"phases": [{"steps": 5}]}))
    app = opened("fine_tune", **{"from": run_id})
    assert any(sentence in error.value.replace("\\", "") and "<script>" not in error.value for error in app.error)
    assert button(app, "Launch").disabled
    assert len(Store(folder).runs()) == 1


def test_starving_anchors_are_offered_balanced_batches(opened: Pages, folder: Path) -> None:
    rows = [(f"{text} {i}", "rare" if i % 20 == 0 else "common") for i, (text, _) in enumerate(made_rows(200))]
    task = TaskLibrary(folder).add(Rows(*zip(*rows, strict=True)), name="Few and many", source="")
    app = opened("fine_tune", task=task.id)
    assert widget(app, "form.task").value == task.id
    widget(app, "form.0.batch_size").set_value(8).run()
    assert any("have no positive in their batch" in warning.value for warning in app.warning)
    button(app, "Use class-balanced batches").click().run()
    assert not any("have no positive in their batch" in warning.value for warning in app.warning)


def test_a_reload_keeps_the_settings_of_an_own_tasks_rows(opened: Pages, folder: Path) -> None:
    task = TaskLibrary(folder).add(Rows(*zip(*made_rows(200), strict=True)), name="Ours", source="")
    app = opened("fine_tune", task=task.id)
    widget(app, "form.train_size").set_value(60).run()
    widget(app, "form.label_noise").set_value(0.2).run()
    widget(app, "form.sampler").set_value("class_balanced").run()
    again = opened("fine_tune", task=task.id, set=list(app.query_params["set"]))
    held = {name: widget(again, f"form.{name}").value for name in ("task", "train_size", "label_noise", "sampler")}
    assert held == {"task": task.id, "train_size": 60, "label_noise": 0.2, "sampler": "class_balanced"}
    labels = [one.label.replace("\\", "") for one in again.expander]
    assert "60 rows · class-balanced batches · Label noise ρ 0.2" in labels


@pytest.fixture
def twenty(folder: Path) -> str:
    """Return the id of a task of 20 classes."""
    rows = [(f"{text} {i}", f"c{i % 20:02}") for i, (text, _) in enumerate(made_rows(200))]
    return TaskLibrary(folder).add(Rows(*zip(*rows, strict=True)), name="Twenty", source="").id


def test_many_classes_start_from_the_probe_and_a_random_start_is_warned_of(
    opened: Pages, folder: Path, twenty: str
) -> None:
    app = opened("fine_tune", task=twenty)
    assert "All training rows · class-balanced batches" in [one.label.replace("\\", "") for one in app.expander]
    usual = (widget(app, "form.0.knob.temperature").value, widget(app, "form.0.batch_size").value)
    assert usual == (0.07, 32)
    assert not app.warning
    expected = "defaults ended between 4 points below it and 11 points above it on test"
    assert [note.value for note in app.info if "With 20 classes" in note.value and expected in note.value]
    widget(app, "form.classifier_start").set_value("random").run()
    [warning] = app.warning
    assert "With 20 classes, a randomly initialised classifier ends below the encoder before training" in warning.value
    assert "60.9%" in warning.value
    button(app, "Initialise it as a linear probe").click().run()
    assert not app.warning
    button(app, "Launch").click().run()
    assert Store(folder).runs()[0].config.classifier_start == "probe"


def test_what_was_chosen_for_many_classes_outlives_a_reload_and_what_is_usual_follows_the_task(
    opened: Pages, twenty: str
) -> None:
    app = opened("fine_tune", task=twenty)
    widget(app, "form.0.knob.temperature").set_value(0.3).run()
    widget(app, "form.0.batch_size").set_value(16).run()
    again = opened("fine_tune", task=twenty, set=app.query_params["set"])
    assert widget(again, "form.0.knob.temperature").value == 0.3
    assert widget(again, "form.0.batch_size").value == 16
    app = opened("fine_tune", task=twenty)
    widget(app, "form.task").set_value("film_reviews").run()
    assert widget(app, "form.0.knob.temperature").value == 0.3
    assert widget(app, "form.0.batch_size").value == 16


def test_settings_of_an_earlier_version_keep_their_batches(opened: Pages, folder: Path, draft: Draft) -> None:
    run_id = Store(folder).create(draft(task={"sampler": "balanced"}))
    app = opened("fine_tune", **{"from": run_id})
    assert widget(app, "form.sampler").value == "balanced"
    assert "Equal class shares" in options(app, "form.sampler")
    assert "Equal class shares" not in options(opened("fine_tune"), "form.sampler")


def test_tokens_are_counted_as_texts_have_them(opened: Pages) -> None:
    app = opened("fine_tune")
    widget(app, "form.0.preset").set_value("token-scl").run()
    (said,) = (caption.value for caption in app.caption if "vectors per batch" in caption.value)
    of_a_text, vectors = map(
        float, re.findall(r"^On average ([\d.]+) tokens per text \(at most 5\), so about (\d+) ", said)[0]
    )
    assert 1 < of_a_text < 5
    assert vectors == pytest.approx(16 * of_a_text, rel=0.02)


def test_a_queue_says_when_it_is_full_and_how_much_its_encoder_keeps(opened: Pages, folder: Path, draft: Draft) -> None:
    def queued(**settings: Any) -> AppTest:
        terms = [{"loss": "supcon", "weight": 0.5, "queue": 64} | settings, {"loss": "cross_entropy", "weight": 0.5}]
        return opened("fine_tune", **{"from": Store(folder).create(draft(objective={"terms": terms}, steps=120))})

    assert "never fills" in words(queued(queue=4096))
    assert any("lags behind" in warning.value for warning in queued(momentum=0.999).warning)
    app = queued()
    assert "from step 9" in words(app)
    assert "keeps 0.916 of its weights" in words(app)
    assert sum(app.dataframe[0].value["In the queue"]) == pytest.approx(64)
    assert not app.warning
    # A momentum can be chosen, and left to the steps again.
    (choice,) = (box for box in app.selectbox if box.label == "Queue momentum")
    assert choice.value == "auto"
    choice.set_value("chosen").run()
    (slider,) = (one for one in app.slider if one.label == "Custom value")
    slider.set_value(0.95).run()
    assert "keeps 0.95 of its weights" in words(app)
    next(box for box in app.selectbox if box.label == "Queue momentum").set_value("auto").run()
    assert "keeps 0.916 of its weights" in words(app)


def test_a_task_that_is_hardly_learned_is_said_before_launch(opened: Pages) -> None:
    app = opened("fine_tune")
    assert "near the majority class" not in words(app)
    widget(app, "form.task").set_value("paraphrase").run()
    assert "The relation between two sentences is more than a small encoder learns" in words(app)
    assert "near the majority class" in words(app)


def test_default_rates_and_warnings_follow_what_learns(opened: Pages) -> None:
    app = opened("fine_tune")
    assert widget(app, "form.0.learning_rate").value is None
    assert widget(app, "form.0.learning_rate").placeholder == "1.0e-04"
    widget(app, "form.0.trainable").set_value("classifier").run()
    assert widget(app, "form.0.learning_rate").placeholder == "5.0e-03"
    assert any("has no effect" in warning.value for warning in app.warning)  # contrast on a frozen encoder


def test_what_was_chosen_outlives_a_page_switch(opened: Pages) -> None:
    app = opened("fine_tune")
    widget(app, "form.0.steps").set_value(77).run()
    app.switch_page("pages/runs.py").run()
    app.switch_page("pages/fine_tune.py").run()
    assert widget(app, "form.0.steps").value == 77


# Fine-tune, a run


@pytest.mark.parametrize(("share", "warned"), [(0.0, True), (0.5, False)])
def test_a_contrastive_term_without_positives_is_said_once(
    opened: Pages, folder: Path, draft: Draft, share: float, warned: bool
) -> None:
    store, run_id = made_run(folder, draft())
    trained(store, run_id, steps=8)
    attempt = store.attempt(run_id, 1)
    values = {"loss": 0.1, "loss.supcon": 0.0, "active_anchors.supcon": share, "step_s": 0.1}
    steps = [Step(step, values) for step in range(9, 9 + STEPS_IN_A_ROW)]
    attempt.steps(steps)
    phase = store.run(run_id).config.phases[0]
    recent = [step.values for step in steps]
    sentences = starving_sentences(recent, phase.objective, phase.batch_size, "random")
    for sentence in sentences:
        attempt.notice(sentence)  # as the run does
    app = opened("fine_tune", run=run_id)
    assert len(sentences) == warned
    assert words(app).count("SCL is 0") == warned
    assert all(escaped(sentence) in words(app) for sentence in sentences)


def test_every_status_has_its_words_and_its_buttons(opened: Pages, folder: Path, draft: Draft) -> None:
    def seen(run_id: str) -> tuple[str, set[str]]:
        app = opened("fine_tune", run=run_id)
        return words(app), {b.label for b in app.button} - {"New run", "Start the branch"}

    store, queued = made_run(folder, draft(), claim=False)
    text, buttons = seen(queued)
    assert "waiting for a free slot" in text
    assert buttons == {"Stop"}

    store.claim_next(range(9), None)
    text, buttons = seen(queued)
    assert "Loading the encoder" in text
    assert buttons == {"Pause", "Stop"}

    store.attempt(queued, 1).register()
    trained(store, queued)
    text, buttons = seen(queued)
    assert {"Pause", "Stop"} <= buttons

    store.send(queued, "pause")
    store.attempt(queued, 1).take_controls()
    assert {"Resume", "Stop"} <= seen(queued)[1]

    store.attempt(queued, 1).end(Status.FAILED, "There was <b>no</b> memory")
    text, buttons = seen(queued)
    assert "There was \\<b\\>no\\</b\\> memory" in text
    assert buttons == {"Resume"}

    _, gone = made_run(folder, draft(), claim=False)
    store.claim_next(range(1000), DEAD)
    text, buttons = seen(gone)
    assert "The worker stopped unexpectedly" in text
    assert buttons == {"Resume"}


@pytest.mark.parametrize(
    ("cosines", "reported"),
    [
        ((0.3, 0.999), "The vectors have collapsed"),
        ((0.999, 0.999), "they have not collapsed, but have not learned yet"),
        ((0.3, 0.3), "Nothing has collapsed"),
    ],
)
def test_a_run_at_its_collapse_line_says_what_the_geometry_says(
    opened: Pages,
    folder: Path,
    draft: Draft,
    cosines: tuple[float, float],
    reported: str,
) -> None:
    store, run_id = made_run(folder, draft())
    trained(store, run_id, cosines=cosines)
    store.attempt(run_id, 1).end(Status.FINISHED)
    text = words(opened("fine_tune", run=run_id))
    assert reported in text
    assert f"mean cosine {cosines[1]:.2f} ({cosines[0]:.2f} at step 0)" in text


@pytest.mark.parametrize(
    ("probed", "reported"),
    [({}, "the classes are not separated"), ({"train_rows": 80.0}, "The contrastive loss has fallen ")],
)
def test_a_run_that_predicts_one_class_is_not_said_to_learn_unless_a_probe_predicts(
    opened: Pages,
    folder: Path,
    draft: Draft,
    probed: dict[str, float],
    reported: str,
) -> None:
    store, run_id = made_run(folder, draft())
    trained(store, run_id)
    attempt = store.attempt(run_id, 1)
    vectors = np.random.default_rng(5).normal(size=(3, 4)).astype(np.float32)
    values = {"loss": 1.0, "loss.supcon": 1.5, "collapse_line.supcon": 1.946, "lower_bound.supcon": 1.0}
    attempt.steps([Step(5, values | {"step_s": 0.1, "lambda": 0.9, "temperature": 0.3})])
    attempt.frame(Frame(5, vectors, np.array([[0.0, 1.0]] * 3, np.float32)), pca_map(vectors))
    scores = {"accuracy": 0.5, "accuracy_low": 0.4, "accuracy_high": 0.6, "macro_f1": 0.3} | probed
    geometry = {"mean_cosine": 0.92, "within_cosine": 0.921, "between_cosine": 0.919, "effective_rank": 2.0}
    attempt.evaluation(5, "validation", scores | geometry)
    assert reported in words(opened("fine_tune", run=run_id))


def test_a_run_with_dropout_views_reports_their_cosine_before_and_after_the_head(
    opened: Pages, folder: Path, draft: Draft
) -> None:
    scores = {"accuracy": 0.5, "accuracy_low": 0.4, "accuracy_high": 0.6, "macro_f1": 0.3}
    scores |= {"mean_cosine": 0.6, "effective_rank": 2.0, "within_cosine": 0.52, "within_cosine_logits": 0.97}
    about, runs = "0.912 at the encoder's output, 0.999 at the logits. Two texts of one class: 0.520 and 0.970.", []
    for name, shown in (("dropout-nt-xent-encoder", True), ("ce", False)):
        store, run_id = made_run(folder, apply_settings(draft(), {"preset": name}))
        trained(store, run_id)
        of_views = {"view_cosine": 0.91234, "view_cosine_logits": 0.99876}
        store.attempt(run_id, 1).evaluation(5, "validation", scores | (of_views if shown else {}))
        assert any(about in caption.value for caption in opened("fine_tune", run=run_id).caption) == shown
        store.attempt(run_id, 1).end(Status.FINISHED)
        runs.append(run_id)
    compared = opened("compare", runs=",".join(runs), show="curves")
    (measures,) = [one.options for one in compared.multiselect if one.label == "Measures"]
    assert "Cosine of two dropout passes, logits" in measures


@pytest.mark.parametrize(("name", "text"), [("run", "../../etc/<script>"), ("from", "x" * 5000)])
def test_nonsense_in_the_address_shows_the_form_and_a_sentence(opened: Pages, name: str, text: str) -> None:
    app = opened("fine_tune", **{name: text})
    assert any("no run has this id" in w.value and "<script>" not in w.value for w in app.warning)
    assert not button(app, "Launch").disabled


# Runs and Explore


def test_empty_pages_say_what_to_do(opened: Pages) -> None:
    assert "No runs yet" in words(opened("runs"))
    assert "nothing to explore yet" in words(opened("explore"))


def test_home_offers_the_newest_run_that_has_frames(opened: Pages, folder: Path, draft: Draft) -> None:
    home = opened("home")
    assert "Watch a text encoder learn" in words(home)
    assert f"Version {__version__}" in words(home)
    assert {b.label for b in home.button} == {*ON_HOME, "Explore the replay"}
    store, first = made_run(folder, draft(more={"name": "First one"}))
    trained(store, first)
    made_run(folder, draft(more={"name": "Waiting"}))
    app = opened("home")
    assert {b.label for b in app.button} == {*ON_HOME, "Explore First one"}
    assert "Recent runs" in words(app)


def test_a_run_says_which_rows_it_learned_from(opened: Pages, folder: Path, draft: Draft) -> None:
    rows = {"train_size": 30, "label_noise": 0.2, "sampler": "class_balanced"}
    for task in ({}, rows):
        store, run_id = made_run(folder, draft(task=task))
        store.close()
    found = "small.csv · 30 rows · class-balanced batches · Label noise ρ 0.2"
    assert f"{found} · " in words(opened("fine_tune", run=run_id)).replace("\\", "")
    [runs] = opened("runs").dataframe
    assert list(runs.value["Task"]) == [found, "small.csv"]


def test_a_damaged_frame_is_a_sentence_on_the_page(opened: Pages, folder: Path, draft: Draft) -> None:
    store, run_id = made_run(folder, draft())
    trained(store, run_id)
    (store.run_folder(run_id) / "frame-0000004.safetensors").write_bytes(b"damaged")
    app = opened("explore", run=run_id)
    assert any("missing or damaged" in warning.value for warning in app.warning)
    assert "validation texts" in words(app)  # the other frames are still shown


def test_a_store_that_cannot_be_opened_is_a_sentence(
    opened: Pages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SCL_RUNS", str(tmp_path / "file" / "runs"))
    assert any("cannot be created" in error.value for error in opened("runs").error)


# Components


@each(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.2, "under 1 s"),
        (42, "42 s"),
        (60, "1 min"),
        (200, "3 min 20 s"),
        (601, "10 min"),
        (7500, "2 h 5 min"),
        (7200, "2 h"),
    ],
)
def test_durations_read_as_people_say_them(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_markdown_from_outside_is_inert() -> None:
    assert escaped("<b> $x$ **y** [z](u) :red[w]\n# h") == (
        "\\<b\\> \\$x\\$ \\*\\*y\\*\\* \\[z\\]\\(u\\) \\:red\\[w\\] \\# h"
    )


HIDDEN = [
    ("form.0.term.0.projection", "linear", "form.0.term.0.level", "logits"),
    ("form.0.term.0.queue", 64, "form.0.term.0.level", "token"),
    ("form.0.term.0.layers", "last_third", "form.0.term.0.level", "logits"),
]


@pytest.mark.parametrize(("first", "value", "then", "choice"), HIDDEN)
def test_a_setting_that_no_longer_applies_does_not_block_launch(
    opened: Pages, first: str, value: Any, then: str, choice: str
) -> None:
    app = opened("fine_tune")
    widget(app, first).set_value(value).run()
    widget(app, then).set_value(choice).run()
    assert not button(app, "Launch").disabled


def test_a_loss_is_offered_only_the_levels_and_views_that_it_takes(opened: Pages) -> None:
    app = opened("fine_tune")
    widget(app, "form.0.preset").set_value("simcse").run()
    assert "Token" not in options(app, "form.0.term.0.level")
    assert "Layers as views" not in options(app, "form.0.term.0.views")


def test_contrast_without_labels_counts_the_pairs_of_one_label(opened: Pages) -> None:
    labels = prepare(RunConfig(), gpu=False)[1].train.labels
    alike = sum(count * (count - 1) for count in Counter(labels).values()) / (len(labels) * (len(labels) - 1))
    app = opened("fine_tune", task="film_reviews", set=["preset=dropout-nt-xent-encoder"])
    pairs = f"About {120 * alike:.0f} of the 120 pairs of texts in a batch ({100 * alike:.1f}%)"
    assert any(
        f"{pairs} have the same label, and contrast pushes them apart" in caption.value for caption in app.caption
    )
    widget(app, "form.0.term.0.label_filter").set_value(True).run()
    assert any(f"{pairs} are left out." in caption.value for caption in app.caption)
    assert "\\sum_j\\;\\to\\;\\sum_{j=i" in "".join(block.value for block in app.latex)


def test_a_loss_from_outside_is_offered_with_its_settings(opened: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LOSSES, TRIPLET.name, TRIPLET)  # type: ignore[arg-type]
    app = opened("fine_tune")
    widget(app, "form.0.term.0.loss").set_value(TRIPLET.name).run()
    assert "Triplet" in options(app, "form.0.term.0.loss")
    assert any("Triplet" in latex.value for latex in app.latex)
    assert widget(app, "form.0.knob.triplet.margin").value == 0.5


def test_a_view_from_outside_is_offered_with_its_settings_and_its_cost(
    opened: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(VIEWS, BACKWARDS.name, BACKWARDS)
    app = opened("fine_tune")
    widget(app, "form.0.preset").set_value("simcse").run()
    widget(app, "form.0.term.0.views").set_value(["dropout", BACKWARDS.name]).run()
    assert "Backwards" in options(app, "form.0.term.0.views")
    assert any(w.label == "Between words" for w in app.text_input)


def test_the_rates_of_a_preset_for_showing_come_and_go_with_it(opened: Pages) -> None:
    app = opened("fine_tune")
    preset = widget(app, "form.0.preset")
    assert preset.value == "ce-scl"
    preset.set_value("collapse").run()
    assert widget(app, "form.0.preset").value == "collapse"
    assert app.query_params["set"] == "preset=collapse"
    assert widget(app, "form.0.learning_rate").value == 3e-3
    widget(app, "form.0.preset").set_value("hard-negatives").run()
    assert widget(app, "form.0.learning_rate").value is None
    assert widget(app, "form.0.knob.temperature").value == 0.05
    assert widget(app, "form.0.preset").value == "hard-negatives"


def test_the_dropout_of_a_preset_comes_and_goes_with_it(opened: Pages) -> None:
    app = opened("fine_tune")
    widget(app, "form.0.preset").set_value("dropout-nt-xent-encoder").run()
    assert widget(app, "form.dropout").value == 0.3
    assert any("· dropout 0.3" in fold.label.replace("\\", "") for fold in app.expander)
    assert app.query_params["set"] == "preset=dropout-nt-xent-encoder"
    widget(app, "form.0.preset").set_value("rdrop-two-stage").run()
    assert app.query_params["set"] == "preset=rdrop-two-stage"


def test_an_objective_like_that_of_a_preset_for_showing_is_not_called_by_its_name(
    opened: Pages,
) -> None:
    app = opened("fine_tune", set=["objective.terms.0.temperature=0.06"])
    assert widget(app, "form.0.preset").value == "ce-scl"


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("form.0.steps", 0, "Steps = 0 cannot be used: give a whole number of steps from 1 up to 1,000,000."),
        ("form.0.learning_rate", 5.0, "Learning rate = 5.0 cannot be used: give a number above 0 and at most 1."),
        ("form.train_size", 1, "Training rows = 1 cannot be used: give a whole number of rows of at least 2."),
    ],
)
def test_a_number_out_of_bounds_is_named_and_nothing_can_be_launched(
    opened: Pages, key: str, value: float, sentence: str
) -> None:
    app = opened("fine_tune")
    widget(app, key).set_value(value).run()
    assert any(sentence in markdown.value.replace("\\", "") for markdown in app.markdown)
    assert [error.value.replace("\\", "") for error in app.error] == [sentence]
    assert button(app, "Launch").disabled
    assert widget(app, key).value == value
    widget(app, key).set_value(None if value == 5.0 else 30).run()
    assert not app.error
    assert not button(app, "Launch").disabled


class TestUndo:
    def test_runs_that_were_deleted_together_come_back_together_in_any_session(
        self, opened: Pages, folder: Path, draft: Draft
    ) -> None:
        store, first = finished(folder, draft())
        _, second = finished(folder, draft())
        _, other = finished(folder, draft())
        store.discard(first, second)
        store.discard(other)
        app = opened("runs")
        lines = [text.value for text in app.markdown if text.value.startswith("Deleted")]
        assert lines == [
            "Deleted “Run 3”. You can undo this for 10 minutes; then its disk space is freed (3.5 MB).",
            "Deleted “Run 2”, “Run 1”. You can undo this for 10 minutes; then its disk space is freed (7.0 MB).",
        ]
        [_, together] = [one for one in app.button if one.label == "Undo"]
        together.click().run()
        assert {run.id for run in store.runs()} == {first, second}
        button(app, "Undo").click().run()
        assert {run.id for run in store.runs()} == {first, second, other}
        assert "Deleted" not in words(app)

    def test_the_line_says_how_long_is_left_and_a_press_that_comes_too_late_says_so(
        self, opened: Pages, folder: Path, draft: Draft
    ) -> None:
        store, run_id = finished(folder, draft())
        store.discard(run_id)
        with store.transaction() as db:
            db.execute("UPDATE runs SET discarded_at = discarded_at - 560")
        app = opened("runs")
        assert "You can undo this for 1 minute;" in words(app)
        with store.transaction() as db:
            db.execute("UPDATE runs SET discarded_at = discarded_at - 60")
        store.purge_discarded()
        button(app, "Undo").click().run()
        assert any("was deleted permanently" in warning.value for warning in app.warning)
        assert "Deleted" not in words(app)


# Disk


def finished(folder: Path, draft: RunConfig) -> tuple[Store, str]:
    """Make a finished run with 2 MB of weights, 1 MB of snapshots and 0.5 MB of maps besides its frames."""
    store, run_id = made_run(folder, draft)
    trained(store, run_id)
    run_folder = store.run_folder(run_id)
    (run_folder / "maps-1").mkdir()
    sizes = {"checkpoint.safetensors": 2.0, "snapshot-0000002.safetensors": 1.0, "maps-1/0000001.safetensors": 0.5}
    for name, size in sizes.items():
        (run_folder / name).write_bytes(bytes(int(size * 2**20)))
    store.attempt(run_id, 1).end(Status.FINISHED)
    return store, run_id


def test_the_list_says_what_every_run_and_all_of_them_take(opened: Pages, folder: Path, draft: Draft) -> None:
    store, run_id = finished(folder, draft(more={"name": "<b>mine</b>"}))
    store.create(draft())
    app = opened("runs")
    table = app.dataframe[0].value
    assert list(table["Size"]) == [0, 4]
    assert "Weights" not in table
    mine = table[table["Run"] == "<b>mine</b>"]
    assert (list(mine["Validation"]), list(mine["Status"])) == ([75.0], ["finished"])  # in percent, as displayed
    assert "Runs use 3\\.5 MB of the 20 GB that SCL\\_DISK\\_GB allows\\." in words(app)
    store.discard(run_id)  # counts until its files are freed
    said = words(opened("runs")).replace("\\", "")
    assert "Runs use 3.5 MB of the 20 GB that SCL_DISK_GB allows, including 3.5 MB of deleted runs" in said


def test_a_run_that_lost_its_weights_says_so_everywhere(
    opened: Pages, folder: Path, draft: Draft, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, run_id = finished(folder, draft())
    monkeypatch.setenv("SCL_DISK_GB", "0.001")
    assert "The next run that starts or ends drops weights" in words(opened("runs"))
    keep_within(store)
    app = opened("runs")
    assert list(app.dataframe[0].value["Weights"]) == ["dropped"]
    assert "1 run has lost its weights to stay within the limit; curves and frames are kept" in words(app)
    page = opened("fine_tune", run=run_id)
    assert "to stay within 0\\.001 GB; curves and frames are kept" in words(page)
    assert "Protect this run's weights from automatic deletion" not in [toggle.label for toggle in page.toggle]
    remedy = "raise SCL\\_DISK\\_GB and run the same settings again"
    assert remedy in words(opened("tokens", run=run_id, source="own"))
    assert remedy in words(opened("explore", run=run_id))


def test_a_run_is_told_to_keep_its_weights(opened: Pages, folder: Path, draft: Draft) -> None:
    store, run_id = finished(folder, draft())
    app = opened("fine_tune", run=run_id)
    assert "On disk: 3.5 MB (weights 2.0 MB, weights saved at earlier steps 1.0 MB, other files 0.5 MB)" in words(app)
    (toggle,) = [
        toggle for toggle in app.toggle if toggle.label == "Protect this run's weights from automatic deletion"
    ]
    assert not toggle.value
    toggle.set_value(True).run()
    assert store.run(run_id).keep_weights
    assert list(opened("runs").dataframe[0].value["Weights"]) == ["always kept"]
    keep_within(store, 1e-6)
    assert store.size(run_id).weights == 2 * 2**20


class TestLink:
    """The address of the form contains the settings that differ from the defaults, and restores them."""

    def test_what_was_changed_is_in_the_address_and_comes_back(self, opened: Pages) -> None:
        app = opened("fine_tune")
        assert "set" not in app.query_params
        widget(app, "form.0.preset").set_value("dscl").run()
        widget(app, "form.seed").set_value(7).run()
        widget(app, "form.0.steps").set_value(60).run()
        link = list(app.query_params["set"])
        assert link == ["preset=dscl", "phases.0.steps=60", "seed=7"]
        again = opened("fine_tune", set=link)
        assert widget(again, "form.0.preset").value == "dscl"
        assert (widget(again, "form.seed").value, widget(again, "form.0.steps").value) == (7, 60)
        assert list(again.query_params["set"]) == link
        widget(again, "form.seed").set_value(8).run()
        assert widget(again, "form.seed").value == 8
        assert list(again.query_params["set"]) == ["preset=dscl", "phases.0.steps=60", "seed=8"]

    def test_a_changed_weight_comes_back_with_its_preset(self, opened: Pages) -> None:
        app = opened("fine_tune")
        widget(app, "form.0.knob.lambda").set_value(0.0).run()
        widget(app, "form.0.knob.temperature").set_value(0.01).run()
        again = opened("fine_tune", set=list(app.query_params["set"]))
        assert not again.warning
        held = {name: widget(again, f"form.0.{name}").value for name in ("preset", "knob.lambda", "knob.temperature")}
        assert held == {"preset": "ce-scl", "knob.lambda": 0.0, "knob.temperature": 0.01}

    def test_what_a_link_has_wrong_is_named_as_text_and_the_rest_is_used(self, opened: Pages) -> None:
        app = opened("fine_tune", set=["seed=-1", "precision=float32", "task.path=/etc/passwd"])
        assert widget(app, "form.precision").value == "float32"
        assert widget(app, "form.seed").value == 0
        said = " ".join(warning.value for warning in app.warning)
        assert "give a whole number from 0" in said
        assert "leave it out" in said
        assert "passwd" not in str(app.query_params["set"])
        app = opened("fine_tune", set=["precision=![x](https://example.org/x.png)"])
        (warning,) = app.warning
        assert "![x](" not in warning.value
        assert warning.value.count(r"\!\[x\]\(https\:") == 2

    def test_an_older_address_of_this_session_changes_nothing(self, opened: Pages) -> None:
        """A press right after another one arrives with the previous address."""
        app = opened("fine_tune")
        widget(app, "form.seed").set_value(7).run()
        widget(app, "form.seed").set_value(8).run()
        app.query_params["set"] = ["seed=7"]
        widget(app, "form.precision").set_value("float32").run()
        assert widget(app, "form.seed").value == 8
        assert list(app.query_params["set"]) == ["precision=float32", "seed=8"]

    def test_settings_of_a_run_are_used_again_after_a_link_was_opened(
        self, opened: Pages, folder: Path, draft: Draft
    ) -> None:
        _, run_id = made_run(folder, draft(batch_size=6))
        app = opened("fine_tune", set=["seed=7"])
        assert widget(app, "form.seed").value == 7
        app.query_params.clear()
        app.query_params["from"] = run_id
        app.run()
        assert widget(app, "form.0.batch_size").value == 6
        widget(app, "form.0.batch_size").set_value(5).run()
        assert widget(app, "form.0.batch_size").value == 5


def test_home_plays_any_of_the_replays(opened: Pages) -> None:
    app = opened("home")
    ours, theirs = (read_replay(SHIPPED[name].path).separations[-1] for name in ("ce-scl", "ce"))
    assert f"(within ÷ between classes; lower is tighter) {ours:.2f} against {theirs:.2f}." in words(app)
    assert SHIPPED["ce-scl"].about in words(app)
    next(group for group in app.get("button_group") if group.label == "Replay").set_value("collapsed").run()
    assert not app.exception
    assert SHIPPED["collapsed"].about in words(app)
    assert app.query_params["replay"] == "collapsed"
    assert SHIPPED["r-drop"].about in words(opened("home", replay="r-drop"))
    assert "there is no such replay" in words(opened("home", replay="nonsense"))


def test_as_many_replays_as_fit_are_compared_in_one_press(opened: Pages, folder: Path) -> None:
    app = opened("home")
    button(app, "Compare with other runs").click().run()
    assert not app.exception
    assert not app.warning
    names = ["ce", "ce-scl", *(name for name in SHIPPED if name not in ("ce", "ce-scl"))][:MOST_RUNS]
    assert {run.title for run in Store(folder).runs()} == {draft_of(SHIPPED[name]).name for name in names}


@pytest.mark.parametrize("page", ["explore", "tokens"])
def test_the_replay_opens_like_any_run(opened: Pages, folder: Path, page: str) -> None:
    store = Store(folder)
    run_id = open_replay(store, SHIPPED["ce-scl"].path)
    store.close()
    app = opened(page, run=run_id)
    assert not app.error
    assert not app.warning
    assert not app.exception
    assert widget(app, f"{page}.run").value == run_id
