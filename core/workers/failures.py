"""Errors that end a run: their causes, their messages, and the second attempt after a lack of memory."""

from __future__ import annotations

import errno
from contextlib import suppress

from core.config.plan import objective_at
from core.errors import DiskFullError, PlaygroundError, StaleAttemptError, StoreError
from core.messages import Message
from core.store import RunRecord, Status, Store
from core.store.attempt import Attempt
from core.workers.processes import log

# Out-of-memory messages of CPU, CUDA and MPS that come without a specific exception class. oneDNN gives no reason: it
# says that it could not create or execute a primitive, or could not create a memory object.
MEMORY_SIGNS = (
    "out of memory",
    "can't allocate memory",
    "not enough memory",
    "status_alloc_failed",
    "bad_alloc",
    "could not create a memory object",
    "could not execute a primitive",
)
# oneDNN's message for a lack of memory; with more words it describes an operation that the machine does not support.
ONEDNN_SENTENCE = "could not create a primitive"


def end_with_error(store: Store, attempt: Attempt, error: BaseException) -> None:
    """Record the error that ended an attempt, or requeue the run with half the micro-batch if memory ran out."""
    try:
        run = store.run(attempt.run_id)
        if is_of_memory(error) and requeue_after_memory_error(attempt, run):
            return
        batch_size = run.config.phases[run.config.phase_at(run.last_step + 1)].batch_size
        failure = plain_failure(error, batch_size)
        store.despite_full_disk(lambda: attempt.end(Status.FAILED, failure))
    except StoreError as problem:
        # The store cannot be written: the run shows as interrupted, and the log has the reason.
        log(str(problem))


def retry_killed(store: Store) -> None:
    """Requeue the runs whose workers the kernel killed for lack of memory, or record that as their error."""
    for run_id in store.killed_for_memory():
        with suppress(StaleAttemptError):
            end_with_error(store, store.attempt(run_id, store.run(run_id).attempt), MemoryError())


def is_of_memory(error: BaseException) -> bool:
    """Return True for an out-of-memory error."""
    text = str(error).lower().strip()
    return (
        isinstance(error, MemoryError)
        or type(error).__name__ == "OutOfMemoryError"  # of torch, which this module does not import
        or text == ONEDNN_SENTENCE
        or any(sign in text for sign in MEMORY_SIGNS)
    )


def plain_failure(error: BaseException, batch_size: int) -> Message:
    """Return the user-facing message for an error that ended a run."""
    if is_of_memory(error):
        if batch_size > 1:
            return Message(
                "Not enough memory for a batch of {size}: try a batch of {half}, or a smaller encoder.",
                size=batch_size,
                half=batch_size // 2,
            )
        return Message(
            "Not enough memory for a batch of {size}: train fewer blocks, read fewer tokens, or choose a smaller "
            "encoder.",
            size=batch_size,
        )
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    # safetensors and torch give only a text.
    if full or isinstance(error, DiskFullError) or "no space left on device" in str(error).lower():
        return Message("The disk is full: free some space or delete runs, then resume this run.")
    if isinstance(error, PlaygroundError):
        return error.message
    return Message("The run failed with an unexpected {error}: its log has the details.", error=type(error).__name__)


def requeue_after_memory_error(attempt: Attempt, run: RunRecord) -> bool:
    """Requeue a run with half the micro-batch, if its views allow that. Returns: True if it was requeued."""
    number = run.config.phase_at(run.last_step + 1)
    views = [view for term in objective_at(run.config, run.last_step + 1).objective.terms for view in term.views]
    if any(view.entry.follows_gradient for view in views):
        return False  # an adversarial perturbation is computed over the whole batch
    return attempt.requeue_with_half_micro_batch(number)
