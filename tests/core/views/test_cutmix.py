"""CutMix of tokens, against the texts that it was given."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from core.encoders.packing import Tokens
from core.training.outputs import Reader
from core.training.step import compute_step
from core.views.cutmix import cutmix
from tests.cases import each
from tests.core.training.made import Draft, build_phase

CLS, SEP = 1, 2
LENGTHS = (12, 5, 30, 1, 0)
# The tokens of text i are 100·i + 10, 100·i + 11, …
TEXTS = [Tokens((CLS, *(100 * i + 10 + at for at in range(n)), SEP), (0,) * (n + 2)) for i, n in enumerate(LENGTHS)]


@each("seed", range(20))
def test_a_span_of_each_text_is_that_of_its_partner_and_the_share_counts_the_rest(seed: int) -> None:
    texts, partners, shares = cutmix(TEXTS, {CLS, SEP}, 1.0, np.random.default_rng(seed))
    cut = np.random.default_rng(seed)
    cut.permutation(len(TEXTS))
    wanted = cut.beta(1.0, 1.0)
    assert sorted(partners) == list(range(len(TEXTS)))
    for i, (text, partner, share) in enumerate(zip(texts, partners, shares, strict=True)):
        before, source, size = TEXTS[i], TEXTS[partner], LENGTHS[i]
        assert text.types == before.types
        assert (text.ids[0], text.ids[-1], len(text.ids)) == (CLS, SEP, size + 2)
        changed = [at for at in range(size + 2) if text.ids[at] != before.ids[at]]
        assert changed == list(range(changed[0], changed[-1] + 1)) if changed else True
        assert all(text.ids[at] == source.ids[at] for at in changed)
        if partner != i:
            assert share == pytest.approx(1 - len(changed) / size if size else 1.0)
            assert len(changed) == min(round(wanted * size), size, LENGTHS[partner])


def test_the_term_reads_the_mixed_texts_with_their_shares_and_other_terms_do_not(draft: Draft) -> None:
    terms = [{"loss": "cross_entropy", "cutmix": 1.0}, {"loss": "supcon"}]
    phase = build_phase(draft(objective={"terms": terms, "combine": "additive"}), dropout=0.0)
    batch = phase.batch(1)
    plain = phase.passes.inputs.plain(batch.rows)
    cut = next(number for number, wanted in enumerate(phase.plan.passes) if wanted.cutmix)
    assert batch.tokens[1 - cut] == plain
    assert batch.tokens[cut] != plain
    outputs = phase.passes.run(batch, 0, len(batch.rows))
    read = Reader(outputs, phase.encoder, phase.plan, cut=batch.mixed)
    mixed = read("cross_entropy").mixed
    assert mixed is not None
    special = phase.encoder.special_ids
    for i, partner in enumerate(mixed.partners.tolist()):
        own = [token for token in plain[i].ids if token not in special]
        now = [token for token in batch.tokens[cut][i].ids if token not in special]
        least = sum(a == b for a, b in zip(own, now, strict=True)) / len(own)
        assert float(mixed.share[i]) <= least + 1e-6
        assert set(now) <= {*own, *plain[partner].ids}
    log_p = read("cross_entropy").logits[0].detach().log_softmax(1)
    expected = 0.0
    for i, (partner, share) in enumerate(zip(mixed.partners.tolist(), mixed.share.tolist(), strict=True)):
        labels = batch.labels[i], batch.labels[partner]
        expected -= float(share * log_p[i, labels[0]] + (1 - share) * log_p[i, labels[1]]) / len(plain)
    assert compute_step(phase, 1).values["loss.cross_entropy"] == pytest.approx(expected, rel=1e-5)
    again = phase.batch(1)
    assert again.tokens == batch.tokens
    assert torch.equal(again.mixed[cut].share, batch.mixed[cut].share)
