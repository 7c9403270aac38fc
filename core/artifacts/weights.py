"""A run's model at earlier steps: the steps with stored weights, and the encoder with those weights.

Torch is imported at the first load, not with this module.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from core.config import EncoderConfig
from core.errors import StoreError, TrainingError, quote_value
from core.events import Probe
from core.messages import Message
from core.store import RunRecord, RunSummary, Status, Store
from core.store.budget import missing_sentence
from core.weight_files import checkpoint_path, checkpoint_step, snapshot_path, snapshot_steps

if TYPE_CHECKING:
    from core.encoders.model import Encoder, Tokenizer

# Numbers of models cached in a process. They share the weights that training did not change.
ENCODERS_KEPT = 2
MODELS_KEPT = 8
# Stamp of the untrained encoder, which has no weight file and so no modification time.
UNTRAINED = 0


def weight_steps(store: Store, run: RunSummary) -> tuple[int, ...]:
    """Return the steps with available weights, ascending.

    These are 0 (the untrained encoder), the snapshots and, for a finished run, its last step. The rolling checkpoint of
    an unfinished run is excluded, because it may hold adapters. A damaged checkpoint is excluded too.
    """
    return tuple(_files(store, run))


def weight_stamps(store: Store, run: RunSummary) -> dict[int, int]:
    """Return the stamp of each step of `weight_steps`: the time its weights were written, in ns; 0 if untrained.

    Results from weights with the same stamp need not be computed again.

    Raises: TrainingError for a file that has been deleted in the meantime.
    """
    return {step: UNTRAINED if path is None else _changed(path) for step, path in _files(store, run).items()}


def all_known(run: RunSummary, stamps: Mapping[int, int], known: Mapping[int, int]) -> bool:
    """Return whether results for the weights `known` cover the available `stamps`; both are stamps by step.

    Results from weights that the disk budget has since dropped stay valid. Any other extra step comes from an attempt
    that was rolled back.
    """
    dropped = run.snapshots_dropped_at is not None or run.weights_dropped_at is not None
    return stamps.items() <= known.items() if dropped else dict(known) == dict(stamps)


def probe_of(run: RunRecord) -> Probe:
    """Return the probe set of a run. Raises: StoreError for a run that has not started."""
    if run.probe is None:
        raise StoreError("Run {run} has not started: wait until its encoder is loaded.", run=run.id)
    return run.probe


def load_at(store: Store, run: RunRecord, step: int) -> tuple[Encoder, Tokenizer]:
    """Load a run's encoder at a step, in evaluation mode on the CPU, and its tokenizer.

    Both are cached, so callers must not modify them.

    Raises: StoreError for a step without weights, EncoderError, ConfigError or TrainingError for weights that cannot
        be loaded.
    """
    files = _files(store, run)
    probe = probe_of(run)
    if step not in files:
        raise _no_weights(store, run.id, step, list(files))
    start = _Start(run.config.encoder, probe.classes, run.config.seed, run.config.reinitialised_blocks)
    untrained, tokenizer = _untrained(start)
    path = files[step]
    if path is None:
        return untrained, tokenizer
    try:
        return _trained(start, path, _changed(path)), tokenizer
    except TrainingError as error:
        if path.exists():
            raise
        raise _no_weights(store, run.id, step, list(_files(store, run))) from error


def _no_weights(store: Store, run_id: str, step: int, kept: list[int]) -> StoreError:
    """Build the error for a step without weights. Read the run again: its weights may just have been dropped."""
    sentence = Message(
        "Run {run} has no weights of step {step}: choose one of {kept}.",
        run=run_id,
        step=quote_value(step),
        kept=kept,
    )
    missing = missing_sentence(store.run(run_id))
    return StoreError("{first} {next}", first=sentence, next=missing) if missing else StoreError(sentence)


def _files(store: Store, run: RunSummary) -> dict[int, Path | None]:
    """Return the file of each step's weights, None for the untrained encoder."""
    folder = store.run_folder(run.id)
    # A snapshot beyond the last step comes from an attempt that was rolled back, and will be overwritten.
    files: dict[int, Path | None] = {}
    files |= {step: snapshot_path(folder, step) for step in snapshot_steps(folder) if step <= run.last_step}
    with suppress(TrainingError):  # a full disk may have left an older or a damaged checkpoint
        if run.status == Status.FINISHED and checkpoint_step(folder) == run.steps:
            files[run.steps] = checkpoint_path(folder)
    # Only the snapshot of step 0 holds a fitted classifier, and the disk budget may have dropped it.
    return files if run.config.classifier_start == "probe" else {0: None, **files}


def _changed(path: Path) -> int:
    """Return the modification time of a file in ns. Raises: TrainingError for a missing file."""
    try:
        return path.stat().st_mtime_ns
    except OSError as error:
        raise _unreadable(path, error.strerror) from error


def untrained_encoder(config: EncoderConfig) -> tuple[Encoder, Tokenizer]:
    """Load an encoder before any training, as `load_at` does. Raises: EncoderError, ConfigError."""
    return _untrained(_Start(config, ("0",), 0, 0))


class _Start(NamedTuple):
    """The settings that determine a run's weights before its first step."""

    config: EncoderConfig
    classes: tuple[str, ...]
    seed: int
    reinitialised_blocks: int


@lru_cache(maxsize=ENCODERS_KEPT)
def _untrained(start: _Start) -> tuple[Encoder, Tokenizer]:
    """Load the encoder as before training: the seed determines the head, then the re-initialised blocks."""
    import torch

    from core.training.encode import load_encoder_of
    from core.training.trainable import reinitialise

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(start.seed)
        encoder, tokenizer = load_encoder_of(start.config, start.classes)
        reinitialise(encoder, start.reinitialised_blocks)
    encoder.requires_grad_(False)
    return encoder.eval(), tokenizer


@lru_cache(maxsize=MODELS_KEPT)
def _trained(start: _Start, path: Path, changed: int) -> Encoder:
    """Load the encoder with a file's weights. `changed`, its modification time, is part of the cache key."""
    from safetensors import SafetensorError, safe_open

    from core.training.checkpoints import WEIGHT, load_learned

    untrained = _untrained(start)[0]
    try:
        with safe_open(path, "pt") as file:
            learned = set(file.keys())
    except (SafetensorError, OSError) as error:
        raise _unreadable(path, error) from error
    shared = {id(p): p for name, p in untrained.named_parameters() if f"{WEIGHT}{name}" not in learned}
    encoder = copy.deepcopy(untrained, shared)
    load_learned(path, encoder)
    return encoder


def _unreadable(path: Path, error: object) -> TrainingError:
    return TrainingError(
        "The weights in {file} cannot be read ({error}): start a new run.", file=path.name, error=error
    )
