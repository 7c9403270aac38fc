"""One phase: how often the encoder reads a text, values cached for frozen blocks, and overfitting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from core.encoders import model as model_module
from core.encoders.model import Encoder
from core.encoders.packing import Tokens
from core.training.phase import Phase
from core.training.step import commit_step, compute_step
from tests.cases import slow_but
from tests.core.training.made import Draft, additive, build_phase, preset_phases, take_steps, weights

B = 8


CE = {"loss": "cross_entropy"}


def view(name: str, **settings: Any) -> dict[str, Any]:
    return {"view": name} | settings


@contextmanager
def texts_read(encoder: Encoder) -> Iterator[list[int]]:
    """Collect the number of texts that the first block reads, call by call."""
    packed: list[int] = []
    read: list[int] = []
    pack = model_module.pack

    def counting(texts: Sequence[Tokens], *given: Any, **more: Any) -> Any:
        packed.append(len(texts))
        return pack(texts, *given, **more)

    # A skipped block has another forward method. Its attention runs only if the block is computed.
    attention = encoder.blocks[0].attention
    handle = attention.register_forward_hook(lambda *_: read.append(packed[-1]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model_module, "pack", counting)
        yield read
    handle.remove()


def contrast(**settings: Any) -> dict[str, Any]:
    return {"objective": additive(CE, {"loss": "supcon"} | settings)}


# The texts that each call of a step reads, and the readings of the plan.
READINGS: dict[str, tuple[dict[str, Any], list[int], int]] = {
    "ce-scl": (preset_phases("ce-scl")[0], [B], 1),
    "one-stage R-Drop": (preset_phases("rdrop-one-stage")[0], [B], 1),
    "two-stage R-Drop": (preset_phases("rdrop-two-stage")[0], [2 * B], 2),
    "layers of tokens": (preset_phases("multi-layer-token")[0], [B], 1),
    "consert": (preset_phases("consert")[0], [2 * B], 2),
    # Two passes to find the perturbation, then the clean and the perturbed text.
    "adversarial": (contrast(views=[view("adversarial")]), [2 * B, 2 * B], 4),
    "queue": (contrast(queue=16), [B], 2),  # the queue encodes with its own copy
    "three views": (contrast(views=[view("dropout"), view("dropout")]), [3 * B], 3),
    "weight 0": (contrast(views=[view("dropout")], weight=0.0), [B], 1),
}


@pytest.mark.parametrize(("phase", "calls", "readings"), READINGS.values(), ids=READINGS)
def test_the_encoder_reads_each_text_as_often_as_the_plan_says_and_in_one_call(
    draft: Draft, phase: dict[str, Any], calls: list[int], readings: int
) -> None:
    made = build_phase(draft(**phase))
    with texts_read(made.encoder) as read:
        take_steps(made, 2)
    assert read == calls * 2
    assert made.plan.readings == readings


def test_reported_token_counts_match_the_tokens_read(draft: Draft) -> None:
    one, two = (build_phase(draft(**preset_phases(name)[0])) for name in ("ce", "rdrop-two-stage"))
    (first,), (second,) = take_steps(one, 1), take_steps(two, 1)
    assert first["texts"] == second["texts"] == B
    expected = sum(len(tokens.ids) for tokens in one.passes.inputs.plain(one.rows_of(1)))
    assert (first["tokens"], second["tokens"]) == (expected, 2 * expected)


# Frozen blocks


LAST, HEAD = {"part": "last_blocks", "blocks": 1}, {"part": "classifier"}
FROZEN: dict[str, dict[str, Any]] = {
    "last block": {"trainable": LAST},
    "classifier": {"trainable": HEAD},
    "two-stage": {"trainable": LAST, "objective": preset_phases("rdrop-two-stage")[0]["objective"]},
    "two-stage, classifier": {"trainable": HEAD, "objective": preset_phases("rdrop-two-stage")[0]["objective"]},
    "one-stage, classifier": {"trainable": HEAD, "objective": preset_phases("rdrop-one-stage")[0]["objective"]},
    "tokens": {"trainable": LAST, "objective": preset_phases("token-scl")[0]["objective"]},
    "tokens, classifier": {"trainable": HEAD} | contrast(level="token", k=4, layers=[1, 2], projection="mlp"),
    "layers, classifier": {"trainable": HEAD} | contrast(layers=[1, 2], projection="linear"),
    "queue": {"trainable": LAST} | contrast(queue=12, momentum=0.5),
}
BY_CLASS = [(name, "class_balanced") for name in FROZEN]
QUICK = [case for case in BY_CLASS if case[0] in ("last block", "two-stage, classifier", "tokens", "queue")]
STEPS = 10  # of batches of 8 from 24 rows: more than three epochs


def frozen_phase(draft: Draft, given: dict[str, Any], *, sampler: str = "random") -> Phase:
    rate = {"learning_rate": 1e-2}
    task = {"train_size": 24, "sampler": sampler}
    return build_phase(draft(task=task, steps=STEPS, optimiser=rate, **given))


@pytest.mark.parametrize(("name", "sampler"), slow_but(QUICK, [*BY_CLASS, ("queue", "random"), ("tokens", "balanced")]))
def test_frozen_blocks_are_computed_once_per_row_for_the_same_losses(
    draft: Draft, monkeypatch: pytest.MonkeyPatch, name: str, sampler: str
) -> None:
    plain = frozen_phase(draft, FROZEN[name], sampler=sampler)
    plain.passes.kept_outputs = plain.passes.kept_states = None
    with texts_read(plain.encoder) as read:
        expected = take_steps(plain, STEPS)
    # Without the cache every pass reads its texts again, and R-Drop's two passes read them twice.
    assert sum(read) == STEPS * B * len(plain.plan.passes)
    made = frozen_phase(draft, FROZEN[name], sampler=sampler)
    rows: list[int] = []  # that pass through the frozen blocks, in order of computation
    kept: Any = made.passes.kept_outputs or made.passes.kept_states
    compute = kept._compute
    monkeypatch.setattr(kept, "_compute", lambda asked: rows.extend(asked) or compute(asked))
    with texts_read(made.encoder) as read:
        found = take_steps(made, STEPS)
    for one, other in zip(found, expected, strict=True):
        assert one == pytest.approx(other, rel=1e-5, abs=1e-5)
    assert sorted(rows) == list(range(24))
    assert sum(read) == 24


@pytest.mark.parametrize(
    "given",
    [
        contrast(views=[view("eda")]),
        contrast(views=[view("token_shuffle")]),
        contrast(views=[view("feature_cutoff")]),
        contrast(views=[view("adversarial")]),
        {"micro_batch": 3},
        contrast(layers=[1, 2]),
    ],
    ids=["eda", "token shuffle", "cut-off", "adversarial", "micro batch", "frozen layer"],
)
def test_changing_or_tapping_frozen_blocks_bypasses_the_cache(draft: Draft, given: dict[str, Any]) -> None:
    made = build_phase(draft(trainable=LAST, **given))
    assert made.passes.kept_outputs is made.passes.kept_states is None
    before = weights(made.encoder)
    values = take_steps(made, 2)
    assert all(torch.tensor([*step.values()]).isfinite().all() for step in values)
    moved = {name for name, tensor in weights(made.encoder).items() if not torch.equal(tensor, before[name])}
    assert moved
    assert not any("embeddings" in name or "layer.0." in name for name in moved)


@pytest.mark.parametrize("part", ["all", "lora"])
def test_nothing_is_kept_where_no_block_is_frozen(draft: Draft, part: str) -> None:
    made = build_phase(draft(trainable={"part": part}))
    assert made.passes.kept_outputs is made.passes.kept_states is None


def test_frozen_blocks_run_without_dropout_and_the_others_with_it(draft: Draft) -> None:
    made = frozen_phase(draft, FROZEN["last block"])
    take_steps(made, 1)
    assert not made.encoder.blocks[0].training
    assert not made.encoder.base.embeddings.training
    assert made.encoder.blocks[1].training


# Reported values and movement of weights


def test_every_term_reports_its_losses_reference_lines_and_gradient_norm(draft: Draft) -> None:
    terms = additive(
        CE,
        {"loss": "rdrop", "weight": 0.5, "views": [view("dropout")]},
        {"loss": "supcon", "weight": 0.3, "queue": 8},
        {"loss": "supcon", "weight": 0.0, "level": "token", "k": 3},
        {"loss": "simcse", "weight": 0.2, "views": [view("dropout")]},
    )
    # The phase taps no tokens for a term of weight 0.
    (values,) = take_steps(build_phase(draft(objective=terms)), 1)
    losses = {"cross_entropy", "rdrop", "rdrop.ce", "rdrop.kl", "supcon", "simcse"}
    assert {name.removeprefix("loss.") for name in values if name.startswith("loss.")} == losses
    assert {name for name in values if name.startswith("collapse_line.")} == {
        "collapse_line.supcon",
        "collapse_line.simcse",
    }
    assert {name for name in values if name.startswith("lower_bound.")} == {"lower_bound.supcon"}
    assert {name for name in values if name.startswith("shared_grad.")} == {
        f"shared_grad.{key}" for key in ("cross_entropy", "rdrop", "supcon", "simcse")
    }
    total = sum(w * values[f"loss.{key}"] for key, w in (("cross_entropy", 1), ("rdrop", 0.5), ("supcon", 0.3)))
    assert values["loss"] == pytest.approx(total + 0.2 * values["loss.simcse"], rel=1e-5)
    assert values["phase"] == 1


def test_a_step_moves_nothing_before_it_is_committed(draft: Draft) -> None:
    made = build_phase(draft(objective=additive(CE, {"loss": "supcon", "queue": 8}), optimiser={"learning_rate": 0.01}))
    before = weights(made.encoder)
    computed = compute_step(made, 1)
    assert all(torch.equal(tensor, before[name]) for name, tensor in weights(made.encoder).items())
    assert made.queues["supcon"].held is None
    commit_step(made, computed)
    assert not torch.equal(weights(made.encoder)["model.classifier.weight"], before["model.classifier.weight"])
    assert made.queues["supcon"].held is not None


@pytest.mark.parametrize(
    ("trainable", "moving"),
    [
        ({"part": "all"}, ("embeddings", "layer.0.", "layer.1.", "classifier", "projections")),
        (LAST, ("layer.1.", "classifier", "projections")),
        ({"part": "lora"}, ("lora_A", "lora_B", "classifier", "projections")),
        (HEAD, ("classifier", "projections")),
    ],
    ids=["all", "last block", "lora", "classifier"],
)
def test_only_what_learns_moves(draft: Draft, trainable: dict[str, Any], moving: tuple[str, ...]) -> None:
    terms = additive(CE, {"loss": "supcon", "projection": "mlp"})
    made = build_phase(draft(objective=terms, trainable=trainable, optimiser={"learning_rate": 1e-2}))
    before = weights(made.encoder)
    take_steps(made, 3)
    moved = {name for name, tensor in weights(made.encoder).items() if not torch.equal(tensor, before[name])}
    for part in moving:
        assert any(part in name for name in moved), part
    assert all(any(part in name for part in moving) or "pooler" in name for name in moved)


@pytest.mark.parametrize("optimiser", [{"name": "adafactor"}, {"bias_correction": False}, {"layer_decay": 0.5}])
def test_the_optimiser_of_the_phase_is_used(draft: Draft, optimiser: dict[str, Any]) -> None:
    found = [
        [step["loss"] for step in take_steps(build_phase(draft(optimiser={"learning_rate": 1e-2} | given)), 4)]
        for given in ({}, optimiser)
    ]
    assert found[0][0] == found[1][0]
    assert found[0][1:] != found[1][1:]


def test_a_gradient_cache_as_large_as_the_batch_or_over_frozen_blocks_changes_nothing(draft: Draft) -> None:
    whole = build_phase(draft(**preset_phases("ce", trainable=LAST, micro_batch=B)[0]))
    assert whole.passes.kept_states is not None
    frozen = build_phase(draft(**preset_phases("ce", trainable=HEAD, micro_batch=2)[0]))
    assert frozen.passes.kept_outputs is not None


def test_an_adversarial_step_follows_the_contrastive_loss_among_those_that_share_it(draft: Draft) -> None:
    def gradient(*terms: dict[str, Any]) -> torch.Tensor:
        made = build_phase(draft(objective=additive(*terms)), dropout=0.0)
        (found,) = made.batch(1).gradients.values()
        return found[0]

    views = [{"view": "adversarial"}]
    cross_entropy, supcon = ({"loss": loss, "weight": 0.5, "views": views} for loss in ("cross_entropy", "supcon"))
    torch.testing.assert_close(gradient(cross_entropy, supcon), gradient(supcon))
    assert not torch.allclose(gradient(cross_entropy), gradient(supcon))


def test_an_adversarial_step_uses_the_current_knob_values(draft: Draft) -> None:
    def gradients(launched: float, turned: float) -> list[torch.Tensor]:
        term = {"loss": "supcon", "temperature": launched, "views": [view("adversarial")]}
        made = build_phase(draft(objective=additive(term)), dropout=0.0)
        made.set_objective(made.objective_config.with_knob("temperature", turned))
        return made.batch(1).gradients[1]

    expected = gradients(0.05, 0.05)
    for found, wanted in zip(gradients(0.5, 0.05), expected, strict=True):
        torch.testing.assert_close(found, wanted)
    assert not torch.allclose(gradients(0.05, 0.5)[0], expected[0])
