"""The rolling checkpoint: everything that the next step depends on, in one safetensors file.

What learns, the optimiser's moments and the random states. The batch of a step, its learning rate and its knobs are
functions of seed, step and config, so they need no keeping.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, safe_open, save_file
from torch import Tensor, nn

from core.errors import TrainingError

CHECKPOINT_NAME = "checkpoint.safetensors"
# At the default pace a checkpoint costs at most a fiftieth of the time, and comes no oftener than this.
SHARE_OF_TIME = 0.02
SHORTEST_PAUSE_S = 20.0
FREE_SPACE_FACTOR = 1.5


@dataclass
class Checkpoints:
    """Writes and reads a run's rolling checkpoint in `folder`.

    `every_steps` None: by time, see SHARE_OF_TIME. `guard` is called before a checkpoint takes the old one's place and
    may raise, so that a dead attempt does not overwrite the checkpoint of a living one.
    """

    folder: Path
    every_steps: int | None = None
    guard: Callable[[], None] = field(default=lambda: None)
    _last: float = field(default_factory=time.monotonic)
    _cost_s: float = 0.0

    @property
    def path(self) -> Path:
        return self.folder / CHECKPOINT_NAME

    def due(self, step: int) -> bool:
        if self.every_steps is not None:
            return step % self.every_steps == 0
        return time.monotonic() - self._last >= max(SHORTEST_PAUSE_S, self._cost_s / SHARE_OF_TIME)

    def save(self, step: int, encoder: nn.Module, optimiser: torch.optim.Optimizer | None) -> None:
        """Write to a temporary name, then rename: a reader finds the old checkpoint or the new one.

        Args:
            optimiser: None for the end of a run, which no step follows.
        Raises: TrainingError when the disk has no room; the old checkpoint stays.
        """
        started = time.monotonic()
        tensors = _learned(encoder)
        if optimiser is not None:
            tensors |= _moments(encoder, optimiser) | _random_states()
        needed = sum(t.numel() * t.element_size() for t in tensors.values())
        self.folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(self.folder).free
        if free < FREE_SPACE_FACTOR * needed:
            raise TrainingError(
                f"The checkpoint of step {step} needs {needed / 2**20:,.0f} MB and the disk has "
                f"{free / 2**20:,.0f} MB free: make room, or train fewer weights."
            )
        partial = self.path.with_suffix(f".{os.getpid()}.partial")
        try:
            save_file(tensors, partial, metadata={"step": str(step), "torch": torch.__version__})
            self.guard()
            os.replace(partial, self.path)
        except (OSError, SafetensorError) as error:
            partial.unlink(missing_ok=True)
            raise TrainingError(f"The checkpoint of step {step} could not be written ({error}): make room.") from error
        self._last = time.monotonic()
        self._cost_s = self._last - started

    def step(self) -> int | None:
        """The step that the checkpoint holds, None when there is none."""
        if not self.path.exists():
            return None
        try:
            with safe_open(self.path, "pt") as file:
                return int(file.metadata()["step"])
        except (SafetensorError, KeyError, TypeError, ValueError, OSError) as error:
            raise TrainingError(f"The checkpoint cannot be read ({error}): start a new run.") from error

    def restore(self, encoder: nn.Module, optimiser: torch.optim.Optimizer) -> int:
        """Put weights, moments and random states back; returns the step.

        Raises: TrainingError when the file is damaged or does not belong to this run.
        """
        step = self.step()
        if step is None:
            raise TrainingError("There is no checkpoint to resume from: start a new run.")
        try:
            tensors = load_file(self.path)
            parameters = dict(encoder.named_parameters())
            with torch.no_grad():
                for name, parameter in _learning(encoder).items():
                    parameter.copy_(tensors[f"weight/{name}"])
            if "random/cpu" in tensors:  # else it holds the last step, which no other follows
                _restore_moments(parameters, optimiser, tensors)
                _restore_random_states(tensors)
        except (SafetensorError, KeyError, RuntimeError) as error:
            raise TrainingError(f"The checkpoint cannot be used ({error}): start a new run.") from error
        return step


def load_learned(path: Path, encoder: nn.Module) -> None:
    """Put a checkpoint's weights into a freshly loaded encoder. Raises: TrainingError."""
    try:
        tensors = load_file(path)
        parameters = dict(encoder.named_parameters())
        with torch.no_grad():
            for name, tensor in tensors.items():
                if name.startswith("weight/"):
                    parameters[name.removeprefix("weight/")].copy_(tensor)
    except (SafetensorError, KeyError, RuntimeError, OSError) as error:
        raise TrainingError(f"The checkpoint cannot be used ({error}): start a new run.") from error


def _learning(encoder: nn.Module) -> dict[str, nn.Parameter]:
    return {name: parameter for name, parameter in encoder.named_parameters() if parameter.requires_grad}


def _learned(encoder: nn.Module) -> dict[str, Tensor]:
    return {f"weight/{name}": parameter.detach().contiguous() for name, parameter in _learning(encoder).items()}


def _moments(encoder: nn.Module, optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    names: dict[Tensor, str] = {parameter: name for name, parameter in encoder.named_parameters()}
    return {
        f"moment/{key}/{names[parameter]}": value.contiguous()
        for parameter, state in optimiser.state.items()
        for key, value in state.items()
    }


def _restore_moments(
    parameters: dict[str, nn.Parameter], optimiser: torch.optim.Optimizer, tensors: dict[str, Tensor]
) -> None:
    for key, value in tensors.items():
        if key.startswith("moment/"):
            _, moment, name = key.split("/", 2)
            parameter = parameters[name]
            # Fused AdamW counts its steps on the parameter's device.
            optimiser.state[parameter][moment] = value.to(parameter.device)


def _random_states() -> dict[str, Tensor]:
    states = {"random/cpu": torch.get_rng_state()}
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        states["random/cuda"] = torch.cuda.get_rng_state()
    if torch.backends.mps.is_available():
        states["random/mps"] = torch.mps.get_rng_state()
    return states


def _restore_random_states(tensors: dict[str, Tensor]) -> None:
    torch.set_rng_state(tensors["random/cpu"])
    if "random/cuda" in tensors and torch.cuda.is_available():
        torch.cuda.set_rng_state(tensors["random/cuda"])
    if "random/mps" in tensors and torch.backends.mps.is_available():
        torch.mps.set_rng_state(tensors["random/mps"])
