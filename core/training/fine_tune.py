"""A complete fine-tune: training, then saving the weights, in half precision if that changes no prediction.

Half precision is float16, not bfloat16. Weights of encoders lie well within its range: in all-MiniLM-L6-v2 the largest
is 7.9, and one in a million rounds to 0. Its three additional bits keep logits eight to twenty times closer to those in
full precision.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import torch
from torch import Tensor

from core.config import RunConfig
from core.encoders.model import Encoder, Tokenizer
from core.errors import StaleAttemptError, TrainingError
from core.events import Checkpointed, Event, Finished, Notice
from core.messages import N_, _
from core.tasks import TaskData
from core.training.checkpoints import Checkpoints, TrainedModel, read_tensors, restore_weights, without_projections
from core.training.data_parallel import Ranks
from core.training.encode import encode, encoder_autocast, load_encoder_of
from core.training.loop import Controls, train
from core.training.untrained import VectorCache
from core.weight_files import snapshot_path, snapshot_steps

LARGEST = torch.finfo(torch.float16).max


def fine_tune(
    config: RunConfig,
    data: TaskData,
    checkpoints: Checkpoints,
    *,
    controls: Controls,
    cache: VectorCache,
    translations: Path | None,
    start: Path | None,
    log: Callable[[str], None],
    ranks: Ranks | None = None,
) -> Iterator[Event]:
    """Yield the events of `train`, resuming from a checkpoint if there is one. Save the weights before the last event.

    Args:
        log: appends a line to the run's log.
    Raises: as `train`. If saving in half precision fails, the weights are saved in full precision instead.
    """
    trained = TrainedModel()
    for event in train(
        config,
        data,
        controls=controls,
        checkpoints=checkpoints,
        cache=cache,
        translations=translations,
        start=start,
        resume=checkpoints.step() is not None,
        ranks=ranks,
        trained=trained,
    ):
        if isinstance(event, Finished) and event.status == "finished":
            yield _store_weights(checkpoints, config, data, trained, log)
        yield event


def _store_weights(
    checkpoints: Checkpoints, config: RunConfig, data: TaskData, trained: TrainedModel, log: Callable[[str], None]
) -> Checkpointed | Notice:
    """Save the last weights, in full precision if saving in half precision fails."""
    try:
        for note in halve_weights(checkpoints, config, data, trained):
            log(note)
    except StaleAttemptError:
        raise
    except Exception:
        log(traceback.format_exc())
    try:
        if checkpoints.step() != config.steps:
            checkpoints.save(config.steps, trained.weights)
    except TrainingError as error:
        return Notice(config.steps, error.message)
    return Checkpointed(config.steps)


def halve_weights(checkpoints: Checkpoints, config: RunConfig, data: TaskData, trained: TrainedModel) -> Iterator[str]:
    """Save a finished run's last weights and snapshots in float16, file by file.

    A file keeps full precision if any prediction on the validation split would change. Both predictions are computed at
    the run's own precision, at which the weights are used later. Projection heads are left out: only training needs
    them.

    Args:
        trained: the last weights, which are not on disk yet, with the encoder that predicts.
    Yields: one sentence for each file that keeps full precision.
    Raises: TrainingError for weights that cannot be read or written; EncoderError if the encoder cannot be loaded.
    """
    machine = trained.encoder.model.device
    autocast = encoder_autocast(config.precision, machine)

    def write(
        encoder: Encoder, tokenizer: Tokenizer, path: Path, step: int, full: Mapping[str, Tensor]
    ) -> Iterator[str]:
        def predictions(tensors: Mapping[str, Tensor]) -> Tensor:
            restore_weights(encoder, tensors)
            return encode(encoder, tokenizer, data.validation.inputs, autocast=autocast).logits.argmax(1)

        half = to_half(full)
        same = torch.equal(predictions(half), predictions(full))
        checkpoints.write(path, step, half if same else full)
        if not same:
            yield _(
                "The weights of step {step} stay in full precision, because half precision would change predictions.",
                step=step,
            )

    yield from write(trained.encoder, trained.tokenizer, checkpoints.path, config.steps, trained.weights)
    folder = checkpoints.folder
    files = {step: snapshot_path(folder, step) for step in snapshot_steps(folder) if step > 0}  # step 0 holds one layer
    if files:
        # The encoder in memory has weights that earlier steps did not have, so a new one is loaded. An untrained
        # head is the first draw of the seed, as in the run.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)
            encoder, tokenizer = load_encoder_of(config.encoder, data.classes)
        encoder.to(machine)
        for step, path in files.items():
            tensors = read_tensors(path, N_("The weights in {file} cannot be read ({problem})."))
            yield from write(encoder, tokenizer, path, step, without_projections(tensors))


def to_half(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Convert tensors to float16, except those with a value outside its range."""
    found = dict(tensors)
    for name, tensor in tensors.items():
        # Much faster than a search for infinities in float16.
        low, high = tensor.aminmax() if tensor.numel() else (0.0, 0.0)
        if low >= -LARGEST and high <= LARGEST:
            found[name] = tensor.half()
    return found
