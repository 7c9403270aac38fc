"""An encoder with its family's classification head: packed tokens in, pooled vectors and logits out."""

from __future__ import annotations

import copy
import logging
import os
import threading
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import torch
import transformers
from torch import Tensor, nn
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from core.encoders.packing import NO_TEXT, PackedBatch, Tokens, length_sorted_chunks, pack
from core.encoders.partial import first_tokens_only, only_blocks, output_module
from core.encoders.taps import (
    EmbeddingChange,
    Encoded,
    Taps,
    attention_row,
    in_text_order,
    pooled_vectors,
    token_views,
)
from core.encoders.tokenizer import Tokenizer, special_ids
from core.errors import ConfigError, EncoderError, first_line, quote_value
from core.messages import _
from core.models.families import FAMILIES, Family
from core.models.own_pooling import Pooling, pooling_of
from core.models.source import LOADING_ERRORS, encoder_folder, has_safe_weights, read_shape

__all__ = ["Encoder", "Tokenizer", "Trunk", "load_encoder"]

LAST_LAYER = Taps()

# More chunks mean less padding but smaller, slower matrix products; two was the fastest on a CPU.
UNPACKED_CHUNKS = 2


class PlainEncoder(nn.Module):
    """A standard `AutoModelForSequenceClassification`, split at the pooled vector. Several texts can share a row.

    transformers saves and loads the wrapped model unchanged.
    """

    def __init__(self, model: Any, family: Family, pooling: Pooling) -> None:
        super().__init__()
        self.model, self.family, self.pooling = model, family, pooling
        self.padding_id = int(model.config.pad_token_id or 0)

    @property
    def base(self) -> Any:
        """Return the base model, without the head."""
        return self.model.base_model

    @property
    def blocks(self) -> nn.ModuleList:
        return cast(nn.ModuleList, self.base.get_submodule(self.family.blocks))

    def _groups(self, texts: Sequence[Tokens]) -> list[list[int]]:
        """Split the text numbers into groups that share a forward pass."""
        if self.family.packs:
            return [list(range(len(texts)))]
        return length_sorted_chunks(texts, min(UNPACKED_CHUNKS, len(texts)))

    def _batch(self, texts: Sequence[Tokens]) -> PackedBatch:
        positions = self.model.config.max_position_embeddings - self.first_position
        batch = pack(texts, self.padding_id, share_rows=self.family.packs, longest_row=positions)
        return batch.to(self.model.device)

    def _last_hidden(self, batch: PackedBatch) -> Tensor:
        takes_types = self.family.token_types and self.model.config.type_vocab_size > 1
        return self.base(
            input_ids=batch.input_ids,
            attention_mask=self._mask(batch),
            position_ids=batch.positions + self.first_position,
            **({"token_type_ids": batch.types} if takes_types else {}),
        ).last_hidden_state

    def _mask(self, batch: PackedBatch) -> Tensor:
        if not self.family.packs:
            return (batch.owners != NO_TEXT).long()  # [R, T]
        # Padding attends to padding: a fully masked row would become NaN.
        own = (batch.owners.unsqueeze(2) == batch.owners.unsqueeze(1)).unsqueeze(1)  # [R, 1, T, T]
        if self._sdpa:
            return own
        return torch.zeros_like(own, dtype=self.model.dtype).masked_fill(~own, torch.finfo(self.model.dtype).min)

    @property
    def first_position(self) -> int:
        """Return the position number of a text's first token. RoBERTa and MPNet start after the padding index."""
        if self.family.first_position == "zero":
            return 0
        return int(self.base.embeddings.padding_idx) + 1

    @property
    def _sdpa(self) -> bool:
        return self.model.config._attn_implementation == "sdpa"

    def logits(self, pooled: Tensor) -> Tensor:
        """Apply the family's head, [B, H] → [B, C], in float32 even under autocast."""
        with torch.autocast(pooled.device.type, enabled=False):
            return self.family.head(self.model, pooled.float())


def set_dropout(encoder: PlainEncoder, rate: float) -> None:
    """Set the rate of all dropout in the embeddings and blocks, on hidden states and on attention; not in the head."""
    for module in encoder.base.modules():
        if isinstance(module, nn.Dropout):
            module.p = rate


class Encoder(PlainEncoder):
    """An encoder with taps: `pooled` and `logits` are the halves of its forward pass, `encode` returns more."""

    def __init__(self, model: Any, pooling: Pooling, folder: Path = Path()) -> None:
        """Wrap a model.

        Args:
            folder: source of the weights.
        """
        super().__init__(model, FAMILIES[model.config.model_type], pooling)
        self.folder = folder
        self.special_ids: frozenset[int] = frozenset()
        # Projection heads of contrastive losses, by term; each phase sets its own.
        self.projections = nn.ModuleDict()
        # Computes the outputs of frozen lower blocks that several encoders share.
        self.trunk: Trunk | None = None
        # The modules in training mode, until the mode of all modules changes.
        self._trained_only: Sequence[nn.Module] | None = None

    def copy(self) -> Encoder:
        """Return a copy of the encoder. With a trunk, the weights of its blocks are shared, but not the modules."""
        if self.trunk is None:
            return copy.deepcopy(self)
        shared = [self.base.embeddings, *self.blocks[: self.trunk.blocks]]
        tensors = [tensor for module in shared for tensor in (*module.parameters(), *module.buffers())]
        return copy.deepcopy(self, {id(one): one for one in (self.trunk, *tensors)})

    def train_only(self, modules: Sequence[nn.Module]) -> None:
        """Set the given modules to training mode, and all others to evaluation mode, in which their dropout is off."""
        if self._trained_only is modules:  # visiting all modules takes several milliseconds
            return
        self.eval()
        for module in modules:
            module.train()
        self._trained_only = modules

    def train(self, mode: bool = True) -> Encoder:
        self._trained_only = None
        return super().train(mode)

    def pooled(self, texts: Sequence[Tokens]) -> Tensor:
        """Return one vector per text, [B, H] float32: the last hidden state of its first token, or the token mean."""
        return self.encode(texts).pooled[len(self.blocks)]

    def encode(
        self,
        texts: Sequence[Tokens],
        taps: Taps = LAST_LAYER,
        *,
        change: EmbeddingChange | None = None,
        lower: Sequence[Tensor] | None = None,
        start: int = 0,
    ) -> Encoded:
        """Run one forward pass, up to the highest tapped layer.

        Args:
            texts: B tokenised texts or pairs.
            taps: the outputs to return.
            change: function that modifies the output of the embedding layer; not with `lower`.
            lower: output of `self.lower(texts, start)`, on the model's device: the pass begins after block `start`.
            start: the block that `lower` comes from; 0 without it. Vectors and gradients equal those of the full pass
                if the embeddings, the blocks up to `start` and modules shared by blocks are frozen.
        """
        taps = replace(taps, layers=taps.layers or (len(self.blocks),))
        lowest = min([*taps.layers, *dict(taps.tokens), *taps.attention])
        if self.trunk is not None and lower is None and change is None and lowest > self.trunk.blocks > 0:
            lower, start = self.trunk.states(texts), self.trunk.blocks
        groups = self._groups(texts)
        parts = []
        for members in groups:
            batch = self._batch([texts[i] for i in members])
            states = None if lower is None else batch.lay([lower[i] for i in members])
            changed = None if change is None else self._change_of_rows(change, batch, members)
            parts.append(self._encode_rows(batch, taps, changed, states, start))
        return in_text_order(parts, [i for members in groups for i in members])

    @torch.no_grad()
    def lower(self, texts: Sequence[Tokens], blocks: int) -> list[Tensor]:
        """Return the hidden states [T, H] of each text after block number `blocks`, without gradient.

        The modules run in their current mode; use evaluation mode for states to be cached.
        """
        if self.trunk is not None and blocks == self.trunk.blocks:
            return self.trunk.states(texts)
        return self.compute_lower(texts, blocks)

    def compute_lower(self, texts: Sequence[Tokens], blocks: int) -> list[Tensor]:
        """Compute `lower` without the trunk's cache."""
        found: dict[int, Tensor] = {}
        for members in self._groups(texts):
            batch = self._batch([texts[i] for i in members])
            with only_blocks(self.base, self.family, 0, blocks, None):
                hidden = batch.by_text(self._last_hidden(batch))  # [B, T, H]
            # Clone: a view would keep the whole batch in memory.
            found |= {i: hidden[place, : len(texts[i].ids)].clone() for place, i in enumerate(members)}
        return [found[i] for i in range(len(texts))]

    def _encode_rows(
        self, batch: PackedBatch, taps: Taps, change: Callable[..., Tensor] | None, states: Tensor | None, start: int
    ) -> Encoded:
        counts = dict(taps.tokens)
        top = max([1, *taps.layers, *counts, *taps.attention])
        # Without token taps on the highest block, only its first tokens are used.
        first_only = self.pooling == "cls" and self.family.bert_blocks and self._sdpa and top not in counts
        found = Encoded({}, {}, {})
        with ExitStack() as stack:
            stack.enter_context(only_blocks(self.base, self.family, start, top, states))
            if change is not None:
                stack.enter_context(self.base.embeddings.register_forward_hook(change))
            if first_only:
                stack.enter_context(first_tokens_only(self.blocks[top - 1], batch.first))
            # The row can be read only once, but a layer may need it for both tokens and attention.
            attended = {*counts, *taps.attention}
            heads, rows = self.model.config.num_attention_heads, {}
            for layer in attended:
                row = attention_row(self.blocks[layer - 1], self.family, heads, batch)
                rows[layer] = cache(stack.enter_context(row))

            def reader_of(layer: int) -> Callable[..., None]:
                def read(_module: Any, _inputs: Any, output: Any) -> None:
                    hidden = output[0] if isinstance(output, tuple) else output
                    if layer in taps.layers:
                        short = first_only and layer == top
                        pooled = hidden[:, 0].float() if short else pooled_vectors(hidden, batch, self.pooling)
                        found.pooled[layer] = pooled
                    if layer in counts:
                        special = self._special(batch)
                        found.tokens[layer] = token_views(hidden, rows[layer](), special, counts[layer], batch)
                    if layer in taps.attention:
                        found.attention[layer] = rows[layer]()

                return read

            if 0 in taps.layers:
                # Before the first block, because some families widen the output of the embedding module.
                before = self.blocks[0].register_forward_pre_hook(
                    lambda _module, inputs: reader_of(0)(None, None, inputs[0])
                )
                stack.enter_context(before)
            for layer in {*taps.layers, *attended} - {0}:
                module = output_module(self.base, self.family, layer)
                stack.enter_context(module.register_forward_hook(reader_of(layer)))
            self._last_hidden(batch)
        return found

    def _special(self, batch: PackedBatch) -> Tensor:
        """Return the mask [R, T] of padding and of tokens that the tokenizer adds."""
        special = torch.tensor(sorted(self.special_ids), dtype=torch.long, device=batch.input_ids.device)
        return torch.isin(batch.input_ids, special) | (batch.owners == NO_TEXT)

    def _change_of_rows(
        self, change: EmbeddingChange, batch: PackedBatch, members: Sequence[int]
    ) -> Callable[..., Tensor]:
        """Return the hook that modifies embeddings; it maps owners to text numbers of the whole batch."""
        numbers = torch.tensor(members, device=batch.owners.device)
        owners = torch.where(batch.owners == NO_TEXT, NO_TEXT, numbers[batch.owners])  # [R, T]
        special = self._special(batch)

        def hook(_module: Any, _inputs: Any, output: Tensor) -> Tensor:
            return change(output, owners, special)

        return hook


class Trunk:
    """The embeddings and lower blocks of an encoder, frozen, with their outputs by text. Threads may share it.

    Attributes:
        tokenizer: the encoder's.
        blocks: number of shared blocks, fewer than the encoder has; with 0, only the embeddings are shared.
    """

    def __init__(
        self,
        encoder: Encoder,
        tokenizer: Tokenizer,
        blocks: int,
        groups: Sequence[Sequence[Tokens]] = (),
        limit: int = 2**30,
    ) -> None:
        """Share an encoder's lower blocks.

        Args:
            groups: texts whose outputs are computed in one call. Rounding depends on the group, so fixed groups make
                outputs independent of the order of requests. Any other text is computed alone.
            limit: maximum bytes of the outputs that are kept.
        """
        self.tokenizer, self.blocks = tokenizer, blocks
        self._encoder = encoder.eval().requires_grad_(False)
        self._encoder.trunk = self
        self._groups = {text: group for group in reversed(groups) for text in group}
        self._states: dict[Tokens, Tensor] = {}
        self._room = limit
        self._lock, self._threads = threading.Lock(), torch.get_num_threads()

    def encoder_copy(self) -> Encoder:
        """Return an encoder that has its own upper blocks and classifier, with the same initial weights each time."""
        return self._encoder.copy()

    def states(self, texts: Sequence[Tokens]) -> list[Tensor]:
        """Return the hidden states [T, H] of each text after the shared blocks."""
        with self._lock:
            missing = [text for text in dict.fromkeys(texts) if text not in self._states]
            found = self._compute(missing) if missing else {}
            return [found[text] if text in found else self._states[text] for text in texts]

    def _compute(self, missing: Sequence[Tokens]) -> dict[Tokens, Tensor]:
        """Compute the groups of texts with every core, because the other threads usually wait for them."""
        found: dict[Tokens, Tensor] = {}
        threads = torch.get_num_threads()
        torch.set_num_threads(self._threads)
        try:
            for text in missing:
                if text not in found:
                    group = self._groups.get(text, (text,))
                    with torch.inference_mode(mode=False):  # training reads them too
                        found |= zip(group, self._encoder.compute_lower(group, self.blocks), strict=True)
        finally:
            torch.set_num_threads(threads)
        for text, states in found.items():
            if self._room >= states.nbytes and text not in self._states:
                self._room -= states.nbytes
                self._states[text] = states
        return found


def load_encoder(
    encoder_id: str,
    *,
    classes: Sequence[str],
    pooling: Pooling | Literal["auto"] = "auto",
    max_length: int = 128,
    dropout: float | None = None,
) -> tuple[Encoder, Tokenizer]:
    """Load an encoder with a fresh classification head (drawn from torch's random state) and its tokenizer.

    Weights are read from safetensors; an encoder with only a .bin file is read by torch's weights_only loader. Code
    that comes with an encoder is never run.

    Args:
        pooling: "auto" is the pooling that the encoder was trained with.
        max_length: maximum number of tokens per text or pair; longer ones are truncated.
        dropout: rate of `set_dropout`; None keeps the rates of the encoder's config.
    Raises: EncoderError if the encoder cannot be loaded; ConfigError for an invalid name, or a `max_length` above the
        encoder's limit.
    """
    # Otherwise transformers warns about every fresh head and writes progress bars to the log.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    transformers.utils.logging.set_verbosity(logging.ERROR)
    transformers.utils.logging.disable_progress_bar()
    folder = encoder_folder(encoder_id)
    limit = read_shape(folder / "config.json", encoder_id).positions
    labels = dict(enumerate(classes))
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
        if set(tokenizer.get_vocab()) <= set(tokenizer.all_special_tokens):
            # Without tokenizer files, transformers silently creates a tokenizer with an empty vocabulary.
            raise ValueError(_("its tokenizer has no vocabulary"))
        model, report = AutoModelForSequenceClassification.from_pretrained(
            folder,
            output_loading_info=True,
            num_labels=len(classes),
            id2label=labels,
            label2id={label: i for i, label in labels.items()},
            trust_remote_code=False,
            use_safetensors=has_safe_weights(folder),
            weights_only=True,
            dtype=torch.float32,
        )
    except LOADING_ERRORS as error:
        raise EncoderError(
            "Encoder {name} could not be loaded ({problem}): give a transformers encoder with safetensors weights "
            "and a tokenizer.",
            name=quote_value(encoder_id),
            problem=quote_value(first_line(error)),
        ) from error
    _check_weights(model, report["missing_keys"], encoder_id)
    encoder = Encoder(model, pooling_of(folder, encoder_id) if pooling == "auto" else pooling, folder)
    encoder.special_ids = special_ids(tokenizer)
    if dropout is not None:
        set_dropout(encoder, dropout)
    if max_length > limit:
        raise ConfigError(
            "encoder.max_length",
            max_length,
            "{encoder} reads at most {limit} tokens.",
            encoder=quote_value(encoder_id),
            limit=limit,
        )
    return encoder, Tokenizer(tokenizer, max_length)


def _check_weights(model: Any, missing: Collection[str], encoder_id: str) -> None:
    """Check that every weight below the head was read and that all weights are finite.

    transformers draws missing weights at random. Raises: EncoderError naming a weight.
    """
    heads = tuple(f"{module}." for module in FAMILIES[model.config.model_type].head_modules)
    shown = quote_value(encoder_id)
    if lacking := sorted(name for name in missing if not name.startswith(heads)):
        raise EncoderError(
            "Encoder {name} lacks the weight {weight}: fetch or save its files again.", name=shown, weight=lacking[0]
        )
    for name, weight in model.named_parameters():
        # NumPy takes 15 ms for the bundled encoder, and torch's threads 20 times as long beside another busy process.
        values = weight.detach().numpy()
        if not np.isfinite([values.min(), values.max()]).all():
            raise EncoderError(
                "Encoder {name} has NaN or infinite numbers in the weight {weight}: fetch or save its files again.",
                name=shown,
                weight=name,
            )
