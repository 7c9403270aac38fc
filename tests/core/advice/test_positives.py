"""Positives announced before launch, against many batches of the real sampler, also at token level."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.advice import positives as module
from core.advice.positives import (
    anchors_without_positive,
    class_shares,
    class_views,
    count_tokens,
    expected_positives,
    same_label_share,
    token_class_views,
    vectors_of,
)
from core.advice.prepare import prepare
from core.config.plan import plan_phase
from core.tasks.batches import make_sampler
from core.training.outputs import Reader
from tests.cases import each
from tests.core.config.made import DROPOUT, SCL
from tests.core.training.made import Draft, build_phase, nli_csv

SAMPLERS = ["random", "class_balanced", "two_classes", "balanced"]


def labels_of(counts: Sequence[int]) -> list[int]:
    return [label for label, count in enumerate(counts) for _ in range(count)]


@cache
def dealt(counts: Sequence[int], batch_size: int, sampler: str, steps: int) -> list[list[int]]:
    """Return the batches of some steps."""
    made = make_sampler(sampler, labels_of(counts), batch_size, seed=0)
    return [made.rows(step) for step in range(1, steps + 1)]


def measured(
    counts: Sequence[int], vectors: Sequence[int], batch_size: int, sampler: str, steps: int
) -> tuple[list[float], list[float]]:
    """Return mean positives per anchor and fraction of anchors without any, by class, one text at a time.

    All vectors of a text are anchors with the same number of positives.

    Args:
        vectors: number of vectors of each text.
    """
    labels = labels_of(counts)
    anchors, positives, lonely = ([0] * len(counts) for _ in range(3))
    for batch in dealt(counts, batch_size, sampler, steps):
        of_class = [0] * len(counts)
        for row in batch:
            of_class[labels[row]] += vectors[row]
        for row in batch:
            found = of_class[labels[row]] - 1
            anchors[labels[row]] += vectors[row]
            positives[labels[row]] += vectors[row] * found
            lonely[labels[row]] += vectors[row] * (found == 0)
    return list(np.divide(positives, anchors)), list(np.divide(lonely, anchors))


@pytest.mark.slow
@each("counts", [(60, 30, 8, 3), (9, 4, 1) + (3,) * 20])
@each("sampler", ["random", "class_balanced"])
def test_large_batches_of_one_vector_of_a_text(counts: tuple[int, ...], sampler: str) -> None:
    for batch_size in [16, 64]:
        positives, lonely = measured(counts, [1] * sum(counts), batch_size, sampler, steps=4000)
        assert expected_positives(counts, batch_size, sampler) == pytest.approx(positives, abs=0.2)
        assert anchors_without_positive(counts, batch_size, sampler) == pytest.approx(lonely, abs=0.07)


def test_77_classes_in_a_batch_of_32() -> None:
    """Random batches leave most anchors without a positive, equal shares every one, class-balanced batches none."""
    counts = [40] * 77
    assert min(anchors_without_positive(counts, 32, "random")) > 0.6
    assert anchors_without_positive(counts, 32, "balanced") == [1.0] * 77
    assert anchors_without_positive(counts, 32, "class_balanced") == [0.0] * 77
    assert expected_positives(counts, 32, "class_balanced") == [1.0] * 77


@each("views", [1, 3])
@each(("counts", "batch_size"), [((30, 10), 4), ((9, 9, 6), 6), ((8,) * 12, 8)])
@each("sampler", SAMPLERS)
def test_several_views(counts: tuple[int, ...], batch_size: int, views: int, sampler: str) -> None:
    positives, lonely = measured(counts, [views] * sum(counts), batch_size, sampler, steps=4000)
    assert expected_positives(counts, batch_size, sampler, views) == pytest.approx(positives, abs=0.08 * views)
    assert anchors_without_positive(counts, batch_size, sampler, views) == pytest.approx(lonely, abs=0.04)


@each("sampler", ["random", "class_balanced"])
@each("most", [1, 2, 9])
@each("batch_size", [4, 9])
def test_vectors_that_differ_from_text_to_text(sampler: str, most: int, batch_size: int) -> None:
    """Vary the number of vectors, as at token level. Some texts have none."""
    counts = (30, 12, 4)
    vectors = [int(v) for v in np.random.default_rng(1).integers(0, most + 1, sum(counts))]
    starts = np.cumsum((0, *counts))
    vectors[-1] = 1  # every class has an anchor
    views = [class_views(vectors[a:b]) for a, b in pairwise(starts)]
    positives, lonely = measured(counts, vectors, batch_size, sampler, steps=4000)
    assert expected_positives(counts, batch_size, sampler, views) == pytest.approx(positives, rel=0.03, abs=0.05)
    assert anchors_without_positive(counts, batch_size, sampler, views) == pytest.approx(lonely, abs=0.03)


def same_share(labels: Sequence[int], batches: Sequence[Sequence[int]]) -> float:
    """Count the pairs of one label in batches, pair by pair."""
    pairs = [labels[one] == labels[other] for batch in batches for one, other in combinations(batch, 2)]
    return sum(pairs) / len(pairs)


def test_pairs_of_one_label_are_counted_over_every_random_batch() -> None:
    every = list(combinations(range(7), 3))
    assert same_label_share((4, 2, 1), 3, "random") == pytest.approx(same_share(labels_of((4, 2, 1)), every))
    assert same_label_share((5, 5), 2, "random") == pytest.approx(4 / 9)
    assert same_label_share((5,), 4, "random") == 1.0


@each("sampler", SAMPLERS)
def test_pairs_of_one_label_and_shares_of_classes_are_those_that_the_sampler_draws(sampler: str) -> None:
    counts = (40, 20, 6)
    labels, batches = labels_of(counts), dealt(counts, 8, sampler, 4000)
    assert same_label_share(counts, 8, sampler) == pytest.approx(same_share(labels, batches), abs=0.01)
    shares = np.bincount([labels[row] for batch in batches for row in batch])
    assert class_shares(counts, 8, sampler) == pytest.approx(shares / shares.sum(), abs=0.01)


@each("views", [1, 2, 3])
@each("sampler", SAMPLERS)
def test_a_batch_of_one_has_only_its_own_other_views(sampler: str, views: int) -> None:
    assert expected_positives([5, 5], 1, sampler, views) == [views - 1.0] * 2
    assert anchors_without_positive([5, 5], 1, sampler, views) == [float(views == 1)] * 2


@each("sampler", ["random", "class_balanced"])
def test_the_only_row_of_its_class_never_has_a_positive(sampler: str) -> None:
    assert expected_positives([9, 1], 4, sampler)[1] == 0.0
    assert anchors_without_positive([9, 1], 4, sampler)[1] == 1.0


@each("sampler", SAMPLERS)
def test_a_class_without_rows_has_no_anchors(sampler: str) -> None:
    assert expected_positives([6, 0, 6], 4, sampler)[1] == 0.0
    assert anchors_without_positive([6, 0, 6], 4, sampler)[1] == 0.0
    assert class_shares([6, 0, 6], 4, sampler) == pytest.approx([0.5, 0.0, 0.5])


def test_chances_stay_chances_for_large_batches() -> None:
    assert np.isfinite(anchors_without_positive([100_000, 3], 4096, "random")).all()
    assert anchors_without_positive([2, 2], 100, "random") == [0.0, 0.0]


def test_the_views_of_a_class_are_those_of_its_anchors() -> None:
    vectors = [3, 1, 0, 5]
    pairs = [(i, j) for i, v in enumerate(vectors) for _ in range(v) for j in range(len(vectors)) if j != i]
    found = class_views(vectors)
    assert found.mean == 9 / 4
    assert found.own == pytest.approx((3 * 2 + 5 * 4) / 9)
    assert found.other == pytest.approx(np.mean([vectors[j] for _, j in pairs]))
    assert found.alone == pytest.approx(1 / 9)
    assert found.present == 3 / 4
    assert class_views([0, 0]).own == class_views([0, 0]).present == 0.0
    assert class_views([4]).other == 0.0


def tokens(k: int, **settings: Any) -> dict[str, Any]:
    return {"terms": [SCL | {"level": "token", "k": k} | settings]}


@pytest.mark.parametrize(
    "settings",
    [{"k": 3}, {"k": 8}, {"k": 30}, {"k": 9, "clusters": 2}, {"k": 30, "clusters": 7}, {"k": 8, "views": DROPOUT}],
    ids=str,
)
def test_as_many_vectors_are_counted_as_a_step_contrasts(draft: Draft, settings: dict[str, Any]) -> None:
    """Texts differ in length, and some have fewer tokens than k or than clusters."""
    made = build_phase(draft(objective=tokens(**settings)))
    (term,) = made.plan.terms
    counted = count_tokens(str(made.encoder.folder), made.setup.data.train, 32)
    assert counted.exact
    for step in (1, 2):
        batch = made.batch(step)
        outputs, _ = made.passes.encode(step, batch)
        found = Reader(outputs, made.encoder, made.plan)(term.key).layers[0]
        assert found.view_mask is not None
        real = found.view_mask.sum(1).tolist()
        promised = [vectors_of(counted.tokens[row], term) for row in batch.rows]
        if "clusters" in settings:  # equal tokens leave a cluster empty
            assert all(mine <= most and (mine > 0) == (most > 0) for mine, most in zip(real, promised, strict=True))
        else:
            assert real == promised


def test_special_tokens_are_none_and_long_texts_are_cut(draft: Draft, tmp_path: Path, tiny_encoder: Path) -> None:
    made = build_phase(draft())
    train = made.setup.data.train
    for length in (5, 32):
        counted = count_tokens(str(tiny_encoder), train, length)
        assert list(counted.tokens) == [min(length - 2, len(text.split())) for text in train.texts]
    _, pairs = prepare(draft(task={"path": str(nli_csv(tmp_path / "nli.csv"))}), gpu=False)
    assert pairs.train.seconds is not None
    words = [len(a.split()) + len(b.split()) for a, b in zip(pairs.train.texts, pairs.train.seconds, strict=True)]
    assert list(count_tokens(str(tiny_encoder), pairs.train, 64).tokens) == words


def test_without_the_tokenizer_it_is_an_estimate(
    draft: Draft, tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = build_phase(draft()).setup.data.train
    monkeypatch.setattr(module, "tokenizer_file", lambda _: None)
    counted = count_tokens(str(tiny_encoder), train, 32)
    assert not counted.exact
    characters = np.mean([len(text) for text in train.texts])
    assert np.mean(counted.tokens) == pytest.approx(characters / 4.3, abs=1.0)
    assert max(count_tokens(str(tiny_encoder), train, 6).tokens) == 4


def test_a_class_of_which_no_text_was_counted_takes_those_of_all(draft: Draft) -> None:
    (term,) = plan_phase(draft(objective=tokens(4)).phases[0].objective, 2).terms
    counted = module.TokenCounts((0, 2, 0), (3, 1, 9), exact=True)
    assert [views.mean for views in token_class_views(counted, term, 3)] == [3.5, pytest.approx(8 / 3), 1.0]
