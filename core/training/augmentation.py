"""Back-translations of the training texts, added to the training rows when a run begins."""

from __future__ import annotations

from pathlib import Path

import torch

from core.config import TaskConfig
from core.tasks import TaskData
from core.views.back_translation import round_trip


def with_back_translations(
    data: TaskData, task: TaskConfig, seed: int, *, kept: Path | None, device: torch.device
) -> TaskData:
    """Append the back-translation of every training text to the training rows, with the same label.

    If the config asks for no back-translation, return the data unchanged.

    Source: Gunel et al. 2021, arXiv:2011.01403, section 5: noise by back-translation at a temperature.

    Args:
        kept: file that caches translations, shared by runs; None caches them for this run only.
    Raises: EncoderError or ConfigError if a model cannot be fetched or loaded.
    """
    if task.back_translation is None:
        return data
    forward, backward = task.translators
    settings: dict[str, str | float] = {
        "forward": forward,
        "backward": backward,
        "temperature": task.back_translation,
    }
    trip = round_trip(settings, seed, kept, device)
    seconds = None if data.train.seconds is None else trip.translate(data.train.seconds)
    return data.with_more(trip.translate(data.train.texts), seconds)
