"""Settings and questions of the loss lab: the layout of the points and the loss that acts on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from core.catalogue.loss_entry import LossEntry, Settings
from core.catalogue.losses import LOSSES
from core.config.fields import Section
from core.errors import ConfigError
from core.messages import N_, _, sentences
from core.parameters import Parameter

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
    "sphere": N_("Normalised vectors in three dimensions, where more classes can lie far apart."),
    "plane": N_("Unnormalised vectors: SCL, DSCL and SimCSE compare dot products, which grow with the vectors."),
    "simplex": N_("A classifier's output: a corner per class, a point per prediction."),
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
# Maximum number of steps per question, and the coordinate beyond which vectors count as exploded.
MOST_STEPS = 240
FARTHEST = 1e6


class Stage(Section):
    """The points before the first step.

    Attributes:
        points: number of texts; each has one vector, or two if the loss contrasts two views.
        seed: seed of the layout.
    """

    space: Space = "circle"
    layout: Layout = "random"
    points: Annotated[int, Field(ge=FEWEST_POINTS, le=MOST_POINTS)] = 30
    classes: Annotated[int, Field(ge=2, le=4)] = 3
    seed: Annotated[int, Field(ge=0, le=9999)] = 0


@dataclass(frozen=True, slots=True)
class LabLoss:
    """A loss offered by the lab. Args: fixed: settings implied by its name."""

    entry: LossEntry
    fixed: Settings

    @property
    def label(self) -> str:
        if self.entry.forces is not None and self.entry.forces.symbol is not None:
            return self.entry.forces.symbol({**self.entry.defaults, **self.fixed})
        variant = self.entry.variants.get(self.fixed.get("variant"))
        label = self.entry.symbol if variant is None else f"{self.entry.symbol}, {variant}"
        return _("{loss}, sum over anchors", loss=label) if self.fixed.get("reduction") == "sum" else label

    @property
    def about(self) -> str:
        """Summary of the loss and of the differences between its variants."""
        variants = [parameter.help for parameter in self.entry.parameters if parameter.name == "variant"]
        return sentences([_(self.entry.summary), *map(_, variants)])

    @property
    def extra(self) -> Parameter | None:
        """The knob besides τ, such as α, if any."""
        knobs = [p for p in self.entry.parameters if p.knob and p.slider and p.name not in ("temperature", *self.fixed)]
        return knobs[0] if knobs and not self.entry.extras else None


def lab_losses() -> Mapping[str, LabLoss]:
    """Return the losses offered by the lab, by their name in a URL."""
    found: dict[str, LabLoss] = {}
    for entry in LOSSES.values():
        own: Mapping[str, Settings] = {entry.name: {}} if entry.forces is not None and entry.views[0] <= 2 else {}
        names = own if entry.lab is None else entry.lab
        found |= {name: LabLoss(entry, fixed) for name, fixed in names.items()}
    return found


def loss_names(space: Space) -> list[str]:
    """Return the names of the losses offered in a space.

    On the simplex, a point is a prediction. In other spaces, class vectors turn the vector of a text into a prediction.
    """
    losses = lab_losses()
    if space == "simplex":
        found = [name for name, loss in losses.items() if not loss.entry.contrastive]
    else:
        found = [name for name, loss in losses.items() if loss.entry.contrastive or loss.entry.views[0] == 1]
    # Cross-entropy comes last: the other losses are mixed with it.
    return sorted(found, key=lambda name: losses[name].entry.extras)


class Setting(Section):
    """The loss that acts on the points, with its settings.

    Attributes:
        weight: λ in (1 − λ)·CE + λ·loss, for a loss on vectors.
        extra: value of the knob besides τ, such as α; None for its default.
        learning_rate: step size of plain gradient descent on the points, and on the class vectors of a classifier.
    """

    loss: str = "out"
    weight: Annotated[float, Field(ge=0, le=1)] = 1.0
    temperature: Annotated[float, Field(ge=0.01, le=10)] = 0.1
    extra: float | None = None
    learning_rate: Annotated[float, Field(gt=0, le=100)] = 0.5

    @model_validator(mode="after")
    def _check_loss(self) -> Setting:
        if self.loss not in lab_losses():
            raise ConfigError("loss", self.loss, "choose one of {known}.", known=tuple(lab_losses()))
        if self.extra is None:
            return self
        knob = self.lab_loss.extra
        if knob is None or knob.slider is None:
            raise ConfigError(
                "extra", self.extra, "leave it out; {loss} has no further knob.", loss=self.lab_loss.label
            )
        low, high = knob.slider
        if not low <= self.extra <= high:
            raise ConfigError(knob.name, self.extra, "give a number from {low:g} to {high:g}.", low=low, high=high)
        return self

    @property
    def lab_loss(self) -> LabLoss:
        return lab_losses()[self.loss]

    @property
    def share(self) -> float:
        """Weight λ of the loss; 1 if it is not mixed."""
        return self.weight if self.lab_loss.entry.contrastive else 1.0


class Move(Section):
    """A point that a visitor dragged to a new position."""

    text: Annotated[int, Field(ge=0)]
    view: Literal[0, 1] = 0
    to: Annotated[tuple[Annotated[float, Field(ge=-FARTHEST, le=FARTHEST)], ...], Field(min_length=2, max_length=3)]


class CurrentVectors(Section):
    """The current vectors of one setting, as returned in a moment of an answer."""

    points: list[list[list[float]]]
    class_vectors: list[list[float]] | None = None


class Question(Section):
    """One question.

    Attributes:
        settings: one, or two side by side from the same start.
        held: current vectors of each setting; None for the start.
        moves: applied before the steps, in every setting that has the view.
        anchor: the text whose pulls are returned.
    """

    stage: Stage = Stage()
    settings: Annotated[tuple[Setting, ...], Field(min_length=1, max_length=2)] = (Setting(),)
    held: tuple[CurrentVectors, ...] | None = None
    moves: Annotated[tuple[Move, ...], Field(max_length=MOST_MOVES)] = ()
    steps: Annotated[int, Field(ge=0, le=MOST_STEPS)] = 0
    anchor: Annotated[int, Field(ge=0)] | None = None

    @model_validator(mode="after")
    def _check_sizes(self) -> Question:
        for name, number in (("anchor", self.anchor), *(("moves", move.text) for move in self.moves)):
            if number is not None and number >= self.stage.points:
                raise ConfigError(
                    name,
                    number,
                    "there are {count} points, counted from 0; give a smaller number.",
                    count=self.stage.points,
                )
        if self.held is not None and len(self.held) != len(self.settings):
            raise ConfigError("held", len(self.held), "give one value per setting.")
        return self


def check_fits(stage: Stage, setting: Setting) -> None:
    """Check that the space offers the loss. Raises: ConfigError."""
    known = loss_names(stage.space)
    if setting.loss not in known:
        raise ConfigError(
            "loss", setting.loss, "on the {space}, choose one of {known}.", space=stage.space, known=known
        )


def loss_settings(setting: Setting, space: Space) -> dict[str, Any]:
    """Return all settings of the selected loss, in the form its functions take."""
    known = setting.lab_loss
    found: dict[str, Any] = {**known.entry.defaults, **known.fixed}
    if "temperature" in found:
        found["temperature"] = setting.temperature
    if known.extra is not None and setting.extra is not None:
        found[known.extra.name] = setting.extra
    if "normalize" in found:
        found["normalize"] = space != "plane"
    return found
