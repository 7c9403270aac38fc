"""What a visitor of the loss lab chooses and asks: where the points lie, and what acts on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from core.catalogue.losses import LOSSES
from core.config.validation import Section
from core.errors import ConfigError
from core.messages import N_
from core.parameters import Value

Space = Literal["circle", "sphere", "plane", "simplex"]
Layout = Literal["random", "collapsed", "moons", "mislabelled", "imbalanced", "duplicates"]

SPACES: Mapping[str, str] = {
    "circle": N_("Circle"),
    "sphere": N_("Sphere"),
    "plane": N_("Plane"),
    "simplex": N_("Simplex"),
}
ABOUT_SPACES: Mapping[str, str] = {
    "circle": N_("Normalised vectors in two dimensions: a step moves a point along the circle."),
    "sphere": N_("Normalised vectors in three dimensions: with more room, more classes can lie far apart."),
    "plane": N_("Vectors as they are: SCL compares dot products, which grow with the vectors."),
    "simplex": N_("A classifier's output: a corner for each class, a point for each prediction."),
}
LAYOUTS: Mapping[str, str] = {
    "random": N_("Random"),
    "collapsed": N_("Collapsed"),
    "moons": N_("Two moons"),
    "mislabelled": N_("One mislabelled point"),
    "imbalanced": N_("Imbalanced, 90 to 10"),
    "duplicates": N_("Duplicates"),
}
FEWEST_POINTS, MOST_POINTS = 6, 60
MOST_MOVES = 60
# A batch of steps, and where vectors have left every picture.
MOST_STEPS = 240
FARTHEST = 1e6


class Stage(Section):
    """The points before the first step.

    Attributes:
        points: texts; each has one vector, or two where a loss contrasts two views.
        seed: of the layout.
    """

    space: Space = "circle"
    layout: Layout = "random"
    points: Annotated[int, Field(ge=FEWEST_POINTS, le=MOST_POINTS)] = 30
    classes: Annotated[int, Field(ge=2, le=4)] = 3
    seed: Annotated[int, Field(ge=0, le=9999)] = 0


@dataclass(frozen=True, slots=True)
class LabLoss:
    """A loss as the lab offers it.

    Attributes:
        loss: its name in the registry of losses; fixed: settings that differ from those it has by default.
        views: vectors of a text.
        on: "vectors" or "logits"; a loss on vectors can be mixed with cross-entropy.
    """

    label: str
    loss: str
    on: Literal["vectors", "logits"]
    views: int = 1
    fixed: Mapping[str, Value] | None = None
    has_temperature: bool = True
    # The bounds of its α and the value that it begins with, where it has one.
    alpha: tuple[float, float, float] | None = None


LAB_LOSSES: Mapping[str, LabLoss] = {
    "ce": LabLoss("CE", "cross_entropy", "logits", has_temperature=False),
    "out": LabLoss("SCL, L_out", "supcon", "vectors", fixed={"variant": "out"}),
    "in": LabLoss("SCL, L_in", "supcon", "vectors", fixed={"variant": "in"}),
    "dscl": LabLoss("DSCL", "dscl", "vectors", views=2, alpha=(0.01, 0.99, 0.1)),
    "simcse": LabLoss("SimCSE", "simcse", "vectors", views=2),
    "rdrop": LabLoss("R-Drop", "rdrop", "logits", views=2, has_temperature=False, alpha=(0.0, 10.0, 1.0)),
}
BY_SPACE: Mapping[str, tuple[str, ...]] = {
    "circle": ("out", "in", "ce", "dscl", "simcse"),
    "sphere": ("out", "in", "ce", "dscl", "simcse"),
    "plane": ("out", "in", "ce", "dscl", "simcse"),
    "simplex": ("rdrop", "ce"),
}


class Setting(Section):
    """What acts on the points.

    Attributes:
        weight: λ of (1 − λ)·CE + λ·loss, for a loss on vectors.
        alpha: of DSCL or R-Drop.
        learning_rate: of plain gradient descent on the points themselves, and on the class vectors of a classifier.
    """

    loss: str = "out"
    weight: Annotated[float, Field(ge=0, le=1)] = 1.0
    temperature: Annotated[float, Field(ge=0.01, le=10)] = 0.1
    alpha: Annotated[float, Field(ge=0, le=10)] | None = None
    learning_rate: Annotated[float, Field(gt=0, le=100)] = 0.5

    @model_validator(mode="after")
    def _check_loss(self) -> Setting:
        if self.loss not in LAB_LOSSES:
            raise ConfigError("loss", self.loss, "choose one of {known}.", known=tuple(LAB_LOSSES))
        bounds = LAB_LOSSES[self.loss].alpha
        if self.alpha is not None and bounds is not None and not bounds[0] <= self.alpha <= bounds[1]:
            raise ConfigError(
                "alpha", self.alpha, "give a number from {low:g} to {high:g}.", low=bounds[0], high=bounds[1]
            )
        return self

    @property
    def known(self) -> LabLoss:
        return LAB_LOSSES[self.loss]

    @property
    def share(self) -> float:
        """λ, which is 1 where a loss is not mixed."""
        return self.weight if self.known.on == "vectors" else 1.0

    @property
    def has_classifier(self) -> bool:
        """Whether class vectors turn points into logits."""
        return self.known.on == "logits" or self.share < 1


class Move(Section):
    """A point that somebody dragged to a place of the picture."""

    text: Annotated[int, Field(ge=0)]
    view: Literal[0, 1] = 0
    to: Annotated[tuple[Annotated[float, Field(ge=-FARTHEST, le=FARTHEST)], ...], Field(min_length=2, max_length=3)]


class Held(Section):
    """Where the points of one setting are, as a moment of an answer said."""

    points: list[list[list[float]]]
    class_vectors: list[list[float]] | None = None


class Question(Section):
    """One request.

    Attributes:
        settings: one, or two side by side from the same start.
        held: where the points of each setting are; None for the start.
        moves: made before the steps, in every setting that has the view.
        anchor: the text whose pulls are wanted.
    """

    stage: Stage = Stage()
    settings: Annotated[tuple[Setting, ...], Field(min_length=1, max_length=2)] = (Setting(),)
    held: tuple[Held, ...] | None = None
    moves: Annotated[tuple[Move, ...], Field(max_length=MOST_MOVES)] = ()
    steps: Annotated[int, Field(ge=0, le=MOST_STEPS)] = 0
    anchor: Annotated[int, Field(ge=0)] | None = None

    @model_validator(mode="after")
    def _check_sizes(self) -> Question:
        for name, number in (("anchor", self.anchor), *(("moves", move.text) for move in self.moves)):
            if number is not None and number >= self.stage.points:
                raise ConfigError(
                    name, number, "there are {count} points: give 0 to one less.", count=self.stage.points
                )
        if self.held is not None and len(self.held) != len(self.settings):
            raise ConfigError("held", len(self.held), "give one for each setting.")
        return self


def check_fits(stage: Stage, setting: Setting) -> None:
    """Raises: ConfigError for a loss that the space does not have."""
    offered = BY_SPACE[stage.space]
    if setting.loss not in offered:
        raise ConfigError(
            "loss", setting.loss, "on the {space} choose one of {known}.", space=stage.space, known=tuple(offered)
        )


def loss_settings(setting: Setting, space: Space) -> dict[str, Any]:
    """All settings of the chosen loss, as its function in the registry reads them."""
    known = setting.known
    entry = LOSSES.entry(known.loss)
    found: dict[str, Any] = {parameter.name: parameter.default for parameter in entry.parameters}
    found |= dict(known.fixed or {})
    if known.has_temperature:
        found["temperature"] = setting.temperature
    if known.alpha is not None:
        found["alpha"] = known.alpha[2] if setting.alpha is None else setting.alpha
    if "normalize" in found:
        found["normalize"] = space != "plane"
    return found
