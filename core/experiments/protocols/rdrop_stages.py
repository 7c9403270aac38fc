"""R-Drop with one encoder pass or two."""

from __future__ import annotations

from core.experiments.protocols.entry import Protocol, Published, objectives

NOTES = "the project's source notes (unpublished)"
IMDB = "DeBERTa-v3-base on IMDb, test accuracy, one run each"
DIFFERS = "The notes fine-tune DeBERTa-v3-base on IMDb for three epochs and print one run of each."

ENTRIES = (
    Protocol(
        "rdrop-stages",
        5,
        "R-Drop, one or two stages",
        "Is a second encoder pass worth its price?",
        f"Liang et al. 2021, arXiv:2106.14448; one stage: {NOTES}",
        lambda _: (objectives("ce", "ce-scl", "rdrop-one-stage", "rdrop-two-stage"),),
        settings={"task.id": "film_reviews", "steps": 90},
        baseline={"Objective": "CE"},
        published=(
            Published(
                ("Objective", "Accuracy"),
                (("CE", "0.94868"), ("SCL", "0.94884"), ("R-Drop", "0.95056")),
                f"{IMDB}, last four blocks",
                NOTES,
            ),
            Published(
                ("R-Drop", "Accuracy"),
                (("One stage", "0.95044"), ("Two stages", "0.95120")),
                IMDB,
                NOTES,
            ),
        ),
        differs=DIFFERS,
    ),
)
