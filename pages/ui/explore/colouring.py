"""What the colours of a map say: one entry per choice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.events import TRAIN
from core.figures.example_colours import correct_colours, label_colours, prediction_colours
from core.figures.map_data import Bundle, categories_bundle, values_bundle
from core.figures.template import ACCENT
from core.messages import N_, _
from core.representation.examples import ExampleScores
from pages.ui.explore import run_reads
from pages.ui.explore.run_reads import Frames

SPLIT_COLOURS = (ACCENT, "#e69f00")
# A loss beyond this share of all has the colour of the scale's end, so that one outlier does not hide the rest; its
# colouring says so.
LOSS_QUANTILE = 0.98


@dataclass(frozen=True, slots=True)
class Colouring:
    """A choice of what the colours say.

    Attributes:
        label: as people read it, marked.
        make: the bundle of some frames.
        about: one sentence, marked.
    """

    label: str
    make: Callable[[Frames], Bundle]
    about: str


def _label(frames: Frames) -> Bundle:
    return label_colours(frames.probe.labels, frames.probe.classes)


def _prediction(frames: Frames) -> Bundle:
    return prediction_colours(_each(frames, lambda s: s.predicted), frames.probe.classes)


def _correct(frames: Frames) -> Bundle:
    return correct_colours(_each(frames, lambda s: s.correct))


def _confidence(frames: Frames) -> Bundle:
    return values_bundle(_each(frames, lambda s: s.confidence), _("Confidence"), 0.0, 1.0)


def _loss(frames: Frames) -> Bundle:
    losses = _each(frames, lambda s: s.loss)
    high = float(np.nanquantile(losses, LOSS_QUANTILE)) if np.isfinite(losses).any() else 1.0
    return values_bundle(losses, _("Cross-entropy, nats"), 0.0, max(high, 1e-6))


def _split(frames: Frames) -> Bundle:
    train = [split == TRAIN for split in frames.probe.splits] or [False] * len(frames.probe.ids)
    names = (_("validation"), _("training"))
    return categories_bundle(np.asarray(train, np.int64), names, _("Split"), SPLIT_COLOURS)


def _cluster(frames: Frames) -> Bundle:
    count = len(frames.probe.classes)
    known = run_reads.clusters(frames)
    unknown: NDArray[np.int64] = np.full(len(frames.probe.ids), -1)
    codes = np.stack([known.get(number, unknown) for number in frames.numbers])
    names = [_("cluster {number}", number=i + 1) for i in range(max(count, int(codes.max(initial=0)) + 1))]
    return categories_bundle(codes, names, _("Cluster"))


COLOURINGS: Mapping[str, Colouring] = {
    "label": Colouring(N_("Label"), _label, N_("Colour and symbol: the label.")),
    "prediction": Colouring(N_("Prediction"), _prediction, N_("Colour: what is predicted at this step.")),
    "correct": Colouring(N_("Correct or wrong"), _correct, N_("Colour: whether the prediction is right at this step.")),
    "confidence": Colouring(N_("Confidence"), _confidence, N_("Colour: the probability of the prediction.")),
    "loss": Colouring(N_("Loss"), _loss, N_("Colour: cross-entropy of the label; the highest 2% alike.")),
    "split": Colouring(N_("Training or validation"), _split, N_("Colour: whether an example was trained on.")),
    "cluster": Colouring(
        N_("Cluster"), _cluster, N_("Colour: k-means with as many clusters as classes, numbered by label.")
    ),
}


def colours(frames: Frames, name: str) -> Bundle:
    """The colours of some frames. Raises: StoreError for a frame that cannot be read."""
    known = len(run_reads.clusters(frames)) if name == "cluster" else 0
    return _colours(frames, frames.numbers, name, known)


@run_reads.kept(max_entries=32)
def _colours(frames: Frames, numbers: tuple[int, ...], name: str, known: int) -> Bundle:
    return COLOURINGS[name].make(frames)


def _each(frames: Frames, take: Callable[[ExampleScores], NDArray[Any]]) -> NDArray[Any]:
    """[F, N] of every frame."""
    return np.stack([take(run_reads.scores(frames, number)) for number in frames.numbers])
