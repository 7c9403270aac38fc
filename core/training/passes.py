"""Passes of the encoder over a batch, in one call. The view of a pass augments its texts.

An augmented text is a function of seed, step, row and view, so that a resumed run reads the same texts.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from core.config.plan import Pass, Plan
from core.encoders.model import Encoder, Tokenizer
from core.encoders.packing import Tokens
from core.encoders.taps import EmbeddingChange, Taps
from core.losses.evaluate import Mixed
from core.registry import load
from core.tasks import TaskData
from core.tasks.dataset import Input, ScoredPair, Triplet
from core.texts.eda import row_generator, stream
from core.training.adversarial import arrange_gradients, embedding_gradients
from core.training.data_parallel import Ranks, ShardedBatch
from core.training.gradient_cache import GradientCache
from core.training.outputs import Outputs, combine_outputs, outputs_of
from core.training.row_cache import RowCache
from core.views.cutmix import cutmix
from core.views.embedding import Embedded

FLOAT_BYTES = 4


class Machine(NamedTuple):
    """Device and precision of a run."""

    device: torch.device
    autocast: torch.autocast

    @property
    def arithmetic(self) -> str:
        """Return the device type and the precision of the encoder's passes, which differ in rounding."""
        return f"{self.device.type} {'bfloat16' if self.autocast._enabled else 'float32'}"


class Setup(NamedTuple):
    """The values that all phases of a run share.

    Attributes:
        translations: file that caches back-translations; None caches them for this run only.
        ranks: the processes that share a batch; None for a run with one process.
    """

    data: TaskData
    encoder: Encoder
    tokenizer: Tokenizer
    machine: Machine
    seed: int
    translations: Path | None = None
    ranks: Ranks | None = None


class Batch(NamedTuple):
    """The inputs of a step.

    Attributes:
        labels: [B].
        tokens: of each pass.
        gradients: of adversarial passes.
        mixed: partners and shares of passes with CutMix.
    """

    rows: Sequence[int]
    labels: Tensor
    tokens: list[list[Tokens]]
    gradients: dict[int, list[Tensor]]
    mixed: dict[int, Mixed]


class Passes:
    """The passes of a plan. Outputs of frozen blocks are computed once for each text and cached.

    Outputs are not cached if a view changes a text before the encoder, or if the batch consists of triplets or
    pairs. With a gradient cache or several processes, they are cached only if all blocks are frozen.

    Attributes:
        plan: may be replaced by one with the same passes, layers and tokens. Adversarial steps then follow its loss,
            with its knobs.
    """

    def __init__(
        self,
        plan: Plan,
        setup: Setup,
        *,
        rows_of: Callable[[int], Sequence[int]],
        frozen: int,
        micro_batch: int | None,
    ) -> None:
        """Create the caches for outputs of frozen blocks.

        Args:
            rows_of: returns the rows of a step, counted from 1.
            frozen: number of lowest blocks that are frozen.
            micro_batch: number of texts encoded at a time; None for the whole batch.
        """
        encoder, ranks = setup.encoder, setup.ranks
        self.plan, self._encoder, self._machine, self._micro_batch = plan, encoder, setup.machine, micro_batch
        self.inputs = StepInputs(setup, plan.passes)
        self._ranks, self._seed = ranks, setup.seed
        self._taps, self._start = Taps(plan.layers, plan.tokens), frozen
        self.kept_outputs: RowCache[Outputs] | None = None
        self.kept_states: RowCache[Tensor] | None = None
        # Each process encodes its own shard of a batch, unless all blocks are frozen.
        if plan.keeps_frozen(frozen, len(encoder.blocks), in_parts=micro_batch is not None or ranks is not None):
            width = encoder.base.config.hidden_size * FLOAT_BYTES
            if frozen == len(encoder.blocks):
                vectors = max(1, len(plan.layers)) + sum(k for _, k in plan.tokens)
                self.kept_outputs = RowCache(rows_of, self._frozen_outputs, lambda _: vectors * width)
            else:
                self.kept_states = RowCache(
                    rows_of, self._frozen_states, lambda row: len(self.inputs.plain([row])[0].ids) * width
                )

    def batch(self, step: int, rows: Sequence[int], examples: Sequence[int], labels: Tensor) -> Batch:
        """Return the inputs of the passes at a step.

        Args:
            examples: numbers of triplets or scored pairs; empty if no pass reads them.
            labels: [B], of the rows, or scores of the pairs.
        """
        tokens = [
            self.inputs.tokens(number, step, rows if wanted.source == "rows" else examples)
            for number, wanted in enumerate(self.plan.passes)
        ]
        mixed = {}
        for number, wanted in enumerate(self.plan.passes):
            if wanted.cutmix:
                rng = row_generator(self._seed, step, 0, stream("cutmix"))
                tokens[number], *how = cutmix(tokens[number], self._encoder.special_ids, wanted.cutmix, rng)
                mixed[number] = Mixed(*(torch.tensor(values, device=labels.device) for values in how))
        gradients = {}
        for number, wanted in enumerate(self.plan.passes):
            if wanted.view is not None and wanted.view.entry.follows_gradient:
                having = [t for t in self.plan.terms if wanted.view in t.term.views]
                # An adversarial step follows the contrastive term if several share the view.
                followed = max(having, key=lambda t: (t.term.entry.contrastive, t.term.weight > 0))
                gradients[number] = embedding_gradients(
                    self._encoder, tokens[number], labels, followed, self._machine.autocast
                )
        return Batch(rows, labels, tokens, gradients, mixed)

    def encode(self, step: int, batch: Batch) -> tuple[Outputs, GradientCache | ShardedBatch | None]:
        """Return the outputs of the encoder, and the gradient cache or sharded batch, if any.

        The caller must call its `backward` after that of the loss.
        """
        if self.kept_outputs is not None:
            items, passes = self.kept_outputs.items(step, batch.rows), len(batch.tokens)
            outputs = combine_outputs(lambda *rows: torch.stack([torch.stack(rows)] * passes), *items)
            for vectors in outputs.vectors:
                vectors.requires_grad_()
            return outputs, None
        if self.kept_states is not None:
            states, passes = self.kept_states.items(step, batch.rows), len(batch.tokens)
            texts = [tokens for pass_tokens in batch.tokens for tokens in pass_tokens]
            with self._machine.autocast:
                encoded = self._encoder.encode(texts, self._taps, lower=states * passes, start=self._start)
            return outputs_of(encoded, passes), None
        size = len(batch.tokens[0])
        if self._ranks is not None:
            batch_of_all = ShardedBatch(partial(self.run, batch), size, self._ranks, self._micro_batch)
            return batch_of_all.encode(), batch_of_all
        if self._micro_batch is not None:
            cache = GradientCache(partial(self.run, batch), size, self._micro_batch)
            return cache.encode(), cache
        outputs = self.run(batch, 0, size)
        for vectors in outputs.vectors:  # if only the head is trained, its input shows the gradient of each term
            if not vectors.requires_grad:
                vectors.requires_grad_()
        return outputs, None

    def run(self, batch: Batch, start: int, end: int) -> Outputs:
        """Encode the texts start … end − 1 of the batch in all passes, in one call of the encoder."""
        texts = [tokens for pass_tokens in batch.tokens for tokens in pass_tokens[start:end]]
        with self._machine.autocast:
            encoded = self._encoder.encode(texts, self._taps, change=self._change(batch, start, end))
        return outputs_of(encoded, len(batch.tokens))

    def _change(self, batch: Batch, start: int, end: int) -> EmbeddingChange | None:
        """Return the function that applies the embedding views of the passes; None without any."""
        size = end - start
        edits = [
            (wanted.view, list(range(number * size, (number + 1) * size)), batch.gradients.get(number, [])[start:end])
            for number, wanted in enumerate(self.plan.passes)
            if wanted.view is not None and wanted.view.entry.kind == "embedding"
        ]
        if not edits:
            return None

        def change(embeddings: Tensor, owners: Tensor, special: Tensor) -> Tensor:
            for view, texts, gradients in edits:
                follows = view.entry.follows_gradient
                gradient = arrange_gradients(gradients, embeddings, owners, texts) if follows else None
                given = Embedded(embeddings, owners, special, texts, gradient)
                embeddings = load(view.entry.embedding)(given, view.parameters)
            return embeddings

        return change

    # Frozen blocks

    def _frozen_states(self, rows: Sequence[int]) -> list[Tensor]:
        with self._machine.autocast:
            return self._encoder.lower(self.inputs.plain(rows), self._start)

    def _frozen_outputs(self, rows: Sequence[int]) -> list[Outputs]:
        """Return the outputs of each row, without axes of passes and texts."""
        with torch.no_grad(), self._machine.autocast:
            encoded = self._encoder.encode(self.inputs.plain(rows), self._taps)
        found = Outputs(encoded.pooled, encoded.tokens)
        return [combine_outputs(lambda of_rows, at=at: of_rows[at].clone(), found) for at in range(len(rows))]


class StepInputs:
    """The tokenised texts of the passes of a plan."""

    def __init__(self, setup: Setup, passes: Sequence[Pass]) -> None:
        """Create the translation models of the views that need them."""
        data, encoder, seed = setup.data, setup.encoder, setup.seed
        self._texts = data.train.inputs
        self._sides = [data.train.texts] if data.train.seconds is None else [data.train.texts, data.train.seconds]
        self._examples: Sequence[Triplet | ScoredPair] = data.triplets or data.pairs
        self._tokenizer = setup.tokenizer
        self._special_ids = encoder.special_ids
        self._seed = seed
        kept, device = setup.translations, next(encoder.parameters()).device
        self._models = {
            number: load(wanted.view.entry.by_model)(wanted.view.parameters, seed + wanted.draw, kept, device)
            for number, wanted in enumerate(passes)
            if wanted.view is not None and wanted.view.entry.by_model
        }
        self._passes = passes
        # Views that differ in a single setting have different random streams.
        self._streams = [
            (zlib.crc32(wanted.view.model_dump_json().encode()) if wanted.view else 0) + wanted.draw
            for wanted in passes
        ]

    def plain(self, rows: Sequence[int]) -> list[Tokens]:
        """Return the tokens of rows without augmentation."""
        return self._tokenizer([self._texts[row] for row in rows])

    def tokens(self, number: int, step: int, rows: Sequence[int]) -> list[Tokens]:
        """Return the tokens of pass `number` at a step.

        Args:
            rows: row numbers, or numbers of triplets or scored pairs for a pass over them.
        """
        source, view, *_ = self._passes[number]
        stream = self._streams[number]
        if source != "rows":
            return self._tokenizer([getattr(self._examples[row], source) for row in rows])
        if view is not None and view.entry.tokens:
            change = load(view.entry.tokens)
            return [
                change(tokens, self._special_ids, row_generator(self._seed, step, row, stream))
                for row, tokens in zip(rows, self.plain(rows), strict=True)
            ]
        if number in self._models:
            sides = [self._models[number].translate_rows(side, rows) for side in self._sides]
            return self._tokenizer(list(sides[0]) if len(sides) == 1 else list(zip(*sides, strict=True)))
        if view is not None and view.entry.text:
            change, augmented = load(view.entry.text), list[Input]()
            for row in rows:
                text = self._texts[row]
                rng = row_generator(self._seed, step, row, stream)  # one for both texts of a pair
                changed = [change(side, view.parameters, rng) for side in ((text,) if isinstance(text, str) else text)]
                augmented.append(changed[0] if isinstance(text, str) else (changed[0], changed[1]))
            # Augmented texts are not used again, so a cache of their tokens would grow without bound.
            return self._tokenizer(augmented, keep=False)
        return self.plain(rows)
