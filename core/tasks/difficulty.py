"""Notes on tasks that a short run of a small encoder hardly learns, and on very few rows."""

from __future__ import annotations

from core.messages import N_, _, ngettext
from core.quantities import percent
from core.tasks.dataset import TaskData
from core.tasks.registry import TASKS

PAIRS = N_("How two sentences relate is more than a small encoder learns in a short run")
# Measured (benchmarks/README.md, default rates and steps): with 100 rows the defaults end above the linear probe on
# nearly every set, with 20 on little more than half of them.
ENOUGH_ROWS = 50


def expectation(task_id: str, data: TaskData) -> str | None:
    """A sentence for tasks whose scores may not rise above the linear probe's; None for the others.

    Pairs, bundled tasks that say so (their measured baselines are in the data cards), and fewer than 50 training rows.
    """
    entry = TASKS.get(task_id)
    reason = entry.hard if entry and entry.hard else PAIRS if data.train.seconds is not None else ""
    if reason:
        return _(
            "{reason}: expect scores near the majority class ({majority}) and the linear probe. More rows, more steps "
            "and a larger encoder help.",
            reason=_(reason),
            majority=percent(data.majority_rate),
        )
    if len(data.train) < ENOUGH_ROWS:
        return _(
            "With {rows}, whether a run beats the linear probe depends on which rows are drawn. Compare several seeds, "
            "or train on 100 rows or more.",
            rows=ngettext("{count} training row", "{count} training rows", len(data.train)),
        )
    return None
