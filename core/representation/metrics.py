"""How well vectors are separated, gathered and spread: one number each, with the settings it was computed with."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping
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
SILHOUETTE_MIB = 64
# Numbers in one block of a matrix of all pairs: 8 MiB in float64.
BLOCK_NUMBERS = 2**20

Better = Literal["higher", "lower", "neither"]
# Which way of a measure is better, as people read it.
BETTER: Mapping[Better, str] = {
    # Translators: of a measure, whose higher values are better
    "higher": N_("higher"),
    # Translators: of a measure, whose lower values are better
    "lower": N_("lower"),
    # Translators: of a measure, whose low and high values can both be bad
    "neither": N_("neither"),
}


class Given:
    """Checked vectors [N, d] with labels [N], and what several measures of them share."""

    def __init__(self, embeddings: ArrayLike, labels: ArrayLike) -> None:
        """Raises: ValueError naming the argument, its value and what is expected."""
        self.rows: Array = checked_rows(embeddings)
        self.labels: Whole = checked_labels(labels, len(self.rows))
        self.different = len(np.unique(self.rows, axis=0))

    @cached_property
    def fold_accuracies(self) -> tuple[float | None, float | None]:
        """Of the linear SVM and of the nearest neighbour, over the same folds."""
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
            # Classes that overlap need more iterations than the setting allows; its accuracy is the measure all the
            # same.
            warnings.simplefilter("ignore", ConvergenceWarning)
            svm_accuracy, knn_accuracy = (
                cross_val_score(model, self.rows, self.labels, cv=folds).mean() for model in (svm, knn)
            )
        return float(svm_accuracy), float(knn_accuracy)

    @cached_property
    def cluster_scores(self) -> tuple[float | None, float | None]:
        """Rand index and mutual information of the same clusters."""
        classes = len(np.unique(self.labels))
        if not 2 <= classes <= self.different:
            return None, None
        from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

        found = cluster(self.rows, classes)
        mutual = normalized_mutual_info_score(self.labels, found, average_method="arithmetic")
        return float(adjusted_rand_score(self.labels, found)), float(mutual)

    @property
    def silhouette(self) -> float | None:
        """The labels as clusters."""
        if not 2 <= len(np.unique(self.labels)) < len(self.rows) or self.different < 2:
            return None
        from sklearn import config_context
        from sklearn.metrics import silhouette_score

        with config_context(working_memory=SILHOUETTE_MIB):
            return float(silhouette_score(self.rows, self.labels))


@dataclass(frozen=True, slots=True)
class MetricEntry:
    """A measure as people see it.

    Attributes:
        place: where it comes in lists.
        better: which way is better, in words by `BETTER`; "neither" where a low and a high value can both be bad.
        settings: one sentence that is printed beside the number.
        share: whether it is a share of examples, written as a percentage.
        measure: its value on the vectors of a frame; None for one that needs more than these.
        short: its label where there is little room; the label itself where empty.
    """

    name: str
    place: int
    label: str
    better: Better
    settings: str
    source: str
    share: bool = False
    measure: Callable[[Given], float | None] | None = None
    short: str = ""


# A measure from outside is added by `METRICS.register`, and is computed and drawn with the others.
METRICS: Registry[MetricEntry] = Registry("measure")
# Those that `representation_metrics` promises.
PROMISED = ("linear_svm", "knn1", "ari", "nmi", "alignment", "uniformity", "silhouette", "effective_rank")


def frame_measures(embeddings: ArrayLike, labels: ArrayLike, names: Collection[str] = ()) -> dict[str, float | None]:
    """Every measure that vectors and labels are enough for, or those of these names; see `representation_metrics`."""
    given = Given(embeddings, labels)
    wanted = [entry for entry in METRICS.values() if not names or entry.name in names]
    return {entry.name: entry.measure(given) for entry in wanted if entry.measure is not None}


def representation_metrics(embeddings: ArrayLike, labels: ArrayLike) -> dict[str, float | None]:
    """Eight of METRICS, with the settings given there.

    Args:
        embeddings: [N, d], any scale.
        labels: [N] whole numbers, each of them a class.
    Returns: linear_svm and knn1 (accuracies, 0 to 1; None where a class has fewer than five examples), ari, nmi,
        alignment, uniformity, silhouette, effective_rank. None where a measure says nothing: one class or one vector
        alone, and for those that need groups also equal vectors throughout.
    Raises: ValueError naming the argument, its value and what is expected.
    Source: methods as named in METRICS.
    """
    return frame_measures(embeddings, labels, PROMISED)


def alignment(embeddings: ArrayLike, labels: ArrayLike) -> float | None:
    """Mean squared distance over unordered pairs of normalised rows [N, d] with one label; None without such a pair.

    From 0 to 4, exact: the squared distances of all pairs of n rows sum to n times those from their mean.
    Source: Wang & Isola 2020, arXiv:2005.10242, α = 2.
    """
    rows = checked_rows(embeddings)
    truth = checked_labels(labels, len(rows))
    z = normalised(rows)
    total, pairs = 0.0, 0
    for label in np.unique(truth):
        members = z[truth == label]
        total += len(members) * _scatter(members)
        pairs += len(members) * (len(members) - 1) // 2
    return total / pairs if pairs else None


def uniformity(embeddings: ArrayLike) -> float | None:
    """Log of the mean of exp(−2 ‖z_i − z_j‖²) over unordered pairs of normalised rows [N, d]; None without a pair.

    From −8 to 0, exact, block by block.
    Source: Wang & Isola 2020, arXiv:2005.10242, t = 2.
    """
    z = normalised(checked_rows(embeddings))
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


def within_between_ratio(embeddings: ArrayLike, labels: ArrayLike) -> float | None:
    """Σ_i ‖z_i − m_c(i)‖² / Σ_i ‖m_c(i) − m‖² over normalised rows z [N, d].

    m_c is the mean of class c, m that of all rows; both sums count a class by its size. From 0 up, and 0 where each
    class is one point.
    Returns: None where the class means are one point: a single class, or no rows.
    """
    rows = checked_rows(embeddings)
    truth = checked_labels(labels, len(rows))
    z = normalised(rows)
    within = between = 0.0
    for label in np.unique(truth):
        members = z[truth == label]
        within += _scatter(members)
        between += len(members) * float(np.square(members.mean(0) - z.mean(0)).sum())
    # What rounding leaves of equal means is far below this.
    return within / between if between > len(z) * np.finfo(np.float64).eps else None


def spearman_similarity(first: ArrayLike, second: ArrayLike, scores: ArrayLike) -> float | None:
    """Spearman's rank correlation of cosine(first_n, second_n) with the gold score of pair n.

    Args:
        first, second: [N, d], the vectors of the two texts of each pair.
        scores: [N], higher for more alike.
    Returns: from −1 to 1; None for fewer than two pairs, and where all cosines or all scores are equal.
    Raises: ValueError naming the argument, its value and what is expected.
    """
    one, other = checked_rows(first, "first"), checked_rows(second, "second")
    if one.shape != other.shape:
        raise ValueError(f"second = shape {list(other.shape)}: expected that of first, {list(one.shape)}")
    gold = checked_rows(np.asarray(scores)[:, None], "scores")[:, 0]
    if len(gold) != len(one):
        raise ValueError(f"scores = {len(gold)} numbers: expected {len(one)}, one for each pair")
    # Rounded, so that pairs that are equal but for rounding share a rank.
    cosines = np.einsum("nd,nd->n", normalised(one), normalised(other)).round(12)
    if len(np.unique(gold)) < 2 or len(np.unique(cosines)) < 2:
        return None
    from scipy.stats import spearmanr

    return float(spearmanr(cosines, gold).statistic)


def _scatter(rows: NDArray[np.float64]) -> float:
    """The sum of squared distances of rows [n, d] from their mean."""
    return float(np.square(rows - rows.mean(0)).sum())


ENTRIES = (
    MetricEntry(
        "linear_svm",
        0,
        N_("Linear SVM accuracy"),
        "higher",
        N_(
            "LinearSVC, C = 1, up to 10,000 iterations; mean of 5 stratified folds, shuffled, seed 0; vectors as they "
            "are."
        ),
        N_("Cortes & Vapnik 1995; scikit-learn's LinearSVC"),
        share=True,
        measure=lambda given: given.fold_accuracies[0],
        short=N_("Linear SVM"),
    ),
    MetricEntry(
        "knn1",
        1,
        N_("1-NN accuracy"),
        "higher",
        N_(
            "The nearest neighbour's class, euclidean; mean of the same 5 stratified folds, seed 0; vectors as they "
            "are."
        ),
        N_("Cover & Hart 1967; scikit-learn's KNeighborsClassifier"),
        share=True,
        measure=lambda given: given.fold_accuracies[1],
        short="1-NN",
    ),
    MetricEntry(
        "ari",
        2,
        N_("Adjusted Rand index"),
        "higher",
        N_("KMeans with as many clusters as classes against the labels, 10 starts, seed 0, vectors as they are."),
        "Hubert & Arabie 1985",
        measure=lambda given: given.cluster_scores[0],
        short="ARI",
    ),
    MetricEntry(
        "nmi",
        3,
        N_("Normalised mutual information"),
        "higher",
        N_(
            "KMeans with as many clusters as classes against the labels, 10 starts, seed 0, vectors as they are; "
            "arithmetic mean of the entropies."
        ),
        "Vinh, Epps & Bailey 2010",
        measure=lambda given: given.cluster_scores[1],
        short="NMI",
    ),
    MetricEntry(
        "alignment",
        4,
        N_("Alignment"),
        "neither",  # equal vectors have the lowest
        N_(
            "Mean squared distance over all pairs of one label; normalised vectors. Also 0 where all vectors are equal."
        ),
        "Wang & Isola 2020, arXiv:2005.10242",
        measure=lambda given: alignment(given.rows, given.labels),
    ),
    MetricEntry(
        "uniformity",
        5,
        N_("Uniformity"),
        "lower",
        N_("Log of the mean over all pairs of exp(−2 × squared distance); normalised vectors."),
        "Wang & Isola 2020, arXiv:2005.10242",
        measure=lambda given: uniformity(given.rows),
    ),
    MetricEntry(
        "silhouette",
        6,
        N_("Silhouette"),
        "higher",
        N_("Mean over examples, the labels as clusters, euclidean; vectors as they are."),
        "Rousseeuw 1987",
        measure=lambda given: given.silhouette,
    ),
    MetricEntry(
        "effective_rank",
        7,
        N_("Effective rank"),
        "neither",
        N_("exp of the entropy of the singular values' shares; normalised, then centred vectors."),
        "Roy & Vetterli 2007",
        measure=lambda given: geometry.effective_rank(given.rows) if len(given.rows) > 1 else None,
    ),
    MetricEntry(
        "within_between_ratio",
        8,
        N_("Within / between classes"),
        "lower",
        N_("Squared distance to the own class's mean over that of this mean to the mean of all; normalised vectors."),
        N_("the traces of Fisher's scatter matrices, Fisher 1936"),
        measure=lambda given: within_between_ratio(given.rows, given.labels),
        short=N_("Within / between"),
    ),
    MetricEntry(
        "spearman_similarity",
        9,
        N_("Spearman on similarity"),
        "higher",
        N_("Spearman's rank correlation of the cosine of the two texts with the score people gave."),
        "Reimers et al. 2016; Cer et al. 2017, arXiv:1708.00055",
    ),
)
for _entry in ENTRIES:
    METRICS.register(_entry)
