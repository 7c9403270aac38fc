"""Few-shot: does contrast help most where labels are few?"""

from __future__ import annotations

from core.experiments.protocols.entry import Protocol, Published, objectives, varied

SIZES = (20, 100, 1000)
GUNEL = "Gunel et al. 2021, arXiv:2011.01403"

ENTRIES = (
    Protocol(
        "few-shot",
        0,
        "Few-shot",
        "Does contrast help most where labels are few?",
        GUNEL,
        lambda _: (varied("task.train_size", *SIZES), objectives("ce", "ce-scl", "rdrop-one-stage")),
        settings={"task.id": "film_reviews", "steps": 60},
        baseline={"Objective": "CE"},
        published=(
            Published(
                ("Task, rows", "CE + SCL over CE, points"),
                (("QNLI, 20", "up to +10.7"), ("with more rows", "shrinking")),
                "RoBERTa-large, 10 seeds, stratified samples",
                GUNEL,
            ),
        ),
        differs="The paper takes RoBERTa-large on GLUE tasks, tunes λ and τ for each, and runs 10 seeds. Here all "
        "cells have the same encoder, number of steps, λ and τ, and the test split is that of the task.",
    ),
)
