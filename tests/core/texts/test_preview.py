"""Previews of views, span by span."""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from core.catalogue.views import VIEWS, ViewEntry
from core.encoders.packing import Tokens
from core.texts import preview
from core.texts.eda import eda, row_generator, stream
from core.texts.preview import text_views
from core.texts.segments import Segment, ViewPreview, segments_of
from core.views.embedding import shuffle_tokens
from tests.cases import each

ROOT = Path(__file__).resolve().parents[3]
ENGLISH = "I enjoyed the film, but it was far too long for me."
CHINESE = "我非常喜欢这部电影，演员也很好。"
KOREAN = "영화가 정말 좋았어요, 배우도 정말 훌륭했어요."
THAI = "ฉันชอบหนังเรื่องนี้มาก"
MIXED = "我喜欢 my new iPhone 手机，因为它很快 OK"
TEXTS = [ENGLISH, CHINESE, KOREAN, THAI, MIXED, "la la  la\n la", "", " ", "wonderment", "…"]
TOKENS = ["[CLS]", "the", "film", "was", "the", "best", "##est", "[SEP]"]


def joined(segments: Sequence[Segment]) -> str:
    return "".join(segment.text for segment in segments if segment.mark != "removed")


def marked(segments: Sequence[Segment], *marks: str) -> list[str]:
    return [segment.text.strip() for segment in segments if segment.mark in marks]


def named(found: list[ViewPreview], name: str) -> ViewPreview:
    (one,) = [one for one in found if one.name == name]
    return one


def made_text(rng: random.Random) -> str:
    pieces = [*["good", "film", "la", "电影", "的", "영화", "ที่", "a", "b2", "，", ".", "é", "🙂"], " ", " ", "  ", "\n"]
    return "".join(rng.choices(pieces, k=rng.randint(0, 14)))


class TestSegments:
    def test_those_that_are_not_removed_are_exactly_the_second_text(self) -> None:
        rng = random.Random(0)
        for _ in range(2_000):
            before, after = made_text(rng), made_text(rng)
            segments = segments_of(before, after)
            assert joined(segments) == after
            assert all(segment.text for segment in segments)
            assert (before == after) <= ({segment.mark for segment in segments} <= {"same"})

    @each("before", [ENGLISH, CHINESE, KOREAN])
    @each("rate", [0.1, 0.3, 0.6])
    @each(("operation", "mark"), [("delete", "removed"), ("duplicate", "added")])
    def test_what_was_deleted_or_duplicated_is_marked_and_nothing_else(
        self, before: str, rate: float, operation: str, mark: str
    ) -> None:
        for seed in range(20):
            after = eda(before, operation=operation, rate=rate, rng=np.random.default_rng(seed))
            segments = segments_of(before, after)
            assert {segment.mark for segment in segments} == {"same", mark}
            old, new, found = (
                Counter("".join(text.split())) for text in (before, after, "".join(marked(segments, mark)))
            )
            assert found == (old - new) + (new - old)
            kept = "".join(segment.text for segment in segments if segment.mark == "same")
            assert "".join(kept.split()) == "".join(min(before, after, key=len).split())

    @each("before", [ENGLISH, CHINESE])
    def test_what_was_swapped_has_moved(self, before: str) -> None:
        units = list(before) if before == CHINESE else before.split()
        for seed in range(20):
            after = eda(before, operation="swap", rate=0.3, rng=np.random.default_rng(seed))
            segments = segments_of(before, after)
            assert {segment.mark for segment in segments} == {"same", "moved"}
            new = list(after) if before == CHINESE else after.split()
            expected = [b for a, b in zip(units, new, strict=True) if a != b]
            found = marked(segments, "moved")
            assert (list("".join(found)) if before == CHINESE else " ".join(found).split()) == expected

    def test_a_replaced_word_is_removed_and_the_new_one_stands_after_it(self) -> None:
        assert segments_of("a good film", "a great film") == (
            Segment("a ", "same"),
            Segment("good ", "removed"),
            Segment("great ", "changed"),
            Segment("film", "same"),
        )

    def test_words_that_are_gone_do_not_run_into_others(self) -> None:
        for before, after in (("x film", "x movie"), ("a b c", "a b"), ("a b", "b"), ("x", "y z"), ("a b c d", "a d")):
            everything = "".join(segment.text for segment in segments_of(before, after))
            assert set(everything.split()) == {*before.split(), *after.split()}

    def test_spaces_that_are_gone_are_no_change_of_a_word(self) -> None:
        assert segments_of(" a  b\n", "a b") == (Segment("a b", "same"),)

    def test_equal_words_are_not_taken_for_each_other(self) -> None:
        assert segments_of("b c a X b X c", "a b c") == (
            Segment("b c ", "removed"),
            Segment("a ", "same"),
            Segment("X ", "removed"),
            Segment("b ", "same"),
            Segment("X ", "removed"),
            Segment("c", "same"),
        )

    def test_long_texts_without_much_in_common_are_compared_at_their_ends(self) -> None:
        rng = random.Random(0)
        before = [f"w{rng.randrange(50)}" for _ in range(4_000)]
        after = [*before[:10], *(f"v{rng.randrange(50)}" for _ in range(3_000)), *before[-7:]]
        segments = segments_of(" ".join(before), " ".join(after))
        assert joined(segments) == " ".join(after)
        assert segments[0] == Segment(" ".join(before[:10]) + " ", "same")
        assert segments[-1] == Segment(" ".join(before[-7:]), "same")

    def test_nothing_has_no_segments(self) -> None:
        assert segments_of("", "") == ()


class TestTextViews:
    @each("text", [*TEXTS, (ENGLISH, CHINESE), (KOREAN, "")])
    @each("tokens", [None, TOKENS, []])
    def test_every_view_of_the_registry_is_there_in_its_order(
        self, text: str | tuple[str, str], tokens: list[str] | None
    ) -> None:
        found = text_views(text, seed=3, rate=0.2, tokens=tokens)
        assert list(dict.fromkeys(one.name for one in found)) == list(VIEWS)
        for one in found:
            assert one.label.startswith(VIEWS[one.name].label)
            assert one.sentence.endswith(".")
            assert bool(one.segments) == (one.unit is not None)
            if one.unit == "text":
                assert len(one.segments) == (1 if isinstance(text, str) else 2)
            if one.unit is None:
                assert not one.changed

    @each("rate", [0.0, 0.1, 0.5, 0.99])
    @each("text", [ENGLISH, CHINESE, KOREAN, MIXED])
    def test_augmentation_shows_what_it_makes_under_each_operation(self, text: str, rate: float) -> None:
        (operations,) = [p.choices for p in VIEWS["eda"].parameters if p.name == "operation"]
        assert operations is not None
        for seed in range(5):
            found = [one for one in text_views(text, seed=seed, rate=rate) if one.name == "eda"]
            labels = [f"{VIEWS['eda'].label}: {label}" for label in operations.values()]
            assert [one.label for one in found] == labels
            for operation, one in zip(operations, found, strict=True):
                drawn = row_generator(seed, 0, 0, stream("eda", operation))
                view = eda(text, operation=operation, rate=rate, rng=drawn)
                assert joined(one.segments[0]) == view
                assert one.changed == (view != text)

    def test_both_texts_of_a_pair_change(self) -> None:
        found = text_views((ENGLISH, KOREAN), seed=0, rate=0.5)
        (swap,) = [one for one in found if one.label.endswith("Swap")]
        for segments, text in zip(swap.segments, (ENGLISH, KOREAN), strict=True):
            assert joined(segments) != text
            assert Counter(joined(segments).split()) == Counter(text.split())

    @each("name", ["dropout", "head_dropout", "layers", "feature_cutoff", "embedding_dropout"])
    def test_what_no_text_shows_is_said(self, name: str) -> None:
        one = named(text_views(ENGLISH, seed=0, rate=0.1, tokens=TOKENS), name)
        assert one.sentence == f"{VIEWS[name].summary.rstrip('.')}; the words do not change."
        assert (one.unit, one.on_request) == (None, False)

    def test_back_translation_waits_to_be_asked_for(self) -> None:
        found = text_views(ENGLISH, seed=0, rate=0.1)
        assert [one.name for one in found if one.on_request] == ["back_translation"]
        assert named(found, "back_translation").sentence.startswith(VIEWS["back_translation"].summary)

    @pytest.mark.parametrize("kind", ["pass", "text", "tokens", "embedding", "head", "layers"])
    def test_a_new_view_appears_by_itself(self, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
        new = ViewEntry(name="new", label="New", summary="Something else.", source="", kind=kind)  # type: ignore[arg-type]
        monkeypatch.setattr(preview, "VIEWS", {**VIEWS, "new": new})
        one = text_views(ENGLISH, seed=0, rate=0.1, tokens=TOKENS)[-1]
        assert (one.name, one.label, one.unit) == ("new", "New", None)
        assert one.sentence.startswith("Something else")
        assert ("the words do not change" in one.sentence) == (kind not in ("text", "tokens"))

    def test_a_text_view_that_is_computed_without_a_model_is_shown(self) -> None:
        for entry in VIEWS.values():
            assert entry.kind != "text" or bool(entry.preview) != bool(entry.by_model)

    def test_same_arguments_same_previews(self) -> None:
        views = [text_views(ENGLISH, seed=seed, rate=0.3, tokens=TOKENS) for seed in range(6)]
        assert views == [text_views(ENGLISH, seed=seed, rate=0.3, tokens=TOKENS) for seed in range(6)]
        for number, one in enumerate(views[0]):
            if one.unit is not None and one.name != "paraphrase":  # nothing is drawn
                assert len({others[number].segments for others in views}) > 1, one.label


class TestTokenViews:
    def test_without_tokens_they_are_described(self) -> None:
        for name in ("token_shuffle", "token_cutoff"):
            one = named(text_views(ENGLISH, seed=0, rate=0.1), name)
            assert one.unit is None
            assert one.sentence.startswith(VIEWS[name].summary)

    @each("seed", range(20))
    def test_the_shuffle_is_the_one_that_training_makes(self, seed: int) -> None:
        one = named(text_views(ENGLISH, seed=seed, rate=0.1, tokens=TOKENS), "token_shuffle")
        last = len(TOKENS) - 1
        drawn = row_generator(seed, 0, 0, stream("token_shuffle"))
        origins = shuffle_tokens(Tokens(tuple(range(len(TOKENS)))), {0, last}, drawn).ids
        (segments,) = one.segments
        for place, (origin, segment) in enumerate(zip(origins, segments, strict=True)):
            assert segment == (TOKENS[origin], "same" if origin == place else "moved")

    @each(("rate", "count"), [(0.0, 0), (0.01, 1), (0.3, 2), (0.5, 3), (0.99, 6)])
    def test_a_share_of_the_tokens_is_cut_and_special_ones_stay(self, rate: float, count: int) -> None:
        for seed in range(10):
            one = named(text_views(ENGLISH, seed=seed, rate=rate, tokens=TOKENS), "token_cutoff")
            (segments,) = one.segments
            assert [segment.text for segment in segments] == TOKENS
            assert [segment.mark for segment in segments].count("removed") == count
            assert segments[0].mark == segments[-1].mark == "same"

    def test_the_counts_are_those_of_training(self) -> None:
        import torch

        from core.views.embedding import Embedded, token_cutoff

        for count in range(1, 40):
            for rate in (0.05, 0.15, 0.25, 0.5, 0.85):
                tokens = ["[CLS]", *(f"t{i}" for i in range(count)), "[SEP]"]
                special = torch.tensor([[token.startswith("[") for token in tokens]])
                owners = torch.zeros(1, len(tokens), dtype=torch.long)
                given = Embedded(torch.ones(1, len(tokens), 1), owners, special, [0])
                cut = token_cutoff(given, {"rate": rate})
                (segments,) = named(text_views("", seed=0, rate=rate, tokens=tokens), "token_cutoff").segments
                assert len(marked(segments, "removed")) == int((cut == 0).sum())

    def test_tokens_that_are_all_special_stay(self) -> None:
        for tokens in (["<s>", "</s>"], ["[CLS]", "[SEP]"]):
            found = text_views("", seed=0, rate=0.5, tokens=tokens)
            assert not named(found, "token_cutoff").changed
            assert not named(found, "token_shuffle").changed


def test_torch_is_not_imported() -> None:
    code = (
        "import sys; from core.texts.preview import text_views;"
        "text_views('a good film', seed=0, rate=0.1, tokens=['a']); print('torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.strip() == "False", done.stderr
