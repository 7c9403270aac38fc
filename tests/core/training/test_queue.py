"""The queue of a momentum encoder, against plain formulas."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from core.config import TrainableConfig
from core.encoders.model import Encoder
from core.encoders.packing import Tokens
from core.losses import supcon_loss
from core.training.queue import MomentumQueue
from core.training.trainable import apply_trainable
from tests.cases import each
from tests.core.encoders.test_model import TEXTS, made
from tests.core.training.made import CPU, Draft, build_phase, take_steps

MOMENTUM = 0.75
BATCHES = [([0, 1], [0, 1]), ([2, 3], [1, 1]), ([4, 0], [0, 1]), ([1, 2], [1, 0])]


def texts(rows: list[int]) -> list[Tokens]:
    return [TEXTS[row] for row in rows]


def move(encoder: Encoder, seed: int) -> None:
    """Change the trainable weights, as a step of the optimiser would."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in (p for p in encoder.parameters() if p.requires_grad):
            parameter.add_(0.3 * torch.randn_like(parameter))


def pooled(encoder: Encoder, weights: dict[str, Tensor], rows: list[int]) -> Tensor:
    twin = made("bert")
    twin.load_state_dict(dict(encoder.state_dict()) | weights)
    with torch.no_grad():
        return twin.pooled(texts(rows))


def filled(encoder: Encoder, size: int, batches: int = 4) -> MomentumQueue:
    queue = MomentumQueue(encoder, "supcon", size, MOMENTUM)
    for seed, (rows, labels) in enumerate(BATCHES[:batches]):
        move(encoder, seed)
        queue.step(texts(rows), torch.tensor(labels), CPU.autocast)
    return queue


@each("trainable", [TrainableConfig(), TrainableConfig(part="last_blocks", blocks=1)])
def test_the_copy_is_an_exponential_mean_of_the_weights_and_reads_each_batch_as_it_stands(
    trainable: TrainableConfig,
) -> None:
    encoder = made("bert").train()
    apply_trainable(encoder, trainable)
    mean = {name: p.detach().clone() for name, p in encoder.named_parameters()}
    queue = MomentumQueue(encoder, "supcon", 100, MOMENTUM)
    assert queue.held is None
    expected = []
    for seed, (rows, labels) in enumerate(BATCHES):
        move(encoder, seed)
        for name, parameter in encoder.named_parameters():
            mean[name] = MOMENTUM * mean[name] + (1 - MOMENTUM) * parameter.detach()
        expected.append(pooled(encoder, mean, rows))
        queue.step(texts(rows), torch.tensor(labels), CPU.autocast)
    vectors, labels = queue.held
    torch.testing.assert_close(vectors, torch.cat(expected), atol=1e-5, rtol=1e-4)
    assert labels.tolist() == [label for _, batch in BATCHES for label in batch]
    assert not vectors.requires_grad


def test_it_holds_the_newest_oldest_first() -> None:
    whole = filled(made("bert"), 100).held
    for size in (1, 3, 4, 8):
        held = filled(made("bert"), size).held
        assert torch.equal(held[0], whole[0][-size:])
        assert torch.equal(held[1], whole[1][-size:])


def test_the_encoder_is_untouched_and_no_random_number_is_drawn() -> None:
    encoder = made("bert").train()
    before = {name: p.detach().clone() for name, p in encoder.named_parameters()}
    queue = MomentumQueue(encoder, "supcon", 5, MOMENTUM)
    state = torch.get_rng_state()
    queue.step(texts([0, 1]), torch.tensor([0, 1]), CPU.autocast)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(p, before[name]) and p.requires_grad for name, p in encoder.named_parameters())
    assert encoder.training


def test_vectors_go_through_the_moving_projection() -> None:
    encoder = made("bert")
    encoder.projections["supcon"] = nn.Linear(16, 3)
    held = filled(encoder, 5).held
    assert held[0].shape == (5, 3)


def test_a_checkpoint_holds_all_that_the_next_step_needs() -> None:
    """Also check an encoder whose other weights changed in an earlier phase. Only trainable weights move now."""
    encoders = []
    for _ in range(2):
        encoder = made("bert")
        apply_trainable(encoder, TrainableConfig(part="last_blocks", blocks=1))
        encoders.append(encoder)
    original, resumed = encoders
    fresh = MomentumQueue(resumed, "supcon", 5, MOMENTUM)  # a queue is created before weights are restored
    with torch.no_grad():
        for parameter in original.base.embeddings.parameters():
            parameter.add_(1.0)  # trained in an earlier phase
    queue = filled(original, 5)
    state = {name: tensor.clone() for name, tensor in queue.state().items()}
    assert not any("embeddings" in name or "layer.0." in name for name in state)

    resumed.load_state_dict(original.state_dict())
    fresh.restore(state)
    for one, encoder in ((queue, original), (fresh, resumed)):
        move(encoder, 9)
        one.step(texts([3, 4]), torch.tensor([0, 0]), CPU.autocast)
    assert all(torch.equal(a, b) for a, b in zip(queue.held, fresh.held, strict=True))
    assert all(torch.equal(tensor, fresh.state()[name]) for name, tensor in queue.state().items())


def test_a_queue_without_vectors_is_restored_without_any() -> None:
    encoder = made("bert")
    queue, other = (MomentumQueue(encoder, "supcon", 5, MOMENTUM) for _ in range(2))
    other.restore(queue.state())
    assert other.held is None


def objective(**settings: Any) -> dict[str, Any]:
    return {"terms": [{"loss": "supcon", "temperature": 0.2} | settings]}


def test_the_loss_of_a_step_has_the_queue_among_its_candidates(draft: Draft, monkeypatch: pytest.MonkeyPatch) -> None:
    phase = build_phase(draft(objective=objective(queue=20, momentum=0.5), optimiser={"learning_rate": 1e-2}))
    pooled_vectors: list[Tensor] = []
    original = phase.passes.encode

    def encoded(*given: Any) -> Any:
        outputs, cache = original(*given)
        pooled_vectors.append(outputs.pooled[2][0].detach())
        return outputs, cache

    monkeypatch.setattr(phase.passes, "encode", encoded)
    lengths = []
    for step in (1, 2, 3, 4):
        held = phase.queues["supcon"].held
        lengths.append(0 if held is None else len(held[0]))
        (values,) = take_steps(phase, 1, first=step)
        labels = phase.labels[phase.rows_of(step)]
        expected = supcon_loss(pooled_vectors[-1], labels, temperature=0.2, queue=held).item()
        assert values["loss.supcon"] == pytest.approx(expected, rel=1e-6)
    assert lengths == [0, 8, 16, 20]


def test_dscl_has_a_queue_too(draft: Draft) -> None:
    """Its first step has no past vectors; from the second on, they count."""
    term = {"loss": "dscl", "views": [{"view": "dropout"}]}
    losses = {}
    for size in (0, 20):
        phase = build_phase(draft(objective={"terms": [term | {"queue": size}]}))
        losses[size] = [values["loss.dscl"] for values in take_steps(phase, 2)]
    held = phase.queues["dscl"].held
    assert len(held[0]) == 16
    assert losses[0][0] == losses[20][0]
    assert losses[0][1] < losses[20][1]


def test_the_queue_holds_the_batches_rows_in_order(draft: Draft) -> None:
    phase = build_phase(draft(objective=objective(queue=20)))
    take_steps(phase, 3)
    rows = [row for step in (1, 2, 3) for row in phase.rows_of(step)][-20:]
    held = phase.queues["supcon"].held
    assert torch.equal(held[1], phase.labels[rows])
