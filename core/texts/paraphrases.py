"""Paraphrases of the texts of bundled tasks: for each text a weak one, in similar words, and a strong one.

They were written for this project, not translated by a model. Each task's folder holds its own in paraphrases.csv.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from numpy.random import Generator

from core.catalogue.loss_entry import Settings

FILES = tuple(sorted((Path(__file__).resolve().parents[2] / "assets" / "tasks").glob("*/paraphrases.csv")))
# Names of the tasks that have paraphrases.
PARAPHRASED = tuple(path.parent.name for path in FILES)


def paraphrase(text: str, strength: str) -> str:
    """Return the paraphrase of a text; the text itself if it has none.

    Args:
        strength: "weak" or "strong".
    """
    return _paraphrases().get(text, {}).get(strength, text)


def have_paraphrases(texts: Iterable[str]) -> bool:
    """Return whether every text has paraphrases."""
    return _paraphrases().keys() >= set(texts)


def paraphrase_view(text: str, settings: Settings, rng: Generator) -> str:
    """Return the paraphrase as a view, which draws nothing."""
    return paraphrase(text, str(settings["strength"]))


@cache
def _paraphrases() -> Mapping[str, Mapping[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for path in FILES:
        with path.open(encoding="utf-8", newline="") as file:
            found |= {row["text"]: row for row in csv.DictReader(file)}
    return found
