"""What a run measured at every step, as a table."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from core.events import Evaluation, Step
from core.exports.entry import Export
from core.messages import N_
from core.store import RunRecord, Store


def curves_csv(steps: Sequence[Step], evaluations: Sequence[Evaluation]) -> str:
    """A row for each step: what was measured while it was taken, and scores by split where it was scored."""
    rows: dict[int, dict[str, float]] = {}
    for step in steps:
        rows.setdefault(step.step, {}).update(step.values)
    for scores in evaluations:
        rows.setdefault(scores.step, {}).update({f"{scores.split}.{name}": v for name, v in scores.values.items()})
    names = sorted({name for values in rows.values() for name in values})
    text = io.StringIO()
    writer = csv.DictWriter(text, ["step", *names], restval="")
    writer.writeheader()
    writer.writerows({"step": step, **rows[step]} for step in sorted(rows))
    return text.getvalue()


def _write(store: Store, run: RunRecord, path: Path) -> None:
    path.write_text(curves_csv(store.steps(run.id), store.evaluations(run.id)), encoding="utf-8", newline="")


ENTRIES = (
    Export(
        name="curves",
        label=N_("Curves"),
        place=30,
        about=N_("A CSV table: loss and its parts, gradient norms, rates and scores of every step."),
        suffix=".csv",
        mime="text/csv",
        write=_write,
        text=True,
    ),
)
