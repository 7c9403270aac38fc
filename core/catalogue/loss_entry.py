"""Registry entry of a loss: label, inputs, settings, equation, colour, and the functions that compute it.

Functions that need torch are named by their paths, such as "core.losses.supcon:supcon_term".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from core.messages import N_, _, with_more
from core.parameters import AUTO, Parameter, Value, number

Level = Literal["sentence", "token", "logits"]
Settings = Mapping[str, Value]


class Forces(NamedTuple):
    """Properties of a loss that the force view and the loss lab need.

    Attributes:
        anchor_losses: path of the function (Candidates, settings) → the losses of A anchors that have a positive, [A].
        second_views: whether an anchor's candidates are the second views of all texts rather than all other vectors.
        softmax: whether a coefficient is (p − X)/τ, with p the softmax over all candidates and X 0 for negatives.
        symbol: returns the short name under given settings, if it may differ from that of the loss.
        name: returns the name from the translated label and the settings, if it depends on more than the variant.
    """

    anchor_losses: str
    second_views: Callable[[Settings], bool] = lambda settings: False
    softmax: bool = True
    symbol: Callable[[Settings], str] | None = None
    name: Callable[[str, Settings], str] | None = None


@dataclass(frozen=True, slots=True)
class LossEntry:
    """A loss as forms, the planner and the training loop use it. Its texts are marked with `N_`.

    Attributes:
        symbol, latex: its short name, and its equation with `{name}` for a parameter's value.
        latex_variants: the equation for each value of its parameter "variant", if it has one.
        latex_notes: further lines, each shown if the parameter that it explains is not at its default.
        latex_words: the translated text for `{words}` in the note of a parameter, by its value.
        reads: "logits" of the classifier, "vectors" that are contrasted within a batch, "triplets" of vectors, or
            pairs of vectors with similarity "scores".
        views: minimum and maximum number of views of a text (None: no maximum).
        first_view: the view that a form adds first if the loss needs one.
        levels: the levels that it can contrast; empty for a loss on logits.
        uses_labels: whether positives are rows with the same label.
        extras: whether its parameters are additions that are off by default.
        colour: colour of its curve.
        pieces: labels of its pieces, shown after its symbol, by name.
        compute: path of the function (TermInput, labels [N], settings) → its value in nats, or (value, pieces by name).
            The labels of a loss that reads scores are the scores, from 0 to 1.
        lines: path of the function of the same arguments → ReferenceLines; "" for a loss on logits.
        forces: None if texts do not act on each other, or if a frame lacks what their forces need.
        lab: names under which the loss lab offers it, each with the settings that it fixes. None: its own name, if it
            has forces and needs at most two views.
        others_compute: differences from other implementations; "" for none.
    """

    name: str
    label: str
    symbol: str
    latex: str
    summary: str
    source: str
    reads: Literal["logits", "vectors", "triplets", "scores"]
    colour: str
    compute: str
    lines: str = ""
    forces: Forces | None = None
    views: tuple[int, int | None] = (1, 1)
    lab: Mapping[str, Settings] | None = None
    first_view: str = "dropout"
    levels: tuple[Level, ...] = ()
    uses_labels: bool = True
    extras: bool = False
    parameters: tuple[Parameter, ...] = ()
    pieces: Mapping[str, str] = field(default_factory=dict)
    others_compute: str = ""
    latex_variants: Mapping[str, str] = field(default_factory=dict)
    latex_notes: Mapping[str, str] = field(default_factory=dict)
    latex_words: Mapping[str, Callable[[Value], str]] = field(default_factory=dict)

    @property
    def defaults(self) -> Settings:
        return {parameter.name: parameter.default for parameter in self.parameters if parameter.default is not None}

    @property
    def variants(self) -> Mapping[Any, str]:
        """Labels of the values of its parameter "variant"; empty without one."""
        return next((p.choices or {} for p in self.parameters if p.name == "variant"), {})

    @property
    def contrastive(self) -> bool:
        """True if the loss compares the vectors of a batch with each other."""
        return self.reads != "logits"


@dataclass(frozen=True, slots=True)
class ForceLaw:
    """A loss over a batch in which one vector represents all views of its text.

    Attributes:
        entry: entry of a loss that has forces.
        settings: values of all its parameters.
        views: number of views that a vector represents, at least as many as the loss takes.
    """

    entry: LossEntry
    settings: Settings
    views: int = 1

    @property
    def forces(self) -> Forces:
        assert self.entry.forces is not None
        return self.entry.forces

    @property
    def temperature(self) -> float | None:
        """τ, if the loss has one."""
        return number(self.settings, "temperature") if "temperature" in self.settings else None

    @property
    def normalize(self) -> bool:
        """True if vectors are compared by cosine, False if by dot product without normalisation."""
        return bool(self.settings.get("normalize", True))

    @property
    def second_views(self) -> bool:
        return self.forces.second_views(self.settings)

    @property
    def variants(self) -> tuple[ForceLaw, ...]:
        """This law, then those that differ from it only in the variant of the loss."""
        own = self.settings.get("variant")
        others = [name for name in self.entry.variants if name != own]
        return (self, *(replace(self, settings={**self.settings, "variant": name}) for name in others))

    @property
    def symbol(self) -> str:
        """The short name, such as L_out."""
        if self.forces.symbol is not None:
            return self.forces.symbol(self.settings)
        return self.entry.variants.get(self.settings.get("variant"), self.entry.symbol)

    @property
    def name(self) -> str:
        label = _(self.entry.label)
        if self.forces.name is not None:
            return self.forces.name(label, self.settings)
        return with_more(label, self.symbol) if self.entry.variants else label


class PushSpread(NamedTuple):
    """The distribution of the push over the negatives, averaged over the anchors that at least one negative pushes.

    Attributes:
        losses: nats, mean over anchors that have a positive, in the order of the law's `variants`.
        entropy: of p over the candidate texts, nats; ln(N − 1) if all have equal weight and a single view. NaN without
            a softmax.
        effective_negatives: exp of the entropy of the negatives' shares of the push, from 1 to their number.
        top_share: share of the push from the strongest 5 % of the negatives, at least one.
    """

    losses: tuple[float, ...]
    entropy: float
    effective_negatives: float
    top_share: float


def base_factor(settings: Settings) -> float:
    """Return the factor τ/τ₀ of a loss; 1 without a base temperature."""
    base = number(settings, "base_temperature")
    return number(settings, "temperature") / base if base else 1.0


def temperature_parameter(default: float) -> Parameter:
    return Parameter(
        "temperature",
        N_("Temperature τ"),
        default,
        N_(
            "Divides every similarity before the softmax. Low values concentrate the push on the hardest "
            "negatives; high values push all negatives about equally. See *Forces* on Explore."
        ),
        low=0.0,
        high=100.0,
        above=True,
        slider=(0.01, 1.0),
        knob=True,
    )


NORMALIZE = Parameter(
    "normalize",
    N_("Normalised vectors"),
    True,
    N_("Without normalisation, dot products grow with the vectors and gradients can explode."),
    kind="switch",
)
BASE_TEMPERATURE = Parameter(
    "base_temperature",
    N_("Base temperature τ₀"),
    0.0,
    N_(
        "Multiplies the loss by τ/τ₀, so that the size of its gradient depends less on τ; 0 for no factor. "
        "HobbitLong's code and the project's notes use 0.07."
    ),
    low=0.0,
    high=100.0,
    words={0.0: N_("No factor")},
    slider=(0.0, 1.0),
)
# Parameters that all losses on vectors share.
CONTRAST = (
    Parameter(
        "level",
        N_("Level"),
        "sentence",
        N_(
            "Vectors to contrast: the pooled vector of a text, its tokens with the highest [CLS] attention, or the "
            "classifier's output."
        ),
        kind="choice",
        choices={"sentence": N_("Sentence"), "token": N_("Token"), "logits": N_("Logits")},
    ),
    Parameter(
        "layers",
        N_("Layers"),
        "last",
        N_(
            "Blocks whose output is contrasted: one loss per block, averaged. Layers are numbered from 1, the first "
            "block; 0 is the embeddings."
        ),
        kind="layers",
    ),
    Parameter(
        "k",
        N_("Tokens k"),
        30,
        N_(
            "At token level: number of tokens per text, chosen by [CLS] attention. If a text has at most k words, all "
            "of them are used."
        ),
        kind="integer",
        low=1,
        high=512,
        slider=(1, 120),
        automatic=N_("A third of a text's tokens"),
    ),
    Parameter(
        "clusters",
        N_("Clusters"),
        0,
        N_(
            "At token level: groups the k tokens by K-means into this many clusters and uses their means; 0 uses "
            "every token."
        ),
        kind="integer",
        low=0,
        high=64,
        slider=(0, 30),
    ),
    Parameter(
        "projection",
        N_("Projection head"),
        "none",
        N_(
            "Layers between encoder and loss, 128 wide, discarded after training. SimCSE trains with an MLP; "
            "SCL, DSCL and the project's notes use none."
        ),
        kind="choice",
        choices={"none": N_("None"), "linear": N_("Linear"), "mlp": "MLP"},
    ),
    Parameter(
        "original",
        N_("Include the text itself"),
        True,
        N_("Counts the unchanged text as one of the views. CERT contrasts two back-translations without it."),
        kind="switch",
    ),
)

QUEUE = (
    Parameter(
        "queue",
        N_("Queue"),
        0,
        N_(
            "Number of past vectors, from a momentum encoder, that serve as further candidates; 0 for none. 1,024 "
            "works well here; MoCo used 65,536."
        ),
        kind="integer",
        low=0,
        high=65_536,
        slider=(0, 4096),
    ),
    Parameter(
        "momentum",
        N_("Queue momentum"),
        AUTO,
        N_(
            "Fraction m of the momentum encoder that stays at each step; higher values follow the encoder more "
            "slowly. Automatic adapts m to the number of steps, so that it also learns in a short run; MoCo's "
            "0.999 suits thousands of steps."
        ),
        low=0.0,
        high=1.0,
        below=True,
        slider=(0.9, 0.9999),
        automatic=N_("Automatic"),
    ),
)
