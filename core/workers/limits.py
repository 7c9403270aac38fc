"""What one visitor of a shared server may have, so that there is something left for the others."""

from __future__ import annotations

from core.errors import EngineError
from core.language import _, ngettext
from core.settings import settings
from core.store import Store


def most_of_visitor() -> int | None:
    """Runs of one visitor that may go on at a time; None where nobody shares the server."""
    known = settings()
    return known.visitor_running if known.shared else None


def check_waiting(store: Store, owner: str | None) -> None:
    """Raises: EngineError where a visitor, or all of them, have as many runs waiting as they may."""
    known = settings()
    if not known.shared or owner is None:
        return
    waiting = [run for run in store.line() if not run.background]
    own = sum(run.owner == owner for run in waiting)
    if own >= known.visitor_waiting:
        message = ngettext(
            "{count} of your runs is waiting already, which is the most here: wait until it begins, or stop it.",
            "{count} of your runs are waiting already, which is the most here: wait until one begins, or stop one.",
            own,
        )
        raise EngineError(message)
    if len(waiting) >= known.total_waiting:
        message = ngettext(
            "{count} run is waiting already, which is the most here: try again in a while.",
            "{count} runs are waiting already, which is the most here: try again in a while.",
            len(waiting),
        )
        raise EngineError(message)


def check_experiment(runs: int, owner: str | None) -> None:
    """Raises: EngineError where an experiment of a visitor has more runs than it may."""
    known = settings()
    if known.shared and owner is not None and runs > known.visitor_experiment:
        message = _(
            "The experiment has {runs:,} runs, and here it may have {most:,}: take fewer values or seeds.",
            runs=runs,
            most=known.visitor_experiment,
        )
        raise EngineError(message)
