"""The pooling with which an encoder was trained, from its sentence-transformers files."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from core.errors import EncoderError, PlaygroundError, quote_value
from core.messages import Message, join_list
from core.models.source import hub_small_file, local_folder

Pooling = Literal["cls", "mean"]

# The list of an encoder's modules, and the settings file of the pooling module.
MODULES, SETTINGS = "modules.json", "config.json"
# Pooling modes by their names in both formats of that file. A mean with another divisor has the same direction.
MODES: dict[str, Pooling] = {
    "cls": "cls",
    "cls_token": "cls",
    "mean": "mean",
    "mean_tokens": "mean",
    "mean_sqrt_len_tokens": "mean",
}
PLAIN: Pooling = "cls"


def own_pooling(encoder_id: str) -> Pooling:
    """Return the pooling with which the encoder was trained; [CLS] without sentence-transformers files.

    For an encoder on the Hub, the two small files are fetched.

    Raises: EncoderError if the pooling is neither [CLS] nor the mean, or if the files cannot be fetched.
    """
    folder = local_folder(encoder_id)
    return pooling_of(folder, encoder_id) if folder else _hub_pooling(encoder_id)


def known_pooling(encoder_id: str) -> Pooling | None:
    """Return `own_pooling` without asking the Hub; None if it is unsupported or the encoder is not on this machine."""
    try:
        folder = local_folder(encoder_id)
        return pooling_of(folder, encoder_id) if folder else None
    except PlaygroundError:
        return None


def pooling_of(folder: Path, encoder_id: str) -> Pooling:
    """Return the pooling of an encoder, from its files in a folder."""
    place = _pooling_module(_read(folder / MODULES))
    return PLAIN if place is None else _mode(_read(folder / place / SETTINGS), encoder_id)


@lru_cache(maxsize=64)
def _hub_pooling(encoder_id: str) -> Pooling:
    place = _pooling_module(_read(hub_small_file(encoder_id, MODULES)))
    return PLAIN if place is None else _mode(_read(hub_small_file(encoder_id, f"{place}/{SETTINGS}")), encoder_id)


def _pooling_module(modules: Any) -> str | None:
    """Return the folder of the pooling module, relative to modules.json; None without such a module."""
    for module in modules if isinstance(modules, list) else ():
        with suppress(AttributeError, KeyError, TypeError):  # a damaged entry
            if module["type"].endswith(".Pooling") and re.fullmatch(r"\w+", module["path"], re.ASCII):
                return str(module["path"])
    return None


def _mode(settings: Any, encoder_id: str) -> Pooling:
    given = settings if isinstance(settings, dict) else {}
    modes = [
        name.removeprefix("pooling_mode_") for name, on in given.items() if name.startswith("pooling_mode_") and on
    ]
    modes += [str(given["pooling_mode"])] if "pooling_mode" in given else []
    if len(modes) == 1 and modes[0] in MODES:
        return MODES[modes[0]]
    mode = quote_value(join_list(modes)) if modes else Message("an unknown mode of")
    raise EncoderError(
        "Encoder {name} uses {mode} pooling, which is not supported: choose [CLS] or the mean.",
        name=quote_value(encoder_id),
        mode=mode,
    )


def _read(path: Path | None) -> Any:
    """Load a JSON file; None if it is missing or damaged."""
    try:
        return None if path is None else json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
