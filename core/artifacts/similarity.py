"""How well a run's vectors order pairs of texts by similarity, once `inspect_job` has read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from core.artifacts.array_files import read_about, write_arrays

# Pairs that are read, spread evenly over the task's rows.
PAIRS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class SimilarityScores:
    """Spearman's rank correlation of cosines with the scores that people gave.

    Attributes:
        values: by step, None where it cannot be computed.
        stamps: by step, what identifies its weights.
        pairs: how many were read.
    """

    values: Mapping[int, float | None]
    stamps: Mapping[int, int]
    pairs: int


def read_similarity(folder: Path, task_id: str) -> SimilarityScores | None:
    """What is known of a task; None before anybody asked. `folder` is the run's."""
    about = read_about(similarity_path(folder, task_id))
    if about is None:
        return None
    values, stamps = ({int(step): value for step, value in about[name].items()} for name in ("values", "stamps"))
    return SimilarityScores(values, stamps, int(about["pairs"]))


def write_similarity(folder: Path, task_id: str, found: SimilarityScores) -> Path:
    """Keep it. Raises: StoreError."""
    path = similarity_path(folder, task_id)
    about = {"values": dict(found.values), "stamps": dict(found.stamps), "pairs": found.pairs}
    write_arrays(path, {"steps": np.array(list(found.values), np.int64)}, about)
    return path


def similarity_path(folder: Path, task_id: str) -> Path:
    """Where the scores lie in a run's folder. `task_id` is that of a task of the library, which has checked it."""
    return folder / "similarity" / f"{task_id}.safetensors"
