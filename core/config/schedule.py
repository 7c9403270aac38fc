"""Pure functions of the step: learning rate and frame steps."""

from __future__ import annotations

from collections.abc import Sequence

DEFAULT_FRAMES = 24
# Above 1, frames are denser at the start, where the map moves most.
FRAME_SPACING = 1.6


def learning_rate_factor(step: int, steps: int, warmup_fraction: float) -> float:
    """Linear warm-up to 1, then linear decay; never 0, so that no step is wasted.

    Args:
        step: 1 … steps.
        warmup_fraction: share of the steps that warm up.
    """
    warmup = round(steps * warmup_fraction)
    if step <= warmup:
        return step / warmup
    return (steps - step + 1) / (steps - warmup + 1)


def default_frame_steps(steps: int, frames: int = DEFAULT_FRAMES) -> tuple[int, ...]:
    """About `frames` steps from 0 to `steps`, denser at the start."""
    spaced = (round(steps * (i / (frames - 1)) ** FRAME_SPACING) for i in range(frames))
    return tuple(sorted({0, steps, *spaced}))


def frame_steps(wanted: Sequence[int], steps: int) -> tuple[int, ...]:
    """The wanted steps that the run reaches, with the first and the last."""
    return tuple(sorted({0, steps, *(step for step in wanted if 0 < step < steps)}))
