"""The examples of a frame as records for a table."""

from __future__ import annotations

import numpy as np

from core.artifacts.example_table import example_records
from core.events import TRAIN, VALIDATION, Probe

PROBE = Probe((7, 8, 9), ("a", "=b", "c\n"), (0, 1, 1), ("good", "so\tbad"), (VALIDATION,) * 2 + (TRAIN,))
LOGITS = np.log(np.array([[3, 1], [4, 1], [1, 9]], np.float32))


def test_a_selection_has_its_rows_in_their_order() -> None:
    last, first = example_records(PROBE, LOGITS, [2, 0])
    assert last["confidence"] == "0.900000"
    assert list(first.values()) == ["7", "validation", "a", "good", "good", "0.750000"]
    assert (last["id"], last["split"], last["text"], last["prediction"]) == ("9", "train", "c\n", "so\tbad")
    assert [record["id"] for record in example_records(PROBE, LOGITS)] == ["7", "8", "9"]


def test_a_run_from_before_training_examples_were_shown_has_validation_rows_alone() -> None:
    probe = Probe(PROBE.ids, PROBE.texts, PROBE.labels, PROBE.classes)
    assert {record["split"] for record in example_records(probe, LOGITS)} == {"validation"}
