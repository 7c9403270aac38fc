"""A setting and moved points as an address holds them: short, and checked when they are read."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ValidationError

from core.errors import PlaygroundError
from core.lab.choices import MOST_MOVES, Move, Setting, lab_losses

BETWEEN, POINTS_BETWEEN = "_", "~"


def setting_text(setting: Setting) -> str:
    """Such as `out_1_0.1_0.5`: loss, λ, τ, learning rate and, where the loss has a further knob, its value."""
    parts = [setting.loss, *(f"{value:g}" for value in (setting.weight, setting.temperature, setting.learning_rate))]
    if setting.extra is not None and setting.known.extra is not None:
        parts.append(f"{setting.extra:g}")
    return BETWEEN.join(parts)


def read_setting(text: str) -> Setting | None:
    """None for what is none."""
    # A loss from outside may have the mark in its name.
    loss = next((name for name in sorted(lab_losses(), key=len, reverse=True) if text.startswith(name + BETWEEN)), "")
    parts = text.removeprefix(loss + BETWEEN).split(BETWEEN)
    if not loss or not 3 <= len(parts) <= 4:
        return None
    given = {"loss": loss} | dict(zip(("weight", "temperature", "learning_rate", "extra"), parts, strict=False))
    try:
        return Setting.model_validate(given)
    except (ValidationError, PlaygroundError):
        return None


def moves_text(moves: Sequence[Move]) -> str:
    return POINTS_BETWEEN.join(
        BETWEEN.join([str(move.text), str(move.view), *(f"{value:g}" for value in move.to)]) for move in moves
    )


def read_moves(text: str, points: int) -> tuple[Move, ...] | None:
    """None for what are none."""
    found = []
    for part in text.split(POINTS_BETWEEN):
        number, view, *to = part.split(BETWEEN) if part.count(BETWEEN) >= 3 else ("", "")
        try:
            # Numbers, so that a view is one of two whole ones.
            move = Move.model_validate({"text": int(number), "view": int(view), "to": tuple(map(float, to))})
        except (ValidationError, ValueError):
            return None
        if move.text >= points:
            return None
        found.append(move)
    return tuple(found) if len(found) <= MOST_MOVES else None
