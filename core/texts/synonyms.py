"""Words that can replace a word: from WordNet if nltk and its corpus are installed, else from a bundled list.

The two give different views, so a run is repeatable only with the same `synonym_source()`.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from core.messages import Message

BUNDLED_LIST = Path(__file__).resolve().parents[2] / "assets" / "synonyms.txt"


def synonyms(word: str) -> tuple[str, ...]:
    """Return words that can replace a word, sorted, lower-case and without the word; () if none are known.

    The bundled list has English words in the inflected forms of a text ("films", "enjoyed"). WordNet has dictionary
    forms, for any of the word's meanings, as in the code of Wei & Zou 2019 (arXiv:1901.11196).

    Args:
        word: one word, in any case.
    """
    return _found(word.lower())


def synonym_source() -> Literal["wordnet", "bundled"]:
    """Return the source of synonyms on this machine, which is determined once per process."""
    return "bundled" if _wordnet() is None else "wordnet"


def read_groups() -> list[tuple[str, ...]]:
    """Read the bundled list: one group a line, its words separated by spaces; lines that begin with # are comments."""
    lines = BUNDLED_LIST.read_text(encoding="utf-8").splitlines()
    return [tuple(line.split()) for line in lines if line.strip() and not line.startswith("#")]


@lru_cache(maxsize=100_000)
def _found(word: str) -> tuple[str, ...]:
    wordnet = _wordnet()
    if wordnet is None:
        return _bundled().get(word, ())
    names = {str(name).lower() for synset in wordnet.synsets(word) for name in synset.lemma_names()}
    return tuple(sorted(name for name in names - {word} if "_" not in name))


@lru_cache(maxsize=1)
def _bundled() -> dict[str, tuple[str, ...]]:
    others: dict[str, set[str]] = {}
    for group in read_groups():
        for word in group:
            others.setdefault(word, set()).update(group)
    return {word: tuple(sorted(found - {word})) for word, found in others.items()}


@lru_cache(maxsize=1)
def _wordnet() -> Any:
    """Return nltk's reader of WordNet, or None: nltk is not a dependency, and its corpus is a separate download."""
    try:
        wordnet = import_module("nltk.corpus").wordnet
        wordnet.ensure_loaded()
    except (ImportError, LookupError):
        return None
    return wordnet


def synonym_notice() -> Message | None:
    found = synonym_source() == "wordnet"
    return (
        Message("Synonyms come from WordNet, so the run can be repeated only on machines with nltk and WordNet.")
        if found
        else None
    )
