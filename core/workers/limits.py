"""Limits per visitor of a shared server, so that capacity is left for the others."""

from __future__ import annotations

from collections.abc import Callable

from core.config import RunConfig
from core.config.run import is_path, named_paths
from core.errors import ConfigError, EngineError
from core.messages import Message
from core.settings import settings
from core.store import Store

_trusted: Callable[[], bool] = lambda: True  # noqa: E731 - replaced as a whole by `ask_for_trust`


def ask_for_trust(ask: Callable[[], bool]) -> None:
    """Set the function that tells whether the visitor is an admin. The command line and workers are trusted."""
    global _trusted  # noqa: PLW0603 - one app has one rule
    _trusted = ask


def check_paths(config: RunConfig) -> None:
    """Check that a visitor's config names no file or folder of a shared server. Raises: ConfigError."""
    for field, path in named_paths(config):
        _check_path(field, path)


def check_model(field: str, name: str) -> None:
    """Check that a visitor's model is not a folder of a shared server. Raises: ConfigError."""
    if is_path(name):
        _check_path(field, name)


def _check_path(field: str, path: str) -> None:
    if not settings().shared or _trusted():
        return
    if field.endswith("path"):
        remedy = Message("only an admin may name a file of this server; add your own on the Data page.")
    else:
        remedy = Message("only an admin may name a folder of this server; give the name of a model on the Hub.")
    raise ConfigError(field, path, remedy)


def most_of_visitor() -> int | None:
    """Return the limit on active runs per visitor; None on a server that is not shared."""
    known = settings()
    return known.visitor_running if known.shared else None


def check_steps(config: RunConfig, owner: str | None) -> None:
    """Check the limit on the steps of a visitor's prepared run. Raises: ConfigError if it is exceeded."""
    known = settings()
    if known.shared and owner is not None and config.steps > known.visitor_steps:
        raise ConfigError("steps", config.steps, "a run may have at most {most:,}.", most=known.visitor_steps)


def check_waiting(store: Store, owner: str | None) -> None:
    """Check the limits on queued runs, per visitor and in total, experiments aside.

    Call it in the transaction that queues a run, so that two requests at a time cannot both take the last place.

    Raises: EngineError if a limit is reached.
    """
    known = settings()
    if not known.shared or owner is None:
        return
    waiting = store.queued_counts()
    own, total = waiting[owner], waiting.total()
    if own >= known.visitor_waiting:
        message = Message(
            "{count} of your runs is queued already, which is the limit: wait until it starts, or stop it.",
            "{count} of your runs are queued already, which is the limit: wait until one starts, or stop one.",
            count=own,
        )
        raise EngineError(message)
    if total >= known.total_waiting:
        message = Message(
            "{count} run is queued already, which is the limit: try again later.",
            "{count} runs are queued already, which is the limit: try again later.",
            count=total,
        )
        raise EngineError(message)


def check_experiments(more: int, owner: str | None, unfinished: Callable[[], int]) -> None:
    """Check the limit on the unfinished runs of a visitor's experiments.

    Call it in the transaction that adds the runs.

    Args:
        more: number of runs to add.
        unfinished: returns the number of unfinished runs of the visitor's other experiments; called only if needed.
    Raises: EngineError if the limit is exceeded.
    """
    known = settings()
    if not known.shared or owner is None:
        return
    most = known.visitor_experiment
    if more > most:
        raise EngineError(
            "The experiment has {runs:,} runs, but at most {most:,} are allowed: choose fewer values or seeds.",
            runs=more,
            most=most,
        )
    if (others := unfinished()) + more > most:
        raise EngineError(
            "{others:,} runs of your other experiments have not ended, and this one adds {more:,}; together at most "
            "{most:,} are allowed: wait, stop an experiment, or choose fewer values or seeds.",
            others=others,
            more=more,
            most=most,
        )
