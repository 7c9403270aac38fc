"""Shared fixtures: a tiny encoder, a small task, a store in a temporary folder."""

from __future__ import annotations

import csv
import gc
import os
import random
from collections.abc import Callable, Iterator, Sequence
from gettext import NullTranslations
from pathlib import Path
from typing import Any

import pytest

from core import messages
from core.config import RunConfig, parse_config, vary
from core.messages import in_language
from core.store import Store, database

# Threads do not speed up tiny models, and waiting threads slow down a busy machine.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# To survive a power cut, each of a thousand new stores would wait for the disk a dozen times.
database.SYNCHRONOUS = "OFF"

# Garbage collection would scan millions of live objects in libraries and the test suite.
gc.set_threshold(50_000)

WORDS = {
    "good": ["lovely", "bright", "warm", "clever", "funny", "tender"],
    "bad": ["dull", "grim", "cold", "clumsy", "boring", "harsh"],
}
FILLERS = ["the", "film", "was", "a", "very", "scene", "and", "its", "music", "felt", "with", "one", "of", "story"]


@pytest.fixture(autouse=True)
def _no_runs_of_a_person(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the user's runs and settings on this machine out of the tests."""
    monkeypatch.delenv("SCL_RUNS", raising=False)
    monkeypatch.delenv("SCL_SETTINGS", raising=False)


class Foreign(NullTranslations):
    """A test language that encloses every message in angle quotation marks: text without them was not translated."""

    def gettext(self, message: str) -> str:
        # A noun that follows a number: its translation contains a placeholder for the number.
        return f"«{{count}} {message}»" if message == "row" else f"«{message}»"

    def pgettext(self, context: str, message: str) -> str:
        return f"«{message}»"

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        return f"«{msgid1 if n == 1 else msgid2}»"


@pytest.fixture
def foreign(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Use `Foreign` instead of Chinese; English is unchanged."""
    catalogue = messages._catalogue
    monkeypatch.setattr(messages, "_catalogue", lambda code: catalogue(code) if code == "en" else Foreign())
    vary._sweepable.cache_clear()
    with in_language("zh"):
        yield
    vary._sweepable.cache_clear()


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of `write_tiny_encoder`."""
    return write_tiny_encoder(tmp_path_factory.mktemp("tiny-bert"))


def write_tiny_encoder(folder: Path) -> Path:
    """Write a random BERT of two blocks, 16 wide, with a whole-word tokenizer, saved by transformers."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS["good"], *WORDS["bad"], *FILLERS]
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
    ).save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
    )
    BertModel(config).save_pretrained(folder)
    return folder


def write_csv(path: Path, rows: Sequence[tuple[object, ...]], header: Sequence[str] = ("text", "label")) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
    return path


def made_rows(count: int, seed: int = 0) -> list[tuple[str, str]]:
    """Return sentences of 4 to 16 words, half of them good and half bad, distinguished by one word."""
    rng = random.Random(seed)
    rows = []
    for i in range(count):
        label = "good" if i % 2 else "bad"
        words = rng.choices(FILLERS, k=rng.randint(3, 15))
        words.insert(rng.randrange(len(words) + 1), rng.choice(WORDS[label]))
        rows.append((" ".join(words), label))
    return rows


@pytest.fixture(scope="session")
def small_csv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a CSV of 120 rows and two classes."""
    return write_csv(tmp_path_factory.mktemp("task") / "small.csv", made_rows(120))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / "runs")
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def module_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Return a store for all tests of a module, which a folder imports as its `store`."""
    opened = Store(tmp_path_factory.mktemp("store") / "runs")
    yield opened
    opened.close()


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Store]:
    """Return an empty store, as if on another machine."""
    opened = Store(tmp_path / "elsewhere" / "runs")
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def draft(tiny_encoder: Path, small_csv: Path) -> Callable[..., RunConfig]:
    """Return a function that makes a draft on the tiny encoder.

    Keyword arguments set fields of the phase; `more` replaces whole sections, and `task` updates the task section.
    """

    def make(*, task: dict[str, Any] | None = None, more: dict[str, Any] | None = None, **phase: Any) -> RunConfig:
        given: dict[str, Any] = {
            "task": {"id": "file", "path": str(small_csv)} | (task or {}),
            "encoder": {"id": str(tiny_encoder), "max_length": 32},
            "phases": [{"steps": 8, "batch_size": 8} | phase],
            "device": "cpu",
        }
        return parse_config(given | (more or {}))

    return make
