"""Scalar measures of how well vectors are separated, clustered and spread."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.messages import N_
from core.registry import Registry
from core.representation import geometry
from core.representation.clusters import cluster
from core.representation.geometry import Array, Whole, checked_labels, checked_rows, normalised

FOLDS, SEED, SVM_ITERATIONS = 5, 0, 10_000
# Numbers in one block of a matrix of all pairs: 8 MiB in float64.
BLOCK_NUMBERS = 2**20

Better = Literal["higher", "lower", "neither"]
# Labels for the better direction of a measure.
BETTER: Mapping[Better, str] = {
    # Translators: of a measure, whose higher values are better
    "higher": N_("higher"),
    # Translators: of a measure, whose lower values are better
    "lower": N_("lower"),
    # Translators: of a measure, whose low and high values can both be bad
    "neither": N_("neither"),
}


class LabelledVectors:
    """Checked vectors [N, d] and labels [N], with cached results that several measures share."""

    def __init__(self, embeddings: ArrayLike, labels: ArrayLike) -> None:
        """Check the input. Raises: ValueError naming the argument, its value and what is expected."""
        self.rows: Array = checked_rows(embeddings)
        self.labels: Whole = checked_labels(labels, len(self.rows))
        self.different = len(np.unique(self.rows, axis=0))

    @cached_property
    def fold_accuracies(self) -> tuple[float | None, float | None]:
        """Accuracies of the linear SVM and of the nearest neighbour, over the same folds."""
        counts = np.unique(self.labels, return_counts=True)[1]
        if len(counts) < 2 or counts.min() < FOLDS or self.different < 2:
            return None, None
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.model_selection import StratifiedKFold, cross_val_score
        from sklearn.neighbors import KNeighborsClassifier
        from sklearn.svm import LinearSVC

        svm = LinearSVC(C=1.0, dual="auto", max_iter=SVM_ITERATIONS, random_state=SEED)
        knn = KNeighborsClassifier(n_neighbors=1, metric="euclidean")
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=SEED)
        with warnings.catch_warnings():
            # Overlapping classes may need more iterations than the setting allows; the accuracy is still the measure.
            warnings.simplefilter("ignore", ConvergenceWarning)
            svm_accuracy, knn_accuracy = (
                cross_val_score(model, self.rows, self.labels, cv=folds).mean() for model in (svm, knn)
            )
        return float(svm_accuracy), float(knn_accuracy)

    @cached_property
    def cluster_scores(self) -> tuple[float | None, float | None]:
        """Adjusted Rand index and normalised mutual information of the same clusters."""
        classes = len(np.unique(self.labels))
        if not 2 <= classes <= self.different:
            return None, None
        from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

        found = cluster(self.rows, classes)
        mutual = normalized_mutual_info_score(self.labels, found, average_method="arithmetic")
        return float(adjusted_rand_score(self.labels, found)), float(mutual)

    @property
    def silhouette(self) -> float | None:
        """Silhouette with the labels as clusters; None if it is undefined.

        The server computes it for pages, so it does without scikit-learn, whose import takes 70 MB and over a second.
        """
        classes, own = np.unique(self.labels, return_inverse=True)
        n = len(self.rows)
        if not 2 <= len(classes) < n or self.different < 2:
            return None
        z = self.rows - self.rows.mean(0, dtype=np.float64)
        members = np.eye(len(classes))[own]  # [N, C]
        squares, counts = np.einsum("nd,nd->n", z, z), members.sum(0)
        step, total = max(1, BLOCK_NUMBERS // n), 0.0
        for start in range(0, n, step):
            block = np.arange(start, min(start + step, n))
            far = np.sqrt(np.maximum(squares[block, None] + squares - 2 * (z[block] @ z.T), 0))
            at = np.arange(len(block)), own[block]
            far[at[0], block] = 0
            sums = far @ members  # [b, C], of the distances to each class
            inner = sums[at] / np.maximum(counts[at[1]] - 1, 1)
            means = sums / counts
            means[at] = np.inf
            outer, alone = means.min(1), counts[at[1]] == 1
            larger = np.maximum(inner, outer)
            total += float(np.where(alone, 0, (outer - inner) / np.where(larger > 0, larger, 1)).sum())
        return total / n


@dataclass(frozen=True, slots=True)
class MetricEntry:
    """A measure: its computation and its presentation.

    Attributes:
        better: the better direction, labelled by `BETTER`; "neither" if both low and high values can be bad.
        settings: one sentence, shown beside the number.
        share: whether the value is a share of examples, shown as a percentage.
        measure: computes the value from the vectors of a frame; None for a measure that needs other input.
        short: short label for narrow columns; if empty, the label itself.
    """

    name: str
    label: str
    better: Better
    settings: str
    source: str
    share: bool = False
    measure: Callable[[LabelledVectors], float | None] | None = None
    short: str = ""


# The measures that `representation_metrics` returns.
PROMISED = ("linear_svm", "knn1", "ari", "nmi", "alignment", "uniformity", "silhouette", "effective_rank")


def frame_measures(embeddings: ArrayLike, labels: ArrayLike, names: Collection[str] = ()) -> dict[str, float | None]:
    """Compute every measure that needs only vectors and labels, or those in `names`; see `representation_metrics`."""
    given = LabelledVectors(embeddings, labels)
    wanted = [entry for entry in METRICS.values() if not names or entry.name in names]
    return {entry.name: entry.measure(given) for entry in wanted if entry.measure is not None}


def representation_metrics(embeddings: ArrayLike, labels: ArrayLike) -> dict[str, float | None]:
    """Compute the eight measures in PROMISED; METRICS describes their settings.

    Args:
        embeddings: [N, d], any scale.
        labels: [N] class numbers.
    Returns: linear_svm and knn1 (accuracies, 0 to 1; None if a class has fewer than five examples), ari, nmi,
        alignment, uniformity, silhouette, effective_rank. A measure is None if it is undefined: for a single class or
        vector and, if it needs groups, also if all vectors are equal.
    Raises: ValueError naming the argument, its value and what is expected.
    Source: methods as named in METRICS.
    """
    return frame_measures(embeddings, labels, PROMISED)


def alignment(embeddings: Array, labels: Whole) -> float | None:
    """Mean squared distance over unordered pairs of normalised rows [N, d] with the same label; None without a pair.

    From 0 to 4. Exact, since the squared distances of all pairs of n rows sum to n times those from their mean.
    Source: Wang & Isola 2020, arXiv:2005.10242, α = 2.
    """
    z = normalised(embeddings)
    total, pairs = 0.0, 0
    for label in np.unique(labels):
        members = z[labels == label]
        total += len(members) * _scatter(members)
        pairs += len(members) * (len(members) - 1) // 2
    return total / pairs if pairs else None


def uniformity(embeddings: Array) -> float | None:
    """Log of the mean of exp(−2 ‖z_i − z_j‖²) over unordered pairs of normalised rows [N, d]; None without a pair.

    From −8 to 0. Exact, computed in blocks.
    Source: Wang & Isola 2020, arXiv:2005.10242, t = 2.
    """
    z = normalised(embeddings)
    n = len(z)
    if n < 2:
        return None
    squares = np.einsum("nd,nd->n", z, z)
    step, total = max(1, BLOCK_NUMBERS // n), 0.0
    for start in range(0, n, step):
        block = slice(start, start + step)
        apart = squares[block, None] + squares[start:] - 2 * (z[block] @ z[start:].T)  # [b, N − start]
        total += float(np.triu(np.exp(-2 * np.maximum(apart, 0)), 1).sum())
    return float(np.log(total / (n * (n - 1) / 2)))


def within_between_ratio(embeddings: Array, labels: ArrayLike) -> float | None:
    """Σ_i ‖z_i − m_c(i)‖² / Σ_i ‖m_c(i) − m‖² over normalised rows z [N, d].

    m_c is the mean of class c, and m the mean of all rows; both sums weight a class by its size. At least 0, and 0 if
    each class is one point.
    Returns: None if all class means coincide, as for a single class or no rows.
    """
    z, truth = normalised(embeddings), np.asarray(labels)
    within = between = 0.0
    for label in np.unique(truth):
        members = z[truth == label]
        within += _scatter(members)
        between += len(members) * float(np.square(members.mean(0) - z.mean(0)).sum())
    # Rounding errors of equal means are far below this.
    return within / between if between > len(z) * np.finfo(np.float64).eps else None


def spearman_similarity(first: Array, second: Array, scores: Sequence[float]) -> float | None:
    """Spearman's rank correlation of cosine(first_n, second_n) with the gold score of pair n.

    Args:
        first, second: [N, d], the vectors of the two texts of each pair.
        scores: [N], higher for more similar texts.
    Returns: from −1 to 1; None for fewer than two pairs, and if all cosines or all scores are equal.
    """
    # Round, so that pairs that differ only by rounding errors share a rank.
    cosines = np.einsum("nd,nd->n", normalised(first), normalised(second)).round(12)
    if len(np.unique(scores)) < 2 or len(np.unique(cosines)) < 2:
        return None
    from scipy.stats import spearmanr

    return float(spearmanr(cosines, scores).statistic)


def _scatter(rows: NDArray[np.float64]) -> float:
    """Compute the sum of squared distances of rows [n, d] from their mean."""
    return float(np.square(rows - rows.mean(0)).sum())


ENTRIES = (
    MetricEntry(
        "linear_svm",
        N_("Linear SVM accuracy"),
        "higher",
        N_(
            "LinearSVC, C = 1, up to 10,000 iterations; mean of 5 stratified folds, shuffled, seed 0; unnormalised "
            "vectors."
        ),
        N_("Cortes & Vapnik 1995; scikit-learn's LinearSVC"),
        share=True,
        measure=lambda given: given.fold_accuracies[0],
        short=N_("Linear SVM"),
    ),
    MetricEntry(
        "knn1",
        N_("1-NN accuracy"),
        "higher",
        N_(
            "Class of the nearest neighbour, Euclidean; mean of the same 5 stratified folds, seed 0; unnormalised "
            "vectors."
        ),
        N_("Cover & Hart 1967; scikit-learn's KNeighborsClassifier"),
        share=True,
        measure=lambda given: given.fold_accuracies[1],
        short="1-NN",
    ),
    MetricEntry(
        "ari",
        N_("Adjusted Rand index"),
        "higher",
        N_(
            "Agreement between k-means clusters, one for each class, and the labels; 10 starts, seed 0, "
            "unnormalised vectors."
        ),
        "Hubert & Arabie 1985",
        measure=lambda given: given.cluster_scores[0],
        short="ARI",
    ),
    MetricEntry(
        "nmi",
        N_("Normalised mutual information"),
        "higher",
        N_(
            "Agreement between k-means clusters, one for each class, and the labels; 10 starts, seed 0, "
            "unnormalised vectors, arithmetic mean of the entropies."
        ),
        "Vinh, Epps & Bailey 2010",
        measure=lambda given: given.cluster_scores[1],
        short="NMI",
    ),
    MetricEntry(
        "alignment",
        N_("Alignment"),
        "neither",  # equal vectors give the lowest value
        N_(
            "Mean squared distance over all pairs with the same label; normalised vectors. A collapsed encoder, "
            "whose vectors are all equal, also has 0."
        ),
        "Wang & Isola 2020, arXiv:2005.10242",
        measure=lambda given: alignment(given.rows, given.labels),
    ),
    MetricEntry(
        "uniformity",
        N_("Uniformity"),
        "lower",
        N_("Log of the mean over all pairs of exp(−2 × squared distance); normalised vectors."),
        "Wang & Isola 2020, arXiv:2005.10242",
        measure=lambda given: uniformity(given.rows),
    ),
    MetricEntry(
        "silhouette",
        N_("Silhouette"),
        "higher",
        N_("Mean over examples, with labels as clusters, Euclidean; unnormalised vectors."),
        "Rousseeuw 1987",
        measure=lambda given: given.silhouette,
    ),
    MetricEntry(
        "effective_rank",
        N_("Effective rank"),
        "neither",
        N_("exp of the entropy of the normalised singular values; vectors normalised, then centred."),
        "Roy & Vetterli 2007",
        measure=lambda given: geometry.effective_rank(given.rows) if len(given.rows) > 1 else None,
    ),
    MetricEntry(
        "within_between_ratio",
        N_("Spread, within / between"),
        "lower",
        N_(
            "Squared distance to the class mean, divided by the squared distance from the class mean to the "
            "overall mean; normalised vectors."
        ),
        N_("traces of Fisher's scatter matrices, Fisher 1936"),
        measure=lambda given: within_between_ratio(given.rows, given.labels),
        short=N_("Within / between"),
    ),
    MetricEntry(
        "spearman_similarity",
        N_("Spearman on similarity"),
        "higher",
        N_("Spearman's rank correlation between the cosine of the two texts and the human score."),
        "Reimers et al. 2016; Cer et al. 2017, arXiv:1708.00055",
    ),
)
# Extensions add a measure with `METRICS.register`; it is computed and drawn like the others.
METRICS: Registry[MetricEntry] = Registry("measure", ENTRIES)
