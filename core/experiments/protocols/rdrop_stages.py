"""R-Drop with one encoder pass or two."""

from __future__ import annotations

from core.experiments.protocols.entry import Protocol, Published, objectives
from core.messages import N_

NOTES = N_("the project's source notes (unpublished)")
IMDB = N_("DeBERTa-v3-base on IMDb, test accuracy, one run each")

ENTRIES = (
    Protocol(
        "rdrop-stages",
        5,
        N_("R-Drop, one or two stages"),
        N_("Is a second encoder pass worth its price?"),
        N_("Liang et al. 2021, arXiv:2106.14448; one stage: the project's source notes (unpublished)"),
        lambda _: (objectives("ce", "ce-scl", "rdrop-one-stage", "rdrop-two-stage"),),
        settings={"task.id": "film_reviews", "steps": 90},
        baseline={"Objective": "CE"},
        published=(
            Published(
                (N_("Objective"), N_("Accuracy")),
                (("CE", "0.94868"), ("SCL", "0.94884"), ("R-Drop", "0.95056")),
                N_("DeBERTa-v3-base on IMDb, test accuracy, one run each, last four blocks"),
                NOTES,
            ),
            Published(
                ("R-Drop", N_("Accuracy")),
                ((N_("One stage"), "0.95044"), (N_("Two stages"), "0.95120")),
                IMDB,
                NOTES,
            ),
        ),
        differs=N_("The notes fine-tune DeBERTa-v3-base on IMDb for three epochs and print one run of each."),
    ),
)
