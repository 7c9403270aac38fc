"""The registry of losses: one entry for each loss. Everything that lists losses reads it."""

from __future__ import annotations

from core.catalogue.loss_entry import (
    BASE_TEMPERATURE,
    CONTRAST,
    NORMALIZE,
    QUEUE,
    Forces,
    LossEntry,
    Settings,
    temperature_parameter,
)
from core.messages import N_, _, with_more
from core.parameters import Parameter, number
from core.registry import Registry


def _dscl_symbol(settings: Settings) -> str:
    variant = str(settings["variant"])
    return "DSCL" if variant == "paper" else with_more("DSCL", _(DSCL.variants[variant]).lower())


def _dscl_name(label: str, settings: Settings) -> str:
    if settings["variant"] != "paper":
        return with_more(label, _dscl_symbol(settings))
    if settings["uniform"]:
        return _("{loss} (DSCL), uniform α", loss=label)
    return _("{loss} (DSCL), α {alpha:g}", loss=label, alpha=number(settings, "alpha"))


CROSS_ENTROPY = LossEntry(
    name="cross_entropy",
    label=N_("Cross-entropy"),
    symbol="CE",
    latex=r"\text{CE}=-\log p_\theta(y_i\mid x_i)",
    summary=N_("The standard fine-tuning loss, with optional label smoothing, margins, Mixup or CutMix."),
    source=N_(
        "Label smoothing: Szegedy et al. 2016, arXiv:1512.00567; additive margin: "
        "Wang et al. 2018 (AM-Softmax), arXiv:1801.05599; angle margin: Liu et al. 2016 (L-Softmax), "
        "arXiv:1612.02295; Mixup of vectors: Zhang et al. 2018, arXiv:1710.09412; "
        "CutMix of tokens: Yun et al. 2019, arXiv:1905.04899"
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
            "angle_margin",
            N_("Angle margin m"),
            1,
            N_(
                "L-Softmax: the angle between a text and its class vector counts m times, so that it must lie well "
                "inside its class; 1 is the plain softmax."
            ),
            kind="integer",
            low=1,
            high=4,
            slider=(1, 4),
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
        Parameter(
            "cutmix",
            N_("CutMix a"),
            0.0,
            N_(
                "Above 0, a span of each text's tokens is replaced by a span of another text. The replaced share "
                "is drawn from Beta(a, a) and weights the other text's label. Other terms read the texts unmixed, "
                "in a further pass."
            ),
            low=0.0,
            high=100.0,
            slider=(0.0, 2.0),
        ),
    ),
    others_compute=N_(
        "The L-Softmax paper starts with a large share of the plain logit and lowers it gradually; here the angle "
        "margin acts from the first step on. The bias of the class is kept."
    ),
    latex_notes={
        "label_smoothing": r"y\;\to\;(1-{label_smoothing})\,y+{label_smoothing}/C",
        "margin": r"\mathrm{logit}_{y_i}\;\to\;\mathrm{logit}_{y_i}-{margin}",
        "angle_margin": r"\cos\theta_{y_i}\;\to\;(-1)^k\cos({angle_margin}\,\theta_{y_i})-2k",
        "cutmix": r"x_i\;\to\;(x_i^{<s},x_j^{s\ldots e},x_i^{>e}),\quad(e-s+1)/n_i\sim\mathrm{Beta}({cutmix},{cutmix})",
        "mixup": r"h_i\;\to\;s\,h_i+(1-s)\,h_j,\quad s\sim\mathrm{Beta}({mixup},{mixup})",
    },
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
                "never larger, although some texts print the inequality reversed."
            ),
            kind="choice",
            choices={"out": "L_out", "in": "L_in"},
        ),
        Parameter(
            "reduction",
            N_("Reduction"),
            "mean",
            N_(
                "Mean or sum over the anchors of a batch. An anchor without a positive has no loss; in the mean "
                "over all anchors, as in the code of the project's notes, it counts as 0. Gunel et al. sum: at "
                "batch size 16 and λ = 0.9, SCL then outweighs cross-entropy by up to 144 : 1 instead of 9 : 1."
            ),
            kind="choice",
            choices={
                "mean": N_("Mean over anchors with a positive"),
                "mean_all": N_("Mean over all anchors"),
                "sum": N_("Sum"),
            },
        ),
        BASE_TEMPERATURE,
        NORMALIZE,
        *CONTRAST,
        *QUEUE,
    ),
    others_compute=N_(
        "HobbitLong's code and the project's notes multiply by τ/0.07, and Google's by τ. "
        "pytorch-metric-learning averages over the anchors whose loss is above 0 and returns 0 for a batch of "
        "one class. The notes average over all anchors. Gunel et al. sum over anchors, so their λ depends on the "
        "batch size. *Reduction* offers all three; the default is the mean over anchors that have a positive, "
        "without a factor."
    ),
    latex_notes={
        "reduction": r"\text{{words}}",
        "base_temperature": r"\text{SCL}\;\to\;\frac{{temperature}}{{base_temperature}}\,\text{SCL}",
    },
    latex_words={
        "reduction": lambda value: (
            _("sum over the anchors with a positive")
            if value == "sum"
            else _("mean over all anchors, 0 for an anchor without a positive")
        ),
    },
    latex_variants={
        "in": (
            r"\text{SCL}=-\log\Big[\frac{1}{|P(i)|}\sum_{p\in P(i)}"
            r"\frac{e^{z_i\cdot z_p/{temperature}}}{\sum_{a\ne i}e^{z_i\cdot z_a/{temperature}}}\Big]"
        ),
    },
    colour="#009e73",
    compute="core.losses.supcon:supcon_term",
    lines="core.losses.supcon:supcon_lines",
    forces=Forces("core.losses.supcon:supcon_anchor_losses"),
    lab={
        "out": {"variant": "out"},
        "in": {"variant": "in"},
        "sum": {"variant": "out", "reduction": "sum"},
    },
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
                "α has other meanings in R-Drop, DSCL and the project's notes. Here it is the weight of the "
                "text's own other view; the other texts of its class share 1 − α."
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
        Parameter(
            "variant",
            N_("Variant"),
            "paper",
            N_(
                "The project's notes have two other losses under this name. In their formula, α is a constant "
                "shift, so the gradient is that of L_out. In their code, α scales the pull of all positives."
            ),
            kind="choice",
            choices={
                "paper": N_("Paper"),
                "notes-formula": N_("α as a constant shift"),
                "notes-code": N_("α scales the positives"),
            },
        ),
        temperature_parameter(0.07),
        BASE_TEMPERATURE,
        NORMALIZE,
        *(p for p in CONTRAST if p.name not in ("k", "clusters")),
        *QUEUE,
    ),
    latex_notes={
        "uniform": r"\alpha\;\to\;\frac{V-1}{|P(i)|+V-1}",
        "base_temperature": r"\text{DSCL}\;\to\;\frac{{temperature}}{{base_temperature}}\,\text{DSCL}",
    },
    latex_variants={
        "notes-formula": (
            r"\text{DSCL}=-\frac{1}{|P(i)|}\sum_{p\in P(i)}"
            r"\log\frac{w_i\,e^{z_i\cdot z_p/{temperature}}}{\sum_{a\ne i}e^{z_i\cdot z_a/{temperature}}},"
            r"\quad w_i=(1-{alpha})\,\frac{|P(i)|+1}{|P(i)|}"
        ),
        "notes-code": (
            r"\text{DSCL}=-\frac{1}{|P(i)|}\sum_{p\in P(i)}\Big[w_i\,s_{ip}-\log\sum_{a\ne i}e^{s_{ia}}\Big],"
            r"\quad s_{ia}=\frac{z_i\cdot z_a-\max_j z_i\cdot z_j}{{temperature}},"
            r"\quad w_i=(1-{alpha})\,\frac{|P(i)|}{\max(|P(i)|-1,1)}"
        ),
    },
    others_compute=N_(
        "Support for more than two views is our extension: the own view becomes the mean over the own views. The "
        "released code corresponds to α = 1/(1 + β). The formula in the project's notes multiplies p by a weight "
        "inside the logarithm, which changes the value but not the gradient. Their code multiplies the logits of "
        "positives by (1 − α)|P|/(|P| − 1), so its value depends on a constant shift and can be negative. "
        "Neither is the paper's loss; both can be chosen as variants."
    ),
    colour="#cc79a7",
    compute="core.losses.dscl:dscl_term",
    lines="core.losses.dscl:dscl_lines",
    forces=Forces("core.losses.dscl:dscl_anchor_losses", symbol=_dscl_symbol, name=_dscl_name),
    lab={
        "dscl": {"variant": "paper"},
        "dscl-formula": {"variant": "notes-formula"},
        "dscl-code": {"variant": "notes-code"},
    },
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
                "Leaves the other texts of the anchor's label out of its candidates, so that contrast does not "
                "push them away. This uses the labels."
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
        "candidates": lambda _value: _("all {number} other vectors, both directions", number=r"} 2N-1 \text{"),
        "symmetric": lambda _value: _("both directions, averaged"),
    },
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
                "α has other meanings in R-Drop, DSCL and the project's notes. Here it is the weight of the "
                "symmetric KL divergence."
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
    colour="#6b6ecf",
    compute="core.losses.dcl:dcl_term",
    lines="core.losses.dcl:dcl_lines",
    forces=Forces("core.losses.dcl:dcl_anchor_losses", softmax=False),
)

COSENT = LossEntry(
    name="cosent",
    label="CoSENT",
    symbol="CoSENT",
    latex=(
        r"\text{CoSENT}=\log\Big(1+\sum_{y_i>y_j}e^{(c_j-c_i)/{temperature}}\Big),"
        r"\quad c_i=\cos(z_i,z_i')"
    ),
    summary=N_("Pairs with a higher similarity score should have a higher cosine. The task must have scores."),
    source="Su Jianlin 2022, https://kexue.fm/archives/8847",
    reads="scores",
    levels=("sentence",),
    uses_labels=False,
    parameters=(temperature_parameter(0.05), *(p for p in CONTRAST if p.name in ("layers", "projection"))),
    others_compute=N_("sentence-transformers' CoSENTLoss multiplies cosines by a scale of 20, which is τ 0.05."),
    colour="#7f7f7f",
    compute="core.losses.cosent:cosent_term",
    lines="core.losses.cosent:cosent_lines",
)

COSINE_MSE = LossEntry(
    name="cosine_mse",
    label=N_("Cosine MSE"),
    symbol="MSE",
    latex=r"\text{MSE}=(\cos(z_i,z_i')-y_i)^2",
    summary=N_("The cosine of a pair should equal its similarity score, scaled to 0–1. The task must have scores."),
    source="Reimers & Gurevych 2019, arXiv:1908.10084",
    reads="scores",
    levels=("sentence",),
    uses_labels=False,
    parameters=tuple(p for p in CONTRAST if p.name in ("layers", "projection")),
    colour="#a6761d",
    compute="core.losses.cosine_mse:cosine_mse_term",
    lines="core.losses.cosine_mse:cosine_mse_lines",
)

# Other packages add losses with `LOSSES.register`.
LOSSES: Registry[LossEntry] = Registry(
    "loss", (CROSS_ENTROPY, SUPCON, DSCL, SIMCSE, SIMCSE_SUPERVISED, RDROP, SINCERE, DCL, COSENT, COSINE_MSE)
)
