"""The encoder before any step: the first frame, and the linear probe that a fine-tune has to beat.

The first frame shows the model that starts, with its blocks that were drawn at random; the probe is fitted on the
encoder as it was pre-trained, which is what a person has without a fine-tune. Both are kept under a key that says all
that they depend on, and computed once for all runs.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import logging
import os
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from core.config import EncoderConfig
from core.encoders.model import Encoder, Tokenizer
from core.tasks import TaskData
from core.training.encode import encode
from core.training.prepare import BASELINE_ROWS
from core.training.scores import linear_probe_scores

# Pooled vectors, row numbers and [CLS] attention, by name.
Vectors = Mapping[str, NDArray[Any]]

MOST_KEPT = 64


class VectorCache(Protocol):
    """Arrays under a key."""

    def get(self, key: str) -> Vectors | None: ...

    def put(self, key: str, vectors: Vectors) -> None: ...


class MemoryCache:
    """Keeps arrays for the life of the process."""

    def __init__(self) -> None:
        self._kept: MutableMapping[str, Vectors] = {}

    def get(self, key: str) -> Vectors | None:
        return self._kept.get(key)

    def put(self, key: str, vectors: Vectors) -> None:
        self._kept[key] = vectors


class FolderCache:
    """Keeps arrays as one safetensors file per key, the newest MOST_KEPT; a damaged file counts as absent."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, key: str) -> Vectors | None:
        try:
            return load_file(self._folder / f"{key}.safetensors")
        except (OSError, SafetensorError):
            return None

    def put(self, key: str, vectors: Vectors) -> None:
        partial = self._folder / f"{key}.{os.getpid()}.partial"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            save_file(dict(vectors), partial)
            partial.replace(self._folder / f"{key}.safetensors")
            kept = sorted(self._folder.glob("*.safetensors"), key=lambda path: path.stat().st_mtime)
            for old in kept[:-MOST_KEPT]:
                old.unlink(missing_ok=True)
        except (OSError, SafetensorError) as error:
            # Without the cache a run takes some seconds longer, and that is all.
            with contextlib.suppress(OSError):
                partial.unlink(missing_ok=True)
            logging.getLogger(__name__).warning("vectors were not kept: %s", error)


def baseline_rows(rows: int) -> list[int]:
    """Which of so many training rows the linear probe is fitted on, spread evenly."""
    return [int(row) for row in np.linspace(0, rows - 1, min(BASELINE_ROWS, rows)).astype(np.int64)]


def probe_rows(rows: int, size: int) -> list[int]:
    """Which training rows stand on the map: some of those of the linear probe, whose first vectors are at hand."""
    return spread(baseline_rows(rows), size)


def spread(rows: Sequence[int], count: int) -> list[int]:
    """So many of some rows, evenly spread; all where there are fewer."""
    return [rows[i] for i in np.linspace(0, len(rows) - 1, min(count, len(rows))).astype(np.int64)] if count else []


def cache_key(
    config: EncoderConfig,
    fingerprint: str,
    data: TaskData,
    arithmetic: str,
    attended: Sequence[int],
    drawn: tuple[int, int] | None = None,
) -> str:
    """One key per encoder, pooling, length, rows and arithmetic.

    Args:
        fingerprint: tells two encoders under one name apart, e.g. their weights' size and date.
        arithmetic: kind of device and precision, whose rounding differs.
        attended: as `untrained_vectors` takes them.
        drawn: how many top blocks were drawn at random, and the seed that drew them; None for a pre-trained encoder.
    """
    parts = [config.model_dump(mode="json"), fingerprint, data.content_hash, BASELINE_ROWS, arithmetic, list(attended)]
    parts += [drawn] if drawn else []
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


class Untrained:
    """An encoder before its first step: its vectors where the cache has them, else a copy to compute them from."""

    def __init__(self, encoder: Encoder, key: str, cache: VectorCache, *, keep: bool = False) -> None:
        """
        Args:
            keep: make the copy in any case, because `encoder` is about to get other weights.
        """
        self._key, self._cache = key, cache
        self.vectors = cache.get(key)
        self.encoder = copy.deepcopy(encoder) if keep or self.vectors is None else None

    def computed(
        self,
        tokenizer: Tokenizer,
        data: TaskData,
        *,
        autocast: torch.autocast,
        interrupted: Callable[[], bool],
        attended: Sequence[int],
    ) -> Vectors:
        """Its vectors, computed and kept for other runs where they are not known; as `untrained_vectors`."""
        if self.vectors is None:
            assert self.encoder is not None
            self.vectors = untrained_vectors(
                self.encoder, tokenizer, data, autocast=autocast, interrupted=interrupted, attended=attended
            )
            self._cache.put(self._key, self.vectors)
        return self.vectors


def untrained_vectors(
    encoder: Encoder,
    tokenizer: Tokenizer,
    data: TaskData,
    *,
    autocast: torch.autocast,
    interrupted: Callable[[], bool],
    attended: Sequence[int],
) -> Vectors:
    """Pooled vectors of the validation split and of up to BASELINE_ROWS training rows.

    Args:
        attended: validation rows, and training rows numbered on, whose attention is wanted too.
    Raises: Interrupted.
    """
    rows = baseline_rows(len(data.train))
    texts = [*data.validation.inputs, *data.train.take(rows).inputs]
    held_out = len(data.validation)
    places = {row: held_out + place for place, row in enumerate(rows)}
    wanted = [row if row < held_out else places[row - held_out] for row in attended]
    found = encode(encoder, tokenizer, texts, autocast=autocast, interrupted=interrupted, attended=wanted)
    pooled = found.pooled.cpu().numpy()
    vectors = {"validation": pooled[:held_out], "train": pooled[held_out:], "rows": np.array(rows)}
    return vectors if found.attention is None else vectors | {"attention": found.attention}


def baseline_scores(vectors: Vectors, data: TaskData) -> dict[str, float]:
    """Scores of a linear probe of the untrained encoder on the validation split."""
    train = data.train.take([int(row) for row in vectors["rows"]])
    return linear_probe_scores(vectors["train"], train.labels, vectors["validation"], data.validation.labels)
