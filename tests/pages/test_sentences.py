"""Sentences that depend on the available data."""

from __future__ import annotations

from core.advice.counting import TokenCounts
from core.artifacts.waiting_time import Place
from core.tasks.dataset import Split, TaskData
from pages.ui.audit import noise_sentence
from pages.ui.live_progress import queue_words
from pages.ui.text_details import _sentence
from tests.cases import each

LENGTHS = [2, 2, 2, 3, 1000]
CLEAN = Split(("a", "b", "c", "d"), (0, 1, 0, 1))


@each(
    ("unknown_share", "all_texts", "expected"),
    [
        (None, 5, "The middle half of the texts have 2 to 3 words; the median is 2, and the longest has 1,000."),
        (
            None,
            9,
            (
                "The middle half of the texts have 2 to 3 words; the median is 2, and the longest has 1,000; counted "
                "on 5 texts spread over all rows."
            ),
        ),
        (
            0.0,
            5,
            (
                "The middle half of the texts have 2 to 3 tokens; the median is 2, and the longest has 1,000. "
                "1 text has more than 128 tokens and is cut there by default."
            ),
        ),
        (
            0.25,
            9,
            (
                "The middle half of the texts have 2 to 3 tokens; the median is 2, and the longest has 1,000; 25.0% "
                "of the tokens are unknown to the tokenizer; counted on 5 texts spread over all rows. "
                "1 text has more than 128 tokens and is cut there by default."
            ),
        ),
    ],
)
def test_lengths_are_said_with_what_is_known(unknown_share: float | None, all_texts: int, expected: str) -> None:
    counts = None if unknown_share is None else TokenCounts(tuple(LENGTHS), unknown_share)
    assert _sentence(LENGTHS, counts, all_texts=all_texts) == expected


@each(
    ("place", "on_cluster", "expected"),
    [
        (None, False, "Next in the queue, waiting for a free slot."),
        (
            Place(0, 125, None),
            False,
            "Next in the queue, waiting for a free slot. It starts in about 2 min 5 s, estimated from earlier runs.",
        ),
        (Place(1, None, None), False, "Waiting for a free slot; 1 run starts before it."),
        (
            Place(2, 40, None),
            False,
            "Waiting for a free slot; 2 runs start before it. It starts in about 40 s, estimated from earlier runs.",
        ),
        (Place(0, 125, None), True, "Next in the queue, waiting for the cluster."),
        (Place(2, 125, None), True, "Waiting for the cluster; 2 runs start before it."),
    ],
)
def test_a_place_in_line_is_said(place: Place | None, on_cluster: bool, expected: str) -> None:
    assert queue_words(place, on_cluster) == expected


@each(
    ("texts", "labels", "expected"),
    [
        (CLEAN.texts, CLEAN.labels, "Training rows: 4, none of them noisy yet."),
        (CLEAN.texts, (1, 1, 0, 1), "Training rows: 4, 1 with a wrong label (25.0%)."),
        (("a", "x", "y", "d"), CLEAN.labels, "Training rows: 4, 2 with changed words (50.0%)."),
        (
            ("a", "x", "y", "d"),
            (1, 1, 0, 1),
            "Training rows: 4, 1 with a wrong label (25.0%) and 2 with changed words (50.0%).",
        ),
    ],
)
def test_noise_is_said(texts: tuple[str, ...], labels: tuple[int, ...], expected: str) -> None:
    data = TaskData("noisy", ("no", "yes"), Split(texts, labels), CLEAN, CLEAN, clean=CLEAN)
    assert noise_sentence(data) == expected
