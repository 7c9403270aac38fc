"""The examples of a frame as a table."""

from __future__ import annotations

import csv
import io

import numpy as np

from core.artifacts.example_table import example_table_csv
from core.events import TRAIN, VALIDATION, FloatArray, Probe

TEXTS = (
    "a plain text",
    "tabs\tand\nlines\r\nand\x0bmore\u2028here",
    '=HYPERLINK("http://x")',
    "<img src=x onerror=alert(1)> \x00\x1b[31m half \ud83d 👩‍👩‍👧",
    '電影 فيلم, "quoted"',
)
PROBE = Probe((0, 1, 2, 3, 4), TEXTS, (0, 1, 1, 0, 1), ("good", "so\tbad"), (VALIDATION,) * 3 + (TRAIN,) * 2)


def frame(step: int) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(step)
    scales = 10.0 ** rng.integers(-30, 30, (5, 7))
    return (rng.standard_normal((5, 7)) * scales).astype(np.float32), rng.standard_normal((5, 2)).astype(np.float32)


def test_the_table_guards_cells_that_a_spreadsheet_would_run() -> None:
    rows = list(csv.reader(io.StringIO(example_table_csv(PROBE, frame(0)[1]).decode("utf-8-sig"), newline="")))
    assert rows[0] == ["id", "split", "text", "label", "prediction", "confidence"]
    assert rows[3][2] == '\'=HYPERLINK("http://x")'
    assert rows[1][2] == "a plain text"
    assert rows[2][2] == TEXTS[1]
    assert len(rows) == 6


def test_the_table_of_a_selection_has_its_rows_in_their_order() -> None:
    rows = list(csv.DictReader(io.StringIO(example_table_csv(PROBE, frame(0)[1], [4, 0]).decode("utf-8-sig"))))
    assert [(row["id"], row["split"], row["label"]) for row in rows] == [
        ("4", "train", "so\tbad"),
        ("0", "validation", "good"),
    ]


def test_a_run_from_before_training_examples_were_shown_has_validation_rows_alone() -> None:
    probe = Probe(PROBE.ids, PROBE.texts, PROBE.labels, PROBE.classes)
    rows = list(csv.DictReader(io.StringIO(example_table_csv(probe, frame(0)[1]).decode("utf-8-sig"))))
    assert {row["split"] for row in rows} == {"validation"}
