"""An encoder with its family's classification head: packed tokens in, pooled vectors and logits out."""

from __future__ import annotations

import logging
import os
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, cast

import torch
import transformers
from safetensors import SafetensorError
from torch import Tensor, nn
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from core.encoders.families import family_of
from core.encoders.first_token import first_tokens_only
from core.encoders.packing import NO_TEXT, PackedBatch, length_sorted_chunks, pack
from core.encoders.source import encoder_folder, has_safe_weights, read_shape
from core.errors import ConfigError, EncoderError, shown

Pooling = Literal["cls", "mean"]

# More chunks mean less padding and smaller, slower matrix products; two was the fastest tried on a CPU.
UNPACKED_CHUNKS = 2

# What transformers raises for files that are missing, damaged, of another kind or not allowed.
LOADING_ERRORS = (OSError, ValueError, KeyError, RuntimeError, ImportError, pickle.UnpicklingError, SafetensorError)


class Encoder(nn.Module):
    """A standard `AutoModelForSequenceClassification`, taken apart at the pooled vector.

    `pooled` and `logits` are the two halves of its forward pass; the model inside is saved and loaded by
    transformers as it is.
    """

    def __init__(self, model: Any, pooling: Pooling, folder: Path = Path()) -> None:
        """`folder` is where the weights came from."""
        super().__init__()
        self.folder = folder
        self.model = model
        self.family = family_of(model.config.model_type)
        self.pooling = pooling
        self.padding_id = int(model.config.pad_token_id or 0)

    @property
    def base(self) -> Any:
        """The family's model below the head."""
        return self.model.base_model

    @property
    def blocks(self) -> nn.ModuleList:
        return cast(nn.ModuleList, self.base.get_submodule(self.family.blocks))

    def pooled(self, texts: Sequence[Sequence[int]]) -> Tensor:
        """One vector per tokenised text, [B, H] float32: its first token's last hidden state, or the mean of all."""
        if self.family.packs:
            positions = self.model.config.max_position_embeddings - self.first_position
            return self._pooled_rows(pack(texts, self.padding_id, longest_row=positions).to(self.model.device))
        chunks = length_sorted_chunks(texts, min(UNPACKED_CHUNKS, len(texts)))
        rows = [pack([texts[i] for i in chunk], self.padding_id, share_rows=False) for chunk in chunks]
        vectors = torch.cat([self._pooled_rows(r.to(self.model.device)) for r in rows])
        order = torch.tensor([i for chunk in chunks for i in chunk], device=vectors.device)
        return torch.empty_like(vectors).index_copy(0, order, vectors)

    def _pooled_rows(self, batch: PackedBatch) -> Tensor:
        if self.pooling == "cls" and self.family.bert_blocks and self._sdpa:
            with first_tokens_only(self.blocks[-1], batch.first):
                return self._last_hidden(batch)[:, 0].float()  # [B, 1, H] → [B, H]
        hidden = self._last_hidden(batch).flatten(0, 1)  # [R·T, H]
        if self.pooling == "cls":
            return hidden[batch.first].float()
        owners = batch.owners.flatten()  # [R·T]
        real = owners != NO_TEXT
        sums = hidden.new_zeros(len(batch.first), hidden.shape[-1], dtype=torch.float32)
        sums = sums.index_add(0, owners[real], hidden[real].float())  # [B, H]
        return sums / torch.bincount(owners[real], minlength=len(sums)).unsqueeze(1)

    def _last_hidden(self, batch: PackedBatch) -> Tensor:
        return self.base(
            input_ids=batch.input_ids,
            attention_mask=self._mask(batch),
            position_ids=batch.positions + self.first_position,
        ).last_hidden_state

    @property
    def _sdpa(self) -> bool:
        return self.model.config._attn_implementation == "sdpa"

    def logits(self, pooled: Tensor) -> Tensor:
        """[B, H] → [B, C] in float32, through the family's own head."""
        return self.family.head(self.model, pooled).float()

    @property
    def first_position(self) -> int:
        """The number of a text's first position: RoBERTa's and MPNet's begin behind the padding index."""
        if self.family.first_position == "zero":
            return 0
        return int(self.base.embeddings.padding_idx) + 1

    def _mask(self, batch: PackedBatch) -> Tensor:
        if not self.family.packs:
            return (batch.segments != NO_TEXT).long()  # [R, T]
        # Padding sees padding: a row that sees nothing at all would turn into NaN.
        own = (batch.segments.unsqueeze(2) == batch.segments.unsqueeze(1)).unsqueeze(1)  # [R, 1, T, T]
        if self._sdpa:
            return own
        return torch.zeros_like(own, dtype=self.model.dtype).masked_fill(~own, torch.finfo(self.model.dtype).min)


class Tokenizer:
    """Texts to token ids, each text once."""

    def __init__(self, tokenizer: Any, max_length: int) -> None:
        self._tokenizer = tokenizer
        self._max_length = max_length
        self._seen: dict[str, list[int]] = {}

    def __call__(self, texts: Sequence[str]) -> list[list[int]]:
        new = [text for text in dict.fromkeys(texts) if text not in self._seen]
        if new:
            ids = self._tokenizer(new, truncation=True, max_length=self._max_length)["input_ids"]
            self._seen.update(zip(new, ids, strict=True))
        return [self._seen[text] for text in texts]


def load_encoder(
    encoder_id: str, *, classes: Sequence[str], pooling: Pooling = "cls", max_length: int = 128
) -> tuple[Encoder, Tokenizer]:
    """Load an encoder with a fresh classification head (drawn from torch's random state) and its tokenizer.

    Only safetensors are read; an encoder that has nothing but a .bin file goes through torch's weights_only loader.
    No code that comes with an encoder is run.

    Raises: EncoderError or ConfigError in one sentence.
    """
    _quiet_transformers()
    folder = encoder_folder(encoder_id)
    limit = read_shape(folder / "config.json", encoder_id).positions
    labels = dict(enumerate(classes))
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
        model = AutoModelForSequenceClassification.from_pretrained(
            folder,
            num_labels=len(classes),
            id2label=labels,
            label2id={label: i for i, label in labels.items()},
            trust_remote_code=False,
            use_safetensors=has_safe_weights(folder),
            weights_only=True,
            dtype=torch.float32,
        )
    except LOADING_ERRORS as error:
        reason = shown((str(error).strip().splitlines() or [type(error).__name__])[0])
        raise EncoderError(
            f"Encoder {shown(encoder_id)} could not be loaded ({reason}): "
            "give a transformers encoder with safetensors weights and a tokenizer."
        ) from error
    encoder = Encoder(model, pooling, folder)
    if max_length > limit:
        raise ConfigError("encoder.max_length", max_length, f"{shown(encoder_id)} reads at most {limit} tokens.")
    return encoder, Tokenizer(tokenizer, max_length)


def save_model(encoder: Encoder, folder: Path) -> None:
    """Write the model as transformers loads it: `AutoModelForSequenceClassification.from_pretrained(folder)`."""
    encoder.model.save_pretrained(folder, safe_serialization=True)


def _quiet_transformers() -> None:
    """Without this, transformers reports every fresh head as a problem and draws a progress bar into the log."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    transformers.utils.logging.set_verbosity(logging.ERROR)
    transformers.utils.logging.disable_progress_bar()
