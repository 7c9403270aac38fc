"""One view of a text in the contrastive loss, or several."""

from __future__ import annotations

from typing import Any

from core.experiments.design import Axis, Level
from core.experiments.protocols.entry import Protocol, Published
from core.experiments.protocols.rdrop_stages import IMDB, NOTES
from core.messages import N_

WEIGHT = 0.5


def _scl(label: str, *views: str) -> Level:
    """CE and SCL on the text and these views of it."""
    settings: dict[str, Any] = {"preset": "multi-view-scl"}
    return Level(label=label, settings=settings | {"objective.terms.0.views": [{"view": view} for view in views]})


ENTRIES = (
    Protocol(
        "views",
        6,
        N_("Views"),
        N_("Do more views of a text make a better contrast?"),
        NOTES,
        lambda _: (
            Axis(
                name=N_("Views"),
                levels=(
                    Level(label=N_("CE alone"), settings={"preset": "ce"}),
                    _scl(N_("One view")),
                    _scl(N_("Head dropout"), "head_dropout"),
                    _scl(N_("Layers"), "layers"),
                    _scl(N_("Head dropout and layers"), "head_dropout", "layers"),
                    _scl(N_("Second pass"), "dropout"),
                    _scl("EDA", "eda"),
                ),
            ),
        ),
        settings={"task.id": "film_reviews", "steps": 90},
        baseline={"Views": "One view"},
        published=(
            Published(
                ("SCL", N_("Accuracy")),
                ((N_("One view"), "0.94636"), (N_("R-Drop and [CLS] of other layers"), "0.94736")),
                IMDB,
                NOTES,
            ),
        ),
        differs=N_(
            "The notes fine-tune DeBERTa-v3-base on IMDb for three epochs and print one run of each. Their multi-view "
            "loss is ours with head dropout and layers."
        ),
    ),
)
