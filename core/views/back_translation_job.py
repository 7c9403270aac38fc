"""One text's round trips as a job of its own process, for a preview: the models are large, and pages never wait."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from core.messages import Message, Text
from core.views.back_translation import RoundTrip, TranslationCache


def job(request: dict[str, Any], folder: Path, progress: Callable[[int, int | None, Text], None]) -> dict[str, Any]:
    """Translate there and back.

    Args:
        request: texts, and the forward, backward and temperature of the view; a seed.
        folder: of the store, whose translations are shared with runs.
    Returns: {"texts": one for each}.
    Raises: EncoderError or ConfigError in one sentence when a model cannot be had or loaded.
    """
    progress(0, None, Message("Fetching the two translation models, where they are not here yet, and translating"))
    round_trip = RoundTrip(
        request["forward"],
        request["backward"],
        temperature=request["temperature"],
        seed=request["seed"],
        cache=TranslationCache(folder / "cache" / "translations.db"),
    )
    return {"texts": [round_trip.translate([text])[0] for text in request["texts"]]}
