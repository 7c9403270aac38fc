"""Noise in the training rows: in their labels, or in their words."""

from __future__ import annotations

from core.experiments.protocols.entry import Protocol, objectives, varied
from core.messages import N_

ENTRIES = (
    Protocol(
        "label-noise",
        1,
        N_("Label noise"),
        N_("Is contrast more robust where labels are wrong?"),
        N_("after Gunel et al. 2021, arXiv:2011.01403, which adds noisy texts instead"),
        lambda _: (varied("task.label_noise", 0.0, 0.2, 0.4), objectives("ce", "ce-scl")),
        settings={"task.id": "film_reviews", "steps": 90},
        baseline={"Objective": "CE"},
        differs=N_(
            "The paper makes noise with back-translations. Here a share ρ of each class's training rows has another "
            "label; validation and test keep theirs."
        ),
    ),
    Protocol(
        "text-noise",
        2,
        N_("Text noise"),
        N_("Is contrast more robust where words are changed?"),
        N_("after Gunel et al. 2021, arXiv:2011.01403; the changes are those of EDA, Wei & Zou 2019, arXiv:1901.11196"),
        lambda _: (varied("task.text_noise", 0.0, 0.1, 0.3), objectives("ce", "ce-scl")),
        settings={"task.id": "film_reviews", "steps": 90},
        baseline={"Objective": "CE"},
        differs=N_(
            "The paper makes noise with back-translations. Here a share r of the words of each training text is "
            "replaced, deleted, duplicated or swapped; validation and test stay as they are."
        ),
    ),
)
