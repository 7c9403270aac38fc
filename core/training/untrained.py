"""The encoder before the first step: the first frame, and the linear probe that is the baseline of a fine-tune.

The first frame shows the model at the start of training, with re-initialised blocks. The baseline is fitted on the
pre-trained encoder, which is available without a fine-tune. It encodes its rows a few at a time between the steps of
the run, so that no step waits for it. The vectors of both are cached under a key that covers everything they depend on,
and computed once for all runs.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from core.atomic import atomic_write
from core.config import TRAIN_POINTS_MAX, EncoderConfig, RunConfig, phase_steps
from core.encoders.model import Encoder, Tokenizer
from core.events import BASELINE, BASELINE_TEST, Evaluation, FloatArray, Predictions
from core.tasks import TaskData
from core.tasks.batches import make_sampler
from core.tasks.dataset import Input, Split
from core.training.encode import encode
from core.training.scores import LinearProbe, probe_scores, similarity_scores

# Pooled vectors and [CLS] attention, by name.
Vectors = Mapping[str, NDArray[Any]]

MOST_KEPT, MOST_BYTES = 64, 2**29
# A logistic regression on more rows takes minutes.
ROWS_MAX = 20_000
# With smaller batches the encoder would be slower.
TEXTS_AT_ONCE = 16


class FolderCache:
    """A cache with one safetensors file per key, limited to the newest files. A damaged file counts as absent."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, key: str) -> Vectors | None:
        try:
            return load_file(self._folder / f"{key}.safetensors")
        except (OSError, SafetensorError):
            return None

    def __setitem__(self, key: str, vectors: Vectors) -> None:
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
            # Without the cache a run only takes a few seconds longer.
            logging.getLogger(__name__).warning("vectors could not be cached: %s", error)


VectorCache = dict[str, Vectors] | FolderCache


def probe_rows(rows: int, size: int) -> list[int]:
    """Return the training rows on the map, among those that can be on it."""
    return spread(spread(range(rows), TRAIN_POINTS_MAX), size)


def spread(rows: Sequence[int], count: int) -> list[int]:
    """Return `count` of the rows, evenly spread; all rows if there are fewer."""
    return [rows[i] for i in np.linspace(0, len(rows) - 1, min(count, len(rows))).astype(np.int64)] if count else []


def cache_key(
    config: EncoderConfig, fingerprint: str, data: TaskData, arithmetic: str, drawn: tuple[int, int] | None = None
) -> str:
    """Return the cache key of an encoder, its pooling and length, a task and the arithmetic.

    Args:
        fingerprint: distinguishes encoders of the same name, e.g. by the sizes and dates of their weight files.
        arithmetic: device type and precision, which differ in rounding.
        drawn: number of re-initialised top blocks and the seed that drew them; None for a pre-trained encoder.
    """
    read = config.model_dump(mode="json", exclude={"dropout"})  # vectors are computed without dropout
    parts = [read, fingerprint, data.content_hash, arithmetic, *([drawn] if drawn else [])]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


def weights_fingerprint(encoder: Encoder) -> str:
    """Return the names, sizes and dates of an encoder's weight files."""
    files = sorted([*encoder.folder.glob("*.safetensors"), *encoder.folder.glob("*.bin")])
    return ";".join(f"{file.name}:{file.stat().st_size}:{file.stat().st_mtime_ns}" for file in files)


class Untrained:
    """The vectors of an encoder before its first step, from the cache or from a copy of the encoder."""

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
        """Look the vectors up, and copy the encoder if they have to be computed.

        Args:
            texts: texts to encode.
            attended: indices of the texts whose attention is returned too.
            key: result of `cache_key`; a hash of the texts is appended.
            keep: copy the encoder in any case, because the caller is about to load other weights into it.
        """
        read = hashlib.sha256(json.dumps([texts, list(attended)]).encode()).hexdigest()[:16]
        self._texts, self._attended, self._key, self._cache = texts, attended, f"{key}.{read}", cache
        self.vectors = cache.get(self._key)
        self.encoder = encoder.copy() if keep or self.vectors is None else None

    def load_or_compute(
        self, tokenizer: Tokenizer, *, autocast: torch.autocast, interrupted: Callable[[], bool]
    ) -> Vectors:
        """Return "pooled" [N, H] and, if requested, "attention". Both are cached for other runs.

        Raises: Interrupted.
        """
        if self.vectors is None:  # another run may have computed them since
            self.vectors = self._cache.get(self._key)
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
            self._cache[self._key] = self.vectors
        return self.vectors


def learned_rows(config: RunConfig, labels: Sequence[int]) -> list[int]:
    """Return the training rows of all batches of a prepared run, ascending.

    These are all rows, unless the run ends earlier. Of more than ROWS_MAX rows, return an evenly spread subset.
    """
    seen: set[int] = set()
    for phase in config.phases:
        sampler = make_sampler(config.task.sampler, labels, phase.batch_size, config.seed)
        new_at = 0
        for step in range(1, phase_steps(phase) + 1):
            before = len(seen)
            seen.update(sampler.rows(step))
            new_at = step if len(seen) > before else new_at
            # After two epochs without a new row, no further row will come.
            if len(seen) == len(labels) or step - new_at > 2 * sampler.steps_per_epoch:
                break
    return spread(sorted(seen), ROWS_MAX)


class Baseline:
    """A linear probe on the pre-trained encoder, fitted on training rows and scored on validation and test split."""

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
        """Copy the encoder if its vectors are not cached.

        Args:
            encoder: pre-trained.
            key: identifies encoder, arithmetic and rows in the cache.
        """
        self.rows = learned_rows(config, data.train.labels)
        test = data.test.take([]) if config.on_shared_trunk else data.test
        self._splits = (data.train.take(self.rows), data.validation, test)
        self._texts = [text for split in self._splits for text in split.inputs]
        self._classes = len(data.classes)
        # Encode all texts within the first half of the run.
        self._at_once = max(TEXTS_AT_ONCE, math.ceil(len(self._texts) / max(1, config.steps // 2)))
        self._tokenizer, self._autocast, self._cache = tokenizer, autocast, cache
        read = str(self.rows) if len(test) else f"{self.rows} without test"
        self._key = f"{key}.{hashlib.sha256(read.encode()).hexdigest()[:16]}"
        known = cache.get(self._key)
        self._parts: list[FloatArray] = [] if known is None else [known["pooled"]]
        self._encoder = encoder.copy() if known is None else None
        self._reported = False

    def encode_next(self) -> Iterator[Evaluation | Predictions]:
        """Encode some texts. After the last ones, yield the probe's scores on validation and test, once."""
        if self._encoder is not None:
            start = sum(len(part) for part in self._parts)
            texts = self._texts[start : start + self._at_once]
            found = encode(self._encoder, self._tokenizer, texts, autocast=self._autocast)
            self._parts.append(found.pooled.cpu().numpy())
            if start + len(texts) == len(self._texts):
                self._cache[self._key] = {"pooled": np.concatenate(self._parts)}
                self._encoder = None  # it may be large
        if self._encoder is None and not self._reported:
            self._reported = True
            train, validation, test = self._splits
            vectors = np.split(np.concatenate(self._parts), np.cumsum([len(train), len(validation)]))
            probe = LinearProbe(vectors[0], train.labels, self._classes)
            yield Evaluation(0, BASELINE, self._scores(probe, vectors[1], validation))
            if not len(test):
                yield Predictions(BASELINE, probe.logits(vectors[1]), validation.labels)
            else:
                yield Evaluation(0, BASELINE_TEST, self._scores(probe, vectors[2], test))
            self._parts = []

    @staticmethod
    def _scores(probe: LinearProbe, vectors: FloatArray, split: Split) -> dict[str, float]:
        return probe_scores(probe.logits(vectors), split.labels, probe.rows) | similarity_scores(vectors, split)

    def encode_remaining(self) -> Iterator[Evaluation | Predictions]:
        """Encode all remaining texts at the end of a run that was too short, and yield the scores."""
        while not self._reported:
            yield from self.encode_next()
