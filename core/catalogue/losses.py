"""The registry of losses: one entry for each loss. Everything that lists losses reads it."""

from __future__ import annotations

from core.catalogue.loss_entry import (
    CONTRAST,
    NORMALIZE,
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


CROSS_ENTROPY = LossEntry(
    name="cross_entropy",
    label=N_("Cross-entropy"),
    symbol="CE",
    latex=r"\text{CE}=-\log p_\theta(y_i\mid x_i)",
    summary=N_("The standard fine-tuning loss, with optional label smoothing, additive margin or Mixup."),
    source=N_(
        "Label smoothing: Szegedy et al. 2016, arXiv:1512.00567; additive margin: "
        "Wang et al. 2018 (AM-Softmax), arXiv:1801.05599; Mixup of vectors: Zhang et al. 2018, arXiv:1710.09412"
    ),
    reads="logits",
    views=(1, None),
    parameters=(
        Parameter(
            "label_smoothing",
            N_("Label smoothing ε"),
            0.0,
            N_("Fraction of the target that is spread evenly over all classes."),
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
            N_(
                "Subtracted from the true class's logit before the softmax, so that it must exceed the others by "
                "this much."
            ),
            low=0.0,
            high=100.0,
            slider=(0.0, 5.0),
            knob=True,
        ),
        Parameter(
            "mixup",
            N_("Mixup a"),
            0.0,
            N_("Above 0, pairs of pooled vectors and their labels are mixed with a fraction drawn from Beta(a, a)."),
            low=0.0,
            high=100.0,
            slider=(0.0, 2.0),
        ),
    ),
    others_compute=N_("L-Softmax (Liu et al. 2016, arXiv:1612.02295) multiplies the angle instead, with the same aim."),
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
            N_(
                "L_out averages the logarithms over the positives, L_in takes the logarithm of their mean. L_in is "
                "never larger."
            ),
            kind="choice",
            choices={"out": "L_out", "in": "L_in"},
        ),
        NORMALIZE,
        *CONTRAST,
        *QUEUE,
    ),
    others_compute=N_(
        "HobbitLong's code multiplies by τ/0.07 and Google's by τ. pytorch-metric-learning averages over the "
        "anchors with a positive loss and returns 0 for a batch of one class. Gunel et al. sum over anchors, so "
        "their λ depends on the batch size. Here the loss is the mean over anchors that have a positive."
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
    summary=N_("Weights a text's own other view and the other texts of its class separately."),
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
                "α has other meanings in R-Drop, DSCL and the notes. Here it is the weight of the text's own other "
                "view; the other texts of its class share 1 − α."
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
            N_(
                "Gives the own view the weight of any other positive, α = (V − 1)/(|P| + V − 1) per anchor, which "
                "equals L_out."
            ),
            kind="switch",
        ),
        temperature_parameter(0.07),
        NORMALIZE,
        *(p for p in CONTRAST if p.name not in ("k", "clusters")),
    ),
    latex_notes={"uniform": r"\alpha\;\to\;\frac{V-1}{|P(i)|+V-1}"},
    others_compute=N_(
        "Support for more than two views is our extension: the own view becomes the mean over the own views. The "
        "released code corresponds to α = 1/(1 + β). A common variant multiplies logits by (1 − α)|P|/(|P| − 1); "
        "it depends on a constant shift, can be negative, and is not DSCL."
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
    summary=N_("Two views of a text attract each other and repel all other texts. Labels are not used."),
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
                "Vectors that compete with the other view: the second views of the batch, as in SimCSE, or all "
                "other vectors in both directions, as in NT-Xent (SimCLR, ConSERT)."
            ),
            kind="choice",
            choices={"second": N_("Second views"), "all": N_("All other vectors")},
        ),
        Parameter(
            "symmetric",
            N_("Both directions"),
            False,
            N_("Also matches the second view to the first and averages both losses."),
            kind="switch",
        ),
        Parameter(
            "label_filter",
            N_("Leave out same-label texts"),
            False,
            N_(
                "Leaves the other texts of the anchor's label out of its candidates, so that contrast does not push "
                "them away. This reads the labels."
            ),
            kind="switch",
        ),
        NORMALIZE,
        *(p for p in CONTRAST if p.name not in ("k", "clusters")),
    ),
    others_compute=N_(
        "NT-Xent (SimCLR, ConSERT) uses all 2N − 1 other vectors as candidates; SimCSE uses only the N second views."
    ),
    latex_notes={
        "candidates": r"\sum_j\;\to\;\text{{words}}",
        "symmetric": r"z\;\leftrightarrow\;z'\quad\text{{words}}",
        "label_filter": r"\sum_j\;\to\;\sum_{j=i\text{ or }y_j\ne y_i}",
    },
    latex_words={
        # The number is set in math mode.
        "candidates": lambda: _("all {number} other vectors, both directions", number=r"} 2N-1 \text{"),
        "symmetric": lambda: _("both directions, averaged"),
    },
    place=3,
    colour="#56b4e9",
    compute="core.losses.simcse:simcse_term",
    lines="core.losses.simcse:simcse_lines",
    forces=Forces(
        "core.losses.simcse:simcse_anchor_losses",
        second_views=lambda settings: settings["candidates"] == "second",
        symbol=lambda settings: "NT-Xent" if settings["candidates"] == "all" else "SimCSE",
        name=lambda label, settings: (
            _("{loss} (NT-Xent, all other vectors)", loss=label) if settings["candidates"] == "all" else label
        ),
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
    summary=N_("A premise attracts the sentence it entails and repels its contradiction. The task must have both."),
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
    summary=N_("Cross-entropy under two dropout masks, whose predictions should agree."),
    source="Liang et al. 2021, arXiv:2106.14448",
    reads="logits",
    views=(2, 2),
    parameters=(
        Parameter(
            "alpha",
            N_("Agreement α"),
            1.0,
            N_(
                "α has other meanings in R-Drop, DSCL and the notes. Here it is the weight of the symmetric KL "
                "divergence."
            ),
            low=0.0,
            high=100.0,
            slider=(0.0, 10.0),
            knob=True,
        ),
    ),
    others_compute=N_(
        "The paper's loss is twice ours with α halved; bojone's code is ours with α halved, so its α = 4 is our 2. "
        "One public RoBERTa script never adds the second cross-entropy."
    ),
    place=5,
    first_view="head_dropout",
    colour="#d55e00",
    pieces={"ce": N_("its CE"), "kl": N_("its KL")},
    compute="core.losses.rdrop:rdrop_term",
)

SINCERE = LossEntry(
    name="sincere",
    label=N_("SINCERE and ε-SupInfoNCE"),
    symbol="SINCERE",
    latex=(
        r"\text{SINCERE}=-\frac{1}{|P(i)|}\sum_{p\in P(i)}\log\frac{e^{z_i\cdot z_p/{temperature}}}"
        r"{e^{z_i\cdot z_p/{temperature}}+\sum_{n:\,y_n\ne y_i}e^{z_i\cdot z_n/{temperature}}}"
    ),
    summary=N_("Like SCL, but texts of one class never repel each other: each competes with the other classes only."),
    source="Feeney & Hughes 2023 (SINCERE), arXiv:2309.14277; Barbano et al. 2023 (ε-SupInfoNCE), arXiv:2211.05568",
    reads="vectors",
    views=(1, None),
    levels=("sentence", "logits"),
    parameters=(
        temperature_parameter(0.3),
        Parameter(
            "epsilon",
            N_("Margin ε"),
            0.0,
            N_(
                "Above 0, ε-SupInfoNCE: the loss keeps falling until each positive is more similar than every negative "
                "by about ε·τ."
            ),
            low=0.0,
            high=100.0,
            slider=(0.0, 2.0),
            knob=True,
        ),
        *(p for p in CONTRAST if p.name not in ("k", "clusters")),
    ),
    latex_notes={"epsilon": r"e^{z_i\cdot z_p/\tau}+\sum_n\;\to\;e^{z_i\cdot z_p/\tau-{epsilon}}+\sum_n"},
    others_compute=N_(
        "The released code of ε-SupInfoNCE also counts anchors without a positive, as 0. Here, as in SINCERE, the loss "
        "is the mean over anchors that have a positive."
    ),
    place=6,
    colour="#8c6d31",
    compute="core.losses.sincere:sincere_term",
    lines="core.losses.sincere:sincere_lines",
    forces=Forces("core.losses.sincere:sincere_anchor_losses", softmax=False),
)

DCL = LossEntry(
    name="dcl",
    label=N_("Decoupled contrastive"),
    symbol="DCL",
    latex=(
        r"\text{DCL}=-\,z_i\cdot z_i'/{temperature}+\log\sum_{j\ne i}"
        r"\big(e^{z_i\cdot z_j/{temperature}}+e^{z_i\cdot z_j'/{temperature}}\big)"
    ),
    summary=N_("NT-Xent without the positive pair in the denominator, so that easy positives still pull."),
    source="Yeh et al. 2022, eq. 6, arXiv:2110.06848",
    reads="vectors",
    views=(2, 2),
    levels=("sentence", "logits"),
    uses_labels=False,
    parameters=(temperature_parameter(0.1), *(p for p in CONTRAST if p.name not in ("k", "clusters"))),
    others_compute=N_(
        "The weighted form (DCLW) is left out. Public code adds the losses of both directions; here they are averaged."
    ),
    place=7,
    colour="#6b6ecf",
    compute="core.losses.dcl:dcl_term",
    lines="core.losses.dcl:dcl_lines",
    forces=Forces("core.losses.dcl:dcl_anchor_losses", softmax=False),
)

# Other packages add losses with `LOSSES.register`.
LOSSES: Registry[LossEntry] = Registry(
    "loss", (CROSS_ENTROPY, SUPCON, DSCL, SIMCSE, SIMCSE_SUPERVISED, RDROP, SINCERE, DCL)
)
