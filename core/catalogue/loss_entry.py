"""What an entry says of a loss: label, what it reads, settings, equation, colour, and the functions that compute it.

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
    """How the force view and the loss lab read a loss.

    Attributes:
        anchor_losses: path of the function (Candidates, settings) → the losses of A anchors that have a positive, [A].
        second_views: whether an anchor's candidates are the second views of all texts, not all other vectors.
        softmax: whether a coefficient is (p − X)/τ, with p the softmax over all candidates and X 0 for negatives.
        symbol: the short name with these settings, where it is not the loss's own.
        name: the name with these settings, from the translated label, where more than a variant changes it.
    """

    anchor_losses: str
    second_views: Callable[[Settings], bool] = lambda settings: False
    softmax: bool = True
    symbol: Callable[[Settings], str] | None = None
    name: Callable[[str, Settings], str] | None = None


@dataclass(frozen=True, slots=True)
class LossEntry:
    """A loss as people, forms, the planner and the training loop see it; its texts are marked with `N_`.

    Attributes:
        place: where it comes in lists.
        symbol, latex: its short name, and its equation with `{name}` where a parameter's value goes.
        latex_variants: the equation by the value of its parameter "variant", where it has one.
        latex_notes: further lines, each shown where the parameter that it explains is not at its default.
        latex_words: what `{words}` stands for in the note of a parameter, translated.
        reads: "logits" of the classifier, "vectors" that are contrasted within a batch, or "triplets" of vectors.
        views: fewest and most views of a text that it takes (None: any number).
        first_view: the view that it is given at first where it needs one.
        levels: what it can contrast; empty for a loss on logits.
        uses_labels: whether positives are rows with the same label.
        extras: whether its parameters are additions that are off unless they are asked for.
        colour: of its curve.
        pieces: what its pieces are called behind its symbol, by their names.
        compute: path of the function (TermInput, labels [N], settings) → its value in nats, or (value, pieces by name).
        lines: path of the function of the same arguments → ReferenceLines; "" for a loss on logits.
        forces: None where texts do not act on each other, or a frame does not hold what their forces need.
        lab: under which names the loss lab offers it, and the settings that each fixes; None: under its own name, if it
            has forces and takes at most two views.
    """

    name: str
    label: str
    place: int
    symbol: str
    latex: str
    summary: str
    source: str
    reads: Literal["logits", "vectors", "triplets"]
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
    latex_words: Mapping[str, Callable[[], str]] = field(default_factory=dict)

    @property
    def defaults(self) -> Settings:
        return {parameter.name: parameter.default for parameter in self.parameters if parameter.default is not None}

    @property
    def variants(self) -> Mapping[Any, str]:
        """What the values of its parameter "variant" are called; empty without one."""
        return next((p.choices or {} for p in self.parameters if p.name == "variant"), {})

    @property
    def contrastive(self) -> bool:
        """Whether it compares the vectors of a batch with each other."""
        return self.reads != "logits"


@dataclass(frozen=True, slots=True)
class ForceLaw:
    """A loss over a batch in which one vector represents all views of its text.

    Attributes:
        entry: of a loss that has forces.
        settings: all its parameters.
        views: how many views a vector represents, at least as many as the loss takes.
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
        """τ, where the loss has one."""
        return number(self.settings, "temperature") if "temperature" in self.settings else None

    @property
    def normalize(self) -> bool:
        """Whether vectors are compared by cosine or, as they are, by dot product."""
        return bool(self.settings.get("normalize", True))

    @property
    def second_views(self) -> bool:
        return self.forces.second_views(self.settings)

    @property
    def has_own_view(self) -> bool:
        """Whether a text's own other view is among the candidates."""
        return self.second_views or self.views > 1

    @property
    def variants(self) -> tuple[ForceLaw, ...]:
        """Return the law, and those that differ from it in the variant of the loss alone."""
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


def temperature_parameter(default: float) -> Parameter:
    return Parameter(
        "temperature",
        N_("Temperature τ"),
        default,
        N_(
            "Divides every similarity before the softmax. Small: nearly all the push goes to the most similar "
            "negatives, the hard ones. Large: all negatives are pushed about alike. Forces on Explore draws it."
        ),
        low=0.0,
        high=100.0,
        above=True,
        slider=(0.01, 1.0),
        knob=True,
    )


# What is contrasted, for every loss on vectors.
CONTRAST = (
    Parameter(
        "level",
        N_("Level"),
        "sentence",
        N_(
            "What is contrasted: the pooled vector of a text, the tokens that [CLS] attends to most, or the "
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
            "The blocks whose output is contrasted: one loss per block, averaged. Layer 1 is the first block; "
            "0 would be the embeddings."
        ),
        kind="layers",
    ),
    Parameter(
        "k",
        N_("Tokens k"),
        30,
        N_(
            "At token level: how many of the tokens that [CLS] attends to most represent a text. A k of at least the "
            "number of words selects nothing."
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
            "At token level: group the k tokens by K-means into this many groups, each the mean of its members; 0 "
            "takes every token on its own."
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
            "Layers of its own in front of the loss, 128 wide, dropped afterwards. SimCSE trains with an MLP; SCL, "
            "DSCL and the notes have none."
        ),
        kind="choice",
        choices={"none": N_("None"), "linear": N_("Linear"), "mlp": "MLP"},
    ),
    Parameter(
        "original",
        N_("The text itself"),
        True,
        N_("Whether the unchanged text is one of the views. CERT contrasts two back-translations without it."),
        kind="switch",
    ),
)

QUEUE = (
    Parameter(
        "queue",
        N_("Queue"),
        0,
        N_(
            "Vectors of past batches from a slowly moving copy of the encoder, as further candidates; 0 for none. "
            "1,024 is a good size here; MoCo had 65,536."
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
            "How slowly the copy follows the encoder: the share m of it that stays at each step. From the steps: a "
            "short run takes a smaller m, so that its copy learns too; MoCo's 0.999 is for thousands of steps."
        ),
        low=0.0,
        high=1.0,
        below=True,
        slider=(0.9, 0.9999),
        automatic=N_("From the steps"),
    ),
)
