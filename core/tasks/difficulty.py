"""What to expect of a task that a short run of a small encoder hardly learns."""

from __future__ import annotations

from core.quantities import percent
from core.tasks.dataset import TaskData
from core.tasks.registry import TASKS

PAIRS = "How two sentences relate is more than a small encoder learns in a short run"


def expectation(task_id: str, data: TaskData) -> str | None:
    """A sentence for tasks whose scores stay near the linear probe's; None for the others.

    Pairs, and bundled tasks that say so: their measured baselines are in the data cards.
    """
    entry = TASKS.get(task_id)
    reason = entry.hard if entry and entry.hard else PAIRS if data.train.seconds is not None else ""
    if not reason:
        return None
    majority = percent(data.majority_rate)
    return (
        f"{reason}: expect scores near the majority class ({majority}) and the linear probe. More rows, more steps and "
        "a larger encoder help."
    )
