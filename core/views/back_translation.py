"""Back-translation: a text is translated into another language by one model, and back by a second one.

The models sample, so the wording varies with the temperature while the meaning stays. Sources: Gunel et al. 2021,
arXiv:2011.01403 (noisy training sets at several temperatures); CERT, Fang et al. 2020, arXiv:2005.12766 (two round
trips of one text as a pair).
"""

from __future__ import annotations

import hashlib
import json
import logging
import sqlite3
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
import transformers

from core.catalogue.loss_entry import Settings
from core.errors import EncoderError, first_line, quote_value
from core.messages import Message, Text
from core.models.source import LOADING_ERRORS, SMALL_FILES, TRANSLATION_MODEL, has_safe_weights, model_folder
from core.parameters import number

# The sampler draws for a whole batch at once, so a row must always be translated with the same neighbours.
CANONICAL_ROWS = 16
SPARE_TOKENS = 16
BUSY_TIMEOUT_S = 10.0
# The cache of a store's folder, shared by runs and jobs.
TRANSLATIONS = Path("cache") / "translations.db"


class MemoryTranslationCache:
    """A cache of translations in the memory of the process."""

    def __init__(self) -> None:
        self._kept: dict[str, str] = {}

    def get(self, keys: Sequence[str]) -> dict[str, str]:
        return {key: self._kept[key] for key in keys if key in self._kept}

    def put(self, texts: Mapping[str, str]) -> None:
        self._kept.update(texts)


class TranslationCache:
    """A cache of translations in one SQLite file, safe for several processes.

    A damaged or unwritable file is logged once, and texts are translated again.
    """

    def __init__(self, path: Path) -> None:
        """Set the path. The file and its folder are created on first use."""
        self._path = path
        self._complained = False

    def get(self, keys: Sequence[str]) -> dict[str, str]:
        wanted = "SELECT key, text FROM translations WHERE key IN (SELECT value FROM json_each(?))"
        try:
            with self._connection() as connection:
                return dict(connection.execute(wanted, [json.dumps(list(keys))]).fetchall())
        except (OSError, sqlite3.Error) as error:
            self._complain(error)
            return {}

    def put(self, texts: Mapping[str, str]) -> None:
        try:
            with self._connection() as connection:
                connection.executemany("INSERT OR REPLACE INTO translations VALUES (?, ?)", [*texts.items()])
        except (OSError, sqlite3.Error) as error:
            self._complain(error)

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """Open a connection for one transaction, so that threads and forked processes never share one."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(self._path, timeout=BUSY_TIMEOUT_S)) as connection, connection:
            connection.execute("CREATE TABLE IF NOT EXISTS translations (key TEXT PRIMARY KEY, text TEXT)")
            yield connection

    def _complain(self, error: Exception) -> None:
        if not self._complained:
            logging.getLogger(__name__).warning("translations cannot be cached in %s: %s", self._path, error)
        self._complained = True


class RoundTrip:
    """Round-trip translation of texts.

    The result of a row depends on the texts of its canonical batch, the models' names, the temperature, the seed and
    the machine's arithmetic. It does not depend on earlier calls or on the cache. torch's random state is unchanged.
    """

    def __init__(
        self,
        forward: str,
        backward: str,
        *,
        temperature: float,
        seed: int,
        cache: TranslationCache | MemoryTranslationCache,
        device: torch.device | str = "cpu",
    ) -> None:
        """Set up the round trip; models are loaded on first use.

        Args:
            forward: Hub name or local folder of a Marian model, e.g. "Helsinki-NLP/opus-mt-en-de".
            backward: the model for the opposite direction, e.g. "Helsinki-NLP/opus-mt-de-en".
            temperature: > 0, unitless; 0.3 to 0.9 are usual, and higher values give bolder translations.
        """
        self.forward, self.backward = forward, backward
        self.temperature, self.seed = float(temperature), seed
        self.device = torch.device(device)
        self._cache = cache

    def translate(self, texts: Sequence[str]) -> list[str]:
        """Return each text after its round trip; the canonical batches are those of this list.

        Raises: EncoderError or ConfigError if a model cannot be fetched or loaded.
        """
        return self.translate_rows(texts, range(len(texts)))

    def translate_rows(self, texts: Sequence[str], rows: Sequence[int]) -> list[str]:
        """Return rows of a split after their round trip; a row that is not cached translates its whole canonical batch.

        Args:
            texts: the whole split; its canonical batches are rows 0 to 15, 16 to 31, …
            rows: indices into `texts`, in any order.
        Returns: one text per row; the original if it or one of its translations is blank.
        Raises: EncoderError or ConfigError as in `translate`.
        """
        batches = {start: list(texts[start : start + CANONICAL_ROWS]) for start in map(_batch_start, rows)}
        # Other weights and other device types give other translations, so the keys include both.
        digests = {
            start: _sha256([self._identity(batch), self._fingerprints, self.device.type])
            for start, batch in batches.items()
        }
        keys = {start: [f"{digests[start]}-{i}" for i in range(len(batch))] for start, batch in batches.items()}
        wanted = [keys[_batch_start(row)][row % CANONICAL_ROWS] for row in rows]
        found = self._cache.get(list(dict.fromkeys(wanted)))
        missing = set(wanted) - found.keys()
        for start, batch in batches.items():
            if not missing.isdisjoint(keys[start]):
                made = dict(zip(keys[start], self._round_trip(batch), strict=True))
                self._cache.put(made)
                found.update(made)
        return [found[key] for key in wanted]

    def _identity(self, batch: list[str]) -> list[Any]:
        return [self.forward, self.backward, self.temperature, self.seed, batch]

    def _round_trip(self, batch: list[str]) -> list[str]:
        there, back = self._models
        with _seeded(int(_sha256(self._identity(batch))[:15], 16), self.device):
            abroad = self._sample_translations(there, batch)
            home = self._sample_translations(back, abroad)
        trips = zip(batch, abroad, home, strict=True)
        return [end if all(text.strip() for text in (start, middle, end)) else start for start, middle, end in trips]

    def _sample_translations(self, loaded: tuple[Any, Any], texts: list[str]) -> list[str]:
        tokenizer, model = loaded
        positions = int(model.config.max_position_embeddings)
        inputs = tokenizer(texts, truncation=True, max_length=positions, padding=True, return_tensors="pt")
        inputs = inputs.to(self.device)
        most = (2 * inputs["attention_mask"].sum(dim=1) + SPARE_TOKENS).clamp(max=positions)  # [B]
        with torch.inference_mode(), torch.autocast(self.device.type, enabled=False):
            sampled = model.generate(
                **inputs,
                do_sample=True,
                temperature=self.temperature,
                top_k=0,
                top_p=1.0,
                num_beams=1,
                max_length=int(most.max()),
            )
        # Cut each text at its own limit: a short text without an end token would run to the limit of the longest.
        rows = [row[:length] for row, length in zip(sampled.tolist(), most.tolist(), strict=True)]
        texts = tokenizer.batch_decode(rows, skip_special_tokens=True, use_source_tokenizer=False)
        return [text.strip() for text in texts]

    @cached_property
    def _folders(self) -> tuple[Path, Path]:
        return _folder(self.forward), _folder(self.backward)

    @cached_property
    def _fingerprints(self) -> list[str]:
        """Return the names, sizes and modification times of each model's weight files."""
        weights = [sorted([*folder.glob("*.safetensors"), *folder.glob("*.bin")]) for folder in self._folders]
        return [";".join(f"{w.name}:{w.stat().st_size}:{w.stat().st_mtime_ns}" for w in files) for files in weights]

    @cached_property
    def _models(self) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
        there, back = self._folders
        with _seeded(self.seed, self.device):
            return _load(self.forward, there, self.device), _load(self.backward, back, self.device)


def _batch_start(row: int) -> int:
    return row - row % CANONICAL_ROWS


def _sha256(parts: Sequence[Any]) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _folder(name: str) -> Path:
    return model_folder(
        name,
        what=TRANSLATION_MODEL,
        check=lambda folder: _check_type(folder, name),
        small_files=[*SMALL_FILES, "*.spm"],
    )


def _check_type(folder: Path, name: str) -> None:
    """Check that the model is a Marian model before its weights are fetched. Raises: EncoderError."""
    try:
        model_type = json.loads((folder / "config.json").read_text(encoding="utf-8")).get("model_type")
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        raise EncoderError(
            "Translation model {name} has no readable config.json ({problem}): give a Marian model with its "
            "weights and tokenizer, such as Helsinki-NLP/opus-mt-en-de.",
            name=quote_value(name),
            problem=quote_value(str(error)),
        ) from None
    if model_type != "marian":
        raise EncoderError(
            "Translation model {name} is of the type {kind}: give a Marian model with its weights and tokenizer, "
            "such as Helsinki-NLP/opus-mt-en-de.",
            name=quote_value(name),
            kind=quote_value(model_type),
        )


def _load(name: str, folder: Path, device: torch.device) -> tuple[Any, Any]:
    """Load tokenizer and model from safetensors or with torch's weights_only loader, without running remote code.

    Raises: EncoderError.
    """
    transformers.utils.logging.set_verbosity(logging.ERROR)
    transformers.utils.logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            # sacremoses only normalises unusual quotation marks and dashes.
            warnings.filterwarnings("ignore", message="Recommended: pip install sacremoses")
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
        model = transformers.AutoModelForSeq2SeqLM.from_pretrained(
            folder,
            trust_remote_code=False,
            use_safetensors=has_safe_weights(folder),
            weights_only=True,
            dtype=torch.float32,
        )
    # A tokenizer with missing files raises TypeError or AssertionError.
    except (*LOADING_ERRORS, TypeError, AssertionError) as error:
        raise EncoderError(
            "Translation model {name} could not be loaded ({problem}): give a Marian model with its weights and "
            "tokenizer, such as Helsinki-NLP/opus-mt-en-de.",
            name=quote_value(name),
            problem=quote_value(first_line(error)),
        ) from error
    return tokenizer, model.to(device).eval().requires_grad_(False)


@contextmanager
def _seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Seed torch inside the context and restore its random state afterwards."""
    on_cuda, on_mps = device.type == "cuda", device.type == "mps"
    index = torch.cuda.current_device() if on_cuda and device.index is None else device.index
    mps_state = torch.mps.get_rng_state() if on_mps else None
    with torch.random.fork_rng([index] if on_cuda else [], device_type="cuda"):
        try:
            # torch.manual_seed would also seed devices whose state is not restored.
            torch.default_generator.manual_seed(seed)
            if on_cuda:
                torch.cuda.default_generators[index].manual_seed(seed)
            if on_mps:
                torch.mps.manual_seed(seed)
            yield
        finally:
            if mps_state is not None:
                torch.mps.set_rng_state(mps_state)


def round_trip(settings: Settings, seed: int, kept: Path | None, device: torch.device) -> RoundTrip:
    return RoundTrip(
        str(settings["forward"]),
        str(settings["backward"]),
        temperature=number(settings, "temperature"),
        seed=seed,
        cache=TranslationCache(kept) if kept else MemoryTranslationCache(),
        device=device,
    )


def job(request: dict[str, Any], folder: Path, progress: Callable[[int, int | None, Text], None]) -> dict[str, Any]:
    """Translate texts into another language and back.

    Args:
        request: texts, a seed, and forward, backward and temperature of the view.
        folder: folder of the store, whose translation cache is shared with runs.
    Returns: {"texts": one translation per text}.
    Raises: EncoderError or ConfigError if a model cannot be fetched or loaded.
    """
    progress(0, None, Message("Translating; new translation models are downloaded first"))
    trip = round_trip(request, request["seed"], folder / TRANSLATIONS, torch.device("cpu"))
    return {"texts": [trip.translate([text])[0] for text in request["texts"]]}
