"""Inputs of a step: the texts of each pass, augmented by its view.

A changed text is a function of seed, step, row and view, so that a resumed run reads the same.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path

from core.config.plan import Pass
from core.config.term import ViewConfig
from core.encoders.model import Encoder, Tokenizer
from core.encoders.packing import Tokens
from core.registry import load
from core.tasks import TaskData
from core.tasks.dataset import Input
from core.texts.eda import row_generator


class StepInputs:
    """Tokenised texts of the passes of a plan."""

    def __init__(
        self,
        data: TaskData,
        encoder: Encoder,
        tokenizer: Tokenizer,
        passes: Sequence[Pass],
        *,
        seed: int,
        translations: Path | None = None,
    ) -> None:
        """`translations` is the file that keeps back-translations; None keeps them for this run only."""
        self._texts = data.train.inputs
        self._sides = [data.train.texts] if data.train.seconds is None else [data.train.texts, data.train.seconds]
        self._triplets = data.triplets
        self._tokenizer = tokenizer
        self._special_ids = encoder.special_ids
        self._seed = seed
        device = next(encoder.parameters()).device
        self._models = {
            number: load(wanted.view.entry.by_model)(wanted.view.parameters, seed + wanted.draw, translations, device)
            for number, wanted in enumerate(passes)
            if wanted.view is not None and wanted.view.entry.by_model
        }
        self._passes = passes
        self._streams = [stream_of(wanted) for wanted in passes]

    def plain(self, rows: Sequence[int]) -> list[Tokens]:
        """Return the tokens of rows without augmentation."""
        return self._tokenizer([self._texts[row] for row in rows])

    def tokens(self, number: int, step: int, rows: Sequence[int]) -> list[Tokens]:
        """Return the tokens of pass `number` at a step.

        Args:
            rows: row numbers, or triplet numbers for a pass over triplets.
        """
        source, view, _ = self._passes[number]
        stream = self._streams[number]
        if source != "rows":
            return self._tokenizer([getattr(self._triplets[row], source) for row in rows])
        if view is not None and view.entry.tokens:
            change = load(view.entry.tokens)
            return [
                change(tokens, self._special_ids, row_generator(self._seed, step, row, stream))
                for row, tokens in zip(rows, self.plain(rows), strict=True)
            ]
        if number in self._models:
            return self._tokenizer(self.texts(number, step, rows))
        if view is not None and view.entry.text:
            # Texts of one step are not met again: keeping their tokens would grow without end.
            return self._tokenizer(self.texts(number, step, rows), keep=False)
        return self.plain(rows)

    def texts(self, number: int, step: int, rows: Sequence[int]) -> list[Input]:
        """Return the texts of pass `number` before they are tokenised, augmented where its view changes texts."""
        view = self._passes[number].view
        if number in self._models:
            return self._by_model(number, rows)
        if view is not None and view.entry.text:
            return [self._changed(view, row, step, self._streams[number]) for row in rows]
        return [self._texts[row] for row in rows]

    def _changed(self, view: ViewConfig, row: int, step: int, stream: int) -> Input:
        text, change = self._texts[row], load(view.entry.text)
        rng = row_generator(self._seed, step, row, stream)  # one for both texts of a pair
        sides = [change(side, view.parameters, rng) for side in ((text,) if isinstance(text, str) else text)]
        return sides[0] if isinstance(text, str) else (sides[0], sides[1])

    def _by_model(self, number: int, rows: Sequence[int]) -> list[Input]:
        sides = [self._models[number].translate_rows(side, rows) for side in self._sides]
        return list(sides[0]) if len(sides) == 1 else list(zip(*sides, strict=True))


def stream_of(wanted: Pass) -> int:
    """Return the number that keeps random draws of passes apart, also of two views that differ in one setting only."""
    return zlib.crc32(wanted.view.model_dump_json().encode()) + wanted.draw if wanted.view else wanted.draw
