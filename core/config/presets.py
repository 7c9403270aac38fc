"""Named objectives from papers and notes."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from core.catalogue.losses import LOSSES
from core.config.sections import OptimiserConfig
from core.errors import ConfigError
from core.messages import N_, Message
from core.parameters import AUTO

JSON = dict[str, Any]
# A maximum that no finite gradient of a demonstration reaches before its loss overflows.
UNCLIPPED = 1e12
# A classifier alone needs far larger rates than the encoder of the previous phase.
OWN_RATES: JSON = {"learning_rate": None, "classifier_learning_rate": None}

GUNEL = "Gunel et al. 2021, arXiv:2011.01403"
SIMCSE = "Gao et al. 2021, arXiv:2104.08821"
NOTES = N_("unpublished experiments on IMDb with DeBERTa-v3-base")
DROPOUT_NOTES = N_("the project's notes on dropout contrast")

BASELINES, SUPERVISED, AGREEMENT = N_("Baseline"), N_("Supervised contrast"), N_("Agreement")
UNSUPERVISED, TOKENS, SHOWING = N_("Contrast without labels"), N_("Tokens and layers"), N_("Demonstrations")
SIMILARITY = N_("Similarity scores")
GROUPS = (BASELINES, SUPERVISED, AGREEMENT, UNSUPERVISED, SIMILARITY, TOKENS, SHOWING)


@dataclass(frozen=True, slots=True)
class Preset:
    """A named objective, or two in sequence. Its texts are marked with `N_`.

    Attributes:
        group: one of GROUPS; lists are sorted by group.
        objectives: one per phase, in the JSON form of ObjectiveConfig; the phases share the steps equally.
        parts: weights that learn in each phase, at their default rates, if the paper specifies them; None keeps the
            setting.
        optimiser: settings of the optimiser in which a demonstration differs from the defaults.
        dropout: dropout rate of the encoder, if the source specifies it; None keeps the setting.
    """

    name: str
    label: str
    group: str
    summary: str
    source: str
    objectives: tuple[JSON, ...]
    parts: tuple[str | None, ...] = (None, None)
    optimiser: Mapping[str, Any] = field(default_factory=dict)
    dropout: float | None = None

    def phases(self, phase: JSON) -> list[JSON]:
        """Return one phase per objective, each with an equal share of the steps or epochs.

        Args:
            phase: JSON form of a PhaseConfig; its steps or epochs, if given, are those of the whole run.
        Returns: phases that share no objects, so that each can be changed alone.
        Raises: ConfigError for fewer steps than phases.
        """
        made = [deepcopy(phase | {"objective": objective}) for objective in self.objectives]
        usual = OptimiserConfig().model_dump(mode="json")
        for one in made if self.optimiser else ():
            given = one.get("optimiser", {})
            chosen = {name: value for name, value in given.items() if value != usual[name]}
            one["optimiser"] = {**given, **self.optimiser, **chosen}
        for one, part in zip(made, self.parts, strict=False):
            if part is not None:
                one["trainable"] = {**one.get("trainable", {}), "part": part}
                one["optimiser"] = one.get("optimiser", {}) | OWN_RATES
        for later in made[1:]:
            if later.get("trainable", {}).get("reinitialised_blocks"):  # drawn once, before the first phase
                later["trainable"]["reinitialised_blocks"] = 0
        steps, epochs = phase.get("steps"), phase.get("epochs")
        if len(made) == 1:
            return made
        if steps is not None and steps < len(made):
            raise ConfigError(
                "steps",
                steps,
                "{preset} has {count} phases; give at least one step each.",
                preset=Message(self.label),
                count=len(made),
            )
        if epochs is not None and epochs <= 0:
            raise ConfigError("epochs", epochs, "give a number above 0.")
        for number, one in enumerate(made):
            if epochs is not None:
                one["epochs"] = epochs / len(made)
            if steps is not None:
                one["steps"] = round(steps * (number + 1) / len(made)) - round(steps * number / len(made))
        return made


def _objective(*terms: JSON, combine: str = "additive") -> JSON:
    """Return an objective with contrastive terms first: `objective.terms.0` is the term that users tune."""
    return {"terms": sorted(terms, key=lambda term: not LOSSES.entry(term["loss"]).contrastive), "combine": combine}


def _ce(weight: float = 1.0, **settings: Any) -> JSON:
    return {"loss": "cross_entropy", "weight": weight, **settings}


def _scl(weight: float, temperature: float = 0.3, **settings: Any) -> JSON:
    return {"loss": "supcon", "weight": weight, "temperature": temperature, **settings}


def _views(*names: str) -> list[JSON]:
    return [{"view": name} for name in names]


CLASSIFIER = _objective(_ce())


def _dropout_contrast(**settings: Any) -> tuple[JSON, ...]:
    """Return CE and SimCSE over two dropout passes."""
    views = _views("dropout")
    return (_objective(_ce(views=views), {"loss": "simcse", **settings, "views": views}),)


# The script of the notes multiplies cosines by 30. Each of the 2N vectors has the 2N − 1 others as candidates.
SCRIPT: JSON = {"weight": 1.0, "temperature": 1 / 30, "candidates": "all"}
SCRIPT_DROPOUT = 0.3


def _cert(*views: JSON) -> JSON:
    return _objective(
        {"loss": "simcse", "temperature": 0.07, "symmetric": True, "original": False, "views": list(views)}
    )


def _back_translation(language: str) -> JSON:
    return {
        "view": "back_translation",
        "forward": f"Helsinki-NLP/opus-mt-en-{language}",
        "backward": f"Helsinki-NLP/opus-mt-{language}-en",
    }


_ALL = (
    Preset(
        "ce", "CE", BASELINES, N_("Cross-entropy alone: the baseline."), N_("standard fine-tuning loss"), (CLASSIFIER,)
    ),
    Preset(
        "ce-scl",
        "CE + SCL",
        SUPERVISED,
        N_(
            "Cross-entropy and a loss that pulls texts of one class together. Gunel et al.'s best setting in most "
            "tasks: λ 0.9, τ 0.3."
        ),
        GUNEL,
        (_objective(_ce(0.1), _scl(0.9), combine="convex"),),
    ),
    Preset(
        "rdrop-one-stage",
        N_("R-Drop, one stage"),
        AGREEMENT,
        N_("One encoder pass. The classifier's predictions under two dropout masks should agree."),
        N_("Liang et al. 2021, arXiv:2106.14448; one stage: unpublished experiments on IMDb with DeBERTa-v3-base"),
        (_objective({"loss": "rdrop", "views": _views("head_dropout")}),),
    ),
    Preset(
        "rdrop-two-stage",
        N_("R-Drop, two stages"),
        AGREEMENT,
        N_("The encoder reads every text twice, and both predictions should agree."),
        "Liang et al. 2021, arXiv:2106.14448",
        (_objective({"loss": "rdrop", "views": _views("dropout")}),),
    ),
    Preset(
        "multi-view-scl",
        N_("Multi-view SCL"),
        SUPERVISED,
        N_(
            "Two dropout masks of the pooled vector and the vectors of other layers are all views in one "
            "contrastive loss."
        ),
        NOTES,
        (_objective(_ce(), _scl(0.5, views=_views("head_dropout", "layers"))),),
    ),
    Preset(
        "token-scl",
        N_("Token-level SCL"),
        TOKENS,
        N_("A text is represented by the k tokens with the highest [CLS] attention; λ is the contrastive weight."),
        N_("unpublished experiments on IMDb with DeBERTa-v3-base; they use k = 30, 60 or 90 and α = 0.2 or 0.5"),
        (_objective(_ce(), _scl(0.2, level="token", k=AUTO)),),
    ),
    Preset(
        "clustered-tokens",
        N_("Clustered tokens"),
        TOKENS,
        N_("The k tokens with the highest [CLS] attention, grouped by K-means; each cluster is one view."),
        N_("unpublished experiments on IMDb with DeBERTa-v3-base; they use k = 90, α = 0.25 and 5, 10 or 15 clusters"),
        (_objective(_ce(), _scl(0.25, level="token", k=AUTO, clusters=5)),),
    ),
    Preset(
        "multi-layer-sentence",
        N_("Multi-layer, sentences"),
        TOKENS,
        N_("One contrastive loss per layer, over the last third of the layers, on the pooled vectors."),
        NOTES,
        (_objective(_ce(), _scl(0.2, layers="last_third")),),
    ),
    Preset(
        "multi-layer-token",
        N_("Multi-layer, tokens"),
        TOKENS,
        N_("One contrastive loss per layer, over the last third of the layers, on the top tokens."),
        NOTES,
        (_objective(_ce(), _scl(0.2, level="token", k=AUTO, layers="last_third")),),
    ),
    Preset(
        "dropout-nt-xent-encoder",
        N_("Dropout contrast, encoder output"),
        UNSUPERVISED,
        N_(
            "CE over two dropout passes, and NT-Xent between their pooled vectors, with the settings of the "
            "script in the project's notes. The notes report gains of at most 0.5."
        ),
        DROPOUT_NOTES,
        _dropout_contrast(**SCRIPT),
        dropout=SCRIPT_DROPOUT,
    ),
    Preset(
        "dropout-nt-xent-logits",
        N_("Dropout contrast, logits"),
        UNSUPERVISED,
        N_(
            "CE over two dropout passes, and NT-Xent between their logits, so no dense layer follows the "
            "contrast. The project's notes report some gain, far below that of R-Drop."
        ),
        DROPOUT_NOTES,
        _dropout_contrast(**SCRIPT, level="logits"),
        dropout=SCRIPT_DROPOUT,
    ),
    Preset(
        "dscl",
        "DSCL",
        SUPERVISED,
        N_("CE, and a contrastive loss that weighs a text's second view separately from its class."),
        N_("Xuan & Zhang, AAAI 2024; the weight of 0.9 is our choice"),
        (_objective(_ce(0.1), {"loss": "dscl", "weight": 0.9, "views": _views("dropout")}, combine="convex"),),
    ),
    Preset(
        "scl-classifier",
        N_("SCL, then classifier"),
        SUPERVISED,
        N_("The contrastive loss trains the encoder; then a classifier is trained on the frozen encoder."),
        "Khosla et al. 2020, arXiv:2004.11362",
        (_objective(_scl(1.0, 0.1)), CLASSIFIER),
        parts=(None, "classifier"),
    ),
    Preset(
        "simcse",
        N_("SimCSE, then classifier"),
        UNSUPERVISED,
        N_("Two dropout passes of a text attract each other, without labels; then the classifier is trained."),
        SIMCSE,
        (_objective({"loss": "simcse", "views": _views("dropout")}), CLASSIFIER),
    ),
    Preset(
        "simcse-supervised",
        N_("Supervised SimCSE, then classifier"),
        SUPERVISED,
        N_("Premises attract the sentences they entail and repel those that contradict them; the task must be NLI."),
        SIMCSE,
        (_objective({"loss": "simcse_supervised"}), CLASSIFIER),
    ),
    Preset(
        "consert",
        N_("ConSERT, then classifier"),
        UNSUPERVISED,
        N_(
            "Token shuffle against feature cut-off, with all other vectors as negatives and no labels; then the "
            "classifier is trained."
        ),
        "Yan et al. 2021, arXiv:2105.11741",
        (
            _objective(
                {
                    "loss": "simcse",
                    "temperature": 0.1,
                    "candidates": "all",
                    "original": False,
                    "views": _views("token_shuffle", "feature_cutoff"),
                }
            ),
            CLASSIFIER,
        ),
    ),
    Preset(
        "cert",
        N_("CERT, then classifier"),
        UNSUPERVISED,
        N_("Two back-translations of a text attract each other, without labels; then the classifier is trained."),
        "Fang et al. 2020, arXiv:2005.12766",
        (_cert(_back_translation("de"), _back_translation("zh")), CLASSIFIER),
    ),
    Preset(
        "cert-paraphrases",
        N_("CERT with paraphrases, then classifier"),
        UNSUPERVISED,
        N_(
            "Two bundled paraphrases of a text take the place of back-translations, so no translation model is needed. "
            "The task must be film reviews or natural language inference."
        ),
        N_("Fang et al. 2020, arXiv:2005.12766; the paraphrases were written for this project"),
        (_cert(*({"view": "paraphrase", "strength": strength} for strength in ("weak", "strong"))), CLASSIFIER),
    ),
    Preset(
        "simcse-alone",
        N_("SimCSE alone"),
        UNSUPERVISED,
        N_("Two dropout passes of a text attract each other, without labels; no classifier is trained."),
        SIMCSE,
        (_objective({"loss": "simcse", "views": _views("dropout")}),),
    ),
    Preset(
        "cosent",
        "CoSENT",
        SIMILARITY,
        N_("Orders the cosines of pairs as their similarity scores; the task must have scores, such as STS-B."),
        "Su Jianlin 2022, https://kexue.fm/archives/8847",
        (_objective({"loss": "cosent"}),),
    ),
    Preset(
        "cosine-mse",
        N_("Cosine MSE"),
        SIMILARITY,
        N_("Fits the cosine of a pair to its similarity score; the task must have scores, such as STS-B."),
        "Reimers & Gurevych 2019, arXiv:1908.10084",
        (_objective({"loss": "cosine_mse"}),),
    ),
    Preset(
        "label-smoothing",
        N_("Label smoothing"),
        BASELINES,
        N_("A tenth of the target is spread over all classes."),
        "Szegedy et al. 2016, arXiv:1512.00567",
        (_objective(_ce(label_smoothing=0.1)),),
    ),
    Preset(
        "margin",
        N_("Margin"),
        BASELINES,
        N_("The true class must win by a margin."),
        "Wang et al. 2018 (AM-Softmax), arXiv:1801.05599",
        (_objective(_ce(margin=0.5)),),
    ),
    Preset(
        "mixup",
        "Mixup",
        BASELINES,
        N_("Mixes pairs of pooled vectors and their labels."),
        "Zhang et al. 2018, arXiv:1710.09412",
        (_objective(_ce(mixup=0.2)),),
    ),
    Preset(
        "collapse",
        N_("Collapse"),
        SHOWING,
        N_(
            "CE + SCL at thirty times the default learning rate: all texts collapse to one point, and the loss "
            "stays at its collapse line, which is its value for identical vectors."
        ),
        N_("made for this project"),
        (_objective(_ce(0.1), _scl(0.9), combine="convex"),),
        optimiser={"learning_rate": 3e-3, "classifier_learning_rate": 1.5e-2},
    ),
    Preset(
        "explosion",
        N_("Exploding gradient"),
        SHOWING,
        N_(
            "CE + SCL on vectors that are not normalised, with SGD and without clipping: each step lengthens the "
            "vectors, which makes the next gradient larger, until the loss is no longer finite and the run ends."
        ),
        NOTES,
        (_objective(_ce(0.1), _scl(0.9, 0.07, normalize=False), combine="convex"),),
        optimiser={
            "name": "sgd",
            "learning_rate": 0.1,
            "classifier_learning_rate": 0.1,
            "max_gradient_norm": UNCLIPPED,
        },
    ),
    Preset(
        "hard-negatives",
        N_("Hard negatives"),
        SHOWING,
        N_("CE + SCL at τ 0.05: the nearest texts of other classes push hardest, as Forces on Explore shows."),
        N_("made for this project; Wang & Liu 2021, arXiv:2012.09740, on τ and hard negatives"),
        (_objective(_ce(0.1), _scl(0.9, 0.05), combine="convex"),),
    ),
)

PRESETS: Mapping[str, Preset] = {
    preset.name: preset for preset in sorted(_ALL, key=lambda preset: GROUPS.index(preset.group))
}

# Presets of earlier versions that links and experiments may name. They are not listed.
EARLIER: Mapping[str, Preset] = {
    name: replace(PRESETS[now], name=name, objectives=_dropout_contrast(weight=0.5, **level), dropout=None)
    for name, now, level in (
        ("dropout-contrast-encoder", "dropout-nt-xent-encoder", {}),
        ("dropout-contrast-logits", "dropout-nt-xent-logits", {"level": "logits"}),
    )
}


def preset(name: object) -> Preset:
    """Return the preset of this name, also of an earlier version. Raises: ConfigError naming the presets."""
    known = {**PRESETS, **EARLIER}
    if not isinstance(name, str) or name not in known:
        raise ConfigError("preset", name, "choose one of {names}.", names=tuple(PRESETS))
    return known[name]
