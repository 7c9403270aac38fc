"""Groups of parameters, AdamW without bias correction against plain formulas, and moments after a restart."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from core.config import OptimiserConfig, TrainableConfig
from core.encoders.model import Encoder
from core.training.optimisers import (
    make_optimiser,
    optimiser_state,
    parameter_groups,
    restore_optimiser_state,
    set_rates,
    take_clipped_step,
)
from core.training.trainable import apply_trainable
from tests.cases import each
from tests.core.encoders.test_model import CONFIGS, made

CPU = torch.device("cpu")
DECAYED = OptimiserConfig(learning_rate=1e-3, classifier_learning_rate=1e-2, layer_decay=0.5, weight_decay=0.1)


def rates(encoder: Encoder, optimiser: OptimiserConfig) -> dict[str, float]:
    names = {parameter: name for name, parameter in encoder.named_parameters()}
    return {names[p]: group["rate"] for group in parameter_groups(encoder, optimiser) for p in group["params"]}


@each("model_type", CONFIGS)
class TestGroups:
    def test_every_parameter_is_in_one_group_and_only_matrices_decay(self, model_type: str) -> None:
        encoder = made(model_type)
        groups = parameter_groups(encoder, DECAYED)
        grouped = [p for group in groups for p in group["params"]]
        assert len(grouped) == len(set(grouped))
        assert set(grouped) == set(encoder.parameters())
        assert {(p.ndim >= 2, g["weight_decay"]) for g in groups for p in g["params"]} == {(True, 0.1), (False, 0.0)}

    def test_rates_fall_from_the_head_to_the_embeddings(self, model_type: str) -> None:
        encoder = made(model_type)
        encoder.projections = nn.ModuleDict({"supcon": nn.Linear(16, 4)})
        head = tuple(f"model.{path}." for path in encoder.family.head_modules)
        for name, rate in rates(encoder, DECAYED).items():
            if name.startswith((*head, "projections.")):
                assert rate == 1e-2, name
            elif ".layer.1." in name:
                assert rate == 1e-3, name
            elif ".layer.0." in name:
                assert rate == 5e-4, name
            else:  # embeddings, relative positions, norms outside the blocks
                assert name.startswith(f"model.{encoder.model.base_model_prefix}."), name
                assert rate == 2.5e-4, name

    def test_one_rate_is_two_groups(self, model_type: str) -> None:
        encoder = made(model_type)
        encoder.projections = nn.ModuleDict({"supcon": nn.Linear(16, 4)})
        groups = parameter_groups(
            encoder, OptimiserConfig(learning_rate=1e-3, classifier_learning_rate=1e-3, weight_decay=0.1)
        )
        assert [(group["rate"], group["weight_decay"]) for group in groups] == [(1e-3, 0.1), (1e-3, 0.0)]

    def test_what_does_not_learn_is_in_no_group(self, model_type: str) -> None:
        encoder = made(model_type)
        apply_trainable(encoder, TrainableConfig(part="lora"))
        found = rates(encoder, DECAYED)
        assert found.keys() == {name for name, p in encoder.named_parameters() if p.requires_grad}
        adapters = {name: rate for name, rate in found.items() if "lora_" in name}
        assert {rate for name, rate in adapters.items() if ".layer.0." in name} == {5e-4}
        assert {rate for name, rate in adapters.items() if ".layer.1." in name} == {1e-3}


STEPS = 20
PEAKS = (0.03, 0.01)  # of a matrix with weight decay and a vector without
WEIGHT_DECAY = 0.1
FACTORS = [0.0 if t in (1, 8) else min(1.0, t / 4) * (1 - t / 30) for t in range(1, STEPS + 1)]


def start() -> list[Tensor]:
    torch.manual_seed(0)
    return [torch.randn(4, 3, dtype=torch.float64), torch.randn(3, dtype=torch.float64)]


def gradient(step: int, index: int, entry: int) -> float:
    """Return a gradient of changing sign and size. One entry is 0 at first, so that ε matters."""
    if entry == 0 and step < 6:
        return 0.0
    return math.sin(1.7 * step + entry + 3 * index) * 10.0 ** (-((step + entry) % 9))


def by_plain_formulas(bias_correction: bool, beta1: float = 0.9, beta2: float = 0.999) -> list[list[float]]:
    """Compute θ ← θ − lr·(m̂/(√v̂ + ε) + λθ), number by number (Loshchilov and Hutter 2019, algorithm 2)."""
    result = []
    for index, parameter in enumerate(start()):
        decay = WEIGHT_DECAY if index == 0 else 0.0
        values = []
        for entry, first in enumerate(parameter.flatten().tolist()):
            theta, m, v = first, 0.0, 0.0
            for t in range(1, STEPS + 1):
                g = gradient(t, index, entry)
                m = beta1 * m + (1 - beta1) * g
                v = beta2 * v + (1 - beta2) * g * g
                m_hat = m / (1 - beta1**t) if bias_correction else m
                v_hat = v / (1 - beta2**t) if bias_correction else v
                theta -= PEAKS[index] * FACTORS[t - 1] * (m_hat / (math.sqrt(v_hat) + 1e-8) + decay * theta)
            values.append(theta)
        result.append(values)
    return result


def after_all_steps(config: OptimiserConfig, device: torch.device) -> list[list[float]]:
    parameters = [nn.Parameter(tensor) for tensor in start()]
    groups = [
        {"params": [p], "weight_decay": decay, "rate": rate}
        for p, decay, rate in zip(parameters, (WEIGHT_DECAY, 0.0), PEAKS, strict=True)
    ]
    optimiser = make_optimiser(groups, config, device)
    for step in range(1, STEPS + 1):
        for index, parameter in enumerate(parameters):
            entries = [gradient(step, index, entry) for entry in range(parameter.numel())]
            parameter.grad = torch.tensor(entries, dtype=torch.float64).view_as(parameter)
        set_rates(optimiser, FACTORS[step - 1])
        optimiser.step()
    return [parameter.flatten().tolist() for parameter in parameters]


def test_sgd_takes_the_steps_of_plain_formulas() -> None:
    """v ← 0.9·v + g + λθ; θ ← θ − lr·v."""
    expected = []
    for entry, first in enumerate(start()[0].flatten().tolist()):
        theta, momentum = first, 0.0
        for step in range(1, STEPS + 1):
            momentum = 0.9 * momentum + gradient(step, 0, entry) + WEIGHT_DECAY * theta
            theta -= PEAKS[0] * FACTORS[step - 1] * momentum
        expected.append(theta)
    assert after_all_steps(OptimiserConfig(name="sgd"), CPU)[0] == pytest.approx(expected, rel=1e-12)


@each("fused", [True, False])
@each("bias_correction", [True, False])
def test_adamw_takes_the_steps_of_plain_formulas(bias_correction: bool, fused: bool) -> None:
    config = OptimiserConfig(bias_correction=bias_correction, weight_decay=WEIGHT_DECAY)
    found = after_all_steps(config, CPU if fused else torch.device("mps"))
    for values, expected in zip(found, by_plain_formulas(bias_correction), strict=True):
        assert values == pytest.approx(expected, abs=1e-12, rel=1e-12)


@each("device", [CPU, torch.device("mps")])
@each("config", [OptimiserConfig(), OptimiserConfig(name="adafactor")])
@each("most", [0.5, 100.0])
def test_a_clipped_step_is_one_with_gradients_of_at_most_that_norm(
    device: torch.device, config: OptimiserConfig, most: float
) -> None:
    made = []
    for scaled_before in (False, True):
        parameters = [nn.Parameter(tensor) for tensor in start()]
        optimiser = make_optimiser([{"params": parameters, "weight_decay": 0.0, "rate": 0.1}], config, device)
        for step in range(2):
            torch.manual_seed(step)
            gradients = [torch.randn_like(p) for p in parameters]
            norm = math.sqrt(sum(float(g.square().sum()) for g in gradients))
            share = min(1.0, most / norm) if scaled_before else 1.0
            for parameter, found in zip(parameters, gradients, strict=True):
                parameter.grad = found * share
            take_clipped_step(optimiser, parameters, torch.tensor(norm * share), most)
        # Adam's steps hardly depend on the size of the gradients, but its moments do.
        names: dict[Tensor, str] = {parameter: str(i) for i, parameter in enumerate(parameters)}
        made.append(dict(enumerate(parameters)) | optimiser_state(optimiser, names))
    assert made[0].keys() == made[1].keys()
    for name, clipped in made[0].items():
        torch.testing.assert_close(clipped, made[1][name], atol=0, rtol=1e-5)


def test_an_adafactor_step_moves_by_its_learning_rate() -> None:
    """At the first step the update is the gradient divided by its size, so its root mean square is 1."""
    config = OptimiserConfig(name="adafactor", weight_decay=0.0)
    parameter = nn.Parameter(torch.full((5,), 100.0, dtype=torch.float64))
    groups = [{"params": [parameter], "weight_decay": 0.0, "rate": 0.5}]
    optimiser = make_optimiser(groups, config, CPU)
    parameter.grad = torch.tensor([1.0, -2.0, 3.0, -4.0, 5.0], dtype=torch.float64)
    set_rates(optimiser, 0.25)
    optimiser.step()
    moved = parameter.detach() - 100.0
    torch.testing.assert_close(moved, -0.125 * parameter.grad.sign(), atol=1e-9, rtol=0)


def trained(
    config: OptimiserConfig,
    steps: range,
    net: nn.Module | None = None,
    state: Mapping[str, Tensor] | None = None,
) -> tuple[nn.Module, torch.optim.Optimizer, dict[Tensor, str]]:
    """Restore a state if there is one, then train a tiny net for these steps."""
    torch.manual_seed(0)
    net = net or nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    names: dict[Tensor, str] = {parameter: name for name, parameter in net.named_parameters()}
    groups: list[dict[str, Any]] = [{"params": list(net.parameters()), "weight_decay": 0.01, "rate": 0.05}]
    optimiser = make_optimiser(groups, config, CPU)
    restore_optimiser_state(optimiser, names, state or {})
    for step in steps:
        torch.manual_seed(step)
        set_rates(optimiser, 1 / step)
        net(torch.randn(8, 3)).square().sum().backward()
        optimiser.step()
        optimiser.zero_grad()
    return net, optimiser, names


@pytest.mark.parametrize(
    "config",
    [
        OptimiserConfig(),
        OptimiserConfig(bias_correction=False),
        OptimiserConfig(name="adafactor"),
        OptimiserConfig(name="sgd"),
    ],
    ids=["adamw", "uncorrected", "adafactor", "sgd"],
)
def test_three_steps_and_three_after_a_restart_are_six(config: OptimiserConfig, tmp_path: Path) -> None:
    expected, uninterrupted, expected_names = trained(config, range(1, 7))
    half, optimiser, names = trained(config, range(1, 4))
    save_file(optimiser_state(optimiser, names), tmp_path / "state.safetensors")
    tensors = load_file(tmp_path / "state.safetensors") | {"weight/0.weight": torch.zeros(1)}

    resumed, after, after_names = trained(config, range(4, 7), half, tensors)
    for name, parameter in resumed.named_parameters():
        assert torch.equal(parameter, expected.get_parameter(name)), name
    assert states(after, after_names) == states(uninterrupted, expected_names)

    without, *_ = trained(config, range(4, 7), trained(config, range(1, 4))[0])
    assert not torch.equal(without.get_parameter("0.weight"), expected.get_parameter("0.weight"))


def states(optimiser: torch.optim.Optimizer, names: dict[Tensor, str]) -> dict[tuple[str, str], tuple[type, Any]]:
    return {
        (names[parameter], key): (type(value), value.tolist() if isinstance(value, Tensor) else value)
        for parameter, state in optimiser.state.items()
        for key, value in state.items()
    }


def test_a_moment_of_an_unknown_parameter_is_refused() -> None:
    parameter = nn.Parameter(torch.zeros(2))
    with pytest.raises(KeyError, match="other"):
        restore_optimiser_state(
            torch.optim.SGD([parameter]), {parameter: "weight"}, {"moment/step/other": torch.zeros(())}
        )
