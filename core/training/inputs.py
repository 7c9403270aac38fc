"""What the encoder reads in a step: the texts of each pass, changed where its view says so.

A changed text is a function of seed, step, row and view, so that a resumed run reads the same.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path

import torch

from core.config.term import ViewConfig
from core.encoders.model import Encoder, Tokenizer
from core.encoders.packing import Tokens
from core.parameters import number
from core.tasks import TaskData
from core.tasks.dataset import Input
from core.training.plan import Pass
from core.views.back_translation import MemoryTranslationCache, RoundTrip, TranslationCache, Translations
from core.views.eda import eda, row_generator
from core.views.token_shuffle import shuffle_tokens


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
        cache = TranslationCache(translations) if translations else MemoryTranslationCache()
        self._round_trips = {
            number: _round_trip(wanted.view, seed + wanted.draw, cache, device)
            for number, wanted in enumerate(passes)
            if wanted.view is not None and wanted.view.view == "back_translation"
        }
        self._passes = passes
        self._streams = [_stream(wanted) for wanted in passes]

    def plain(self, rows: Sequence[int]) -> list[Tokens]:
        """Rows as they are."""
        return self._tokenizer([self._texts[row] for row in rows])

    def tokens(self, number: int, step: int, rows: Sequence[int]) -> list[Tokens]:
        """What pass `number` reads at a step; `rows` are row numbers, or triplet numbers for a pass over triplets."""
        source, view, _ = self._passes[number]
        stream = self._streams[number]
        if source != "rows":
            return self._tokenizer([getattr(self._triplets[row], source) for row in rows])
        if view is None or view.view in ("dropout", "adversarial") or view.entry.kind == "embedding":
            return self.plain(rows)
        if view.view == "token_shuffle":
            return [
                shuffle_tokens(tokens, self._special_ids, row_generator(self._seed, step, row, stream))
                for row, tokens in zip(rows, self.plain(rows), strict=True)
            ]
        if view.view == "back_translation":
            return self._tokenizer(self._translated(number, rows))
        # Texts of one step are not met again: keeping their tokens would grow without end.
        return self._tokenizer([self._augmented(view, self._texts[row], step, row, stream) for row in rows], keep=False)

    def _augmented(self, view: ViewConfig, text: Input, step: int, row: int, stream: int) -> Input:
        settings = view.parameters
        rng = row_generator(self._seed, step, row, stream)

        def changed(one: str) -> str:
            return eda(one, operation=str(settings["operation"]), rate=number(settings, "rate"), rng=rng)

        return changed(text) if isinstance(text, str) else (changed(text[0]), changed(text[1]))

    def _translated(self, number: int, rows: Sequence[int]) -> list[Input]:
        sides = [self._round_trips[number].translate_rows(side, rows) for side in self._sides]
        return list(sides[0]) if len(sides) == 1 else list(zip(*sides, strict=True))


def _stream(wanted: Pass) -> int:
    """Tells the random draws of passes apart, also where two views of one kind differ in a setting only."""
    return zlib.crc32(wanted.view.model_dump_json().encode()) + wanted.draw if wanted.view else wanted.draw


def _round_trip(view: ViewConfig, seed: int, cache: Translations, device: torch.device) -> RoundTrip:
    settings = view.parameters
    return RoundTrip(
        str(settings["forward"]),
        str(settings["backward"]),
        temperature=number(settings, "temperature"),
        seed=seed,
        cache=cache,
        device=device,
    )
