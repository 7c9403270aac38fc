"""A finished run's weights in half the bytes, where that changes no prediction.

float16, not bfloat16: weights of encoders lie well within its range (of all-MiniLM-L6-v2 the largest is 7.9, and one in
a million rounds to 0), and its three more bits leave logits eight to twenty times closer to what they were.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from core.config import RunConfig
from core.encoders.model import Encoder, Tokenizer, load_encoder
from core.errors import TrainingError
from core.messages import _
from core.tasks import TaskData
from core.training.checkpoints import PROJECTIONS, WEIGHT, Checkpoints, restore_weights
from core.training.encode import encode
from core.training.precision import encoder_autocast
from core.weight_files import checkpoint_path, checkpoint_step, snapshot_path, snapshot_steps

Predictions = NDArray[np.int64]
Predict = Callable[[Mapping[str, Tensor]], Predictions]

LARGEST = torch.finfo(torch.float16).max


class Trained:
    """The encoder and weights in memory after the last step."""

    encoder: Encoder
    tokenizer: Tokenizer
    # A copy of what it learned, on the CPU and by the names that a checkpoint has.
    weights: dict[str, Tensor]

    @property
    def there(self) -> bool:
        return hasattr(self, "encoder")


def halve_weights(
    checkpoints: Checkpoints,
    config: RunConfig,
    data: TaskData,
    device: str,
    known: Mapping[int, Predictions] | None = None,
    trained: Trained | None = None,
) -> Iterator[str]:
    """Store a finished run's last weights and snapshots in float16, file by file.

    A file has full precision where one prediction on the validation split would change. Both are computed in the run's
    own precision, as whoever reads the weights computes. Projection heads, which only steps need, are left out.

    Args:
        device: that of the run, as torch calls it.
        known: predictions on the whole validation split by step, as the run's frames have them. Agreeing with these is
            enough, and saves computing those of the full weights.
        trained: the last weights, where they are not on disk yet, and their encoder, which predicts.
    Yields: one sentence for each file that has full precision.
    Raises: TrainingError for weights that cannot be read or written, EncoderError.
    """
    machine, known = torch.device(device), known or {}
    autocast = encoder_autocast(config.precision, machine)
    if trained is not None:
        predict = partial(_predictions, trained.encoder, trained.tokenizer, data, autocast)
        yield from _written(checkpoints, checkpoints.path, config.steps, trained.weights, predict, known)
    if files := _files(checkpoints.folder, None if trained is not None else config.steps):
        # Not by the encoder in memory, which holds weights that an earlier step did not have.
        predict = partial(_predictions, *_loaded(config, data, machine), data, autocast)
        for step, path in files.items():
            yield from _written(checkpoints, path, step, _weights(path), predict, known)


def in_half(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tensors in float16, but for those that hold a number beyond its range."""
    return {name: tensor.half() if _in_range(tensor) else tensor for name, tensor in tensors.items()}


def _in_range(tensor: Tensor) -> bool:
    if not tensor.numel():
        return True
    low, high = tensor.aminmax()  # far quicker than to look for infinities in float16
    return bool(low >= -LARGEST) and bool(high <= LARGEST)


def _written(
    checkpoints: Checkpoints,
    path: Path,
    step: int,
    full: Mapping[str, Tensor],
    predict: Predict,
    known: Mapping[int, Predictions],
) -> Iterator[str]:
    half = in_half(full)
    predicted = predict(half)
    same = step in known and np.array_equal(predicted, known[step])
    if same or np.array_equal(predicted, predict(full)):
        checkpoints.write(path, step, half)
    else:
        checkpoints.write(path, step, full)
        yield _(
            "The weights of step {step} stay in full precision: in half of it, predictions would change.", step=step
        )


def _files(folder: Path, last: int | None) -> dict[int, Path]:
    """The files of weights by step, in the order in which they were learned; `last` None: snapshots alone.

    A checkpoint of an earlier step, which a full disk leaves behind, may hold adapters and stays as it is.
    """
    # That of step 0 holds one layer.
    files = {step: snapshot_path(folder, step) for step in snapshot_steps(folder) if step > 0}
    return files | {last: checkpoint_path(folder)} if last is not None and checkpoint_step(folder) == last else files


def _weights(path: Path) -> dict[str, Tensor]:
    try:
        tensors = load_file(path)
    except (SafetensorError, OSError) as error:
        raise TrainingError(
            "The weights in {file} cannot be read ({problem}).", file=path.name, problem=error
        ) from error
    return {
        name: tensor
        for name, tensor in tensors.items()
        if name.startswith(WEIGHT) and not name.startswith(WEIGHT + PROJECTIONS)
    }


def _loaded(config: RunConfig, data: TaskData, device: torch.device) -> tuple[Encoder, Tokenizer]:
    """The encoder as the run loaded it: its head, where it does not learn, is the first that the seed draws."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        encoder, tokenizer = load_encoder(
            config.encoder.id,
            classes=data.classes,
            pooling=config.encoder.pooling,
            max_length=config.encoder.max_length,
        )
    return encoder.to(device), tokenizer


def _predictions(
    encoder: Encoder, tokenizer: Tokenizer, data: TaskData, autocast: torch.autocast, tensors: Mapping[str, Tensor]
) -> Predictions:
    restore_weights(encoder, tensors)
    found = encode(encoder, tokenizer, data.validation.inputs, autocast=autocast)
    predicted: Predictions = found.logits.argmax(1).cpu().numpy()
    return predicted
