"""The encoder before any step: the first frame, and the linear probe that a fine-tune has to beat.

The first frame shows the model that starts, with its blocks that were drawn at random; the probe is fitted on the
encoder as it was pre-trained, which is what a person has without a fine-tune. It reads its rows a few at a time between
the steps of the run, so that no step waits for it. The vectors of both are kept under a key that says all that they
depend on, and computed once for all runs.
"""

from __future__ import annotations

import copy
import hashlib
import json
import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from core.atomic import atomic_write
from core.config import TRAIN_POINTS_MAX, EncoderConfig, RunConfig, phase_steps
from core.encoders.model import Encoder, Tokenizer
from core.events import BASELINE, BASELINE_TEST, Evaluation, FloatArray
from core.tasks import TaskData
from core.tasks.batches import make_sampler
from core.tasks.dataset import Input
from core.training.encode import encode
from core.training.scores import LinearProbe

# Pooled vectors, row numbers and [CLS] attention, by name.
Vectors = Mapping[str, NDArray[Any]]

MOST_KEPT, MOST_BYTES = 64, 2**29
# A logistic regression on more rows takes minutes.
ROWS_MAX = 20_000
# Fewer texts at a time than these would make the encoder slower.
TEXTS_AT_ONCE = 16


class VectorCache(Protocol):
    """Arrays under a key."""

    def get(self, key: str) -> Vectors | None: ...

    def put(self, key: str, vectors: Vectors) -> None: ...


class MemoryCache:
    """Arrays in the memory of the process."""

    def __init__(self) -> None:
        self._kept: dict[str, Vectors] = {}

    def get(self, key: str) -> Vectors | None:
        return self._kept.get(key)

    def put(self, key: str, vectors: Vectors) -> None:
        self._kept[key] = vectors


class FolderCache:
    """Arrays in one safetensors file per key, the newest that fit; a damaged file counts as absent."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, key: str) -> Vectors | None:
        try:
            return load_file(self._folder / f"{key}.safetensors")
        except (OSError, SafetensorError):
            return None

    def put(self, key: str, vectors: Vectors) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with atomic_write(self._folder / f"{key}.safetensors") as partial:
                save_file(dict(vectors), partial)
            newest = sorted(self._folder.glob("*.safetensors"), key=lambda path: -path.stat().st_mtime)
            sizes = np.cumsum([path.stat().st_size for path in newest])
            for place, (path, size) in enumerate(zip(newest, sizes, strict=True)):
                if place >= MOST_KEPT or (place and size > MOST_BYTES):
                    path.unlink(missing_ok=True)
        except (OSError, SafetensorError) as error:
            # Without the cache a run takes some seconds longer, and that is all.
            logging.getLogger(__name__).warning("vectors were not kept: %s", error)


def candidate_rows(rows: int) -> list[int]:
    """Return the training rows that can be on the map, spread evenly."""
    return [int(row) for row in np.linspace(0, rows - 1, min(TRAIN_POINTS_MAX, rows)).astype(np.int64)]


def probe_rows(rows: int, size: int) -> list[int]:
    """Return the training rows on the map."""
    return spread(candidate_rows(rows), size)


def spread(rows: Sequence[int], count: int) -> list[int]:
    """`count` of some rows, evenly spread; all where there are fewer."""
    return [rows[i] for i in np.linspace(0, len(rows) - 1, min(count, len(rows))).astype(np.int64)] if count else []


def cache_key(
    config: EncoderConfig, fingerprint: str, data: TaskData, arithmetic: str, drawn: tuple[int, int] | None = None
) -> str:
    """One key per encoder, pooling, length, task and arithmetic.

    Args:
        fingerprint: distinguishes two encoders of one name, e.g. their weights' size and date.
        arithmetic: kind of device and precision, whose rounding differs.
        drawn: how many top blocks were drawn at random, and the seed that drew them; None for a pre-trained encoder.
    """
    parts = [config.model_dump(mode="json"), fingerprint, data.content_hash, arithmetic, *([drawn] if drawn else [])]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


class Untrained:
    """An encoder before its first step: its vectors of some texts from the cache, else a copy to compute them from."""

    def __init__(
        self,
        encoder: Encoder,
        texts: Sequence[Input],
        attended: Sequence[int],
        key: str,
        cache: VectorCache,
        *,
        keep: bool = False,
    ) -> None:
        """Look the vectors up, and copy the encoder where they have to be computed.

        Args:
            texts: what is read; attended: the places there of texts whose attention is wanted too.
            key: as `cache_key` makes it; what is read is added here.
            keep: make the copy in any case, because `encoder` is about to get other weights.
        """
        read = hashlib.sha256(json.dumps([texts, list(attended)]).encode()).hexdigest()[:16]
        self._texts, self._attended, self._key, self._cache = texts, attended, f"{key}.{read}", cache
        self.vectors = cache.get(self._key)
        self.encoder = copy.deepcopy(encoder) if keep or self.vectors is None else None

    def computed(self, tokenizer: Tokenizer, *, autocast: torch.autocast, interrupted: Callable[[], bool]) -> Vectors:
        """Return "pooled" [N, H] and, where some was wanted, "attention", and keep them for other runs.

        Raises: Interrupted.
        """
        if self.vectors is None:
            assert self.encoder is not None
            found = encode(
                self.encoder,
                tokenizer,
                self._texts,
                autocast=autocast,
                interrupted=interrupted,
                attended=self._attended,
            )
            attention = {} if found.attention is None else {"attention": found.attention}
            self.vectors = {"pooled": found.pooled.cpu().numpy(), **attention}
            self._cache.put(self._key, self.vectors)
        return self.vectors


def learned_rows(config: RunConfig, labels: Sequence[int]) -> list[int]:
    """The training rows that some batch of a prepared run holds, in order: all, unless the run ends before.

    Of more than ROWS_MAX, evenly spread ones.
    """
    seen: set[int] = set()
    for phase in config.phases:
        sampler = make_sampler(config.task.sampler, labels, phase.batch_size, config.seed)
        new_at = 0
        for step in range(1, phase_steps(phase) + 1):
            before = len(seen)
            seen.update(sampler.rows(step))
            new_at = step if len(seen) > before else new_at
            # Two epochs without a new row: what is left does not come.
            if len(seen) == len(labels) or step - new_at > 2 * sampler.steps_per_epoch:
                break
    return spread(sorted(seen), ROWS_MAX)


class Baseline:
    """Linear probe on the encoder as it was before the first step: reads training rows, validation and test split."""

    def __init__(
        self,
        config: RunConfig,
        data: TaskData,
        encoder: Encoder,
        tokenizer: Tokenizer,
        *,
        autocast: torch.autocast,
        cache: VectorCache,
        key: str,
    ) -> None:
        """Copy the encoder where its vectors are not in the cache.

        Args:
            encoder: pre-trained.
            key: identifies encoder, arithmetic and rows in the cache.
        """
        self.rows = learned_rows(config, data.train.labels)
        self._splits = (data.train.take(self.rows), data.validation, data.test)
        self._texts = [text for split in self._splits for text in split.inputs]
        self._classes = len(data.classes)
        # Half of a run is time enough to read them all.
        self._at_once = max(TEXTS_AT_ONCE, math.ceil(len(self._texts) / max(1, config.steps // 2)))
        self._tokenizer, self._autocast, self._cache = tokenizer, autocast, cache
        self._key = f"{key}.{hashlib.sha256(str(self.rows).encode()).hexdigest()[:16]}"
        known = cache.get(self._key)
        self._parts: list[FloatArray] = [] if known is None else [known["pooled"]]
        self._encoder = copy.deepcopy(encoder) if known is None else None
        self._reported = False

    def between_steps(self) -> Iterator[Evaluation]:
        """Read some texts; once all are read, the probe's scores on validation and test, and nothing after that."""
        if self._encoder is not None:
            start = sum(len(part) for part in self._parts)
            texts = self._texts[start : start + self._at_once]
            found = encode(self._encoder, self._tokenizer, texts, autocast=self._autocast)
            self._parts.append(found.pooled.cpu().numpy())
            if start + len(texts) == len(self._texts):
                self._cache.put(self._key, {"pooled": np.concatenate(self._parts)})
                self._encoder = None  # it may be large
        if self._encoder is None and not self._reported:
            self._reported = True
            train, validation, test = self._splits
            vectors = np.split(np.concatenate(self._parts), np.cumsum([len(train), len(validation)]))
            probe = LinearProbe(vectors[0], train.labels, self._classes)
            yield Evaluation(0, BASELINE, probe.scores(vectors[1], validation.labels))
            yield Evaluation(0, BASELINE_TEST, probe.scores(vectors[2], test.labels))
            self._parts = []

    def to_the_end(self) -> Iterator[Evaluation]:
        """The same for all that is left, at the end of a run that was too short."""
        while not self._reported:
            yield from self.between_steps()
