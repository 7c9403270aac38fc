"""Learning from similarity scores: SimCSE without labels, CoSENT and the regression of cosines."""

from __future__ import annotations

from core.config.presets import DROPOUT_NOTES, SIMCSE
from core.events import SPEARMAN
from core.experiments.protocols.entry import Protocol, Published, objectives
from core.messages import N_

ENTRIES = (
    Protocol(
        "similarity",
        N_("Similarity scores"),
        N_("How much does a contrastive loss improve the rank correlation of cosines with human similarity scores?"),
        N_(
            "Gao et al. 2021, arXiv:2104.08821; CoSENT: Su Jianlin 2022, https://kexue.fm/archives/8847; cosine MSE: "
            "Reimers & Gurevych 2019, arXiv:1908.10084"
        ),
        lambda _: (objectives("simcse-alone", "cosent", "cosine-mse"),),
        settings={"preset": "cosent", "steps": 120},
        baseline={"Objective": "SimCSE alone"},
        published=(
            Published(
                (N_("BERT-base"), "STS-B", N_("Mean of 7 STS tasks")),
                (
                    (N_("SimCSE, unsupervised"), "76.85", "76.25"),
                    (N_("SimCSE, supervised"), "84.25", "81.57"),
                ),
                N_("Spearman's ρ × 100 on test"),
                SIMCSE,
            ),
            Published(
                ("SimCSE", N_("Gain, points")),
                ((N_("Without labels"), N_("from +8")), (N_("With labels"), N_("from +4"))),
                N_("Quoted without encoder and data"),
                DROPOUT_NOTES,
            ),
        ),
        differs=N_(
            "The paper trains BERT-base without labels on a million sentences of Wikipedia, or on NLI, and never on "
            "the scores of STS. Here all cells train on the pairs of one task: SimCSE reads their texts alone, CoSENT "
            "and cosine MSE also their scores. The task needs scores: fetch STS-B on the Data page, or add a file of "
            "scored pairs, and choose it."
        ),
        measure=SPEARMAN,
        place=1,
    ),
)
