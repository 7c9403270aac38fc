"""The vectors that the audit counts at token level are those that a step contrasts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.advice import token_views
from core.advice.positives import anchors_without_positive, expected_positives
from core.advice.prepare import prepare
from core.advice.token_views import count_tokens, token_class_views, vectors_of
from core.config import RunConfig
from core.config.plan import plan_phase
from core.training.outputs import Reader
from tests.core.training.made import Draft, made_phase, nli_csv

DROPOUT = {"views": [{"view": "dropout"}]}


def tokens(k: int, **settings: Any) -> dict[str, Any]:
    return {"terms": [{"loss": "supcon", "level": "token", "k": k, "weight": 1.0} | settings]}


@pytest.mark.parametrize(
    "settings",
    [{"k": 3}, {"k": 8}, {"k": 30}, {"k": 9, "clusters": 2}, {"k": 30, "clusters": 7}, {"k": 8} | DROPOUT],
    ids=str,
)
def test_as_many_vectors_are_counted_as_a_step_contrasts(draft: Draft, settings: dict[str, Any]) -> None:
    """Texts of different lengths, some with fewer tokens than k or than clusters."""
    made = made_phase(draft(objective=tokens(**settings)))
    (term,) = made.plan.terms
    counted = count_tokens(str(made.encoder.folder), made.data.train, 32)
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


def test_the_audit_equals_the_pairs_of_real_batches(draft: Draft) -> None:
    """Positives of every token vector, counted over the masks of many batches."""
    config: RunConfig = draft(objective=tokens(6), batch_size=4)
    made = made_phase(config)
    (term,) = made.plan.terms
    counted = count_tokens(str(made.encoder.folder), made.data.train, 32)
    labels = made.data.train.labels
    anchors, positives, lonely = (np.zeros(2) for _ in range(3))
    for step in range(1, 3000):
        rows = made.sampler.rows(step)
        vectors = [vectors_of(counted.tokens[row], term) for row in rows]
        for row, own in zip(rows, vectors, strict=True):
            alike = sum(v for other, v in zip(rows, vectors, strict=True) if labels[other] == labels[row]) - 1
            anchors[labels[row]] += own
            positives[labels[row]] += own * alike
            lonely[labels[row]] += own * (alike == 0)
    counts = [labels.count(label) for label in (0, 1)]
    views = token_class_views(counted, term, 2)
    assert expected_positives(counts, 4, "random", views) == pytest.approx(positives / anchors, rel=0.02)
    assert anchors_without_positive(counts, 4, "random", views) == pytest.approx(lonely / anchors, abs=0.01)


def test_special_tokens_are_none_and_long_texts_are_cut(draft: Draft, tmp_path: Path, tiny_encoder: Path) -> None:
    made = made_phase(draft())
    train = made.data.train
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
    train = made_phase(draft()).data.train
    monkeypatch.setattr(token_views, "tokenizer_file", lambda _: None)
    counted = count_tokens(str(tiny_encoder), train, 32)
    assert not counted.exact
    characters = np.mean([len(text) for text in train.texts])
    assert np.mean(counted.tokens) == pytest.approx(characters / 4.3, abs=1.0)
    assert max(count_tokens(str(tiny_encoder), train, 6).tokens) == 4


def test_a_class_of_which_no_text_was_counted_takes_those_of_all(draft: Draft) -> None:
    made = made_phase(draft(objective=tokens(4)))
    (term,) = plan_phase(made.config.objective, 2).terms
    counted = token_views.TokenCounts((0, 0), (3, 9), exact=True)
    first, second = token_class_views(counted, term, 2)
    assert first == second
    assert first.mean == 3.5
