"""Few-shot: does contrast help most where labels are few?"""

from __future__ import annotations

from core.experiments.protocols.entry import Protocol, Published, objectives, varied
from core.messages import N_

SIZES = (20, 100, 1000)
GUNEL = "Gunel et al. 2021, arXiv:2011.01403"

ENTRIES = (
    Protocol(
        "few-shot",
        0,
        N_("Few-shot"),
        N_("Does contrast help most where labels are few?"),
        GUNEL,
        lambda _: (varied("task.train_size", *SIZES), objectives("ce", "ce-scl", "rdrop-one-stage")),
        settings={"task.id": "film_reviews", "steps": 60},
        baseline={"Objective": "CE"},
        published=(
            Published(
                (N_("Task, rows"), N_("CE + SCL over CE, points")),
                (("QNLI, 20", N_("up to +10.7")), (N_("with more rows"), N_("shrinking"))),
                N_("RoBERTa-large, 10 seeds, stratified samples"),
                GUNEL,
            ),
        ),
        differs=N_(
            "The paper takes RoBERTa-large on GLUE tasks, tunes λ and τ for each, and runs 10 seeds. Here all cells "
            "have the same encoder, number of steps, λ and τ, and the test split is that of the task."
        ),
    ),
)
