"""The rolling checkpoint: everything that the next step depends on, in one safetensors file.

It holds the trained weights, the optimiser's moments and the random states. The batch of a step, its learning rate and
its knobs are functions of seed, step and config, so they are not saved.
"""

from __future__ import annotations

import copy
import shutil
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from core.atomic import atomic_write
from core.encoders.model import Encoder, Tokenizer
from core.errors import TrainingError
from core.messages import N_
from core.training.trainable import merge_adapters, merged_names, plain_name
from core.weight_files import checkpoint_path, checkpoint_step

# By default, saving takes at most this share of the time, with at least this pause between two checkpoints.
SHARE_OF_TIME = 0.02
SHORTEST_PAUSE_S = 20.0
FREE_SPACE_FACTOR = 1.5
WEIGHT, PROJECTIONS = "weight/", "projections."
UNUSABLE = N_("The checkpoint cannot be used ({problem}): start a new run.")


@dataclass
class Checkpoints:
    """The rolling checkpoint of a run in `folder`.

    Attributes:
        every_steps: steps between two checkpoints; None saves by time, see SHARE_OF_TIME.
        guard: called before a checkpoint replaces the old one. It may raise, so that a stale attempt does not overwrite
            the checkpoint of the current one.
    """

    folder: Path
    every_steps: int | None = None
    guard: Callable[[], None] = field(default=lambda: None)
    _last: float = field(default_factory=time.monotonic)
    _cost_s: float = 0.0

    @property
    def path(self) -> Path:
        return checkpoint_path(self.folder)

    def due(self, step: int) -> bool:
        if self.every_steps is not None:
            return step % self.every_steps == 0
        return time.monotonic() - self._last >= max(SHORTEST_PAUSE_S, self._cost_s / SHARE_OF_TIME)

    def save(self, step: int, tensors: Mapping[str, Tensor]) -> None:
        """Save the checkpoint atomically: a reader finds the old one or the new one.

        Raises: TrainingError if the disk is full; the old checkpoint is kept.
        """
        started = time.monotonic()
        self.write(self.path, step, tensors)
        self._last = time.monotonic()
        self._cost_s = self._last - started

    def write(self, path: Path, step: int, tensors: Mapping[str, Tensor]) -> None:
        """Write one file of the folder atomically. Raises: TrainingError if it cannot be written."""
        needed = sum(t.numel() * t.element_size() for t in tensors.values())
        self.folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(self.folder).free
        if free < FREE_SPACE_FACTOR * needed:
            raise TrainingError(
                "The checkpoint of step {step} needs {needed:,.0f} MB, but only {free:,.0f} MB of disk space are "
                "free: free some space, or train fewer weights.",
                step=step,
                needed=needed / 2**20,
                free=free / 2**20,
            )
        try:
            with atomic_write(path) as partial:
                save_file(dict(tensors), partial, metadata={"step": str(step), "torch": torch.__version__})
                self.guard()
        except (OSError, SafetensorError) as error:
            raise TrainingError(
                "The checkpoint of step {step} could not be written ({problem}): free some disk space.",
                step=step,
                problem=error,
            ) from error

    def step(self) -> int | None:
        """Return the step of the checkpoint; None without a checkpoint. Raises: TrainingError for a damaged one."""
        return checkpoint_step(self.folder)

    def load(self) -> dict[str, Tensor]:
        """Return the tensors of the checkpoint.

        Raises: TrainingError if there is none, or it is damaged.
        """
        if self.step() is None:
            raise TrainingError("There is no checkpoint to resume from: start a new run.")
        return read_tensors(self.path)


class TrainedModel:
    """The encoder and weights in memory after the last step."""

    encoder: Encoder
    tokenizer: Tokenizer
    # A copy of the trained weights on the CPU, named as in a checkpoint.
    weights: dict[str, Tensor]


def load_learned(path: Path, encoder: nn.Module) -> None:
    """Load a finished run's weights into a freshly loaded encoder. Raises: TrainingError."""
    restore_weights(encoder, without_projections(read_tensors(path)))


def without_projections(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights among the tensors of a file, without those of projection heads."""
    heads = WEIGHT + PROJECTIONS
    return {name: one for name, one in tensors.items() if name.startswith(WEIGHT) and not name.startswith(heads)}


def read_tensors(path: Path, sentence: str = UNUSABLE) -> dict[str, Tensor]:
    """Read a weight file. Raises: TrainingError with a sentence about {problem} and, if it says so, {file}."""
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise TrainingError(sentence, problem=error, file=path.name) from error


def load_start(path: Path, encoder: Encoder) -> None:
    """Load a finished run's encoder into a freshly loaded one, except for the classifier. Raises: TrainingError."""
    tensors = read_tensors(path, N_("The weights that this run starts from cannot be read ({problem})."))
    head = tuple(f"{WEIGHT}model.{part}." for part in encoder.family.head_modules)
    of_encoder = f"{WEIGHT}model."
    restore_weights(
        encoder,
        {name: one for name, one in tensors.items() if name.startswith(of_encoder) and not name.startswith(head)},
    )


def plain_weights(encoder: Encoder, names: Collection[str]) -> dict[str, Tensor]:
    """Return `weights_of` with adapters merged, without changing `encoder`."""
    if not hasattr(encoder.model, "peft_config"):
        return weights_of(encoder, names)
    plain = copy.deepcopy(encoder)
    merge_adapters(plain)
    return weights_of(plain, merged_names(names))


def weights_of(encoder: nn.Module, names: Collection[str]) -> dict[str, Tensor]:
    """Return the parameters with these plain names, as a checkpoint stores them."""
    parameters = ((plain_name(name), parameter) for name, parameter in encoder.named_parameters())
    return {f"{WEIGHT}{name}": parameter.detach().contiguous() for name, parameter in parameters if name in names}


def restore_weights(encoder: nn.Module, tensors: Mapping[str, Tensor]) -> set[str]:
    """Restore a checkpoint's weights, and return their names.

    Raises: TrainingError for weights of another encoder.
    """
    parameters = {plain_name(name): parameter for name, parameter in encoder.named_parameters()}
    names = {name.removeprefix(WEIGHT) for name in tensors if name.startswith(WEIGHT)}
    try:
        with torch.no_grad():
            for name in names:
                parameter, kept = parameters[name], tensors[f"{WEIGHT}{name}"]
                if kept.shape != parameter.shape:  # `copy_` would broadcast a smaller one
                    raise RuntimeError(f"{name} is {list(kept.shape)}, not {list(parameter.shape)}")
                parameter.copy_(kept)
    except (KeyError, RuntimeError) as error:
        raise TrainingError(UNUSABLE, problem=error) from error
    return names


def random_states() -> dict[str, Tensor]:
    """Return the states of torch's random generators."""
    states = {"random/cpu": torch.get_rng_state()}
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        states["random/cuda"] = torch.cuda.get_rng_state()
    if torch.backends.mps.is_available():
        states["random/mps"] = torch.mps.get_rng_state()
    return states


def restore_random_states(tensors: Mapping[str, Tensor]) -> None:
    torch.set_rng_state(tensors["random/cpu"])
    if "random/cuda" in tensors and torch.cuda.is_available():
        torch.cuda.set_rng_state(tensors["random/cuda"])
    if "random/mps" in tensors and torch.backends.mps.is_available():
        torch.mps.set_rng_state(tensors["random/mps"])
