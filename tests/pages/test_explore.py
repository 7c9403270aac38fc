"""The Explore page, without a browser: what the address restores, and what goes with the run."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from core.config import RunConfig
from core.events import Frame, Probe, Started, Step
from core.representation.projections import pca_map
from core.store import Status
from pages.ui.parts import told_apart
from tests.pages.test_pages import ROOT, made_run, words

COUNT, STEPS = 24, (0, 4, 8)
CLASSES = ("no <b>way</b>", "yes", "an uncommonly long name of a class, forty characters and more")
TEXTS = tuple(f"text {i} is {'lovely' if i % 3 == 0 else 'dull'}" for i in range(COUNT))

Opener = Callable[..., AppTest]


@pytest.fixture
def opened(folder: Path) -> Opener:
    def open_page(**query: str) -> AppTest:
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        app.query_params.update(query)
        return checked(app.switch_page("pages/explore.py").run())

    return open_page


@pytest.fixture
def made(folder: Path, draft: Callable[..., RunConfig]) -> Callable[[str], str]:
    """Makes a finished run with three frames; gives its id."""

    def make(name: str) -> str:
        store, run_id = made_run(folder, draft(more={"name": name}))
        attempt = store.attempt(run_id, 1)
        labels = tuple(i % len(CLASSES) for i in range(COUNT))
        splits = ("validation",) * 18 + ("train",) * 6
        attempt.started(Started(0, 8, "cpu", Probe(tuple(range(COUNT)), TEXTS, labels, CLASSES, splits), {}))
        attempt.steps([Step(step, {"loss": 1.0, "step_s": 0.1}) for step in range(1, 9)])
        for step in STEPS:
            vectors = np.random.default_rng(step).normal(size=(COUNT, 4)).astype(np.float32)
            attempt.frame(Frame(step, vectors, vectors[:, :3]), pca_map(vectors))
        attempt.end(Status.FINISHED)
        store.close()
        return run_id

    return make


def checked(app: AppTest) -> AppTest:
    assert not app.exception
    assert not app.error
    return app


def address(app: AppTest) -> dict[str, str]:
    return {name: value if isinstance(value, str) else value[0] for name, value in app.query_params.items()}


def warnings(app: AppTest) -> str:
    return "\n".join(warning.value for warning in app.warning)


def control(app: AppTest, name: str) -> Any:
    """The control that the address restores under a name."""
    kinds = ("selectbox", "button_group", "text_input", "number_input", "slider", "toggle", "radio")
    pattern = re.compile(rf"bound\.{re.escape(name)}\.[0-9a-f]{{8}}")
    (found,) = [widget for kind in kinds for widget in app.get(kind) if pattern.fullmatch(widget.key or "")]
    return found


# What the address restores

RESTORED = [
    {"map": "umap", "dims": "3", "neighbours": "7"},
    {"map": "pca", "mode": "once", "colour": "loss"},
    {"find": "lovely", "sel": "1.4-6", "at": "5"},
    {"panel": "neighbours", "k": "3", "metric": "euclidean", "sel": "2"},
    {"panel": "forces", "variant": "in", "sel": "2"},
    {"view": "0.5_-0.25_1.5", "frame": "4"},
    {"trust": "on", "sel": "0-3"},
]


@pytest.mark.parametrize("query", RESTORED, ids="-".join)
def test_an_address_is_kept_as_it_came(opened: Opener, made: Callable[[str], str], query: dict[str, str]) -> None:
    run = made("one")
    app = opened(run=run, **query)
    assert warnings(app) == ""
    wanted = {name: value for name, value in query.items() if (name, value) != ("map", "pca")} | {"run": run}
    assert address(app) == wanted
    assert address(checked(app.run())) == wanted


def test_a_control_changes_the_address_and_its_default_leaves_it(opened: Opener, made: Callable[[str], str]) -> None:
    app = opened(run=made("one"))
    control(app, "colour").set_value("confidence").run()
    assert address(checked(app))["colour"] == "confidence"
    control(app, "map").set_value("umap").run()
    control(app, "umap.neighbours").set_value(5).run()
    assert {"map": "umap", "neighbours": "5", "colour": "confidence"}.items() <= address(checked(app)).items()
    control(app, "colour").set_value("label").run()
    assert "colour" not in address(checked(app))


NONSENSE = [
    ("view", "nonsense", "no map can be zoomed to that"),
    ("view", "1_2_nan", "no map can be zoomed to that"),
    ("view", "1_2_-3", "no map can be zoomed to that"),
    ("view", "1_2_3~4_5_6", "no map can be zoomed to that"),
    ("view", "x" * 5000, "no map can be zoomed to that"),
    ("sel", "9999", "the run has no such examples"),
    ("sel", "<script>", "the run has no such examples"),
    ("at", "9" * 5000, ""),
    ("frame", "3", "the run has no frame at that step"),
    ("map", "mercator", "there is no such map"),
    ("dims", "4", "a map has 2 or 3 dimensions"),
    ("mode", "never", "no map can be fitted that way"),
    ("colour", "plaid", "there is no such colouring"),
    ("layers", "3", "weights are not kept of that step"),
    ("panel", "attic", "there is no such panel"),
]


@pytest.mark.parametrize(("name", "value", "sentence"), NONSENSE, ids=[f"{n}-{v[:12]}" for n, v, _ in NONSENSE])
def test_nonsense_leaves_the_address(
    opened: Opener, made: Callable[[str], str], name: str, value: str, sentence: str
) -> None:
    run = made("one")
    app = opened(run=run, **{name: value})
    assert sentence in warnings(app)
    assert address(app) == {"run": run}
    assert "on the map" in words(app)


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ({"panel": "neighbours", "sel": "2", "k": "many"}, "it is 1 to 23 here"),
        ({"panel": "neighbours", "sel": "2", "metric": "miles"}, "there is no such distance"),
        ({"panel": "forces", "sel": "2", "variant": "sideways"}, "there is no such loss"),
        ({"map": "umap", "neighbours": "few"}, "it is a whole number from 2 to 200"),
        ({"map": "umap", "neighbours": "inf"}, "it is a whole number from 2 to 200"),
        ({"map": "umap", "neighbours": "100000"}, "it is a whole number from 2 to 200"),
    ],
)
def test_nonsense_of_a_control_that_is_shown_leaves_the_address(
    opened: Opener, made: Callable[[str], str], query: dict[str, str], sentence: str
) -> None:
    run = made("one")
    app = opened(run=run, **query)
    assert sentence in warnings(app)
    *rest, _ = query.items()
    assert address(app) == {"run": run} | dict(rest)


# What goes with the run


def test_another_run_starts_without_the_search_and_the_selection_of_the_one_before(
    opened: Opener, made: Callable[[str], str]
) -> None:
    first, second = made("first"), made("second")
    app = opened(run=first, find="lovely", sel="0-3", at="2", view="1_2_3", frame="4", colour="loss", panel="texts")
    assert f"8 of {COUNT} texts hold these words" in words(app)
    assert "4 selected" in words(app)
    app.selectbox[0].set_value(second).run()
    assert address(checked(app)) == {"run": second, "colour": "loss"}
    assert control(app, "find").value == ""
    assert "hold these words" not in words(app)
    assert "selected" not in words(app)
    # Nothing of it comes back, neither by itself nor with the run.
    assert address(checked(app.run())) == {"run": second, "colour": "loss"}
    app.selectbox[0].set_value(first).run()
    assert address(checked(app)) == {"run": first, "colour": "loss"}


def test_a_dead_link_takes_nothing_of_its_run_to_another(opened: Opener, made: Callable[[str], str]) -> None:
    run = made("one")
    app = opened(run="gone", find="lovely", sel="0-3", colour="loss")
    assert "no run has that id" in warnings(app)
    assert address(app) == {"run": run, "colour": "loss"}


def test_words_that_are_looked_for_stand_in_the_address(opened: Opener, made: Callable[[str], str]) -> None:
    app = opened(run=made("one"))
    control(app, "find").set_value("dull").run()
    assert address(checked(app))["find"] == "dull"
    assert f"16 of {COUNT} texts hold these words" in words(app)
    control(app, "find").set_value("").run()
    assert "find" not in address(checked(app))


def test_of_two_runs_that_are_called_alike_the_chosen_one_is_shown(opened: Opener, made: Callable[[str], str]) -> None:
    """A browser tells a choice by its label alone."""
    older, newer, other = made("same"), made("same"), made("other")
    app = opened(run=older)
    labels = [label.split(" · ")[0] for label in app.selectbox[0].options]
    assert labels == ["other", "same (run 2)", "same (run 1)"]
    for run in (newer, other, older):
        app = checked(app.selectbox[0].set_value(run).run())
        assert address(app)["run"] == run


def test_labels_that_repeat_get_their_marks() -> None:
    assert told_apart(["a", "b", "a"], ["1", "2", "3"]) == ["a (1)", "b", "a (3)"]
    assert told_apart([], []) == []


def test_a_run_stays_chosen_when_another_of_its_name_comes(opened: Opener, made: Callable[[str], str]) -> None:
    """Its label in the list changes, and a browser still tells the old one."""
    first = made("same")
    app = opened(run=first)
    app = checked(app.selectbox[0].set_value(first).run())
    second = made("same")
    app = checked(app.run())
    assert address(app)["run"] == first
    assert app.selectbox[0].value == first
    app = checked(app.selectbox[0].set_value(second).run())
    assert address(app)["run"] == second
