"""An experiment on the tiny encoder, whose runs are made in this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from core.config import RunConfig
from core.config.fields import build
from core.experiments.design import Design
from core.experiments.lifecycle import Experiments, make_runs
from core.experiments.results import Results, results
from core.store import Store
from tests.core.experiments.instant import InstantEngine

# A cell outside the grid.
CE: dict[str, Any] = {"label": "CE", "settings": {"preset": "ce"}}
Make = Callable[..., Design]
Begun = Callable[..., Results]


class Here(Experiments):
    """Experiments that make runs in this process."""

    def fill(self, experiment_id: str) -> None:
        make_runs(self.engine, experiment_id, lambda *_: None)


def shown(experiments: Experiments, measure: str = "accuracy", split: str = "test") -> Results:
    """Return the results of the newest experiment."""
    experiment_id = experiments.table.experiments()[0].id
    store, design = experiments.engine.store, experiments.design(experiment_id)
    return results(store, experiment_id, design, measure=measure, split=split)


@pytest.fixture
def design(draft: Callable[..., RunConfig]) -> Make:
    """Return a function that makes a design on the tiny encoder: λ 0.1 and 0.9, compared with the first, two seeds."""

    def make(**fields: Any) -> Design:
        given: dict[str, Any] = {
            "base": draft().model_dump(mode="json"),
            "axes": [{"setting": "lambda", "values": [0.1, 0.9]}],
            "seeds": 2,
            "baseline": {"Weight λ": "0.1"},
        }
        return build(Design, given | fields)

    return make


@pytest.fixture
def engine(store: Store) -> InstantEngine:
    return InstantEngine(store)


@pytest.fixture
def experiments(engine: InstantEngine) -> Here:
    return Here(engine)


@pytest.fixture
def begun(experiments: Here, design: Make) -> Begun:
    """Return a function that begins an experiment with the fields of a design, and returns its results."""

    def begin(measure: str = "accuracy", split: str = "test", **fields: Any) -> Results:
        experiments.begin(design(**fields))
        return shown(experiments, measure, split)

    return begin
