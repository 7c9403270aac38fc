"""The experiments of the source notes: R-Drop, views, dropout contrast, and contrast between tokens and layers."""

from __future__ import annotations

from typing import Any

from core.config.presets import DROPOUT_NOTES, SCRIPT_DROPOUT
from core.experiments.design import Level
from core.experiments.protocols.entry import Protocol, Published, axis, objectives, setting_axis
from core.messages import N_
from core.parameters import RELATIVE_LAYERS

NOTES = N_("the unpublished notes on which this app is based")
IMDB = N_("Test accuracy of DeBERTa-v3-base on IMDb, one run per row")
CE = Level(label="CE", settings={"preset": "ce"})
CE_TWICE = Level(
    label=N_("CE, two passes"), settings={"preset": "ce", "objective.terms.0.views": [{"view": "dropout"}]}
)
CONTRAST_OUTPUT, CONTRAST_LOGITS = N_("Contrast of the encoder's output"), N_("Contrast of the logits")
# Translators: "Run" is a noun: one training of a model.
OF_VECTORS = (N_("Run"), "SVM", "1-NN", "ARI", "NMI")

TOKEN_ACCURACIES = Published(
    ("k", "α 0.2", "α 0.5"),
    (("30", "0.95100", "0.94972"), ("60", "0.95124", "0.95068"), ("90", "0.95084", "0.95080")),
    N_(
        "Test accuracy of DeBERTa-v3-base on IMDb with LoRA and 510 tokens, one run per cell; α is the weight of "
        "the contrastive loss"
    ),
    NOTES,
)
TOKEN_VECTORS = Published(
    OF_VECTORS,
    (
        ("CE", "0.95025", "0.93015", "0.815761", "0.721010"),
        ("k 30, α 0.2", "0.94890", "0.92465", "0.807832", "0.712066"),
        ("k 30, α 0.5", "0.94810", "0.92380", "0.803702", "0.707661"),
        ("k 60, α 0.2", "0.94840", "0.92375", "0.808371", "0.713071"),
        ("k 60, α 0.5", "0.94815", "0.92340", "0.807293", "0.711029"),
        ("k 90, α 0.2", "0.94825", "0.92535", "0.810891", "0.715902"),
        ("k 90, α 0.5", "0.94850", "0.92365", "0.808371", "0.712198"),
        (N_("k 90, α 0.25, 5 clusters"), "0.94855", "0.93115", "0.812513", "0.719907"),
        (N_("k 90, α 0.25, 10 clusters"), "0.94890", "0.93205", "0.812332", "0.720072"),
        (N_("k 90, α 0.25, 15 clusters"), "0.94820", "0.93045", "0.812152", "0.718854"),
    ),
    N_(
        "DeBERTa-v3-base on IMDb with LoRA and 510 tokens, one run per row; measured on the [CLS] vectors of "
        "20,000 training texts"
    ),
    NOTES,
)
SENTENCES, TOKENS = N_("sentences"), N_("tokens")
LAYER_VECTORS = Published(
    (N_("Contrast"), N_("Layers"), *OF_VECTORS[1:]),
    (
        (SENTENCES, "0 1 2 3", "0.9180", "0.9216", "0.7835", "0.6873"),
        (SENTENCES, "4 5 6 7", "0.9232", "0.9228", "0.7857", "0.6920"),
        (SENTENCES, "8 9 10 11", "0.9270", "0.9232", "0.7906", "0.6915"),
        (SENTENCES, "2 5 8 11", "0.9220", "0.9286", "0.7942", "0.6957"),
        (SENTENCES, "5 7 9 11", "0.9272", "0.9254", "0.7913", "0.6923"),
        (SENTENCES, "11", "0.9238", "0.9152", "0.7850", "0.6868"),
        (TOKENS, "0 1 2 3", "0.9070", "0.9032", "0.7409", "0.6466"),
        (TOKENS, "4 5 6 7", "0.8902", "0.8586", "0.6502", "0.5418"),
        (TOKENS, "8 9 10 11", "0.9358", "0.9156", "0.7744", "0.6734"),
        (TOKENS, "2 5 8 11", "0.9200", "0.9080", "0.7395", "0.6344"),
        (TOKENS, "5 7 9 11", "0.9202", "0.9020", "0.7286", "0.6238"),
        (TOKENS, "11", "0.9328", "0.9250", "0.7885", "0.6889"),
    ),
    N_("DeBERTa-v3-base on IMDb, one run per row; measured on the [CLS] vectors of 5,000 validation texts"),
    NOTES,
)


def _scl(label: str, *views: str) -> Level:
    """Return a level that trains CE and SCL on the text and these views of it."""
    settings: dict[str, Any] = {"preset": "multi-view-scl"}
    return Level(label=label, settings=settings | {"objective.terms.0.views": [{"view": view} for view in views]})


ENTRIES = (
    Protocol(
        "rdrop-stages",
        N_("R-Drop, one or two stages"),
        N_(
            "One-stage R-Drop runs only the classifier twice; two-stage R-Drop runs the encoder twice as well. "
            "Is the second pass of the encoder worth its cost?"
        ),
        N_("Liang et al. 2021, arXiv:2106.14448; one stage: the unpublished notes on which this app is based"),
        lambda _: (objectives("ce", "ce-scl", "rdrop-one-stage", "rdrop-two-stage"),),
        settings={"task.id": "film_reviews", "steps": 90},
        baseline={"Objective": "CE"},
        published=(
            Published(
                (N_("Objective"), N_("Accuracy")),
                (("CE", "0.94868"), ("SCL", "0.94884"), ("R-Drop", "0.95056")),
                N_("Test accuracy of DeBERTa-v3-base on IMDb, one run per row, last four blocks"),
                NOTES,
            ),
            Published(
                ("R-Drop", N_("Accuracy")),
                ((N_("One stage"), "0.95044"), (N_("Two stages"), "0.95120")),
                IMDB,
                NOTES,
            ),
        ),
        differs=N_(
            "The project's notes fine-tune DeBERTa-v3-base on IMDb for three epochs and report one run of each. "
            "They say that one stage saves memory and time but give no figures; choose peak memory or duration "
            "as the measure to see them here."
        ),
    ),
    Protocol(
        "views",
        N_("Views"),
        N_("Do more views of each text help a contrastive loss?"),
        NOTES,
        lambda _: (
            axis(
                N_("Views"),
                Level(label=N_("CE alone"), settings={"preset": "ce"}),
                _scl(N_("One view")),
                _scl(N_("Head dropout"), "head_dropout"),
                _scl(N_("Layers"), "layers"),
                _scl(N_("Head dropout and layers"), "head_dropout", "layers"),
                _scl(N_("Second pass"), "dropout"),
                _scl("EDA", "eda"),
            ),
        ),
        settings={"task.id": "film_reviews", "steps": 90},
        baseline={"Views": "One view"},
        published=(
            Published(
                ("SCL", N_("Accuracy")),
                ((N_("One view"), "0.94636"), (N_("R-Drop and [CLS] of other layers"), "0.94736")),
                IMDB,
                NOTES,
            ),
        ),
        differs=N_(
            "The project's notes fine-tune DeBERTa-v3-base on IMDb for three epochs and report one run of each. "
            "Their multi-view loss corresponds to head dropout and layers."
        ),
    ),
    Protocol(
        "tokens",
        N_("Tokens: k × α"),
        N_(
            "Is a contrastive loss with weight α on the k tokens with the highest [CLS] attention better than "
            "cross-entropy alone?"
        ),
        NOTES,
        lambda _: (
            setting_axis("objective.terms.0.k", 30, 60, 90, name=N_("Tokens k")),
            setting_axis("objective.terms.0.weight", 0.2, 0.5, name=N_("Weight α")),
        ),
        settings={"task.id": "long_film_reviews", "preset": "token-scl", "encoder.max_length": 256, "steps": 40},
        reference=CE,
        published=(TOKEN_ACCURACIES, TOKEN_VECTORS),
        differs=N_(
            "The project's notes train on IMDb with LoRA. If k is at least the number of real tokens, all of "
            "them are views and nothing is selected."
        ),
    ),
    Protocol(
        "clusters",
        N_("Clusters of tokens"),
        N_(
            "Does it help to cluster the tokens with the highest [CLS] attention, and to contrast the cluster "
            "means instead of the tokens?"
        ),
        NOTES,
        lambda _: (setting_axis("objective.terms.0.clusters", 5, 10, 15, name=N_("Clusters")),),
        settings={
            "task.id": "long_film_reviews",
            "preset": "clustered-tokens",
            "objective.terms.0.k": 90,
            "encoder.max_length": 256,
            "steps": 40,
        },
        reference=CE,
        published=(TOKEN_VECTORS,),
        differs=N_(
            "The project's notes train on IMDb with LoRA and 510 tokens, and measure 20,000 training rows; here "
            "the validation rows on the map are measured."
        ),
        measure="linear_svm",
        split="validation",
    ),
    Protocol(
        "layers",
        N_("Layers × level"),
        N_(
            "Does a contrastive loss at several layers help? Which layers matter, and is it better on tokens or on "
            "sentences?"
        ),
        NOTES,
        lambda _: (
            axis(
                N_("Layers"),
                *(
                    Level(label=label, settings={"objective.terms.0.layers": name})
                    for name, label in RELATIVE_LAYERS.items()
                    if name != "every"  # the notes' six
                ),
            ),
            axis(
                N_("Level"),
                Level(label=N_("Sentence"), settings={"preset": "multi-layer-sentence"}),
                Level(label=N_("Token"), settings={"preset": "multi-layer-token"}),
            ),
        ),
        settings={"task.id": "film_reviews", "steps": 90},
        reference=CE,
        published=(LAYER_VECTORS,),
        differs=N_(
            "These notes evaluate the vectors (linear SVM, 1-NN, clusters), not the classifier. They number the "
            "layers 0 to 11 but do not say whether 0 is the embeddings or the first block. Here layers are "
            "chosen by relative position, because encoders have 4 to 24 blocks."
        ),
    ),
    Protocol(
        "representation",
        N_("Representations"),
        N_("Which objective gives the best-separated vectors?"),
        NOTES,
        lambda _: (
            axis(
                N_("Objective"),
                CE,
                Level(label="CE + SCL", settings={"preset": "ce-scl"}),
                Level(label="R-Drop", settings={"preset": "rdrop-one-stage"}),
                Level(label=N_("Token-level"), settings={"preset": "token-scl"}),
                Level(label=N_("Clustered tokens"), settings={"preset": "clustered-tokens"}),
                Level(label=N_("Multi-layer, sentences"), settings={"preset": "multi-layer-sentence"}),
                Level(label=N_("Multi-layer, tokens"), settings={"preset": "multi-layer-token"}),
            ),
        ),
        settings={"task.id": "film_reviews", "steps": 90},
        baseline={"Objective": "CE"},
        published=(TOKEN_VECTORS, LAYER_VECTORS),
        differs=N_(
            "The project's notes measure 20,000 training rows or 5,000 validation rows of IMDb; here the "
            "validation rows on the map are measured, at the last frame. The notes number 12 layers from 0 to 11 "
            "and do not say whether 0 is the embeddings or the first block."
        ),
        measure="linear_svm",
        split="validation",
    ),
    Protocol(
        "dropout-contrast",
        N_("Dropout contrast"),
        N_(
            "Does contrast between two dropout passes help supervised training, and does it matter where it is applied?"
        ),
        N_("the project's notes on dropout contrast; R-Drop: Liang et al. 2021, arXiv:2106.14448"),
        lambda _: (
            axis(
                N_("Objective"),
                CE_TWICE,
                Level(label=CONTRAST_OUTPUT, settings={"preset": "dropout-nt-xent-encoder"}),
                Level(label=CONTRAST_LOGITS, settings={"preset": "dropout-nt-xent-logits"}),
                # The α = 4 of the notes' script, in this project's convention.
                Level(label="R-Drop", settings={"preset": "rdrop-two-stage", "objective.terms.0.alpha": 2.0}),
            ),
        ),
        settings={"task.id": "news_topics", "encoder.dropout": SCRIPT_DROPOUT, "steps": 90},
        baseline={"Objective": CE_TWICE.label},
        published=(
            Published(
                (N_("Objective"), N_("Gain over CE")),
                (
                    (CONTRAST_OUTPUT, N_("inconsistent, at most 0.5")),
                    (CONTRAST_LOGITS, N_("some")),
                    ("R-Drop", N_("far more")),
                ),
                N_(
                    "BERT-base on TNEWS (Chinese news titles), as in the script of the project's notes, which "
                    "print no other numbers"
                ),
                DROPOUT_NOTES,
            ),
        ),
        differs=N_(
            "The script in the project's notes trains BERT-base for five epochs in batches of 72 and keeps the "
            "best epoch. Its classifier is one dense layer without dropout; here it has two layers and the "
            "encoder's usual dropout. CE also reads every text twice here, so that the objectives differ in "
            "nothing else."
        ),
    ),
    Protocol(
        "long-tail",
        N_("Long tail"),
        N_(
            "DSCL weights the views of the same text by α and other texts of its class by 1 − α. Does that help "
            "the rare class when classes are imbalanced?"
        ),
        N_(
            "Xuan & Zhang, AAAI 2024, arXiv:2403.06151, as discussed in the unpublished notes on which this app "
            "is based"
        ),
        lambda _: (
            setting_axis("task.imbalance", 1, 10, 50),
            axis(
                N_("Objective"),
                CE,
                # Uniform α is L_out of the same two views at the same τ, as the paper's SCL.
                Level(label="CE + SCL", settings={"preset": "dscl", "objective.terms.0.uniform": True}),
                Level(label="CE + DSCL, α 0.1", settings={"preset": "dscl", "objective.terms.0.alpha": 0.1}),
                Level(label="CE + DSCL, α 0.5", settings={"preset": "dscl", "objective.terms.0.alpha": 0.5}),
            ),
        ),
        settings={"task.id": "film_reviews", "steps": 90},
        baseline={"Objective": "CE + SCL"},
        published=(
            Published(
                (N_("Method"), N_("Top-1 accuracy")),
                ((N_("DSCL and self-distillation"), "57.7"), (N_("Ensemble of such models"), "59.7")),
                N_("ImageNet-LT, a thousand classes; percent"),
                "Xuan & Zhang, AAAI 2024, arXiv:2403.06151",
            ),
            Published(
                (N_("Loss"), N_("Top-1 accuracy")),
                (("L_out", "78.7"), ("L_in", "67.4")),
                N_("ResNet-50 on ImageNet, whose classes are balanced; percent"),
                N_("Khosla et al. 2020, arXiv:2004.11362, quoted in the project's notes"),
            ),
        ),
        differs=N_(
            "The paper pre-trains with contrast on images of a thousand classes and then trains the "
            "classifier, with a memory queue and self-distillation. Here contrast and cross-entropy train "
            "together on film reviews: 540 negative rows, and 540, 54 or 10 positive ones. The bundled tasks "
            "with more classes are too small: at an imbalance of 50, the rarest news topic would have one row "
            "left. CE + SCL uses the same two views and the same τ as CE + DSCL."
        ),
        measure="tail_recall",
    ),
)
