"""Optimisers: parameter groups, learning rates of a step, and moments as plain tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers import Adafactor

from core.config import OptimiserConfig
from core.encoders.model import Encoder

# At this step β2^t, with β2 = 0.999, is 0 even in float64, and float32 can still count by ones.
LATE_STEP = 1e6
MOMENTUM = 0.9  # of SGD
# Types of the Python numbers among an optimiser's moments, by their name in a checkpoint.
NUMBERS: Mapping[str, tuple[type, torch.dtype]] = {"int": (int, torch.int64), "float": (float, torch.float64)}


def parameter_groups(encoder: Encoder, optimiser: OptimiserConfig) -> list[dict[str, Any]]:
    """Group the trainable parameters by learning rate and weight decay.

    Block b of L gets learning_rate · layer_decay^(L − b), so the last block gets learning_rate. The embeddings get
    learning_rate · layer_decay^L, and so do parameters shared by the blocks: DeBERTa's and MPNet's relative positions
    and the norms around them. The head, including projection heads, gets classifier_learning_rate. Biases and
    normalisation weights, the parameters with fewer than two dimensions, do not decay.

    Returns: dictionaries of `params`, `weight_decay` and `rate`, the peak learning rate. With layer_decay 1 and no
        separate rate for the classifier there are at most two, so that a fused step stays a single sweep.
    Source: Howard and Ruder 2018 (discriminative fine-tuning), arXiv:1801.06146.
    """
    count = len(encoder.blocks)
    rate, head_rate = optimiser.learning_rate, optimiser.classifier_learning_rate
    assert rate is not None, "a phase that was not prepared"
    assert head_rate is not None, "a phase that was not prepared"
    # Later assignments override earlier ones: BERT's pooler belongs to both its base model and the head.
    rates = dict.fromkeys(encoder.parameters(), head_rate)
    rates |= dict.fromkeys(encoder.base.parameters(), rate * optimiser.layer_decay**count)
    for b, block in enumerate(encoder.blocks, start=1):
        rates |= dict.fromkeys(block.parameters(), rate * optimiser.layer_decay ** (count - b))
    for path in encoder.family.head_modules:
        rates |= dict.fromkeys(encoder.model.get_submodule(path).parameters(), head_rate)
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for parameter in (p for p in encoder.parameters() if p.requires_grad):
        weight_decay = optimiser.weight_decay if parameter.ndim >= 2 else 0.0
        groups.setdefault((rates[parameter], weight_decay), []).append(parameter)
    return [{"params": params, "weight_decay": decay, "rate": peak} for (peak, decay), params in groups.items()]


def make_optimiser(
    groups: Sequence[Mapping[str, Any]], optimiser: OptimiserConfig, device: torch.device
) -> torch.optim.Optimizer:
    """Create AdamW, fused if torch supports it on the device, Adafactor, or SGD with momentum.

    Adafactor runs without relative step and parameter scale: a learning rate is an absolute step as in AdamW, and the
    root mean square of an update never exceeds it. It stores second moments as one row and one column per matrix, and
    no first moments.

    Without bias correction, the step of AdamW is lr·m/(√v + ε) with the raw moments, as in BERT's own optimiser. torch
    divides m by 1 − β1^t and v by 1 − β2^t. Counting from a t so large that both are 1 gives exactly this update.

    Args:
        groups: result of `parameter_groups`.
    Source: Loshchilov and Hutter 2019, arXiv:1711.05101; Shazeer and Stern 2018, arXiv:1804.04235; without correction:
        Devlin et al. 2019, arXiv:1810.04805; Mosbach et al. 2021, arXiv:2006.04884; Zhang et al. 2020,
        arXiv:2006.05987.
    """
    given = [{**group, "lr": group["rate"]} for group in groups]
    if optimiser.name == "adafactor":
        return Adafactor(given, scale_parameter=False, relative_step=False, warmup_init=False, clip_threshold=1.0)
    if optimiser.name == "sgd":
        return torch.optim.SGD(given, momentum=MOMENTUM)
    fused = device.type in ("cpu", "cuda")
    adamw = torch.optim.AdamW(given, fused=fused)
    if not optimiser.bias_correction:
        for parameter in (p for group in adamw.param_groups for p in group["params"]):
            adamw.state[parameter] = {
                "step": torch.tensor(LATE_STEP, device=parameter.device if fused else None),
                "exp_avg": torch.zeros_like(parameter),
                "exp_avg_sq": torch.zeros_like(parameter),
            }
    return adamw


def set_rates(optimiser: torch.optim.Optimizer, factor: float) -> None:
    """Set each group's learning rate to its peak rate times `factor` ≥ 0, the multiplier of the schedule."""
    for group in optimiser.param_groups:
        group["lr"] = group["rate"] * factor


def take_clipped_step(
    optimiser: torch.optim.Optimizer, parameters: Sequence[nn.Parameter], norm: Tensor, most: float
) -> None:
    """Take an optimiser step with gradients scaled down to a norm of at most `most`.

    A fused AdamW divides them in the same sweep, through the interface of torch's gradient scaler. This saves one pass
    over all gradients, 4 % of a step of a small encoder in bfloat16.

    Args:
        norm: norm of all gradients before clipping; a float32 scalar on their device.
    """
    if not optimiser.defaults.get("fused"):
        nn.utils.clip_grads_with_norm_(parameters, most, norm)
        optimiser.step()
        return
    # torch's own clipping adds the same 1e-6, so that both branches take the same step.
    optimiser.grad_scale = ((norm + 1e-6) / most).clamp(min=1.0)  # type: ignore[attr-defined]  # read by step()
    optimiser.step()
    optimiser.grad_scale = None  # type: ignore[attr-defined]


def optimiser_state(optimiser: torch.optim.Optimizer, names: Mapping[Tensor, str]) -> dict[str, Tensor]:
    """Return the moments under "moment/<key>/<parameter name>".

    The key of a Python number ends in its type, and its value is a 0-d tensor. The tensors are the optimiser's own, not
    copies.

    Args:
        names: names of all trainable parameters.
    """
    tensors = {}
    for parameter, state in optimiser.state.items():
        for key, value in state.items():
            kind = "" if isinstance(value, Tensor) else f".{type(value).__name__}"
            tensor = torch.tensor(value, dtype=NUMBERS[kind[1:]][1]) if kind else value.contiguous()
            tensors[f"moment/{key}{kind}/{names[parameter]}"] = tensor
    return tensors


def restore_optimiser_state(
    optimiser: torch.optim.Optimizer, names: Mapping[Tensor, str], tensors: Mapping[str, Tensor]
) -> None:
    """Restore the result of `optimiser_state`. The next step equals that of the saved optimiser bit for bit.

    Tensors already on the parameter's device become the optimiser's own. Keys other than "moment/…" are skipped.

    Raises: KeyError for a parameter that is not in `names`.
    """
    parameters = {name: parameter for parameter, name in names.items()}
    for path, tensor in tensors.items():
        if path.startswith("moment/"):
            _, stored_key, name = path.split("/", 2)
            key, _, kind = stored_key.partition(".")
            parameter = parameters[name]
            # Fused AdamW counts its steps on the parameter's device.
            value = NUMBERS[kind][0](tensor.item()) if kind else tensor.to(parameter.device)
            optimiser.state[parameter][key] = value
