"""Batch size: contrast needs positives in the batch."""

from __future__ import annotations

from core.experiments.protocols.entry import Protocol, objectives, varied
from core.experiments.protocols.few_shot import GUNEL
from core.messages import N_

SIZES = (16, 64, 128, 256)

ENTRIES = (
    Protocol(
        "batch-size",
        4,
        N_("Batch size"),
        N_("How large must a batch be for its anchors to find positives?"),
        GUNEL,
        lambda _: (varied("batch_size", *SIZES), objectives("ce", "ce-scl")),
        settings={"task.id": "film_reviews", "epochs": 3.0, "micro_batch": 64},
        baseline={"Objective": "CE"},
        differs=N_(
            "All cells see the training rows equally often, so large batches take fewer steps, at the same rate. "
            "Batches of more than 64 are read 64 texts at a time, for the same gradients."
        ),
    ),
)
