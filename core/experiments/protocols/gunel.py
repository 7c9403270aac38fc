"""The experiments of Gunel et al.: few-shot training, noise, transfer and batch size."""

from __future__ import annotations

from typing import Any

from core.experiments.design import Level
from core.experiments.protocols.entry import Protocol, Published, axis, objectives, setting_axis
from core.messages import N_

GUNEL = "Gunel et al. 2021, arXiv:2011.01403"
TARGETS = {N_("Product reviews"): "product_reviews", N_("Venue reviews"): "venue_reviews"}
ALL_ROWS = ("film_reviews", "product_reviews", "question_types", "news_topics", "acceptability", "nli", "paraphrase")
SOURCE = N_("Film reviews, CE")
SOURCE_SCL = N_("Film reviews, CE + SCL")

# Figures of the paper beside back-translations and beside our paraphrases.
NOISE = (
    Published(
        (N_("Tasks"), N_("CE + SCL minus CE, points")),
        ((N_("Some of GLUE"), N_("up to +7")), ("MNLI, QNLI", N_("CE falls as T rises, CE + SCL less"))),
        N_("RoBERTa-large, training texts augmented at T 0.3 to 0.9"),
        GUNEL,
    ),
)

VARIATIONS: dict[str, dict[str, Any]] = {
    N_("Default"): {},
    N_("Learning rate halved"): {"optimiser.learning_rate": 5e-5},
    N_("Learning rate doubled"): {"optimiser.learning_rate": 2e-4},
    N_("Steps tripled"): {"steps": 180},
    N_("Last block re-initialised"): {"trainable.reinitialised_blocks": 1},
}


def _scl(weight: float, temperature: float) -> Level:
    """Return a level of CE + SCL; the contrastive term is the first."""
    terms = {"objective.terms.0.weight": weight, "objective.terms.1.weight": round(1 - weight, 3)}
    settings = {"preset": "ce-scl", **terms, "objective.terms.0.temperature": temperature}
    return Level(label=f"λ {weight}, τ {temperature}", settings=settings)


ENTRIES = (
    Protocol(
        "few-shot",
        N_("Few-shot"),
        N_("Does a contrastive loss help most when labels are few?"),
        GUNEL,
        lambda _: (setting_axis("task.train_size", 20, 100, 1000), objectives("ce", "ce-scl", "rdrop-one-stage")),
        settings={"task.id": "film_reviews", "steps": 60},
        baseline={"Objective": "CE"},
        published=(
            Published(
                (N_("Task, rows"), N_("CE + SCL minus CE, points")),
                (("QNLI, 20", N_("up to +10.7")), (N_("with more rows"), N_("shrinking"))),
                N_("RoBERTa-large, 10 seeds, stratified samples"),
                GUNEL,
            ),
        ),
        differs=N_(
            "The paper uses RoBERTa-large on GLUE tasks, tunes λ and τ for each, and runs 10 seeds. Here all "
            "cells share encoder, number of steps, λ and τ, and are scored on the task's test split."
        ),
        place=-1,
    ),
    Protocol(
        "back-translation",
        N_("Back-translation noise"),
        N_("Does a contrastive loss make training more robust to noisy back-translations among the training texts?"),
        GUNEL,
        lambda _: (
            setting_axis("task.id", "film_reviews", "nli"),
            setting_axis("task.back_translation", None, 0.3, 0.5, 0.7, 0.9),
            objectives("ce", "ce-scl"),
        ),
        settings={"task.train_size": 100, "steps": 60},
        baseline={"Objective": "CE"},
        published=NOISE,
        differs=N_(
            "The paper augments 100 or 1,000 rows of GLUE tasks. The first run downloads two translation models "
            "from the Hugging Face Hub. Translating then takes some minutes for each temperature and seed; "
            "translations are stored."
        ),
    ),
    Protocol(
        "paraphrase-noise",
        N_("Paraphrase noise"),
        N_("Does a contrastive loss make training more robust to weak or strong paraphrases among the training texts?"),
        GUNEL,
        lambda _: (
            setting_axis("task.id", "film_reviews", "nli"),
            setting_axis("task.paraphrases", "none", "weak", "strong"),
            objectives("ce", "ce-scl"),
        ),
        settings={"task.train_size": 100, "steps": 60},
        baseline={"Objective": "CE"},
        published=NOISE,
        differs=N_(
            "The paper adds machine back-translations, whose errors grow with T. Here each training text gets one "
            "paraphrase that was written for this project and should keep the meaning: a strong one changes most "
            "words, but adds few errors. No translation model is needed."
        ),
    ),
    Protocol(
        "label-noise",
        N_("Label noise"),
        N_("Does a contrastive loss make training more robust to wrong labels?"),
        N_("Gunel et al. 2021, arXiv:2011.01403, who add noisy texts instead of wrong labels"),
        lambda _: (setting_axis("task.label_noise", 0.0, 0.2, 0.4), objectives("ce", "ce-scl")),
        settings={"task.id": "film_reviews", "steps": 90},
        baseline={"Objective": "CE"},
        differs=N_(
            "The paper creates noise with back-translations. Here a fraction ρ of each class's training rows gets "
            "another label; validation and test labels are unchanged."
        ),
        place=-1,
    ),
    Protocol(
        "text-noise",
        N_("Text noise"),
        N_("Does a contrastive loss make training more robust to changed words?"),
        N_("Gunel et al. 2021, arXiv:2011.01403; the changes are those of EDA, Wei & Zou 2019, arXiv:1901.11196"),
        lambda _: (setting_axis("task.text_noise", 0.0, 0.1, 0.3), objectives("ce", "ce-scl")),
        settings={"task.id": "film_reviews", "steps": 90},
        baseline={"Objective": "CE"},
        differs=N_(
            "The paper creates noise with back-translations. Here a fraction r of the words of each training text "
            "is replaced, deleted, duplicated or swapped; validation and test are unchanged."
        ),
    ),
    Protocol(
        "transfer",
        N_("Transfer"),
        N_("Does an encoder fine-tuned with a contrastive loss transfer better to a related task?"),
        GUNEL,
        lambda _: (
            axis(N_("Target"), *(Level(label=label, settings={"task.id": task}) for label, task in TARGETS.items())),
            axis(
                # Translators: what training starts from.
                N_("Start"),
                Level(label=N_("Pre-trained"), settings={"preset": "ce"}),
                Level(label=SOURCE, settings={"preset": "ce", "start": SOURCE}),
                Level(label=SOURCE_SCL, settings={"preset": "ce-scl", "start": SOURCE_SCL}),
            ),
        ),
        settings={"task.id": "film_reviews", "task.train_size": 20, "steps": 60},
        baseline={"Start": SOURCE},
        sources=(
            Level(label=SOURCE, settings={"preset": "ce", "task.train_size": None, "steps": 120}),
            Level(label=SOURCE_SCL, settings={"preset": "ce-scl", "task.train_size": None, "steps": 120}),
        ),
        differs=N_(
            "The paper fine-tunes RoBERTa-large on SST-2 and uses few rows of Amazon and Yelp reviews. Here an "
            "encoder is trained on film reviews for 120 steps, then on 20 product or venue reviews with a new "
            "classifier and the same objective."
        ),
    ),
    Protocol(
        "stability",
        N_("Stability"),
        N_(
            "Does a contrastive loss make results less sensitive to seed and settings, and do more steps or "
            "re-initialised top blocks help?"
        ),
        GUNEL,
        lambda _: (
            axis(N_("Training"), *(Level(label=label, settings=settings) for label, settings in VARIATIONS.items())),
            axis(
                N_("Objective"),
                Level(label="CE", settings={"preset": "ce"}),
                *(_scl(weight, tau) for weight in (0.5, 0.9) for tau in (0.1, 0.5)),
            ),
        ),
        settings={"task.id": "film_reviews", "task.train_size": 100, "steps": 60},
        baseline={"Objective": "CE"},
        differs=N_(
            "The paper reports that CE is unstable on few rows, and that more steps and re-initialised top blocks help "
            "(Zhang et al. 2021, arXiv:2006.05987). Compare the standard deviations over seeds, and the means over λ "
            "and τ; the paper tunes both for each task."
        ),
    ),
    Protocol(
        "tuning",
        N_("Tuned on validation rows"),
        N_("Does a contrastive loss help if λ and τ are chosen on validation rows?"),
        GUNEL,
        lambda _: (setting_axis("lambda", 0.3, 0.6, 0.9), setting_axis("temperature", 0.1, 0.3, 0.5)),
        settings={"task.id": "film_reviews", "task.train_size": 100, "steps": 60},
        reference=Level(label="CE", settings={"preset": "ce"}),
        differs=N_(
            "The paper chooses λ and τ for each task from a finer grid, and the learning rate too. Here a sentence "
            "below the table gives the test score of the settings that are best on the validation rows of each seed."
        ),
    ),
    Protocol(
        "full-data",
        N_("All rows"),
        N_("Does a contrastive loss help when all training rows are used?"),
        GUNEL,
        lambda _: (setting_axis("task.id", *ALL_ROWS), objectives("ce", "ce-scl")),
        settings={"steps": 90},
        baseline={"Objective": "CE"},
        differs=N_(
            "The paper trains RoBERTa-large on all rows of six GLUE tasks and tunes λ and τ for each. Here the bundled "
            "tasks have some hundreds of rows, and all share λ, τ and the number of steps."
        ),
    ),
    Protocol(
        "positives",
        N_("Positives at a fixed batch size"),
        N_("With three classes instead of two, an anchor has fewer positives. Does a contrastive loss help less?"),
        N_("a Korean review of Gunel et al. 2021, on why MNLI does not gain"),
        lambda _: (setting_axis("task.sampler", "class_balanced", "two_classes"), objectives("ce", "ce-scl")),
        settings={"task.id": "nli", "batch_size": 24, "steps": 120},
        baseline={"Objective": "CE"},
        differs=N_(
            "The review compares tasks: MNLI, with three classes, with five tasks of two. Here the same texts come in "
            "batches of three classes, with 7 positives for each anchor, or of two classes, with 11."
        ),
    ),
    Protocol(
        "batch-size",
        N_("Batch size"),
        N_("How large must a batch be for its anchors to have positives, and does R-Drop need large batches too?"),
        f"{GUNEL}; Liang et al. 2021, arXiv:2106.14448",
        lambda _: (setting_axis("batch_size", 16, 64, 128, 256), objectives("ce", "ce-scl", "rdrop-two-stage")),
        settings={"task.id": "film_reviews", "epochs": 3.0, "micro_batch": 64},
        baseline={"Objective": "CE"},
        differs=N_(
            "All cells see the training rows equally often, so large batches take fewer steps at the same rate. "
            "Batches of more than 64 are encoded 64 texts at a time, with the same gradients."
        ),
    ),
)
