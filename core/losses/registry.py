"""What can be minimised: the literal list of losses, readable without importing torch.

Forms, help texts, the equation preview, the command line and the parametrised tests are made from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from core.errors import ConfigError
from core.parameters import AUTO, Parameter

Level = Literal["sentence", "token", "logits"]


@dataclass(frozen=True, slots=True)
class LossEntry:
    """A loss as people, forms and the planner see it.

    Attributes:
        symbol, latex: its short name, and its equation with `{name}` where a parameter's value goes.
        latex_variants: the equation by the value of its parameter "variant", where it has one.
        latex_notes: further lines, each shown where the parameter that it explains is not at its default.
        reads: "logits" of the classifier, "vectors" that are contrasted within a batch, or "triplets" of vectors.
        views: fewest and most views of a text that it takes (None: any number).
        levels: what it can contrast; empty for a loss on logits.
        uses_labels: whether positives are rows with the same label.
    """

    name: str
    label: str
    symbol: str
    latex: str
    summary: str
    source: str
    reads: Literal["logits", "vectors", "triplets"]
    views: tuple[int, int | None] = (1, 1)
    levels: tuple[Level, ...] = ()
    uses_labels: bool = True
    parameters: tuple[Parameter, ...] = ()
    others_compute: str = ""
    latex_variants: Mapping[str, str] = field(default_factory=dict)
    latex_notes: Mapping[str, str] = field(default_factory=dict)

    @property
    def contrastive(self) -> bool:
        """Whether it compares the vectors of a batch with each other."""
        return self.reads != "logits"


def _temperature(default: float) -> Parameter:
    return Parameter(
        "temperature",
        "Temperature τ",
        default,
        "Divides every similarity before the softmax. Small: nearly all the push goes to the most similar negatives, "
        "the hard ones. Large: all negatives are pushed about alike. Forces on Explore draws it.",
        low=0.0,
        high=100.0,
        above=True,
        slider=(0.01, 1.0),
        knob=True,
    )


TEMPERATURE = _temperature(0.3)

# What is contrasted, for every loss on vectors.
CONTRAST = (
    Parameter(
        "level",
        "Level",
        "sentence",
        "What is contrasted: the pooled vector of a text, the tokens that [CLS] attends to most, or the classifier's "
        "output.",
        kind="choice",
        choices={"sentence": "Sentence", "token": "Token", "logits": "Logits"},
    ),
    Parameter(
        "layers",
        "Layers",
        "last",
        "The blocks whose output is contrasted: one loss per block, averaged. Layer 1 is the first block; "
        "0 would be the embeddings.",
        kind="layers",
    ),
    Parameter(
        "k",
        "Tokens k",
        30,
        "At token level: how many of the tokens that [CLS] attends to most represent a text. A k of at least the "
        "number of words selects nothing.",
        kind="integer",
        low=1,
        high=512,
        slider=(1, 120),
        automatic="A third of a text's tokens",
    ),
    Parameter(
        "clusters",
        "Clusters",
        0,
        "At token level: group the k tokens by K-means into this many groups, each the mean of its members; 0 takes "
        "every token on its own.",
        kind="integer",
        low=0,
        high=64,
        slider=(0, 30),
    ),
    Parameter(
        "projection",
        "Projection head",
        "none",
        "Layers of its own in front of the loss, 128 wide, dropped afterwards. SimCSE trains with an MLP; SCL, DSCL "
        "and the notes have none.",
        kind="choice",
        choices={"none": "None", "linear": "Linear", "mlp": "MLP"},
    ),
    Parameter(
        "original",
        "The text itself",
        True,
        "Whether the unchanged text is one of the views. CERT contrasts two back-translations without it.",
        kind="switch",
    ),
)

QUEUE = (
    Parameter(
        "queue",
        "Queue",
        0,
        "Vectors of past batches from a slowly moving copy of the encoder, as further candidates; 0 for none. 1,024 "
        "is a good size here; MoCo had 65,536.",
        kind="integer",
        low=0,
        high=65_536,
        slider=(0, 4096),
    ),
    Parameter(
        "momentum",
        "Queue momentum",
        AUTO,
        "How slowly the copy follows the encoder: the share m of it that stays at each step. From the steps: a short "
        "run takes a smaller m, so that its copy learns too; MoCo's 0.999 is for thousands of steps.",
        low=0.0,
        high=1.0,
        below=True,
        slider=(0.9, 0.9999),
        automatic="From the steps",
    ),
)

ALPHA_HELP = "α means other things in R-Drop, DSCL and the notes: here it is "

LOSSES: Mapping[str, LossEntry] = {
    "cross_entropy": LossEntry(
        name="cross_entropy",
        label="Cross-entropy",
        symbol="CE",
        latex=r"\text{CE}=-\log p_\theta(y_i\mid x_i)",
        summary="The usual fine-tuning loss, with label smoothing, an additive margin or Mixup where asked.",
        source="label smoothing: Szegedy et al. 2016, arXiv:1512.00567; additive margin: "
        "Wang et al. 2018 (AM-Softmax), arXiv:1801.05599; Mixup of vectors: Zhang et al. 2018, arXiv:1710.09412",
        reads="logits",
        views=(1, None),
        parameters=(
            Parameter(
                "label_smoothing",
                "Label smoothing ε",
                0.0,
                "The share of the target that is spread evenly over all classes.",
                low=0.0,
                high=1.0,
                below=True,
                slider=(0.0, 0.5),
                knob=True,
            ),
            Parameter(
                "margin",
                "Margin m",
                0.0,
                "Taken from the true class's logit before the softmax, so that it has to win by that much.",
                low=0.0,
                high=100.0,
                slider=(0.0, 5.0),
                knob=True,
            ),
            Parameter(
                "mixup",
                "Mixup a",
                0.0,
                "Above 0, pooled vectors are mixed in pairs with a share drawn from Beta(a, a), and so are the labels.",
                low=0.0,
                high=100.0,
                slider=(0.0, 2.0),
            ),
        ),
        others_compute="L-Softmax (Liu et al. 2016, arXiv:1612.02295) multiplies the angle instead, for the same aim.",
        latex_notes={
            "label_smoothing": r"y\;\to\;(1-{label_smoothing})\,y+{label_smoothing}/C",
            "margin": r"\mathrm{logit}_{y_i}\;\to\;\mathrm{logit}_{y_i}-{margin}",
            "mixup": r"h_i\;\to\;s\,h_i+(1-s)\,h_j,\quad s\sim\mathrm{Beta}({mixup},{mixup})",
        },
    ),
    "supcon": LossEntry(
        name="supcon",
        label="Supervised contrastive",
        symbol="SCL",
        latex=(
            r"\text{SCL}=-\frac{1}{|P(i)|}\sum_{p\in P(i)}"
            r"\log\frac{e^{z_i\cdot z_p/{temperature}}}{\sum_{a\ne i}e^{z_i\cdot z_a/{temperature}}}"
        ),
        summary="Texts of one class attract each other, all others repel.",
        source="Khosla et al. 2020, eq. 2 (L_out) and 3 (L_in), arXiv:2004.11362; "
        "Gunel et al. 2021, eq. 3, arXiv:2011.01403",
        reads="vectors",
        views=(1, None),
        levels=("sentence", "token", "logits"),
        parameters=(
            TEMPERATURE,
            Parameter(
                "variant",
                "Variant",
                "out",
                "L_out takes the mean of the logs over the positives, L_in the log of the mean; L_in is never larger.",
                kind="choice",
                choices={"out": "L_out", "in": "L_in"},
            ),
            Parameter(
                "normalize",
                "Normalised vectors",
                True,
                "Without it dot products grow with the vectors, and gradients can explode: the notes saw it happen.",
                kind="switch",
            ),
            *CONTRAST,
            *QUEUE,
        ),
        others_compute=(
            "HobbitLong's code multiplies by τ/0.07 and Google's by τ; pytorch-metric-learning averages over the "
            "anchors with a positive loss, and returns 0 for a batch of one class; Gunel et al. sum over anchors, so "
            "their λ depends on the batch size. Here it is the mean over the anchors that have a positive."
        ),
        latex_variants={
            "in": (
                r"\text{SCL}=-\log\Big[\frac{1}{|P(i)|}\sum_{p\in P(i)}"
                r"\frac{e^{z_i\cdot z_p/{temperature}}}{\sum_{a\ne i}e^{z_i\cdot z_a/{temperature}}}\Big]"
            ),
        },
    ),
    "dscl": LossEntry(
        name="dscl",
        label="Decoupled supervised contrastive",
        symbol="DSCL",
        latex=(
            r"\text{DSCL}=-\Big[{alpha}\,\log p_{i,\mathrm{own}}"
            r"+(1-{alpha})\,\frac{1}{|P(i)|}\sum_{p\in P(i)}\log p_{ip}\Big],\quad\tau={temperature}"
        ),
        summary="Weighs a text's own other view against the others of its class.",
        source="Xuan & Zhang, AAAI 2024, eq. 8–9",
        reads="vectors",
        views=(2, None),
        levels=("sentence", "logits"),
        parameters=(
            Parameter(
                "alpha",
                "Own view α",
                0.1,
                ALPHA_HELP + "the weight of the text's own other view, against 1 − α for the others of its class.",
                low=0.0,
                high=1.0,
                above=True,
                below=True,
                slider=(0.01, 0.99),
                knob=True,
            ),
            Parameter(
                "uniform",
                "Uniform α",
                False,
                "Weigh the own view like any other positive, α = (V − 1)/(|P| + V − 1) for each anchor: that is L_out.",
                kind="switch",
            ),
            _temperature(0.07),
            *(p for p in CONTRAST if p.name not in ("k", "clusters")),
        ),
        latex_notes={"uniform": r"\alpha\;\to\;\frac{V-1}{|P(i)|+V-1}"},
        others_compute=(
            "More than two views are our extension: the own view becomes the mean over the own views. The released "
            "code is this with α = 1/(1 + β). A widely copied variant multiplies logits by (1 − α)|P|/(|P| − 1): its "
            "value depends on a constant shift and can be negative; it is not DSCL."
        ),
    ),
    "simcse": LossEntry(
        name="simcse",
        label="SimCSE, unsupervised",
        symbol="SimCSE",
        latex=(
            r"\text{SimCSE}=-\log\frac{e^{z_i\cdot z_i'/{temperature}}}"
            r"{\sum_{j}e^{z_i\cdot z_j'/{temperature}}}"
        ),
        summary="Two views of a text attract each other, all other texts repel; no labels are used.",
        source="Gao et al. 2021, eq. 4, arXiv:2104.08821",
        reads="vectors",
        views=(2, 2),
        levels=("sentence", "logits"),
        uses_labels=False,
        parameters=(
            _temperature(0.05),
            Parameter(
                "candidates",
                "Candidates",
                "second",
                "Who competes with the own other view: the second views of the batch, as in SimCSE, or all other "
                "vectors in both directions, as in SimCLR's and ConSERT's NT-Xent.",
                kind="choice",
                choices={"second": "Second views", "all": "All other vectors"},
            ),
            Parameter(
                "symmetric",
                "Both directions",
                False,
                "Also let the second view look for the first, and take the mean.",
                kind="switch",
            ),
            *(p for p in CONTRAST if p.name not in ("k", "clusters")),
        ),
        others_compute="SimCLR's and ConSERT's NT-Xent takes all 2N − 1 other vectors as candidates; SimCSE only the N "
        "second views.",
        latex_notes={
            "candidates": r"\sum_j\;\to\;\text{all } 2N-1 \text{ other vectors, both directions}",
            "symmetric": r"z\;\leftrightarrow\;z'\quad\text{both directions, averaged}",
        },
    ),
    "simcse_supervised": LossEntry(
        name="simcse_supervised",
        label="SimCSE, supervised",
        symbol="supervised SimCSE",
        latex=(
            r"\text{supervised SimCSE}=-\log\frac{e^{z_i\cdot z_i^+/{temperature}}}"
            r"{\sum_{j}\big(e^{z_i\cdot z_j^+/{temperature}}+e^{z_i\cdot z_j^-/{temperature}}\big)}"
        ),
        summary="A premise attracts what it entails and repels what contradicts it; needs a task with both.",
        source="Gao et al. 2021, eq. 5, arXiv:2104.08821",
        reads="triplets",
        levels=("sentence",),
        uses_labels=False,
        parameters=(
            _temperature(0.05),
            Parameter(
                "hard_negative_weight",
                "Hard negative weight",
                0.0,
                "Added to the logit of a premise's own contradiction.",
                low=-100.0,
                high=100.0,
                slider=(-5.0, 5.0),
                knob=True,
            ),
            *(p for p in CONTRAST if p.name in ("layers", "projection")),
        ),
        latex_notes={
            "hard_negative_weight": r"e^{z_i\cdot z_i^-/\tau}\;\to\;e^{z_i\cdot z_i^-/\tau+{hard_negative_weight}}",
        },
    ),
    "rdrop": LossEntry(
        name="rdrop",
        label="R-Drop",
        symbol="R-Drop",
        latex=(
            r"\text{R-Drop}=\tfrac12(\mathrm{CE}_1+\mathrm{CE}_2)"
            r"+{alpha}\cdot\tfrac12\big(\mathrm{KL}(p_1\Vert p_2)+\mathrm{KL}(p_2\Vert p_1)\big)"
        ),
        summary="Cross-entropy over two dropout masks, whose predictions are asked to agree.",
        source="Liang et al. 2021, arXiv:2106.14448",
        reads="logits",
        views=(2, 2),
        parameters=(
            Parameter(
                "alpha",
                "Agreement α",
                1.0,
                ALPHA_HELP + "the weight of the symmetric KL divergence.",
                low=0.0,
                high=100.0,
                slider=(0.0, 10.0),
                knob=True,
            ),
        ),
        others_compute=(
            "The paper's loss is 2 × this with α/2; bojone's is this with α/2, so the α = 4 there is our 2. "
            "One public RoBERTa script never adds the second cross-entropy."
        ),
    ),
}


def loss_entry(name: object, field: str = "loss") -> LossEntry:
    """The entry of a loss.

    Raises: ConfigError naming what exists; nothing falls back silently.
    """
    if not isinstance(name, str) or name not in LOSSES:
        raise ConfigError(field, name, f"choose one of {', '.join(LOSSES)}.")
    return LOSSES[name]
