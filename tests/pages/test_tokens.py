"""The Tokens page, without a browser: one text, deleted words, statistics over the classes."""

from __future__ import annotations

import csv
import io
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import kendalltau
from streamlit.testing.v1 import AppTest

from core.artifacts.cache import write
from core.artifacts.sentence import (
    Deletions,
    Inspected,
    TokenChoice,
    TokenTerm,
    deletions_path,
    inspected_path,
    token_choice_path,
)
from core.artifacts.weights import weight_stamps
from core.config.objective import ObjectiveConfig
from core.events import Frame, Probe, Started, Step, Tokens, TokenText, Word
from core.representation.projections import pca_map
from core.store import Status, Store
from core.weight_files import snapshot_path
from core.workers import JobRecord, Jobs
from tests.cases import each
from tests.pages.conftest import Draft, Pages
from tests.pages.test_compare import address
from tests.pages.test_pages import button, control, made_run
from tests.pages.test_pages import words as words_of

HOSTILE = "<img/src=x/onerror=alert(1)>"
CLASSES = ("no <b>way</b>", "yes")
TEXTS = (
    "a film with no heart and no wit",
    f"the {HOSTILE} film has heart =1+1 and",
    "the film has a heart and it shows",
    "one that nobody keeps",
)
LABELS = (0, 1, 1, 0)
KEPT = (0, 1, 2)
STEPS = (0, 2, 4)
LAYERS, HEADS = 2, 3

Opener = Callable[..., AppTest]


def read_as(*sides: str) -> TokenText:
    """Split at spaces. Words of more than four characters have two pieces, [CLS] comes first, [SEP] after each text."""
    words, place = [], 1
    for number, side in enumerate(sides):
        start = 0
        for surface in side.split(" "):
            pieces = 2 if len(surface) > 4 else 1
            words.append(Word(number, start, start + len(surface), tuple(range(place, place + pieces))))
            place, start = place + pieces, start + len(surface) + 1
        place += 1
    return TokenText(sides, tuple(words), place)


READ = tuple(read_as(TEXTS[row]) for row in KEPT)


def shares(seed: int, tokens: int) -> NDArray[np.float16]:
    """Return [L, heads, tokens] with rows that sum to one."""
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.full(tokens, 0.4), size=(LAYERS, HEADS)).astype(np.float16)


def attention_of(row: int, step: int, length: int) -> NDArray[np.float16]:
    return shares(100 * row + step, length)


def logits_at(step: int) -> NDArray[np.float32]:
    return np.random.default_rng(step + 7).normal(size=(len(TEXTS), 2)).astype(np.float32)


def frame_at(step: int, kept: Sequence[TokenText] = READ, classes: int = 2) -> Frame:
    rows = [attention_of(row, step, text.length) for row, text in zip(KEPT, kept, strict=False)]
    vectors = np.random.default_rng(step).normal(size=(4, 4)).astype(np.float32)
    attention = np.concatenate(rows, axis=2) if rows else None
    return Frame(step, vectors, np.resize(logits_at(step), (4, classes)), attention)


@dataclass(frozen=True)
class Made:
    store: Store
    run_id: str

    @property
    def folder(self) -> Path:
        return self.store.run_folder(self.run_id)


@pytest.fixture
def opened(opened: Pages) -> Opener:
    return lambda **query: opened("tokens", **{name: str(value) for name, value in query.items()})


@pytest.fixture
def make(folder: Path, draft: Draft) -> Callable[..., Made]:
    """Return a function that records a run with three frames. Three of its four examples have attention."""

    def make_run(
        *,
        texts: tuple[TokenText, ...] | None = None,
        frames: tuple[int, ...] = STEPS,
        classes: Any = CLASSES,
        **phase: Any,
    ) -> Made:
        store, run_id = made_run(folder, draft(**phase))
        attempt = store.attempt(run_id, 1)
        attempt.record_start(Started(0, 8, "cpu", Probe((0, 1, 2, 3), TEXTS, LABELS, classes), {}))
        kept = READ if texts is None else texts
        if kept:
            attempt.tokens(Tokens(KEPT[: len(kept)], kept))
        attempt.steps([Step(step, {"loss": 1.0}) for step in (1, 2, 3, 4)])
        for step in frames:
            frame = frame_at(step, kept, len(classes))
            attempt.frame(frame, pca_map(frame.embeddings))
        return Made(store, run_id)

    return make_run


@pytest.fixture
def made(make: Callable[..., Made]) -> Made:
    run = make()
    run.store.attempt(run.run_id, 1).end(Status.STOPPED)
    return run


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Return the page's requests for jobs. No job is started."""
    requests: list[dict[str, Any]] = []

    def start(_: Jobs, kind: str, request: dict[str, Any], _label: str, **_more: object) -> str:
        requests.append({"kind": kind, **request})
        return "job"

    monkeypatch.setattr(Jobs, "start", start)
    return requests


@pytest.fixture
def downloads(monkeypatch: pytest.MonkeyPatch) -> dict[str, Callable[[], bytes]]:
    """Return the content of each download button, as functions."""
    given: dict[str, Callable[[], bytes]] = {}

    def button(label: str, data: Callable[[], bytes], *_: Any, **__: Any) -> bool:
        given[label] = data
        return False

    monkeypatch.setattr("streamlit.download_button", button)
    return given


def words(app: AppTest) -> str:
    """Return all text on the page, without the backslashes of Markdown."""
    return words_of(app).replace("\\", "")


def drawn(app: AppTest) -> str:
    """Return the highlighted texts."""
    return "".join(element.body for element in app.html if "token-text" in element.body)


def records(data: Callable[[], bytes]) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(data().decode("utf-8-sig"))))


def slow_shares(row: int, step: int) -> list[float]:
    """Return the attention of each word of an example in the last layer, summed piece by piece."""
    text = read_as(TEXTS[row])
    attention = attention_of(row, step, text.length).astype(float)
    result = []
    for word in text.words:
        share = 0.0
        for piece in word.places:
            share += sum(attention[LAYERS - 1, head, piece] for head in range(HEADS)) / HEADS
        result.append(share)
    return result


def slow_top(weights: list[float], k: int) -> set[int]:
    return set(sorted(range(len(weights)), key=lambda i: (-weights[i], i))[:k])


# Empty states


def test_without_runs_the_page_says_what_to_do(opened: Opener) -> None:
    assert "There is nothing to show yet" in words(opened())


def test_a_run_without_frames_says_when_they_come(opened: Opener, make: Callable[..., Made]) -> None:
    assert "has no frames yet" in words(opened(run=make(frames=()).run_id))


def test_a_run_that_kept_no_attention_offers_a_text_of_ones_own(opened: Opener, make: Callable[..., Made]) -> None:
    run = make(texts=())
    app = opened(run=run.run_id)
    assert "stored no attention for its examples" in words(app)
    assert "stored weights of step 0." in words(app)
    assert app.text_area[0].label == "Your text"
    classes = opened(run=run.run_id, view="classes")
    assert "stored no attention" in words(classes)
    assert "Open “One text” to enter a text of your own" in words(classes)


# One text


def test_words_that_enter_and_leave_are_those_of_a_slow_loop(opened: Opener, made: Made) -> None:
    app = opened(run=made.run_id, k=3)
    old, new = (slow_top(slow_shares(0, step), 3) for step in (0, 4))
    assert old != new
    html, surfaces = drawn(app), TEXTS[0].split(" ")
    assert html.count("entered the top k") == len(new - old)
    assert html.count("left the top k") == len(old - new)
    listed = [html.split(f"{sign}: ")[1].split(" · ")[0] for sign in ("new (+)", "gone (−)")]
    for places, said in zip((new - old, old - new), listed, strict=True):
        assert all(surfaces[place] in said for place in places)
    special = [1 - sum(slow_shares(0, step)) for step in (0, 4)]
    assert f"{special[0]:.1%} before, {special[1]:.1%} after" in words(app)
    assert "Layer 2 of 2, mean of 3 heads, k 3, without punctuation." in words(app)


def test_prediction_confidence_and_label_stand_above(opened: Opener, made: Made) -> None:
    said = []
    for step in (0, 4):
        scores = np.exp(logits_at(step)[0].astype(float))
        said.append(f"**{CLASSES[int(scores.argmax())]}** {scores.max() / scores.sum():.1%} at step {step}")
    assert f"Predicted: {said[0]} → {said[1]} · labelled **{CLASSES[0]}**" in words(opened(run=made.run_id))


def test_every_choice_stands_in_the_address_and_comes_back_from_it(opened: Opener, made: Made) -> None:
    app = opened(run=made.run_id)
    assert address(app) == {"run": made.run_id}
    choices = {"example": 2, "layer": 1, "head": "2", "k": 2, "before": 2, "over": "layers", "after": 2}
    for name, value in choices.items():
        control(app, name).set_value(value).run()
        assert not app.exception
        assert address(app)[name] == str(value)
    again = opened(run=made.run_id, **choices)
    assert drawn(again) == drawn(app)
    assert {name: control(again, name).value for name in choices} == choices
    assert "Layer 1 of 2, head 2 of 3, k 2, without punctuation." in words(again)
    control(again, "k").set_value(3).run()
    assert "k" not in again.query_params, "the default does not stand there"


def test_a_press_that_brings_an_older_address_loses_no_choice(opened: Opener, made: Made) -> None:
    app = opened(run=made.run_id)
    control(app, "layer").set_value(1).run()
    del app.query_params["layer"]
    control(app, "k").set_value(2).run()
    assert "Layer 1 of 2, mean of 3 heads, k 2, without punctuation." in words(app)
    assert address(app)["layer"] == "1"


@each(
    "query",
    [
        dict.fromkeys(("view", "example", "layer", "head", "k", "before", "after", "over", "source"), "<script>"),
        {"layer": "0", "k": "-1", "head": "nan", "after": "9" * 400, "example": "3"},
        {"k": "91"},
    ],
)
def test_nonsense_in_the_address_is_a_sentence(opened: Opener, made: Made, query: dict[str, str]) -> None:
    app = opened(run=made.run_id, **query)
    for name in query:
        assert [w.value for w in app.warning if f"The link asks for {name} =" in w.value]
    assert "token-text" in drawn(app)


def test_k_begins_with_a_third_of_the_middle_text_and_ends_with_the_longest(opened: Opener, made: Made) -> None:
    lengths = sorted(len(TEXTS[row].split(" ")) for row in KEPT)
    assert control(opened(run=made.run_id), "k").value == round(lengths[1] / 3)
    app = opened(run=made.run_id, k=60)
    assert not app.warning
    assert control(app, "k").value == lengths[-1]


def test_texts_that_read_alike_are_offered_apart(opened: Opener, make: Callable[..., Made]) -> None:
    """A browser identifies an option only by its label."""
    made = make(texts=(read_as("the same"), read_as("the same"), read_as("the same")), classes=("one", "one"))
    app = opened(run=made.run_id, example="1")
    assert control(app, "example").options == [f"the same (one) (example {example})" for example in KEPT]
    assert control(app, "example").value == 1


def test_a_damaged_frame_leaves_the_others(opened: Opener, made: Made) -> None:
    (made.folder / "frame-0000004.safetensors").write_bytes(b"damaged")
    app = opened(run=made.run_id)
    assert any("missing or damaged" in warning.value for warning in app.warning)
    assert "After (step 2)" in drawn(app)


def test_a_running_run_says_that_more_comes(opened: Opener, make: Callable[..., Made]) -> None:
    run = make(frames=(0,))
    app = opened(run=run.run_id)
    assert "This run is still training. 1 frame so far" in words(app)
    assert "Step 0 is the only one so far" in words(app)
    run.store.attempt(run.run_id, 1).frame(frame_at(2), np.zeros((4, 2), np.float32))
    app.run()
    assert "After (step 2)" in drawn(app), "what is at the last step follows it"


def test_another_run_starts_from_its_own_defaults(opened: Opener, make: Callable[..., Made]) -> None:
    first, second = make(), make()
    app = opened(run=first.run_id, example=2, layer=1, before=2, k=2)
    app.selectbox[0].set_value(second.run_id).run()
    assert set(app.query_params) == {"run", "k"}
    assert control(app, "layer").value == LAYERS
    assert not app.warning


def test_the_words_come_as_a_file_that_no_spreadsheet_runs(
    opened: Opener, made: Made, downloads: dict[str, Callable[[], bytes]]
) -> None:
    opened(run=made.run_id, example=1, k=3)
    rows = records(downloads["Words as CSV"])
    assert [row["word"].lstrip("'") for row in rows] == TEXTS[1].split(" ")
    assert "'=1+1" in [row["word"] for row in rows]
    after = [float(row["attention_step_4_after"]) for row in rows]
    np.testing.assert_allclose(after, slow_shares(1, 4), atol=1e-5)
    assert {i for i, row in enumerate(rows) if row["in_top_3_after"] == "1"} == slow_top(slow_shares(1, 4), 3)


# A typed text


def keep_text(made: Made, text: TokenText, stamps: dict[int, int]) -> None:
    """Store what weights of these stamps make of a text, by step."""
    attention = np.stack([shares(step, text.length) for step in stamps])
    vectors, logits = np.zeros((len(stamps), 4), np.float32), np.ones((len(stamps), 2), np.float32)
    found = Inspected(text, tuple(stamps), tuple(stamps.values()), vectors, logits, attention)
    write(inspected_path(made.folder, *text.sides), found)


def keep_deletions(made: Made, found: Deletions) -> None:
    """Store the deletions of a single text at step 0."""
    write(deletions_path(made.folder, found.read.sides[0], None, 0), found)


def test_an_own_text_is_asked_for_and_stands_in_the_address(
    opened: Opener, made: Made, asked: list[dict[str, Any]]
) -> None:
    app = opened(run=made.run_id, source="own")
    app.text_area[0].set_value("my own <b>words</b>")
    button(app, "Analyse").click().run()
    assert not app.exception
    request = {"kind": "inspect", "run": made.run_id, "what": "sentence"}
    assert asked == [request | {"text": "my own <b>words</b>", "second": None}]
    assert address(app)["text"] == "my own <b>words</b>"


def test_an_empty_text_is_refused_in_a_sentence(opened: Opener, made: Made, asked: list[dict[str, Any]]) -> None:
    app = opened(run=made.run_id, source="own")
    app.text_area[0].set_value("   \n ")
    button(app, "Analyse").click().run()
    assert "is empty: type at least one character" in words(app)
    assert not asked


def test_what_is_known_of_an_own_text_comes_back_from_the_address(opened: Opener, made: Made) -> None:
    snapshot_path(made.folder, 2).write_bytes(b"")
    stamps = weight_stamps(made.store, made.store.run(made.run_id))
    assert list(stamps) == [0, 2]
    keep_text(made, read_as(HOSTILE, "and more"), stamps)
    app = opened(run=made.run_id, text=HOSTILE, second="and more")
    assert not drawn(app), "this task reads one text"
    keep_text(made, read_as(HOSTILE), stamps)
    app = opened(run=made.run_id, text=HOSTILE, before=4)
    assert control(app, "source").value == "own"
    assert "After (step 2)" in drawn(app)
    assert "Before (step 2)" in drawn(app), "of the steps that the run knows the nearest is taken"
    assert "&lt;img" in drawn(app)
    assert "labelled" not in words(app)
    assert not app.warning


def test_weights_that_came_since_can_be_looked_at_too(opened: Opener, made: Made, asked: list[dict[str, Any]]) -> None:
    keep_text(made, read_as("some text"), {0: 0})
    snapshot_path(made.folder, 2).write_bytes(b"")
    app = opened(run=made.run_id, text="some text")
    assert "After (step 0)" in drawn(app)
    button(app, "Analyse the text with these weights too").click().run()
    assert [request["text"] for request in asked] == ["some text"]


def test_a_tokenizer_that_tells_no_words_is_a_sentence(opened: Opener, made: Made) -> None:
    keep_text(made, TokenText(("some text",), (), 4), {0: 0})
    assert "does not report word positions" in words(opened(run=made.run_id, text="some text"))


def test_work_that_ended_badly_says_why(opened: Opener, made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    request = {"run": made.run_id, "what": "sentence", "text": "some text", "second": None}
    job = JobRecord("job", "inspect", "", request, Status.FAILED, message="There was <b>no</b> memory")
    monkeypatch.setattr(Jobs, "jobs", lambda _: [job])
    app = opened(run=made.run_id, text="some text")
    assert [warning.value.replace("\\", "") for warning in app.warning] == [job.message]
    assert any(b.label == "Analyse" for b in app.button)


def test_work_that_goes_on_can_be_cancelled(opened: Opener, made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    request = {"run": made.run_id, "what": "sentence", "text": "some text", "second": None}
    jobs = [JobRecord("job", "inspect", "Reading ‘some text’", request, Status.RUNNING, 1, 3, "step 4")]

    def cancel(_: Jobs, job_id: str) -> JobRecord:
        assert job_id == "job"
        jobs[0] = replace(jobs[0], status=Status.STOPPED, message="Cancelled.")
        return jobs[0]

    jobs[0] = replace(jobs[0], created_at=time.time())
    monkeypatch.setattr(Jobs, "jobs", lambda _: jobs)
    monkeypatch.setattr(Jobs, "job", lambda _, job_id: jobs[0])
    monkeypatch.setattr(Jobs, "cancel", cancel)
    app = opened(run=made.run_id, text="some text")
    [progress] = app.get("progress")
    assert progress.proto.value == 33
    assert re.fullmatch("Reading ‘some text’: step 4 · 1 of 3 · (under 1|[0-9]+) s", progress.proto.text)
    button(app, "Cancel").click().run()
    assert "Cancelled." in words(app)


# Contrasted tokens


def pieces_of(text: TokenText) -> TokenText:
    """Split each word into its tokens, one character for the first and the rest for the second."""
    words = []
    for word in text.words:
        ends = [word.end] if len(word.places) == 1 else [word.start + 1, word.end]
        starts = [word.start, *ends[:-1]]
        words += [Word(word.side, a, b, (p,)) for a, b, p in zip(starts, ends, word.places, strict=True)]
    return TokenText(text.sides, tuple(words), text.length)


def test_contrasted_tokens_are_framed_and_clusters_have_numbers_and_a_legend(
    opened: Opener, make: Callable[..., Made], asked: list[dict[str, Any]]
) -> None:
    term = {"loss": "supcon", "level": "token", "k": 4, "clusters": 2}
    made = make(objective={"terms": [{"loss": "cross_entropy"}, term], "combine": "additive"})
    button(opened(run=made.run_id, view="contrasted", example=2), "Mark the tokens").click().run()
    request = {"kind": "inspect", "run": made.run_id, "what": "tokens"}
    assert asked == [request | {"text": TEXTS[2], "second": None, "step": 0}]
    text = pieces_of(read_as(TEXTS[2]))
    chosen = np.zeros((3, text.length), np.int64)
    chosen[0, [2, 5, 6, 8]] = chosen[2, [2, 5, 6, 8]] = 1
    chosen[1, [2, 5, 6, 8]] = 1, 2, 2, 1
    terms = (TokenTerm("SCL", 1, 4, 0), TokenTerm("SCL", 2, 4, 2), TokenTerm("SCL 2", 2, 90, 60))
    choice = TokenChoice(text, terms, len(text.words), np.full(chosen.shape, 0.1, np.float32), chosen, 0)
    write(token_choice_path(made.folder, TEXTS[2], None, 0), choice)
    app = opened(run=made.run_id, view="contrasted", example=2)
    plain, grouped, few = (element.body for element in app.html if "token-text" in element.body)
    surfaces = {word.places[0]: text.surface(word) for word in text.words}
    for html, numbers in ((plain, {}), (grouped, {2: 1, 5: 2, 6: 2, 8: 1}), (few, {})):
        framed = re.findall(r'title="[^"]*in the top k[^>]*>(?:<sup[^>]*>(\d)</sup>)?([^<]*)</span>', html)
        assert framed == [(str(numbers.get(p, "")), surfaces[p]) for p in (2, 5, 6, 8)]
        listed = re.findall(r">(\d)</span>: (.*?)</p>", html)
        assert [(n, re.sub("<[^>]*>", "", names)) for n, names in listed] == (
            [("1", f"{surfaces[2]}, {surfaces[8]}"), ("2", f"{surfaces[5]}, {surfaces[6]}")] if numbers else []
        )
    count = len(text.words)
    assert (
        f"contrasts the 4 tokens with the highest [CLS] attention in block 1. This text has {count} tokens."
        in words(app)
    )
    assert "K-means groups them into 2 clusters" in words(app)
    assert f"This text has {count} tokens, so all are contrasted. These are too few for 60 clusters" in words(app)
    assert "SCL 2, block 2, step 0" in few


def test_only_a_run_that_contrasts_tokens_offers_them(opened: Opener, made: Made) -> None:
    app = opened(run=made.run_id, view="contrasted")
    assert "this page has no such section" in words(app)
    assert "Contrasted tokens" not in [o for group in app.get("button_group") for o in group.options]


# Deleting words


def test_deleting_is_offered_at_the_nearest_step_with_weights(
    opened: Opener, made: Made, asked: list[dict[str, Any]]
) -> None:
    snapshot_path(made.folder, 2).write_bytes(b"")
    app = opened(run=made.run_id, view="delete", example=2)
    assert (
        "**Step 2**, not 4: the model has to read the text again, and weights are stored only for steps 0, 2."
        in words(app)
    )
    button(app, "Delete each word in turn").click().run()
    request = {"kind": "inspect", "run": made.run_id, "what": "deletions"}
    assert asked == [request | {"text": TEXTS[2], "second": None, "step": 2}]
    assert "Step 2, with stored weights." in words(opened(run=made.run_id, view="delete", after=2))


def test_what_deleting_does_stands_beside_what_attention_says(
    opened: Opener, made: Made, downloads: dict[str, Callable[[], bytes]]
) -> None:
    text, rng = read_as(TEXTS[2]), np.random.default_rng(5)
    base, yes = np.array([0.3, 0.7], np.float32), rng.uniform(0.52, 0.9, size=8)
    yes[[1, 4]] = 0.2, 0.4
    deleted = np.stack([1 - yes, yes], axis=1).astype(np.float32)
    keep_deletions(made, Deletions(text, base, deleted, 0))
    app = opened(run=made.run_id, view="delete", example=2, k=3)
    said = words(app)
    assert "Predicted: **yes** 70.0%" in said
    assert f"any of these 2 words is deleted: **film** ({CLASSES[0]}), **heart** ({CLASSES[0]})" in said
    attention, change = slow_shares(2, 0), [abs(0.7 - float(p)) for p in yes]
    both = len(slow_top(attention, 4) & slow_top(change, 4))
    are = "is" if both == 1 else "are"
    assert f"{both or 'None'} of the 4 words with the most attention {are} among the 4 whose deletion" in said
    tau = kendalltau(attention, change).statistic
    assert f"Kendall τ = {tau:.2f}".replace("-", "−") in said
    assert "over 8 words" in said
    assert "https://arxiv.org/abs/1902.10186" in said
    assert "https://arxiv.org/abs/1908.04626" in said
    assert drawn(app).count("in the top k") == 3
    [table] = app.dataframe
    assert list(table.value["Rank by change"]) == list(range(1, 9))
    rows = {row["word"]: row for row in records(downloads["Deletions as CSV"])}
    assert float(rows["film"]["drop"]) == pytest.approx(0.5, abs=1e-5)
    assert float(rows["film"]["attention"]) == pytest.approx(attention[1], abs=1e-5)


def test_deletions_of_other_weights_do_not_count(opened: Opener, made: Made) -> None:
    text = read_as(TEXTS[0])
    even = np.full((8, 2), 0.5, np.float32)
    keep_deletions(made, Deletions(text, even[0], even, 1234))
    assert any(b.label == "Delete each word in turn" for b in opened(run=made.run_id, view="delete").button)


def test_a_text_whose_words_are_all_alike_says_nothing_of_agreement(opened: Opener, made: Made) -> None:
    even = np.full((8, 2), 0.5, np.float32)
    keep_deletions(made, Deletions(read_as(TEXTS[0]), even[0], even, 0))
    app = opened(run=made.run_id, view="delete")
    assert "too few distinct words to compare" in words(app)
    assert "Deleting any single word does not change this" in words(app)


# Statistics over the classes


def slow_counts(step: int, k: int) -> dict[str, list[int]]:
    """Count, for each word, the texts of each class in which it is selected."""
    counts: dict[str, list[int]] = {}
    for row in KEPT:
        surfaces = TEXTS[row].split(" ")
        for word in {surfaces[place] for place in slow_top(slow_shares(row, step), k)}:
            counts.setdefault(word, [0, 0])[LABELS[row]] += 1
    return counts


def test_counts_and_lifts_are_those_of_a_slow_loop(
    opened: Opener, made: Made, downloads: dict[str, Callable[[], bytes]]
) -> None:
    app = opened(run=made.run_id, view="classes", k=4, least=1)
    counts = slow_counts(4, 4)
    rows = {row["word"].lstrip("'"): row for row in records(downloads["Words as CSV"])}
    assert rows.keys() == counts.keys()
    sizes = [sum(LABELS[row] == c for row in KEPT) for c in (0, 1)]
    for word, of_class in counts.items():
        given = [int(rows[word][f"selected in class {c}"]) for c in (1, 2)]
        lifts = [(of_class[c] * 3 / sizes[c] + 1) / (sum(of_class) + 1) for c in (0, 1)]
        assert given == of_class
        assert [float(rows[word][f"lift in class {c}"]) for c in (1, 2)] == pytest.approx(lifts, abs=1e-4)
        assert int(rows[word]["occurs"]) == sum(word in TEXTS[row].split(" ") for row in KEPT)
    assert set(app.dataframe[0].value["Word"]) == counts.keys()
    assert "3 texts, layer 2 of 2, mean of 3 heads, k 4" in words(app)
    only_yes = opened(run=made.run_id, view="classes", k=4, least=1, **{"class": 1}).dataframe[0].value
    assert dict(zip(only_yes["Word"], only_yes["Selected"], strict=True)) == {
        word: of_class[1] for word, of_class in counts.items() if of_class[1]
    }


def test_what_entered_and_left_is_that_of_a_slow_loop(
    opened: Opener, made: Made, downloads: dict[str, Callable[[], bytes]]
) -> None:
    app = opened(run=made.run_id, view="classes", k=4, least=1, before=2)
    old, new = ({word: sum(c) for word, c in slow_counts(step, 4).items()} for step in (2, 4))
    expected = {word: new.get(word, 0) - old.get(word, 0) for word in old | new}
    rows = records(downloads["Changes as CSV"])
    assert {row["word"].lstrip("'"): int(row["change"]) for row in rows} == expected
    table = app.dataframe[1].value
    changes = {word: change for word, change in expected.items() if change}
    assert changes
    assert dict(zip(table["Word"], table["Change"], strict=True)) == changes


def test_rare_words_are_left_out(opened: Opener, made: Made) -> None:
    app = opened(run=made.run_id, view="classes", k=8)
    assert control(app, "least").value == 3
    common = {word for word, c in slow_counts(4, 8).items() if sum(c) == 3}
    assert set(app.dataframe[0].value["Word"]) == common
    assert "3 of them have at most k words" in words(app)
    assert "The same words are selected equally often at both steps" in words(app)
    control(app, "least").set_value(1).run()
    assert len(app.dataframe[0].value) > len(common)
    assert address(app)["least"] == "1"
    assert "No word is selected" in words(opened(run=made.run_id, view="classes", k=1))


@pytest.mark.parametrize(("weight", "reported"), [(1.0, True), (0.9, False)])
def test_predictions_of_an_untrained_classifier_are_labelled_as_such(
    make: Callable[..., Made], opened: Opener, weight: float, reported: bool
) -> None:
    run = make(objective=ObjectiveConfig().with_knob("lambda", weight).model_dump(mode="json"))
    run.store.attempt(run.run_id, 1).end(Status.STOPPED)
    assert ("At step 0 the classifier had learned nothing" in words(opened(run=run.run_id))) is reported
