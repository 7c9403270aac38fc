"""A verdict on a contrastive loss and the geometry of a frame: collapse, separation, learning or neither.

A loss is at its collapse line if it cannot tell the vectors apart. The vectors may be equal, equidistant, or as narrow
as those of the untrained encoder. Only the geometry, compared with that of step 0, shows which.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from core.messages import N_, _, sentences
from core.quantities import percent, signed

# Fractions of the progress that a loss can make: below AT_LINE it is at its collapse line, from NEARLY_THERE it is
# close to its bound.
AT_LINE, NEARLY_THERE = 0.05, 0.8
# The spread of vectors is 1 − their mean cosine. Collapsed vectors have a spread below COLLAPSED_SPREAD, and below
# LOST_SPREAD of that at step 0.
COLLAPSED_SPREAD, LOST_SPREAD = 0.05, 0.5
NARROW_COSINE, NARROWED_RANK = 0.9, 0.5
# Classes are separated if the cosine within them is at least TIGHT_COSINE, and exceeds that between them by CLASS_GAP.
TIGHT_COSINE, CLASS_GAP = 0.8, 0.4
# Classes are not apart if the cosine within them exceeds that between them by less than ALIKE_GAP of the distance
# between classes, and a trained classifier gives at least ONE_CLASS of the texts the same class. The relative gap also
# suits narrow encoders.
ALIKE_GAP, ONE_CLASS = 0.1, 0.95


class Outcome(Enum):
    """The possible outcomes of a verdict, each with its sentence.

    LEARNING and NEAR_BOUND have a placeholder for the progress of the loss.
    """

    OFF = N_("The contrastive loss has weight 0: it is measured but has no effect.")
    COLLAPSED = N_(
        "The vectors have collapsed: since step 0 they lost their spread, and all point the same way. Raise the "
        "temperature or lower the learning rate."
    )
    SEPARATED = N_(
        "Classes are tight and separated: cosines are high within a class and low between classes. This is the "
        "goal, not a collapse."
    )
    UNCHANGED_NARROW = N_(
        "The contrastive loss is still at its collapse line. The vectors point in similar directions, as before "
        "training: they have not collapsed, but have not learned yet."
    )
    NARROWED = N_(
        "The contrastive loss is at its collapse line, and the vectors are closer together or span fewer "
        "directions than at step 0. Watch the map."
    )
    EQUIDISTANT = N_(
        "Nothing has collapsed. The contrastive loss is near its collapse line because the vectors are about equally "
        "far apart."
    )
    AT_LINE = N_("The contrastive loss is at its collapse line: the compared vectors are all alike.")
    ABOVE_LINE = N_("The contrastive loss is above its collapse line: identical vectors would give a lower loss.")
    NOT_APART = N_(
        "The contrastive loss is below its collapse line, but the classes are not separated: cosines within and "
        "between them are similar, and nearly every validation text gets the same prediction."
    )
    # Translators: {covered} is "50.0% of the way from its collapse line to its lower bound"
    LEARNING = N_("The contrastive loss has fallen {covered}.")
    # Translators: {covered} is "90.0% of the way from its collapse line to its lower bound"
    NEAR_BOUND = N_(
        "The contrastive loss is close to its lowest possible value on training batches: it has fallen {covered}."
    )


@dataclass(frozen=True, slots=True)
class Contrast:
    """A contrastive term at the newest steps.

    Attributes:
        loss, line, bound: value, collapse line and lower bound, in nats (0 if there is no bound worth drawing).
        temperature: τ; None if vectors are not normalised, so that cosines do not limit the loss, and for a loss that
            is a sum over anchors.
        classes: C, if labels define the positives; None if each text is its own class.
        weight: ≥ 0.
        shown: whether the term compares exactly the vectors of the frame.
        steps: number of steps over which the values are means.
    """

    loss: float
    line: float
    bound: float
    temperature: float | None
    classes: int | None
    weight: float = 1.0
    shown: bool = True
    steps: int = 1

    @property
    def covered(self) -> float:
        """Share of the way from the collapse line (0) to the lower bound (1); below 0 above the line."""
        return (self.line - self.loss) / max(self.line - self.bound, 1e-9)

    @property
    def reachable(self) -> float:
        """Share that vectors can cover at this temperature, with the classes at C points as far apart as possible.

        With e^bound positives and cosine −1/(C − 1) to all other candidates, the loss is
        ln(|P| + (M − |P|)·e^(−(1 + 1/(C − 1))/τ)).
        """
        if self.temperature is None:
            return 1.0
        candidates, positives = math.exp(self.line), math.exp(self.bound)
        classes = self.classes or max(2.0, candidates)
        apart = math.exp(-(1 + 1 / max(1.0, classes - 1)) / self.temperature)
        lowest = math.log(positives + max(0.0, candidates - positives) * apart)
        return (self.line - lowest) / max(self.line - self.bound, 1e-9)


@dataclass(frozen=True, slots=True)
class Geometry:
    """Geometry of the validation texts of a frame; cosines within or between classes are None without such a pair."""

    mean_cosine: float
    effective_rank: float
    within_cosine: float | None = None
    between_cosine: float | None = None

    @property
    def spread(self) -> float:
        return 1 - self.mean_cosine


@dataclass(frozen=True, slots=True)
class Verdict:
    """An outcome, its sentence, and the numbers behind it."""

    outcome: Outcome
    sentence: str
    numbers: str


def verdict(
    contrast: Contrast, now: Geometry, start: Geometry | None, largest_prediction: float | None = None
) -> Verdict:
    """Judge one contrastive term.

    Args:
        now: the newest frame.
        start: the frame of step 0; if None, the verdict is less specific.
        largest_prediction: share of the frame's validation texts in the most predicted class; None if no classifier is
            trained, so that predictions are meaningless.
    """
    outcome = _outcome(contrast, now, start)
    within, between = now.within_cosine, now.between_cosine
    if outcome == Outcome.LEARNING and within is not None and between is not None:
        alike = within - between < ALIKE_GAP * (1 - between)
        if alike and (largest_prediction or 0.0) >= ONE_CLASS:
            outcome = Outcome.NOT_APART
    said = [_(outcome.value, covered=_covered(contrast))]
    if outcome in (Outcome.LEARNING, Outcome.NEAR_BOUND):
        said.insert(
            0, _("The collapse line is the value that the contrastive loss would have if all vectors were equal.")
        )
        if contrast.steps > 1:
            said.append(_("The loss is averaged over the last {steps} steps.", steps=contrast.steps))
    if not contrast.shown and outcome != Outcome.OFF:
        said.append(_("The map shows the pooled vectors, which are not the ones that the loss compares."))
    return Verdict(outcome, sentences(said), _numbers(now, start))


def _outcome(contrast: Contrast, now: Geometry, start: Geometry | None) -> Outcome:
    if contrast.weight == 0:
        return Outcome.OFF
    share = contrast.covered / max(contrast.reachable, 1e-9)
    if share < -AT_LINE:
        return Outcome.ABOVE_LINE
    if share >= AT_LINE:
        within, between = now.within_cosine, now.between_cosine
        apart = within is not None and between is not None and within >= TIGHT_COSINE and within - between >= CLASS_GAP
        if apart and contrast.shown and contrast.classes is not None:
            return Outcome.SEPARATED
        return Outcome.NEAR_BOUND if share >= NEARLY_THERE else Outcome.LEARNING
    if not contrast.shown or start is None:
        return Outcome.AT_LINE
    lost = now.spread < LOST_SPREAD * start.spread
    if lost and now.spread < COLLAPSED_SPREAD:
        return Outcome.COLLAPSED
    # The rank of nearly equal vectors only describes their small differences.
    if lost or now.effective_rank < NARROWED_RANK * start.effective_rank:
        return Outcome.NARROWED
    return Outcome.UNCHANGED_NARROW if now.mean_cosine > NARROW_COSINE else Outcome.EQUIDISTANT


def _covered(contrast: Contrast) -> str:
    """Describe the progress of the loss in a clause."""
    share = percent(max(0.0, contrast.covered))
    if contrast.reachable < NEARLY_THERE:
        return _(
            "{share} of the way from its collapse line to its lower bound; the most possible at τ = "
            "{temperature:g} is {most}",
            share=share,
            most=percent(contrast.reachable),
            temperature=contrast.temperature,
        )
    return _(
        "{share} of the way from its collapse line to its lower bound",
        share=share,
    )


def _numbers(now: Geometry, start: Geometry | None) -> str:
    before = start or now
    measured = [
        (_("cosine within classes"), now.within_cosine, before.within_cosine, 2),
        # Translators: the cosine between classes, behind "cosine within classes"
        (_("between classes"), now.between_cosine, before.between_cosine, 2),
        (_("effective rank"), now.effective_rank, before.effective_rank, 1),
    ]
    if now.within_cosine is None and now.between_cosine is None:
        measured.insert(0, (_("mean cosine"), now.mean_cosine, before.mean_cosine, 2))
    said = []
    for name, value, then, decimals in measured:
        if value is not None:
            text = f"{name} {signed(value, decimals)}"
            if start is not None and then is not None:
                # Translators: {now} is such as "effective rank 1.2", {then} such as 28.0
                text = _("{now} ({then} at step 0)", now=text, then=signed(then, decimals))
            said.append(text)
    return " · ".join(said)
