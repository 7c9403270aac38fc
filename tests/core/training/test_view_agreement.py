"""Agreement of two dropout passes, against slow cosines, known heads, and runs that do not measure it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from core.advice.prepare import prepare
from core.config.edit import apply_settings
from core.encoders.model import Encoder, set_dropout
from core.encoders.packing import Tokens
from core.events import VALIDATION, Evaluation, Event
from core.training import loop
from core.training.probe import SEED, view_agreement
from tests.cases import each
from tests.core.encoders.test_model import made
from tests.core.training.made import CPU, Draft, assert_same_run, run_draft

TEXTS = [Tokens(ids) for ids in [(5, 6, 7), (8, 9, 10, 11, 12), (20, 21, 22, 23), (30, 31)]]
FRAMES = {"probe": {"size": 6, "frame_steps": [0, 1, 2, 4]}}


@pytest.fixture
def encoder() -> Encoder:
    return made("bert")


def measured(encoder: Encoder, *learning: torch.nn.Module) -> dict[str, float]:
    return view_agreement(encoder, learning or [encoder], TEXTS, CPU.autocast)


def test_it_is_the_mean_cosine_of_both_passes(encoder: Encoder) -> None:
    found = measured(encoder)
    torch.manual_seed(SEED)
    with torch.no_grad():
        pooled = encoder.train().pooled([*TEXTS, *TEXTS])
        logits = encoder.logits(pooled)
    for name, both in (("view_cosine", pooled), ("view_cosine_logits", logits)):
        cosines = []
        for one, other in zip(both[:4].double().tolist(), both[4:].double().tolist(), strict=True):
            dot = math.fsum(a * b for a, b in zip(one, other, strict=True))
            cosines.append(dot / math.hypot(*one) / math.hypot(*other))
        assert found[name] == pytest.approx(math.fsum(cosines) / 4, abs=1e-6)
        assert found[name] < 0.999


def test_a_head_that_is_the_identity_or_a_constant_gives_known_values(encoder: Encoder) -> None:
    before = measured(encoder)["view_cosine"]
    encoder.family = replace(encoder.family, head=lambda _model, pooled: pooled)
    assert measured(encoder) == {"view_cosine": before, "view_cosine_logits": before}
    encoder.family = made("bert").family
    torch.nn.init.zeros_(encoder.model.classifier.weight)
    torch.nn.init.ones_(encoder.model.classifier.bias)
    assert measured(encoder) == {"view_cosine": before, "view_cosine_logits": pytest.approx(1.0)}


def test_only_the_dropout_of_a_training_step_is_active(encoder: Encoder) -> None:
    encoder.model.dropout.p = 0.5
    only_head = measured(encoder, encoder.model.dropout)
    assert only_head["view_cosine"] == pytest.approx(1.0)
    assert only_head["view_cosine_logits"] < 0.99
    set_dropout(encoder, 0.0)
    assert measured(encoder, *encoder.blocks)["view_cosine"] == pytest.approx(1.0)


def test_modes_and_random_states_stay(encoder: Encoder) -> None:
    encoder.blocks[1].train()
    modes, state = [module.training for module in encoder.modules()], torch.get_rng_state()
    measured(encoder)
    assert [module.training for module in encoder.modules()] == modes
    assert torch.equal(torch.get_rng_state(), state)


SETTINGS: dict[str, dict[str, Any]] = {
    "dropout contrast": {"preset": "dropout-nt-xent-encoder"},
    "R-Drop on the last block": {"preset": "rdrop-two-stage", "trainable.part": "last_blocks", "trainable.blocks": 1},
    "LoRA": {"preset": "rdrop-one-stage", "trainable.part": "lora"},
    "recomputed blocks": {"preset": "dscl", "gradient_checkpointing": True},
}


def measures(events: list[Event]) -> list[dict[str, float]]:
    return [
        {name: value for name, value in event.values.items() if name.endswith(("view_cosine", "_logits"))}
        for event in events
        if isinstance(event, Evaluation) and event.split == VALIDATION
    ]


@each("name", SETTINGS)
def test_every_frame_has_it_and_training_does_not_change_by_one_bit(
    draft: Draft, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    chosen = apply_settings(draft(more=FRAMES), {**SETTINGS[name], "steps": 4})
    events = run_draft(chosen)[2]
    found = measures(events)
    assert len(found) == 4
    assert all(values.keys() == {"view_cosine", "view_cosine_logits", "within_cosine_logits"} for values in found)
    assert all(0 < values["view_cosine"] < 1 - 1e-6 for values in found)
    with monkeypatch.context() as patch:
        patch.setattr(loop, "view_agreement", lambda *_: {})
        without = run_draft(chosen)[2]
    assert_same_run(without, events)


def test_without_a_trained_classifier_there_are_no_logits_and_without_dropout_views_no_passes(draft: Draft) -> None:
    """The second phase of SimCSE is plain cross-entropy."""
    chosen = apply_settings(draft(more=FRAMES), {"preset": "simcse", "steps": 4})
    found = [set(values) for values in measures(run_draft(chosen)[2])]
    assert found == [{"view_cosine"}] * 3 + [{"within_cosine_logits"}]


def test_a_cell_of_a_surface_has_none(draft: Draft) -> None:
    given = {"executor": "surface", "trainable.part": "last_blocks", "trainable.blocks": 1, "steps": 2}
    config, data = prepare(apply_settings(draft(more=FRAMES), given), gpu=False)
    assert all("view_cosine" not in values for values in measures(list(loop.train(config, data))))
