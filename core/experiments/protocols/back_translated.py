"""Back-translations beside the training rows, as bold as their temperature."""

from __future__ import annotations

from core.experiments.protocols.entry import Protocol, objectives, varied
from core.experiments.protocols.few_shot import GUNEL
from core.messages import N_

TEMPERATURES = (0.3, 0.5, 0.7, 0.9)

ENTRIES = (
    Protocol(
        "back-translation",
        2,
        N_("Back-translation noise"),
        N_("Is contrast more robust where the training texts are noisy translations of each other?"),
        GUNEL,
        lambda _: (varied("task.back_translation", None, *TEMPERATURES), objectives("ce", "ce-scl")),
        settings={"task.id": "film_reviews", "task.train_size": 100, "steps": 60},
        baseline={"Objective": "CE"},
        differs=N_(
            "The paper augments 100 or 1,000 rows of GLUE tasks. Two translation models are fetched from the Hugging "
            "Face Hub at the first run; each temperature and seed then takes some minutes of translating, which is "
            "kept."
        ),
    ),
)
