"""One array file per frame: embeddings, logits, the 2-D map and [CLS] attention. Each can be read separately."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from core.atomic import atomic_write
from core.errors import StoreError
from core.events import Frame, Predictions, Tokens, TokenText, Word
from core.messages import _
from core.representation.projections import Points

TOKENS, PREDICTIONS = "tokens.json", "predictions-{}.safetensors"
MAP, ATTENTION = "map", "attention"


def write_frame(path: Path, frame: Frame, points: Points) -> None:
    """Write a frame under a temporary name and rename it, so that readers never see a partial file.

    Raises: StoreError if the disk is full or the folder cannot be written.
    """
    numbers = {"embeddings": frame.embeddings, "logits": frame.logits, MAP: points}
    arrays: dict[str, NDArray[Any]] = {name: np.ascontiguousarray(a, np.float32) for name, a in numbers.items()}
    if frame.attention is not None:
        arrays[ATTENTION] = np.ascontiguousarray(frame.attention, np.float16)
    _save(path, arrays, _("The frame of step {step}", step=frame.step))


def _save(path: Path, arrays: dict[str, NDArray[Any]], what: str) -> None:
    """Write arrays under a temporary name, then rename. Raises: StoreError, which calls the arrays `what`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as partial:
            save_file(arrays, partial)
    except (OSError, SafetensorError) as error:
        raise StoreError(
            "{what} could not be written ({reason}): free some disk space.", what=what, reason=error
        ) from error


def read_array(path: Path, name: str, *, optional: bool = False) -> Any:
    """Read one array of a frame without reading the others; None if it is optional and the file lacks it.

    Raises: StoreError for a file that is missing or damaged.
    """
    try:
        with safe_open(path, "np") as file:
            if name in file.keys():  # noqa: SIM118 not a mapping
                return file.get_tensor(name)
        if optional:
            return None
        raise StoreError(
            "The frame file {file} is damaged ({name} is missing). Other frames are intact.", file=path.name, name=name
        )
    except (OSError, SafetensorError, ValueError) as error:
        raise StoreError(
            "The frame file {file} is missing or damaged ({reason}). Other frames are intact.",
            file=path.name,
            reason=error,
        ) from error


def write_tokens(path: Path, tokens: Tokens) -> None:
    """Write the tokens of the examples. Raises: StoreError if the disk is full or the folder cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as partial:
            partial.write_text(tokens_text(tokens), encoding="utf-8")
    except OSError as error:
        raise StoreError(
            "The tokens of the examples could not be written ({reason}): free some disk space.", reason=error
        ) from error


def read_tokens(path: Path) -> Tokens:
    """Read tokens; a missing file gives empty ones. Raises: StoreError for a damaged file."""
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
        texts = (
            TokenText(tuple(sides), tuple(Word(w[0], w[1], w[2], tuple(w[3])) for w in words), length)
            for sides, words, length in given["texts"]
        )
        return Tokens(tuple(given["rows"]), tuple(texts))
    except FileNotFoundError:
        return Tokens((), ())
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(
            "The file {file} is damaged ({reason}). The frames are intact.", file=path.name, reason=error
        ) from error


def tokens_text(tokens: Tokens) -> str:
    """Serialise tokens to JSON."""
    texts = [[text.sides, text.words, text.length] for text in tokens.texts]
    return json.dumps({"rows": tokens.rows, "texts": texts}, ensure_ascii=False)


def write_predictions(folder: Path, predictions: Predictions) -> None:
    """Write logits and labels. Raises: StoreError if the disk is full or the folder cannot be written."""
    arrays: dict[str, NDArray[Any]] = {
        "logits": np.ascontiguousarray(predictions.logits, np.float32),
        "labels": np.asarray(predictions.labels, np.int32),
    }
    path = folder / PREDICTIONS.format(predictions.split)
    _save(path, arrays, _("The predictions of the {split} split", split=predictions.split))


def read_predictions(folder: Path, split: str) -> Predictions | None:
    """Read predictions; None if the file does not exist. Raises: StoreError for a damaged file."""
    path = folder / PREDICTIONS.format(split)
    if not path.exists():
        return None
    logits, labels = (read_array(path, name, optional=True) for name in ("logits", "labels"))
    if logits is None or labels is None or len(logits) != len(labels):
        raise StoreError("The file {file} is damaged. The frames are intact.", file=path.name)
    return Predictions(split, logits, tuple(map(int, labels)))
