"""Token counts of texts under an encoder's own tokenizer.

The tokenizers library reads the tokenizer's file; only an encoder without one needs transformers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

from tokenizers import Tokenizer, decoders, models

from core.errors import EncoderError, first_line, quote_value
from core.messages import Message, Text, _
from core.models.source import LOADING_ERRORS, TOKENIZER_FILE, tokenizer_folder

Input = str | tuple[str, str]

# Texts tokenized at a time; a long text has some thousand tokens.
CHUNK = 2_000


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """Number of tokens of each text, special ones included, before truncation.

    Attributes:
        unknown_share: share, in [0, 1], of unknown tokens among those that are not special; 0 without tokens.
    """

    counts: tuple[int, ...]
    unknown_share: float


def token_counts(encoder_id: str, texts: Sequence[Input]) -> TokenCounts:
    """Count the tokens of texts and pairs as the encoder would read them without a limit.

    Raises: EncoderError or ConfigError in one sentence if the tokenizer cannot be fetched or read.
    """
    reader = _reader(encoder_id)
    counts: list[int] = []
    unknown = special = 0
    for start in range(0, len(texts), CHUNK):
        chunk = texts[start : start + CHUNK]
        for ids in reader.ids(chunk):
            counts.append(len(ids))
            unknown += 0 if reader.unknown_id is None else ids.count(reader.unknown_id)
        special += sum(reader.special[not isinstance(text, str)] for text in chunk)
    own = sum(counts) - special
    return TokenCounts(tuple(counts), unknown / own if own else 0.0)


def job(request: dict[str, Any], folder: Path, progress: Callable[[int, int | None, Text], None]) -> dict[str, Any]:
    """Count tokens in a separate process, for a tokenizer that has to be fetched first or that needs torch.

    Args:
        request: "encoder", its id, and "texts", in which a pair is a list of two.
    Returns: "counts" and "unknown_share", as in TokenCounts.
    Raises: EncoderError or ConfigError, as `token_counts`.
    """
    progress(0, None, Message("Downloading the tokenizer"))
    texts = [text if isinstance(text, str) else (text[0], text[1]) for text in request["texts"]]
    counted = token_counts(request["encoder"], texts)
    return {"counts": list(counted.counts), "unknown_share": counted.unknown_share}


def token_strings(encoder_id: str, text: Input) -> list[str]:
    """Return a text's tokens as in the vocabulary, special ones included, before truncation.

    Tokens of a byte-level vocabulary are decoded to characters, with Ġ for a space before them and � for a part of a
    character.

    Raises: EncoderError or ConfigError in one sentence if the tokenizer cannot be fetched or read.
    """
    return _reader(encoder_id).strings(text)


def _reader(encoder_id: str) -> _FileReader | _TransformersReader:
    folder = tokenizer_folder(encoder_id)
    file = folder / TOKENIZER_FILE
    try:
        path = file if file.is_file() else folder
        return _read(path, path.stat().st_mtime_ns)
    # The tokenizers library raises a plain Exception for a file that it cannot read.
    except Exception as error:
        if not isinstance(error, LOADING_ERRORS) and type(error) is not Exception:
            raise
        raise EncoderError(
            "The tokenizer of encoder {name} could not be loaded ({problem}). Give a folder or Hub name with the "
            "files of a transformers tokenizer.",
            name=quote_value(encoder_id),
            problem=quote_value(first_line(error)),
        ) from None


@lru_cache(maxsize=4)
def _read(path: Path, changed: int) -> _FileReader | _TransformersReader:
    """Load a tokenizer. `changed`, the file's modification time, makes the cache reload a new file."""
    return _TransformersReader(path) if path.is_dir() else _FileReader(path)


class _FileReader:
    """Reader of tokenizer.json. `ids` includes the special tokens; `special` counts those of a text and of a pair."""

    def __init__(self, file: Path) -> None:
        self._tokenizer = Tokenizer.from_file(str(file))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.special = [self._tokenizer.num_special_tokens_to_add(is_pair) for is_pair in (False, True)]
        # The id of the unknown token; None if the model knows every byte.
        self.unknown_id: int | None
        if isinstance(self._tokenizer.model, models.Unigram):  # only the file holds the id
            self.unknown_id = json.loads(file.read_text(encoding="utf-8"))["model"].get("unk_id")
        else:
            name: str | None = getattr(self._tokenizer.model, "unk_token", None)
            self.unknown_id = None if name is None else self._tokenizer.token_to_id(name)

    def ids(self, texts: Sequence[Input]) -> list[list[int]]:
        return [encoding.ids for encoding in self._tokenizer.encode_batch_fast(list(texts))]

    def strings(self, text: Input) -> list[str]:
        (ids,) = self.ids([text])
        tokens: dict[int, str] = {number: self._tokenizer.id_to_token(number) or "" for number in ids}
        if isinstance(self._tokenizer.decoder, decoders.ByteLevel):
            added = self._tokenizer.get_added_tokens_decoder()
            for number in tokens.keys() - added.keys():
                decoded: str = decoders.ByteLevel().decode([tokens[number]])
                tokens[number] = f"Ġ{decoded[1:]}" if decoded.startswith(" ") else decoded
        return [tokens[number] for number in ids]


class _TransformersReader:
    """Reader of any other tokenizer, through transformers, which imports torch."""

    def __init__(self, folder: Path) -> None:
        from transformers import AutoTokenizer

        self._tokenizer: Any = AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
        if set(self._tokenizer.get_vocab()) <= set(self._tokenizer.all_special_tokens):
            # Without files, transformers silently builds a tokenizer that knows no word.
            raise ValueError(_("it has no vocabulary"))
        self.special = [self._tokenizer.num_special_tokens_to_add(pair) for pair in (False, True)]
        # Such a tokenizer changes its state while it works, and pages of several visitors may call it at once.
        self._lock = Lock()
        self.unknown_id: int | None = self._tokenizer.unk_token_id

    def ids(self, texts: Sequence[Input]) -> list[list[int]]:
        with self._lock:
            return [self._ids(text) for text in texts]

    def strings(self, text: Input) -> list[str]:
        with self._lock:
            found: list[str] = self._tokenizer.convert_ids_to_tokens(self._ids(text))
            return found

    def _ids(self, text: Input) -> list[int]:
        sides = (text,) if isinstance(text, str) else text
        found: list[int] = self._tokenizer(*sides, truncation=False, padding=False, verbose=False)["input_ids"]
        return found
