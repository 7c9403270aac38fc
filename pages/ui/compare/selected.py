"""The selected examples, with what each run says of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from core.figures.axes import frame_at
from core.messages import N_, _
from core.quantities import percent
from core.representation.examples import ExampleScores
from core.tasks.listing import csv_file
from pages.ui.compare.picking import Linked, Shown
from pages.ui.explore import run_reads
from pages.ui.explore.run_reads import Frames

MOST_ROWS = 1_000
TABLE_HEIGHT = 420
# Translators: parts of a data set, of one of which a text is.
SPLITS = {"validation": N_("validation"), "train": N_("train")}


def selection(runs: Sequence[Shown], examples: Linked, ids: Sequence[int], step: int | None) -> None:
    """Draw the table, or say how to select some. Raises: StoreError."""
    known = examples.known()
    chosen = [i for i in ids if i in known]
    if not chosen:
        st.caption(
            _(
                "Click a point, or drag a box or a lasso around some, to read them here and to see what each run says "
                "of them; hold Shift to add to them."
            )
        )
        return
    records = example_records(runs, examples, chosen, step)
    st.markdown(_how_many(len(chosen)))
    table = pd.DataFrame([_in_words(record, [one.name for one in runs]) for record in records[:MOST_ROWS]])
    st.dataframe(
        table,
        hide_index=True,
        height=min(TABLE_HEIGHT, 38 + 35 * len(table)),
        key="compare.selected",
        column_config={
            "Text": st.column_config.TextColumn(_("Text"), width="large"),
            "Label": st.column_config.TextColumn(_("Label"), width="small"),
            # Translators: a noun, a part of a data set.
            "Split": st.column_config.TextColumn(_("Split"), width="small"),
        },
    )
    st.caption(
        _("Of each run: ✓ right or ✗ wrong, its prediction and how sure it is, at the frame that its map shows.")
    )
    st.download_button(
        _("Selection as CSV"),
        lambda: csv_file([_flat(record, [one.name for one in runs]) for record in records]),
        "selection.csv",
        "text/csv",
        key="compare.selection.csv",
        icon=":material/download:",
    )


def _how_many(count: int) -> str:
    if count > MOST_ROWS:
        return _("**{count} selected**, the first {shown} shown", count=f"{count:,}", shown=f"{MOST_ROWS:,}")
    return _("**{count} selected**", count=f"{count:,}")


def example_records(
    runs: Sequence[Shown], examples: Linked, ids: Sequence[int], step: int | None
) -> list[dict[str, Any]]:
    """Text, label and split of each example, and under "runs" what each run says: None, or right, class, confidence."""
    scores = [_scores_at(frames, step) for _name, frames in runs]
    records = []
    for i in ids:
        run = next(number for number, rows in enumerate(examples.rows) if i in rows)
        probe, row = runs[run].frames.probe, examples.rows[run][i]
        said = [
            _said(frames, found, rows.get(i))
            for (_name, frames), found, rows in zip(runs, scores, examples.rows, strict=True)
        ]
        split = probe.splits[row] if probe.splits else "validation"
        records.append(
            {"Text": probe.texts[row], "Label": probe.classes[probe.labels[row]], "Split": split, "runs": said}
        )
    return records


def _scores_at(frames: Frames, step: int | None) -> ExampleScores | None:
    """Of the frame that a run's map shows at a step."""
    at = frames.numbers[-1] if step is None else frame_at(frames.numbers, step)
    return None if at is None else run_reads.scores(frames, at)


def _said(frames: Frames, scores: ExampleScores | None, row: int | None) -> tuple[bool, str, float] | None:
    if scores is None or row is None:
        return None
    predicted = frames.probe.classes[scores.predicted[row]]
    return bool(scores.correct[row]), predicted, float(scores.confidence[row])


def _in_words(record: dict[str, Any], names: Sequence[str]) -> dict[str, str]:
    words = {name: record[name] for name in ("Text", "Label")}
    for name, said in zip(names, record["runs"], strict=True):
        words[name] = "–" if said is None else f"{'✓' if said[0] else '✗'} {said[1]} {percent(said[2])}"
    return words | {"Split": _(SPLITS.get(record["Split"], record["Split"]))}


def _flat(record: dict[str, Any], names: Sequence[str]) -> dict[str, str]:
    words = {name.lower(): record[name] for name in ("Text", "Label", "Split")}
    for name, said in zip(names, record["runs"], strict=True):
        _right, predicted, confidence = said or (False, "", None)
        words |= {f"{name}: prediction": predicted, f"{name}: confidence": f"{confidence:.6f}" if said else ""}
    return words
