"""The Explore page, without a browser: values restored from the address, and values that belong to a run."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from core.artifacts.cache import write
from core.artifacts.changed_texts import CHANGED_TEXTS, ChangedTexts
from core.artifacts.frame_loss import shown_contrast
from core.artifacts.maps import LIVE
from core.artifacts.measures import TRAINING_MEASURES, TrainingMeasures
from core.artifacts.sentence import END_TEXTS, EndTexts
from core.config import RunConfig, parse_config
from core.errors import EngineError
from core.events import Frame, Predictions, Probe, Started, Step
from core.figures.map_data import NO_PLACE
from core.losses.forces import batch_forces
from core.representation.projections import pca_map
from core.store import Status, Store
from core.workers import Jobs, LocalEngine
from pages.ui.explore import run_reads
from pages.ui.explore.forces import BatchForces, arrows_of
from pages.ui.explore.frame_map import COLOURINGS, LOSS_QUANTILE, panel_of, with_test_texts
from pages.ui.explore.run_reads import frames_of
from tests.cases import each
from tests.core.figures.test_map_data import read as read_bundle
from tests.pages.conftest import Draft, Pages, checked
from tests.pages.test_compare import address
from tests.pages.test_pages import control, made_run, widget, words

COUNT, STEPS = 24, (0, 4, 8)
CLASSES = ("no <b>way</b>", "yes", "an uncommonly long name of a class, forty characters and more")
TEXTS = tuple(f"text {i} is {'lovely' if i % 3 == 0 else 'dull'}" for i in range(COUNT))

Opener = Callable[..., AppTest]
Maker = Callable[..., str]


@pytest.fixture
def opened(opened: Pages) -> Opener:
    return partial(opened, "explore")


@pytest.fixture
def made(folder: Path, draft: Draft) -> Maker:
    """Return a function that makes a finished run with three frames. Returns: its id."""

    def make(name: str, *, turns: Sequence[dict[str, Any]] = (), **phase: Any) -> str:
        store, run_id = made_run(folder, draft(more={"name": name, "knob_turns": list(turns)}, **phase))
        attempt = store.attempt(run_id, 1)
        labels = tuple(i % len(CLASSES) for i in range(COUNT))
        splits = ("validation",) * 18 + ("train",) * 6
        attempt.record_start(Started(0, 8, "cpu", Probe(tuple(range(COUNT)), TEXTS, labels, CLASSES, splits), {}))
        attempt.steps([Step(step, {"loss": 1.0, "step_s": 0.1}) for step in range(1, 9)])
        for step in STEPS:
            vectors = np.random.default_rng(step).normal(size=(COUNT, 4)).astype(np.float32)
            attempt.frame(Frame(step, vectors, vectors[:, :3]), pca_map(vectors))
        predicted = np.eye(3, dtype=np.float32)[[0, 0, 0, 1, 1, 0, 0]]
        attempt.predictions(Predictions("test", predicted, (0, 0, 0, 0, 1, 1, 2)))
        attempt.end(Status.FINISHED)
        store.close()
        return run_id

    return make


def changed(plain: Sequence[int], predicted: Sequence[Sequence[int]]) -> ChangedTexts:
    """Return a result for four texts, of which the first change affects two."""
    where = np.array([[True, False, False, True], [True] * 4])
    cosines = np.stack([np.ones((2, 4)), [[0.5, 1, 1, 0.0], [0.5] * 4]]).astype(np.float32)
    labels = np.array([0, 1, 1, 0])
    names, rates = ("typos", "dropout"), (0.2, None)
    return ChangedTexts(names, rates, 9, labels, where, cosines, np.array(plain), np.array(predicted), 0)


def warnings(app: AppTest) -> str:
    return "\n".join(warning.value for warning in app.warning)


# Values restored from the address

RESTORED = [
    {"map": "umap", "dims": "3", "neighbours": "7", "find": "lovely", "sel": "1.4-6", "at": "5", "trust": "on"},
    {"map": "tsne", "layout": "library", "panel": "forces", "variant": "in", "sel": "2"},
    {"mode": "once", "colour": "loss", "panel": "neighbours", "k": "3", "metric": "euclidean", "sel": "2"},
    {"view": "0.5_-0.25_1.5", "frame": "4"},
]


@each("query", RESTORED)
def test_an_address_is_kept_as_it_came(opened: Opener, made: Maker, query: dict[str, str]) -> None:
    run = made("one")
    app = opened(run=run, **query)
    assert warnings(app) == ""
    assert address(app) == query | {"run": run}
    assert address(checked(app.run())) == query | {"run": run}


def test_test_texts_join_the_last_frame_where_the_map_puts_them(made: Maker, folder: Path) -> None:
    store = Store(folder)
    frames = frames_of(store, store.run(made("one")))
    # These are two examples of the last frame, so they lie where those lie.
    rows = [3, 5]
    vectors, labels = frames.vectors(8)[rows], tuple(frames.probe.labels[row] for row in rows)
    write(frames.folder / END_TEXTS, EndTexts(("a", "b"), labels, 9, 0, vectors, vectors[:, :3]))
    shown, busy = with_test_texts(frames)
    assert (shown.probe.ids[-2:], shown.probe.splits[-2:], busy) == ((24, 25), ("test", "test"), False)
    panel = panel_of(shown, LIVE, run_reads.maps(frames, LIVE))
    places = read_bundle(panel.places)
    stack = np.asarray(places["places"]).reshape(3, COUNT + 2, 2)
    np.testing.assert_allclose(stack[2, COUNT:], stack[2, rows], atol=2)
    assert (stack[:2, COUNT:] == NO_PLACE).all()
    for name in COLOURINGS:
        assert panel_of(shown, LIVE, run_reads.maps(frames, LIVE), name).colours.id


def test_changed_texts_are_tabulated_with_distances_flips_and_accuracies(
    opened: Opener, made: Maker, folder: Path
) -> None:
    run = made("one")
    assert "The weights of the last step are not stored" in words(opened(run=run))
    write(Store(folder).run_folder(run) / CHANGED_TEXTS, changed([0, 1, 1, 0], [[1, 1, 1, 0], [0, 1, 1, 1]]))
    app = opened(run=run)
    [table] = [one.value for one in app.dataframe if "Flipped predictions" in one.value]
    assert table["Change"].tolist() == ["Unchanged", "Misspelt words, rate 0.2", "Second dropout pass"]
    # Two of four texts are changed by the first change, and one of these two flips.
    assert table["Changed texts"].tolist()[1:] == ["50.0%", "100.0%"]
    assert table["Cosine, trained"].tolist()[1:] == ["0.250", "0.500"]
    assert table["Flipped predictions"].tolist()[1:] == ["50.0%", "25.0%"]
    # Wilson's interval of 4 of 4 and of 3 of 4.
    assert table["Accuracy"].tolist() == ["100.0% (51.0% to 100.0%)", *["75.0% (30.1% to 95.4%)"] * 2]


def test_training_rows_of_a_finished_run_can_be_measured(opened: Opener, made: Maker, folder: Path) -> None:
    run = made("one")
    assert "Measure training rows" in [button.label for button in opened(run=run).button]
    result = TrainingMeasures({"knn1": 0.5}, 100, 100, 0)
    write(Store(folder).run_folder(run) / TRAINING_MEASURES, result)
    tables = [one.value for one in opened(run=run, training="on").dataframe]
    assert ["1-NN accuracy", "50.0%"] in [row for one in tables for row in one.to_numpy().tolist()]


def test_before_the_end_test_texts_are_refused_in_a_sentence(opened: Opener, made: Maker, folder: Path) -> None:
    run = made("one")
    with Store(folder).transaction() as db:
        db.execute("UPDATE work SET status = 'stopped' WHERE id = ?", (run,))
    assert "only at the last step of a finished run" in words(opened(run=run, test="on"))


def test_a_map_can_be_laid_out_by_the_library_itself(opened: Opener, made: Maker, folder: Path) -> None:
    app = opened(run=made("one"), map="umap")
    control(app, "layout").set_value("library").run()
    assert address(checked(app))["layout"] == "library"
    asked = [job.request["spec"]["method"] for job in Jobs(folder).jobs() if job.kind == "map"]
    assert set(asked) == {"umap", "umap-learn"}
    assert "Fit the map" not in {radio.label for radio in app.radio}
    assert control(app, "map").value == "umap"
    control(app, "map").set_value("pca").run()
    assert "Layout by" not in {radio.label for radio in checked(app).radio}


@each("counts", [(40, 8, 4), (10, 10, 10), None])
def test_classes_have_recalls_with_intervals_and_groups_if_they_are_imbalanced(
    opened: Opener, made: Maker, folder: Path, monkeypatch: pytest.MonkeyPatch, counts: tuple[int, ...] | None
) -> None:
    monkeypatch.setattr("pages.ui.explore.panels.train_counts", lambda *_: counts)
    app = opened(run=made("one"), panel="classes")
    tables = [re.findall("<td[^>]*>(.*?)</td>", table.body) for table in app.html if "Test" in table.body]
    by_class = " ".join(tables[0])
    for cell in ("75.0%", "30.1% to 95.4%", "50.0%", "9.5% to 90.5%", "0.0% to 79.3%"):  # Wilson, by hand
        assert cell in by_class
    assert ("40" in tables[0]) == (counts == (40, 8, 4))
    assert len(tables) == (2 if counts == (40, 8, 4) else 1)
    if len(tables) == 2:
        assert [word for word in ("Head", "Middle", "Tail") if word in " ".join(tables[1])] == [
            "Head",
            "Middle",
            "Tail",
        ]


NONSENSE = {
    "view": ("x" * 5000, "this is not an area of a map"),
    "sel": ("<script>", "the run has no such examples"),
    "at": ("9" * 5000, ""),
    "frame": ("3", "the run has no frame at this step"),
    "dims": ("4", "a map has 2 or 3 dimensions"),
    "mode": ("never", "there is no such fit"),
    "colour": ("plaid", "there is no such colouring"),
    "layers": ("3", "no weights are kept for this step"),
}


def test_nonsense_leaves_the_address(opened: Opener, made: Maker) -> None:
    run = made("one")
    app = opened(run=run, **{name: value for name, (value, _) in NONSENSE.items()}, map="mercator", panel="attic")
    for sentence in (*(sentence for _, sentence in NONSENSE.values()), "no such map", "no such panel"):
        assert sentence in warnings(app)
    assert address(app) == {"run": run}
    assert "on the map" in words(app)


@each(
    ("shown", "nonsense", "sentences"),
    [
        (
            {"panel": "neighbours", "sel": "2", "map": "umap"},
            {"k": "many", "metric": "miles", "neighbours": "100000"},
            ["use 1 to 23 here", "there is no such distance", "use a whole number from 2 up to 200"],
        ),
        (
            {"panel": "forces", "sel": "2", "map": "umap"},
            {"variant": "sideways", "neighbours": "inf"},
            ["there is no such loss", "use a whole number from 2 up to 200"],
        ),
    ],
)
def test_nonsense_of_a_control_that_is_shown_leaves_the_address(
    opened: Opener, made: Maker, shown: dict[str, str], nonsense: dict[str, str], sentences: list[str]
) -> None:
    run = made("one")
    app = opened(run=run, **shown, **nonsense)
    for sentence in sentences:
        assert sentence in warnings(app)
    assert address(app) == {"run": run} | shown


@pytest.mark.parametrize(
    ("panel", "heading", "name", "count"),
    [("texts", "Highest loss at this frame", "hardest", 8), ("classes", "Smallest margins", "margins", 12)],
)
def test_before_a_selection_examples_are_listed_and_can_be_selected(
    opened: Opener, made: Maker, monkeypatch: pytest.MonkeyPatch, panel: str, heading: str, name: str, count: int
) -> None:
    monkeypatch.setattr("pages.ui.explore.panels.train_counts", lambda *_: None)
    app = opened(run=made("one"), panel=panel)
    assert heading in words(app)
    checked(app.button(key=f"explore.{name}.select").click().run())
    assert "sel" in address(app)
    control(app, "panel").set_value("texts").run()
    assert f"{count} selected" in words(checked(app))
    assert "Highest loss" not in words(app)


# Values that belong to a run


def test_another_run_starts_without_the_search_and_the_selection_of_the_one_before(opened: Opener, made: Maker) -> None:
    first, second = made("first"), made("second")
    app = opened(run=first, find="lovely", sel="0-3", at="2", view="1_2_3", frame="4", colour="loss", panel="texts")
    assert f"Found in 8 of {COUNT} texts" in words(app)
    assert "4 selected" in words(app)
    app.selectbox[0].set_value(second).run()
    assert address(checked(app)) == {"run": second, "colour": "loss"}
    assert control(app, "find").value == ""
    assert "Found in" not in words(app)
    assert "selected" not in words(app)
    # None of it returns, neither by itself nor with the run.
    assert address(checked(app.run())) == {"run": second, "colour": "loss"}
    app.selectbox[0].set_value(first).run()
    assert address(checked(app)) == {"run": first, "colour": "loss"}


def test_a_dead_link_takes_nothing_of_its_run_to_another(opened: Opener, made: Maker) -> None:
    run = made("one")
    app = opened(run="gone", find="lovely", sel="0-3", colour="loss")
    assert "no run has this id" in warnings(app)
    assert address(app) == {"run": run, "colour": "loss"}


def test_runs_of_one_name_are_kept_apart_even_when_another_comes(opened: Opener, made: Maker) -> None:
    """A browser identifies an option only by its label, and reports the old one after it has changed."""
    older, other = made("same"), made("other")
    app = opened(run=older)
    app = checked(app.selectbox[0].set_value(older).run())
    newer = made("same")
    app = checked(app.run())
    assert (address(app)["run"], app.selectbox[0].value) == (older, older)
    assert [label.split(" · ")[0] for label in app.selectbox[0].options] == ["same (run 3)", "other", "same (run 1)"]
    for run in (newer, other, older):
        app = checked(app.selectbox[0].set_value(run).run())
        assert address(app)["run"] == run


# The force view


@pytest.mark.parametrize(
    ("term", "sentences"),
    [
        (
            {"loss": "dscl", "alpha": 0.2, "views": [{"view": "dropout"}]},
            ["(DSCL), α 0.2, τ 0.07", "2 views of each text", "Its other view has p"],
        ),
        ({"loss": "supcon", "level": "token"}, ["Frames hold no token vectors", "the 30 tokens of a text"]),
        ({"loss": "simcse", "views": [{"view": "dropout"}]}, ["SimCSE, unsupervised", "Its other view has p"]),
        (
            {"loss": "cross_entropy"},
            ["exerts no forces between texts", "Shown instead: supervised contrastive loss (L_out)"],
        ),
    ],
    ids=["dscl", "token", "simcse", "ce"],
)
def test_forces_name_the_runs_own_loss_and_start_from_the_highest_one(
    opened: Opener, made: Maker, term: dict[str, Any], sentences: list[str]
) -> None:
    run = made("one", objective={"terms": [term], "combine": "additive"})
    app = opened(run=run, panel="forces", batch="8")
    said = words(app).replace("\\", "")
    for sentence in sentences:
        assert sentence in said
    assert "the anchor is the text with the highest loss in this batch" in said


def test_the_temperature_of_a_frame_is_the_one_that_its_step_used(opened: Opener, made: Maker) -> None:
    turns = [{"step": 6, "name": "temperature", "value": 0.8}]
    terms = {"terms": [{"loss": "supcon", "temperature": 0.2}], "combine": "additive"}
    run = made("one", objective=terms, turns=turns)
    said = words(opened(run=run, panel="forces", frame="4"))
    assert "of this run at step 4 is Supervised contrastive (L_out), τ 0.2." in said.replace("\\", "")
    app = opened(run=run, panel="forces", frame="8")
    assert "of this run at step 8 is Supervised contrastive (L_out), τ 0.8." in words(app).replace("\\", "")
    (slider,) = [slider for slider in app.select_slider if slider.label == "Temperature τ"]
    assert slider.value == 0.8
    assert "tau" not in address(app)
    slider.set_value(float(slider.options[10])).run()
    assert address(checked(app))["tau"] == slider.options[10]


def test_a_temperature_in_the_address_is_the_nearest_that_the_slider_has(opened: Opener, made: Maker) -> None:
    run = made("one")
    app = opened(run=run, panel="forces", tau="0.1001", batch="1000", draw="7", sel="2")
    assert "the highest loss in this batch" not in words(app)
    assert "text 2 is dull" in words(app)
    (slider,) = [slider for slider in app.select_slider if slider.label == "Temperature τ"]
    assert slider.value == min((float(option) for option in slider.options), key=lambda tau: abs(tau - 0.1001))
    assert address(app)["tau"] == f"{slider.value:g}"
    assert [number.value for number in app.number_input if number.label == "Batch seed"] == [7]
    for tau in ("warm", "0", "nan"):
        app = opened(run=run, panel="forces", tau=tau)
        said = f"The link asks for tau = '{tau}', but this temperature is out of range"
        assert said in words(app).replace("\\", "")
        assert "tau" not in address(app)
    app = opened(run=run, panel="forces", tau="0.001")
    assert address(app)["tau"] == "0.01"
    app = opened(run=run, panel="forces", batch="-8")
    assert "The link asks for batch = '-8', but no batch has this size" in words(app).replace("\\", "")


def test_arrows_run_in_the_direction_in_which_the_anchor_would_move() -> None:
    features = torch.randn(6, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    labels, anchor = torch.tensor([0, 0, 0, 1, 1, 1]), 1
    shown = shown_contrast(parse_config({"phases": [{"steps": 2}]}), 1, None, 6)
    found = batch_forces(features, labels, temperature=0.5)
    rows = [10, 11, 12, 13, 14, 15]
    acting = BatchForces(shown, shown.law, 0.5, rows, anchor, False, found, features, labels)

    frames = SimpleNamespace(probe=SimpleNamespace(ids=tuple(range(100, 120))))
    z = features / features.norm(dim=1, keepdim=True)
    arrows = arrows_of(frames, acting)  # type: ignore[arg-type]
    assert len(arrows) == 5
    assert {arrow.weight > 0 for arrow in arrows} == {True, False}
    for arrow in arrows:
        start, end = z[arrow.start - 110], z[arrow.end - 110]
        (other,) = {arrow.start, arrow.end} - {111}
        moved = -found.coefficients[anchor, other - 110] * z[other - 110]
        turned = moved - (moved @ z[anchor]) * z[anchor]  # the component that moves the anchor on the sphere
        assert float((end - start) @ turned) > 0
        assert arrow.text.startswith("pulls" if arrow.weight > 0 else "pushes")


def test_the_share_of_losses_that_look_alike_is_the_one_that_is_cut_off() -> None:
    assert f"the highest {100 * (1 - LOSS_QUANTILE):g}% share a colour" in COLOURINGS["loss"].about


# A branch


def test_the_form_starts_a_branch_at_the_frame_that_is_shown_with_the_changed_settings(
    opened: Opener, made: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[RunConfig] = []

    def submit(_engine: LocalEngine, draft: RunConfig, _owner: str | None) -> str:
        asked.append(draft)
        raise EngineError("The queue is full.")

    monkeypatch.setattr(LocalEngine, "submit", submit)
    run_id = made("parent")
    app = opened(run=run_id, frame="4")
    widget(app, f"branch.{run_id}.4..temperature").set_value(0.05).run()
    widget(app, f"branch.{run_id}.4.sampler").set_value("class_balanced").run()
    checked(next(one for one in app.button if one.label == "Start the branch").click().run())
    assert "The queue is full" in words(app)
    (draft,) = asked
    assert (str(draft.branch), draft.name) == (f"{run_id}@4", "parent from step 4")
    assert [(turn.step, turn.name, turn.value) for turn in draft.knob_turns] == [(5, "temperature", 0.05)]
    assert [(change.step, change.sampler, change.objective) for change in draft.changes] == [
        (5, "class_balanced", None)
    ]
