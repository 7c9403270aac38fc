"""How vectors become points: the literal list of projections. Nothing heavy is imported before one is fitted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from core.errors import ConfigError
from core.parameters import Parameter, Value
from core.representation.geometry import Array
from core.representation.projections import pca, sklearn_tsne, tsne, umap, umap_learn
from core.representation.projections.alignment import Points
from core.representation.projections.before import Before

Mode = Literal["each", "once"]
MODES: Mapping[Mode, str] = {"each": "Follow the model", "once": "Fit once, place the others"}


class Fit(Protocol):
    """Embeddings [N, H] → [N, D], going on from the map before where there is one."""

    def __call__(
        self, embeddings: Array, dims: int, settings: Mapping[str, Value], seed: int, before: Before | None
    ) -> Points: ...


class Place(Protocol):
    """Embeddings [M, H] → [M, D] on the map of a reference frame."""

    def __call__(self, embeddings: Array, reference: Before, settings: Mapping[str, Value]) -> Points: ...


@dataclass(frozen=True, slots=True)
class Projection:
    """A projection as people and forms see it, and as maps are made with it.

    Attributes:
        linear: whether a point is a linear function of its normalised vector.
        quick: whether every frame is fitted, instead of keyframes with the others placed between.
        library: the library that lays it out, for comparing ours with it; empty for our own, which hold still.
        same_as: our own projection of the same kind, where a library lays it out.
        caution: a short sentence that is shown with every map, about what it cannot show; empty for none.
        place: how other frames come onto the map of one (None: it has no mode "once").
    """

    name: str
    label: str
    source: str
    about: str
    fit: Fit
    place: Place | None = None
    caution: str = ""
    parameters: tuple[Parameter, ...] = ()
    linear: bool = False
    quick: bool = False
    library: str = ""
    same_as: str = ""

    @property
    def modes(self) -> tuple[Mode, ...]:
        """What it can do, the usual mode first."""
        return ("each",) if self.place is None else ("each", "once")


# Neighbours are found at every scale, so that nearly equal vectors fill a map as distant ones do.
_HIDES_SCALE = "{} shows neighbourhoods, not distances: a collapsed space can still look spread out."

_TSNE_PARAMETERS = (
    Parameter(
        "perplexity",
        "Perplexity",
        30.0,
        "About how many neighbours an example has; at most a third of the examples are taken.",
        low=2.0,
        high=200.0,
        slider=(5.0, 100.0),
    ),
)
_UMAP_PARAMETERS = (
    Parameter(
        "neighbours",
        "Neighbours",
        15,
        "How many neighbours shape the map, the example itself among them: few show small groups, many the whole.",
        kind="integer",
        low=2,
        high=200,
        slider=(5, 100),
    ),
    Parameter(
        "min_dist",
        "Minimal distance",
        0.1,
        "How close neighbours may lie on the map: 0 packs them tightly.",
        low=0.0,
        high=0.99,
    ),
)
_BY_LIBRARY = "By {} itself, each fitted frame from the one before: to compare with ours, which holds still."

_ENTRIES = (
    Projection(
        "pca",
        "PCA",
        "Pearson 1901; Hotelling 1933",
        "The directions in which the normalised vectors spread most: distances shrink, but nothing is torn or bent.",
        pca.fit,
        pca.place,
        linear=True,
        quick=True,
    ),
    Projection(
        "tsne",
        "t-SNE",
        "van der Maaten & Hinton 2008",
        "Keeps each example's nearest neighbours near; sizes of clusters and distances between them mean little.",
        tsne.fit,
        caution=_HIDES_SCALE.format("t-SNE"),
        parameters=_TSNE_PARAMETERS,
    ),
    Projection(
        "umap",
        "UMAP",
        "McInnes et al. 2018, arXiv:1802.03426; mean forces, Damrich & Hamprecht 2021, arXiv:2103.14608",
        "Keeps each example's nearest neighbours near and pushes the others apart; distances between clusters mean "
        "little.",
        umap.fit,
        umap.place,
        caution=_HIDES_SCALE.format("UMAP"),
        parameters=_UMAP_PARAMETERS,
    ),
    Projection(
        "tsne-sklearn",
        "t-SNE (scikit-learn)",
        "scikit-learn; van der Maaten & Hinton 2008",
        _BY_LIBRARY.format("scikit-learn"),
        sklearn_tsne.fit,
        caution=_HIDES_SCALE.format("t-SNE"),
        parameters=_TSNE_PARAMETERS,
        library="scikit-learn",
        same_as="tsne",
    ),
    Projection(
        "umap-learn",
        "UMAP (umap-learn)",
        "umap-learn; McInnes et al. 2018, arXiv:1802.03426",
        _BY_LIBRARY.format("umap-learn"),
        umap_learn.fit,
        caution=_HIDES_SCALE.format("UMAP"),
        parameters=_UMAP_PARAMETERS,
        library="umap-learn",
        same_as="umap",
    ),
)
PROJECTIONS: Mapping[str, Projection] = {entry.name: entry for entry in _ENTRIES}


# Those of our own, which hold still; and, by the name of one of them, the same as a library lays it out.
STILL: Mapping[str, Projection] = {entry.name: entry for entry in _ENTRIES if not entry.library}
BY_LIBRARY: Mapping[str, Projection] = {entry.same_as: entry for entry in _ENTRIES if entry.library}


def projection_entry(name: str) -> Projection:
    """Raises: ConfigError naming what exists."""
    if not isinstance(name, str) or name not in PROJECTIONS:
        raise ConfigError("method", name, f"choose one of {', '.join(PROJECTIONS)}.")
    return PROJECTIONS[name]
