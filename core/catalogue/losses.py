"""The registry of losses: one entry for each loss. Everything that lists losses reads it."""

from __future__ import annotations

from core.catalogue.loss_entry import (
    CONTRAST,
    QUEUE,
    Forces,
    LossEntry,
    Settings,
    temperature_parameter,
)
from core.messages import N_, _
from core.parameters import Parameter, number
from core.registry import Registry


def _dscl_name(label: str, settings: Settings) -> str:
    if settings["uniform"]:
        return _("{loss} (DSCL), uniform α", loss=label)
    return _("{loss} (DSCL), α {alpha:g}", loss=label, alpha=number(settings, "alpha"))


def _simcse_name(label: str, settings: Settings) -> str:
    return _("{loss} (NT-Xent, all other vectors)", loss=label) if settings["candidates"] == "all" else label


def _all_others() -> str:
    """Return words of a formula; the number among them is set in math mode."""
    return _("all {number} other vectors, both directions", number=r"} 2N-1 \text{")


CROSS_ENTROPY = LossEntry(
    name="cross_entropy",
    label=N_("Cross-entropy"),
    symbol="CE",
    latex=r"\text{CE}=-\log p_\theta(y_i\mid x_i)",
    summary=N_("The usual fine-tuning loss, with label smoothing, an additive margin or Mixup where asked."),
    source=N_(
        "label smoothing: Szegedy et al. 2016, arXiv:1512.00567; additive margin: "
        "Wang et al. 2018 (AM-Softmax), arXiv:1801.05599; Mixup of vectors: Zhang et al. 2018, arXiv:1710.09412"
    ),
    reads="logits",
    views=(1, None),
    parameters=(
        Parameter(
            "label_smoothing",
            N_("Label smoothing ε"),
            0.0,
            N_("The share of the target that is spread evenly over all classes."),
            low=0.0,
            high=1.0,
            below=True,
            slider=(0.0, 0.5),
            knob=True,
        ),
        Parameter(
            "margin",
            N_("Margin m"),
            0.0,
            N_("Taken from the true class's logit before the softmax, so that it has to win by that much."),
            low=0.0,
            high=100.0,
            slider=(0.0, 5.0),
            knob=True,
        ),
        Parameter(
            "mixup",
            N_("Mixup a"),
            0.0,
            N_("Above 0, pooled vectors are mixed in pairs with a share drawn from Beta(a, a), and so are the labels."),
            low=0.0,
            high=100.0,
            slider=(0.0, 2.0),
        ),
    ),
    others_compute=N_("L-Softmax (Liu et al. 2016, arXiv:1612.02295) multiplies the angle instead, for the same aim."),
    latex_notes={
        "label_smoothing": r"y\;\to\;(1-{label_smoothing})\,y+{label_smoothing}/C",
        "margin": r"\mathrm{logit}_{y_i}\;\to\;\mathrm{logit}_{y_i}-{margin}",
        "mixup": r"h_i\;\to\;s\,h_i+(1-s)\,h_j,\quad s\sim\mathrm{Beta}({mixup},{mixup})",
    },
    place=0,
    lab={"ce": {}},
    extras=True,
    colour="#e69f00",
    compute="core.losses.cross_entropy:cross_entropy_term",
)

SUPCON = LossEntry(
    name="supcon",
    label=N_("Supervised contrastive"),
    symbol="SCL",
    latex=(
        r"\text{SCL}=-\frac{1}{|P(i)|}\sum_{p\in P(i)}"
        r"\log\frac{e^{z_i\cdot z_p/{temperature}}}{\sum_{a\ne i}e^{z_i\cdot z_a/{temperature}}}"
    ),
    summary=N_("Texts of one class attract each other, all others repel."),
    source="Khosla et al. 2020, eq. 2 (L_out) and 3 (L_in), arXiv:2004.11362; "
    "Gunel et al. 2021, eq. 3, arXiv:2011.01403",
    reads="vectors",
    views=(1, None),
    levels=("sentence", "token", "logits"),
    parameters=(
        temperature_parameter(0.3),
        Parameter(
            "variant",
            N_("Variant"),
            "out",
            N_("L_out takes the mean of the logs over the positives, L_in the log of the mean; L_in is never larger."),
            kind="choice",
            choices={"out": "L_out", "in": "L_in"},
        ),
        Parameter(
            "normalize",
            N_("Normalised vectors"),
            True,
            N_("Without it dot products grow with the vectors, and gradients can explode: the notes saw it happen."),
            kind="switch",
        ),
        *CONTRAST,
        *QUEUE,
    ),
    others_compute=N_(
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
    place=1,
    colour="#009e73",
    compute="core.losses.supcon:supcon_term",
    lines="core.losses.supcon:supcon_lines",
    forces=Forces("core.losses.supcon:supcon_anchor_losses"),
    lab={"out": {"variant": "out"}, "in": {"variant": "in"}},
)

DSCL = LossEntry(
    name="dscl",
    label=N_("Decoupled supervised contrastive"),
    symbol="DSCL",
    latex=(
        r"\text{DSCL}=-\Big[{alpha}\,\log p_{i,\mathrm{own}}"
        r"+(1-{alpha})\,\frac{1}{|P(i)|}\sum_{p\in P(i)}\log p_{ip}\Big],\quad\tau={temperature}"
    ),
    summary=N_("Weighs a text's own other view against the others of its class."),
    source="Xuan & Zhang, AAAI 2024, eq. 8–9",
    reads="vectors",
    views=(2, None),
    levels=("sentence", "logits"),
    parameters=(
        Parameter(
            "alpha",
            N_("Own view α"),
            0.1,
            N_(
                "α means other things in R-Drop, DSCL and the notes: here it is the weight of the text's own other "
                "view, against 1 − α for the others of its class."
            ),
            low=0.0,
            high=1.0,
            above=True,
            below=True,
            slider=(0.01, 0.99),
            knob=True,
        ),
        Parameter(
            "uniform",
            N_("Uniform α"),
            False,
            N_("Weigh the own view like any other positive, α = (V − 1)/(|P| + V − 1) for each anchor: that is L_out."),
            kind="switch",
        ),
        temperature_parameter(0.07),
        *(p for p in CONTRAST if p.name not in ("k", "clusters")),
    ),
    latex_notes={"uniform": r"\alpha\;\to\;\frac{V-1}{|P(i)|+V-1}"},
    others_compute=N_(
        "More than two views are our extension: the own view becomes the mean over the own views. The released "
        "code is this with α = 1/(1 + β). A widely copied variant multiplies logits by (1 − α)|P|/(|P| − 1): its "
        "value depends on a constant shift and can be negative; it is not DSCL."
    ),
    place=2,
    colour="#cc79a7",
    compute="core.losses.dscl:dscl_term",
    lines="core.losses.dscl:dscl_lines",
    forces=Forces("core.losses.dscl:dscl_anchor_losses", name=_dscl_name),
)

SIMCSE = LossEntry(
    name="simcse",
    label=N_("SimCSE, unsupervised"),
    symbol="SimCSE",
    latex=(
        r"\text{SimCSE}=-\log\frac{e^{z_i\cdot z_i'/{temperature}}}"
        r"{\sum_{j}e^{z_i\cdot z_j'/{temperature}}}"
    ),
    summary=N_("Two views of a text attract each other, all other texts repel; no labels are used."),
    source="Gao et al. 2021, eq. 4, arXiv:2104.08821",
    reads="vectors",
    views=(2, 2),
    levels=("sentence", "logits"),
    uses_labels=False,
    parameters=(
        temperature_parameter(0.05),
        Parameter(
            "candidates",
            N_("Candidates"),
            "second",
            N_(
                "Who competes with the own other view: the second views of the batch, as in SimCSE, or all other "
                "vectors in both directions, as in SimCLR's and ConSERT's NT-Xent."
            ),
            kind="choice",
            choices={"second": N_("Second views"), "all": N_("All other vectors")},
        ),
        Parameter(
            "symmetric",
            N_("Both directions"),
            False,
            N_("Also let the second view look for the first, and take the mean."),
            kind="switch",
        ),
        *(p for p in CONTRAST if p.name not in ("k", "clusters")),
    ),
    others_compute=N_(
        "SimCLR's and ConSERT's NT-Xent takes all 2N − 1 other vectors as candidates; SimCSE only the N second views."
    ),
    latex_notes={
        "candidates": r"\sum_j\;\to\;\text{{words}}",
        "symmetric": r"z\;\leftrightarrow\;z'\quad\text{{words}}",
    },
    latex_words={"candidates": _all_others, "symmetric": lambda: _("both directions, averaged")},
    place=3,
    colour="#56b4e9",
    compute="core.losses.simcse:simcse_term",
    lines="core.losses.simcse:simcse_lines",
    forces=Forces(
        "core.losses.simcse:simcse_anchor_losses",
        second_views=lambda settings: settings["candidates"] == "second",
        symbol=lambda settings: "NT-Xent" if settings["candidates"] == "all" else "SimCSE",
        name=_simcse_name,
    ),
)

SIMCSE_SUPERVISED = LossEntry(
    name="simcse_supervised",
    label=N_("SimCSE, supervised"),
    symbol="supervised SimCSE",
    latex=(
        r"\text{supervised SimCSE}=-\log\frac{e^{z_i\cdot z_i^+/{temperature}}}"
        r"{\sum_{j}\big(e^{z_i\cdot z_j^+/{temperature}}+e^{z_i\cdot z_j^-/{temperature}}\big)}"
    ),
    summary=N_("A premise attracts what it entails and repels what contradicts it; needs a task with both."),
    source="Gao et al. 2021, eq. 5, arXiv:2104.08821",
    reads="triplets",
    levels=("sentence",),
    uses_labels=False,
    parameters=(
        temperature_parameter(0.05),
        Parameter(
            "hard_negative_weight",
            N_("Hard negative weight"),
            0.0,
            N_("Added to the logit of a premise's own contradiction."),
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
    place=4,
    colour="#0072b2",
    compute="core.losses.simcse:supervised_simcse_term",
    lines="core.losses.simcse:supervised_simcse_lines",
)

RDROP = LossEntry(
    name="rdrop",
    label="R-Drop",
    symbol="R-Drop",
    lab={"rdrop": {}},
    latex=(
        r"\text{R-Drop}=\tfrac12(\mathrm{CE}_1+\mathrm{CE}_2)"
        r"+{alpha}\cdot\tfrac12\big(\mathrm{KL}(p_1\Vert p_2)+\mathrm{KL}(p_2\Vert p_1)\big)"
    ),
    summary=N_("Cross-entropy over two dropout masks, whose predictions are asked to agree."),
    source="Liang et al. 2021, arXiv:2106.14448",
    reads="logits",
    views=(2, 2),
    parameters=(
        Parameter(
            "alpha",
            N_("Agreement α"),
            1.0,
            N_(
                "α means other things in R-Drop, DSCL and the notes: here it is the weight of the symmetric KL "
                "divergence."
            ),
            low=0.0,
            high=100.0,
            slider=(0.0, 10.0),
            knob=True,
        ),
    ),
    others_compute=N_(
        "The paper's loss is 2 × this with α/2; bojone's is this with α/2, so the α = 4 there is our 2. "
        "One public RoBERTa script never adds the second cross-entropy."
    ),
    place=5,
    first_view="head_dropout",
    colour="#d55e00",
    pieces={"ce": N_("its CE"), "kl": N_("its KL")},
    compute="core.losses.rdrop:rdrop_term",
)

# Other packages add losses with `LOSSES.register`.
LOSSES: Registry[LossEntry] = Registry("loss", (CROSS_ENTROPY, SUPCON, DSCL, SIMCSE, SIMCSE_SUPERVISED, RDROP))
