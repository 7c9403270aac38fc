"""Bundled paraphrases: every text of their tasks has a weak and a strong one, for views and for training rows."""

from __future__ import annotations

import csv
import re

import numpy as np

from core.config import TaskConfig
from core.tasks import TASKS, load_task
from core.texts.paraphrases import PARAPHRASED, have_paraphrases, paraphrase_view
from core.texts.preview import text_views
from tests.cases import each

STRENGTHS = ("weak", "strong")


def rows(task: str, name: str) -> list[dict[str, str]]:
    with (TASKS[task].folder / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, strict=True))


def plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def test_film_reviews_and_nli_have_paraphrases() -> None:
    assert PARAPHRASED == ("film_reviews", "nli")


@each("task", PARAPHRASED)
def test_every_text_of_both_splits_has_two_paraphrases_in_other_words(task: str) -> None:
    texts = {
        row[side]
        for split in ("train", "test")
        for row in rows(task, split)
        for side in ("text", "text_b")
        if side in row
    }
    found = rows(task, "paraphrases")
    assert [*found[0]] == ["text", *STRENGTHS]
    assert len(found) == len({row["text"] for row in found})
    assert {row["text"] for row in found} == texts
    for row in found:
        assert len({plain(text) for text in row.values()}) == 3, row
        assert all(text == text.strip() and "\n" not in text for text in row.values()), row


@each("strength", STRENGTHS)
def test_both_texts_of_a_pair_follow_as_paraphrases_with_the_same_label(strength: str) -> None:
    data = load_task(TaskConfig(id="nli", train_size=30), 3)
    found = data.with_paraphrases(strength)
    of = {row["text"]: row[strength] for row in rows("nli", "paraphrases")}
    for side, more in ((data.train.texts, found.train.texts), (data.train.seconds, found.train.seconds)):
        assert side is not None
        assert more == (*side, *(of[text] for text in side))
    assert found.train.labels == data.train.labels * 2
    assert (found.validation, found.test) == (data.validation, data.test)
    assert data.with_paraphrases("none") is data


def test_the_view_and_its_preview_show_the_paraphrase_of_the_strength() -> None:
    (row, *_) = rows("film_reviews", "paraphrases")
    previews = [one for one in text_views(row["text"], seed=0, rate=0.2) if one.name == "paraphrase"]
    assert len(previews) == 2
    for strength, preview in zip(STRENGTHS, previews, strict=True):
        assert paraphrase_view(row["text"], {"strength": strength}, np.random.default_rng(0)) == row[strength]
        shown = "".join(piece.text for piece in preview.segments[0] if piece.mark != "removed")
        assert shown == row[strength]


def test_a_text_without_a_paraphrase_is_left_alone_and_noticed() -> None:
    assert paraphrase_view("No such text.", {"strength": "weak"}, np.random.default_rng(0)) == "No such text."
    known = [row["text"] for row in rows("nli", "train")]
    assert have_paraphrases(known)
    assert not have_paraphrases([*known, "No such text."])
