"""The linear probe that a fine-tune has to beat: the pre-trained encoder as it is, on the rows the run learns from.

The encoder reads them a few at a time between the steps of the run, so that no step waits for it.
"""

from __future__ import annotations

import copy
import hashlib
import math
from collections.abc import Iterator, Sequence

import numpy as np
import torch

from core.config import RunConfig, phase_steps
from core.encoders.model import Encoder, Tokenizer
from core.events import BASELINE, BASELINE_TEST, Evaluation, FloatArray
from core.tasks import TaskData
from core.tasks.batches import make_sampler
from core.training.encode import encode
from core.training.scores import LinearProbe
from core.training.untrained import VectorCache, spread

# A logistic regression on more rows takes minutes.
ROWS_MAX = 20_000
# Fewer texts at a time than these would make the encoder slower.
TEXTS_AT_ONCE = 16


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
            self._read_some(self._encoder)
        if self._encoder is None and not self._reported:
            self._reported = True
            yield from self._scores()

    def to_the_end(self) -> Iterator[Evaluation]:
        """The same for all that is left, at the end of a run that was too short."""
        while not self._reported:
            yield from self.between_steps()

    def _read_some(self, encoder: Encoder) -> None:
        start = sum(len(part) for part in self._parts)
        texts = self._texts[start : start + self._at_once]
        found = encode(encoder, self._tokenizer, texts, autocast=self._autocast)
        self._parts.append(found.pooled.cpu().numpy())
        if start + len(texts) == len(self._texts):
            self._cache.put(self._key, {"pooled": np.concatenate(self._parts)})
            self._encoder = None  # it may be large

    def _scores(self) -> Iterator[Evaluation]:
        train, validation, test = self._splits
        ends = np.cumsum([len(train), len(validation)])
        vectors = np.split(np.concatenate(self._parts), ends)
        probe = LinearProbe(vectors[0], train.labels, self._classes)
        yield Evaluation(0, BASELINE, probe.scores(vectors[1], validation.labels))
        yield Evaluation(0, BASELINE_TEST, probe.scores(vectors[2], test.labels))
        self._parts = []
