"""Inputs of the encoder in a step: a pure function of seed, step, row and view."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from core.advice.prepare import prepare
from core.config.objective import ViewConfig
from core.config.plan import TRIPLET, Pass
from core.encoders.packing import Tokens
from core.training.passes import Setup, StepInputs
from core.views import back_translation
from tests.conftest import write_csv
from tests.core.training.made import CPU, Draft, load_run_encoder, nli_csv

ROWS = [7, 3, 0, 11]


def view(name: str, **settings: Any) -> ViewConfig:
    return ViewConfig.model_validate({"view": name} | settings)


EDA = view("eda", rate=0.5)
RANDOM_VIEWS = [EDA, view("eda", operation="delete", rate=0.3), view("token_shuffle")]


class Made:
    """StepInputs of passes on a task, and the tokens of its unchanged texts."""

    def __init__(self, draft: Draft, *passes: Pass, seed: int = 0, path: Path | None = None, **more: Any) -> None:
        config, self.data = prepare(draft(task={"path": str(path)} if path else {}), gpu=False)
        encoder, self.tokenizer = load_run_encoder(config, self.data)
        self.special = encoder.special_ids
        self.inputs = StepInputs(Setup(self.data, encoder, self.tokenizer, CPU, seed, **more), passes)

    def plain(self, rows: Sequence[int]) -> list[Tokens]:
        return self.tokenizer([self.data.train.inputs[row] for row in rows])


@pytest.mark.parametrize("name", [None, "dropout", "embedding_dropout"])
def test_passes_that_leave_the_text_alone_read_it_as_it_is(draft: Draft, name: str | None) -> None:
    made = Made(draft, Pass("rows", view(name) if name else None))
    assert made.inputs.tokens(0, 1, ROWS) == made.inputs.plain(ROWS) == made.plain(ROWS)


@pytest.mark.parametrize("changed", RANDOM_VIEWS, ids=lambda v: f"{v.view}-{v.parameters.get('operation', '')}")
def test_a_changed_text_depends_on_seed_step_row_and_draw_and_on_nothing_else(
    draft: Draft, changed: ViewConfig
) -> None:
    made = Made(draft, Pass("rows", changed), Pass("rows", changed, 1))
    rows = list(range(20))
    found = made.inputs.tokens(0, 5, rows)
    assert found != made.plain(rows)
    # Independent of the batch, its order and the StepInputs object.
    assert made.inputs.tokens(0, 5, ROWS) == [found[row] for row in ROWS]
    assert Made(draft, Pass("rows", changed)).inputs.tokens(0, 5, rows) == found
    assert made.inputs.tokens(0, 6, rows) != found
    assert made.inputs.tokens(1, 5, rows) != found
    assert Made(draft, Pass("rows", changed), seed=1).inputs.tokens(0, 5, rows) != found


def test_rows_of_the_same_text_are_changed_each_in_its_own_way(draft: Draft, tmp_path: Path) -> None:
    text = "the film was a very lovely scene and its music felt warm"
    path = write_csv(tmp_path / "same.csv", [(f"{text} of one" if i % 2 else text, "ab"[i % 2]) for i in range(40)])
    made = Made(draft, Pass("rows", EDA), path=path)
    same = [row for row, found in enumerate(made.data.train.texts) if found == text]
    if len(same) < 2:  # reading may drop duplicates
        pytest.fail("the task keeps no two rows of one text")
    assert len({tokens.ids for tokens in made.inputs.tokens(0, 1, same)}) > 1


def test_token_shuffle_keeps_special_tokens_in_their_places(draft: Draft) -> None:
    made = Made(draft, Pass("rows", view("token_shuffle")))
    rows = list(range(20))
    for plain, shuffled in zip(made.plain(rows), made.inputs.tokens(0, 1, rows), strict=True):
        assert sorted(shuffled.ids) == sorted(plain.ids)
        assert (shuffled.ids[0], shuffled.ids[-1]) == (plain.ids[0], plain.ids[-1])
        assert {plain.ids[0], plain.ids[-1]} <= made.special


def test_both_texts_of_a_pair_are_changed(draft: Draft, tmp_path: Path) -> None:
    deleted = view("eda", operation="delete", rate=0.01)  # one word of each text
    made = Made(draft, Pass("rows", deleted), Pass(), path=nli_csv(tmp_path / "nli.csv"))
    made.inputs._tokenizer = lambda texts, keep: texts  # type: ignore[assignment, return-value]
    pairs: Any = made.inputs.tokens(0, 1, ROWS)
    for row, changed in zip(ROWS, pairs, strict=True):
        for before, after in zip(made.data.train.inputs[row], changed, strict=True):
            assert len(after.split()) == len(before.split()) - 1
            assert set(after.split()) <= set(before.split())


def test_triplets_are_read_side_by_side(draft: Draft, tmp_path: Path) -> None:
    made = Made(draft, *(Pass(side) for side in TRIPLET), path=nli_csv(tmp_path / "nli.csv"))
    numbers = [4, 0, 9]
    for number, side in enumerate(TRIPLET):
        texts = [getattr(made.data.triplets[i], side) for i in numbers]
        assert made.inputs.tokens(number, 1, numbers) == made.tokenizer(texts)
    assert made.data.triplets[0].contradiction.startswith("a ")


class Backwards:
    """A stand-in for a round trip through two translation models. It reverses the order of the words."""

    made: list[tuple[str, str, float, int]]

    def __init__(self, forward: str, backward: str, *, temperature: float, seed: int, **_: Any) -> None:
        self.seed = seed
        Backwards.made.append((forward, backward, temperature, seed))

    def translate_rows(self, texts: Sequence[str], rows: Sequence[int]) -> list[str]:
        return [" ".join([*reversed(texts[row].split()), *["very"] * self.seed]) for row in rows]


@pytest.fixture
def round_trips(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, float, int]]:
    monkeypatch.setattr(back_translation, "RoundTrip", Backwards)
    Backwards.made = []
    return Backwards.made


TRANSLATED = view("back_translation", forward="en-de", backward="de-en", temperature=0.5)


def test_back_translations_are_those_of_the_whole_split(
    draft: Draft, round_trips: list[tuple[str, str, float, int]]
) -> None:
    made = Made(draft, Pass(), Pass("rows", TRANSLATED), Pass("rows", TRANSLATED, 1), seed=2)
    assert round_trips == [("en-de", "de-en", 0.5, 2), ("en-de", "de-en", 0.5, 3)]
    for number, extra in ((1, " very very"), (2, " very very very")):
        texts = [" ".join(reversed(made.data.train.texts[row].split())) + extra for row in ROWS]
        assert made.inputs.tokens(number, 1, ROWS) == made.tokenizer(texts)
        assert made.inputs.tokens(number, 9, ROWS) == made.tokenizer(texts)


def test_both_texts_of_a_pair_are_translated(
    draft: Draft, tmp_path: Path, round_trips: list[tuple[str, str, float, int]]
) -> None:
    made = Made(draft, Pass("rows", TRANSLATED), path=nli_csv(tmp_path / "nli.csv"))
    pairs = [made.data.train.inputs[row] for row in ROWS]
    expected = [tuple(" ".join(reversed(text.split())) for text in pair) for pair in pairs]
    assert made.inputs.tokens(0, 1, ROWS) == made.tokenizer(expected)  # type: ignore[arg-type]


def test_translations_lie_in_the_file_that_was_given(
    draft: Draft, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    caches: list[Any] = []
    monkeypatch.setattr(back_translation, "RoundTrip", lambda *_, cache, **__: caches.append(cache))
    Made(draft, Pass("rows", TRANSLATED), translations=tmp_path / "translations.db")
    Made(draft, Pass("rows", TRANSLATED))
    assert [type(cache).__name__ for cache in caches] == ["TranslationCache", "MemoryTranslationCache"]


def test_two_views_of_one_kind_draw_words_of_their_own(draft: Draft) -> None:
    """Deleting a tenth and duplicating a tenth must not select the same words in every text."""
    delete, duplicate = (view("eda", operation=operation, rate=0.3) for operation in ("delete", "duplicate"))
    made = Made(draft, Pass("rows", delete), Pass("rows", duplicate))
    rows = list(range(30))
    plain, deleted, doubled = made.plain(rows), made.inputs.tokens(0, 1, rows), made.inputs.tokens(1, 1, rows)

    counts = [[Counter(tokens.ids) for tokens in texts] for texts in zip(plain, deleted, doubled, strict=True)]
    assert sum(text - lost == gained - text for text, lost, gained in counts) < len(rows) / 2


def test_tokens_of_augmented_texts_are_not_kept(draft: Draft) -> None:
    made = Made(draft, Pass("rows", EDA))
    made.plain(range(20))
    before = len(made.tokenizer._seen)
    for step in range(1, 20):
        made.inputs.tokens(0, step, range(20))
    assert len(made.tokenizer._seen) == before
