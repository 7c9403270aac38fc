"""One view of a text in the contrastive loss, or several."""

from __future__ import annotations

from typing import Any

from core.experiments.design import Axis, Level
from core.experiments.protocols.entry import Protocol, Published
from core.experiments.protocols.rdrop_stages import DIFFERS, IMDB, NOTES

WEIGHT = 0.5


def _scl(label: str, *views: str) -> Level:
    """CE and SCL on the text and these views of it."""
    settings: dict[str, Any] = {"preset": "multi-view-scl"}
    return Level(label=label, settings=settings | {"objective.terms.0.views": [{"view": view} for view in views]})


ENTRIES = (
    Protocol(
        "views",
        6,
        "Views",
        "Do more views of a text make a better contrast?",
        NOTES,
        lambda _: (
            Axis(
                name="Views",
                levels=(
                    Level(label="CE alone", settings={"preset": "ce"}),
                    _scl("One view"),
                    _scl("Head dropout", "head_dropout"),
                    _scl("Layers", "layers"),
                    _scl("Head dropout and layers", "head_dropout", "layers"),
                    _scl("Second pass", "dropout"),
                    _scl("EDA", "eda"),
                ),
            ),
        ),
        settings={"task.id": "film_reviews", "steps": 90},
        baseline={"Views": "One view"},
        published=(
            Published(
                ("SCL", "Accuracy"),
                (("One view", "0.94636"), ("R-Drop and [CLS] of other layers", "0.94736")),
                IMDB,
                NOTES,
            ),
        ),
        differs=f"{DIFFERS} Their multi-view loss is ours with head dropout and layers.",
    ),
)
