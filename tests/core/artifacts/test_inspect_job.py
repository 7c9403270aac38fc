"""Results of the inspection job, against the encoder on one text at a time and the run's frames."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from core.artifacts import inspect_job
from core.artifacts.cache import read
from core.artifacts.changed_texts import CHANGED_TEXTS, Change, ChangedTexts, changes
from core.artifacts.inspect_job import distances_job, job
from core.artifacts.maps import layer_numbers, layer_vectors
from core.artifacts.measures import TrainingMeasures, read_similarity
from core.artifacts.sentence import Deletions, EndTexts, TokenChoice, deletions_path, read_inspected, token_choice_path
from core.artifacts.weights import load_at
from core.config import TaskConfig
from core.encoders.model import Encoder, Tokenizer, load_encoder
from core.encoders.taps import Taps
from core.errors import ConfigError, RunNotFoundError, StoreError, TaskError
from core.models import source
from core.store import RunRecord, Store, TaskLibrary
from core.store.budget import WEIGHTS_LOCK, keep_within
from core.tasks import TASKS, load_task
from core.tasks.rows import Rows
from core.views.back_translation import MemoryTranslationCache, RoundTrip
from core.weight_files import snapshot_path
from core.workers import Cancelled
from core.workers.run_rows import TaskSource
from tests.cases import each
from tests.core.artifacts.made import MORE, recorded, silent
from tests.core.training.made import Draft
from tests.core.views.test_back_translation import make_marian
from tests.core.views.test_token_clusters import slow_clusters

MODELS = ("en-de", "de-en")

TEXT = "the film was lovely and its music felt warm"


@pytest.fixture
def store(filled: Store) -> Store:
    return filled


def asked(store: Store, run: RunRecord, what: str, **more: Any) -> dict[str, Any]:
    return job({"run": run.id, "what": what} | more, store.folder, silent)


def alone(model: tuple[Encoder, Tokenizer], texts: Sequence[Any]) -> Tensor:
    """Return the pooled vectors [N, H] of texts that the encoder reads one by one."""
    with torch.inference_mode():
        return torch.stack([model[0].eval().pooled(model[1]([text]))[0] for text in texts])


def cosine(first: Tensor, second: Tensor) -> float:
    return float(first @ second / first.norm() / second.norm())


def no_encoding(*_: Any, **__: Any) -> None:
    raise AssertionError("it was computed again")


# A text


def test_a_probe_text_is_seen_as_the_frames_saw_it(store: Store, run: RunRecord) -> None:
    folder, tokens = store.run_folder(run.id), store.tokens(run.id)
    ends = np.cumsum([text.length for text in tokens.texts])
    for row in (0, 7, run.probe.held_out + 2):
        answer = asked(store, run, "sentence", text=run.probe.texts[row], second=None)
        found = read_inspected(folder, run.probe.texts[row])
        assert answer["steps"] == [0, 2, 4, 8] == list(found.steps)
        assert (folder / answer["file"]).exists()
        assert found.read == tokens.texts[row]
        for number, step in enumerate(found.steps):
            # A single text has other matrix shapes than a batch, so the last bits may differ.
            np.testing.assert_allclose(found.vectors[number], store.embeddings(run.id, step)[row], atol=3e-6)
            np.testing.assert_allclose(found.logits[number], store.logits(run.id, step)[row], atol=3e-6)
            rows = store.attention(run.id, step)
            kept = rows[:, :, ends[row] - found.read.length : ends[row]]
            np.testing.assert_allclose(found.attention[number].astype(float), kept.astype(float), atol=1e-3)


def test_only_steps_with_new_weights_are_computed(
    store: Store, run: RunRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = store.run_folder(run.id)
    asked(store, run, "sentence", text=TEXT, second=None)
    before = read_inspected(folder, TEXT)
    snapshot_path(folder, 2).write_bytes(snapshot_path(folder, 4).read_bytes())
    loaded: list[int] = []
    real = load_at
    monkeypatch.setattr(inspect_job, "load_at", lambda s, r, step: loaded.append(step) or real(s, r, step))
    asked(store, run, "sentence", text=TEXT, second=None)
    after = read_inspected(folder, TEXT)
    assert loaded == [0, 2], "step 0 for its tokenizer, and the step that changed"
    np.testing.assert_array_equal(after.vectors[1], before.vectors[2])
    np.testing.assert_array_equal(after.vectors[[0, 2, 3]], before.vectors[[0, 2, 3]])


@each(
    "text",
    [
        "<img src=x onerror=alert(1)> & \"quotes\" 'too'",
        "../../../etc/passwd\0",
        "шум 👩‍👩‍👧 عربي 电影",
        "a " * 900,
        ".",
    ],
)
def test_any_text_comes_back_as_it_was(store: Store, run: RunRecord, text: str) -> None:
    asked(store, run, "sentence", text=text, second=None)
    found = read_inspected(store.run_folder(run.id), text)
    assert found.read.sides == (text,)
    assert np.isfinite(found.vectors).all()


@each(
    ("number", "text", "second", "message"),
    [
        ("1", "", None, "The text '' is empty: type at least one character"),
        ("1", " \n\t", None, "is empty"),
        ("1", 7, None, "is empty"),
        ("1", "x" * 20_001, None, "The text has 20,001 characters: give at most 20,000"),
        ("1", "half \ud83d", None, "has an incomplete character"),
        ("1", "one", "two", "This task needs a single text"),
        ("2", "a lovely film", None, "The second text is missing: this task needs pairs"),
        ("2", "a lovely film", " ", "The second text ' ' is empty"),
    ],
)
def test_a_text_that_cannot_be_read_is_refused(
    store: Store, number: str, text: object, second: object, message: str
) -> None:
    run = store.run(store.find(number))
    with pytest.raises(TaskError, match=message):
        asked(store, run, "sentence", text=text, second=second)
    assert not (store.run_folder(run.id) / "inspected").exists()


def test_a_pair_has_words_of_both_its_texts(store: Store, pair_run: RunRecord) -> None:
    asked(store, pair_run, "sentence", text="a lovely film", second="a dull film")
    folder = store.run_folder(pair_run.id)
    found = read_inspected(folder, "a lovely film", "a dull film")
    assert [found.read.surface(word) for word in found.read.words] == ["a", "lovely", "film", "a", "dull", "film"]
    assert read_inspected(folder, "a lovely film") is None
    assert read_inspected(folder, "a dull film", "a lovely film") is None


# The layers


@pytest.mark.parametrize(("pooling", "numbers"), [("cls", (1, 2)), ("mean", (0, 1, 2))])
def test_layers_are_what_the_encoder_says_of_each_text_alone(
    store: Store, run: RunRecord, monkeypatch: pytest.MonkeyPatch, pooling: str, numbers: tuple[int, ...]
) -> None:
    """The first token has the same embedding in every text, so that layer is left out."""
    folder, loaded = store.run_folder(run.id), load_at(store, run, 4)
    encoder, tokenizer = loaded
    encoder.pooling = pooling
    monkeypatch.setattr(inspect_job, "load_at", lambda *_: loaded)
    assert layer_numbers(folder, 4) == ()
    assert asked(store, run, "layers", step=4) == {"file": "layers/0000004.safetensors", "steps": [4]}
    assert layer_numbers(folder, 4) == numbers
    assert layer_vectors(folder, 4, 3) is None
    for layer in numbers:
        vectors = layer_vectors(folder, 4, layer)
        assert vectors.shape == (len(run.probe.ids), 16)
        with torch.inference_mode():
            alone = [encoder.encode(tokenizer([text]), Taps((layer,))).pooled[layer][0] for text in run.probe.texts]
        np.testing.assert_allclose(vectors, np.stack(alone), atol=3e-6)


def test_the_last_layer_is_the_frame_bit_by_bit(store: Store, run: RunRecord, pair_run: RunRecord) -> None:
    for step in (2, 4, 8):
        asked(store, run, "layers", step=step)
        last = layer_vectors(store.run_folder(run.id), step, 2)
        np.testing.assert_array_equal(last, store.embeddings(run.id, step))
    asked(store, pair_run, "layers", step=0)
    last = layer_vectors(store.run_folder(pair_run.id), 0, 2)
    np.testing.assert_allclose(last, store.embeddings(pair_run.id, 0), atol=3e-6)


def test_layers_are_those_of_the_paraphrases_on_the_map(elsewhere: Store, draft: Draft) -> None:
    task = {"id": "film_reviews", "path": None, "train_size": 24, "validation_size": 8, "paraphrases": "weak"}
    run = recorded(elsewhere, draft(task=task, more=MORE))
    asked(elsewhere, run, "layers", step=run.steps)
    last = layer_vectors(elsewhere.run_folder(run.id), run.steps, 2)
    np.testing.assert_allclose(last, elsewhere.embeddings(run.id, run.steps), atol=3e-6)


# Deletions


def test_deletions_are_what_the_model_says_of_each_shorter_text(store: Store, run: RunRecord) -> None:
    assert asked(store, run, "deletions", text=TEXT, second=None, step=8)["steps"] == [8]
    found = read(Deletions, deletions_path(store.run_folder(run.id), TEXT, None, 8))
    model, words = load_at(store, run, 8), TEXT.split()
    shorter = [" ".join(words[:number] + words[number + 1 :]) for number in range(len(words))]
    with torch.inference_mode():
        shares = model[0].logits(alone(model, [TEXT, *shorter])).double().softmax(-1).numpy()
    np.testing.assert_allclose(found.base, shares[0], atol=1e-6)
    np.testing.assert_allclose(found.deleted, shares[1:], atol=1e-6)


def test_deletions_of_a_pair_take_words_from_both_texts(store: Store, pair_run: RunRecord) -> None:
    asked(store, pair_run, "deletions", text="warm film", second="dull", step=0)
    found = read(Deletions, deletions_path(store.run_folder(pair_run.id), "warm film", "dull", 0))
    model, shorter = load_at(store, pair_run, 0), [("film", "dull"), ("warm", "dull"), ("warm film", "")]
    with torch.inference_mode():
        shares = model[0].logits(alone(model, shorter)).double().softmax(-1).numpy()
    np.testing.assert_allclose(found.deleted, shares, atol=1e-6)


def test_the_words_behind_the_cut_are_not_deleted(store: Store, run: RunRecord) -> None:
    text = "lovely " * 100
    asked(store, run, "deletions", text=text, second=None, step=0)
    found = read(Deletions, deletions_path(store.run_folder(run.id), text, None, 0))
    assert len(found.read.words) == len(found.deleted) == 30
    np.testing.assert_allclose(found.deleted, np.tile(found.base, (30, 1)), atol=1e-6)


# The job


def test_contrasted_tokens_are_those_of_loops_over_the_stored_attention(store: Store, draft: Draft) -> None:
    """One term takes single tokens of two blocks, the other clusters of more tokens than some texts have."""
    term = {"loss": "supcon", "level": "token", "layers": [1, 2], "k": 3}
    grouped = term | {"layers": [2], "k": 7, "clusters": 3}
    objective = {"terms": [{"loss": "cross_entropy"}, term, grouped], "combine": "additive"}
    run = recorded(store, draft(steps=2, objective=objective, more=MORE))
    encoder, tokenizer = load_at(store, run, 2)
    texts = ["a film", TEXT, "warm"]
    for text in texts:
        asked(store, run, "sentence", text=text, second=None)
        asked(store, run, "tokens", text=text, second=None, step=2)
        seen = read_inspected(store.run_folder(run.id), text)
        found = read(TokenChoice, token_choice_path(store.run_folder(run.id), text, None, 2))
        stored = seen.attention[seen.steps.index(2)].astype(np.float64)  # [L, heads, T]
        candidates = range(1, seen.read.length - 1)  # between [CLS] and [SEP]
        assert found.candidates == len(candidates)
        assert [word.places for word in found.read.words] == [(place,) for place in candidates]
        assert found.terms == (("SCL", 1, 3, 0), ("SCL", 2, 3, 0), ("SCL 2", 2, 7, 3))
        (tokens,) = tokenizer([text])
        with torch.inference_mode():
            hidden = encoder.encode([tokens], Taps(tokens=((2, len(tokens.ids)),), attention=(2,)))
        for place, (_name, layer, k, clusters) in enumerate(found.terms):
            means = [sum(head[token] for head in stored[layer - 1]) / len(stored[layer - 1]) for token in candidates]
            top = [candidates[i] for i in sorted(range(len(means)), key=lambda i: -means[i])[:k]]
            assert set(np.flatnonzero(found.chosen[place])) == set(top)
            np.testing.assert_allclose(found.attention[place, 1:-1], means, atol=1e-3)
            labels = [0] * len(top)
            if 0 < clusters <= len(top):
                labels = slow_clusters(hidden.tokens[2].vectors[0, : len(top)].numpy(), clusters, 10)
            assert found.chosen[place, top].tolist() == [1 + label for label in labels]
    assert len(set(found.chosen[0])) == 2


@pytest.mark.parametrize("what", ["sentence", "layers", "deletions", "similarity"])
def test_a_result_is_computed_once_for_the_same_weights(
    store: Store, run: RunRecord, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    request = {"text": TEXT, "second": None, "step": 2, "task": scored_task(store)}
    first = asked(store, run, what, **request)
    for name in ("encode", "_all_layers"):
        monkeypatch.setattr(inspect_job, name, no_encoding)
    assert asked(store, run, what, **request) == first
    snapshot_path(store.run_folder(run.id), 2).write_bytes(snapshot_path(store.run_folder(run.id), 4).read_bytes())
    with pytest.raises(AssertionError, match="computed again"):
        asked(store, run, what, **request)


@each(
    ("request_", "error", "words"),
    [
        ({"what": "everything"}, ConfigError, "what = .* choose sentence, layers, deletions"),
        ({"what": ["sentence"]}, ConfigError, "what = .* choose"),
        ({"what": "layers", "step": 6}, StoreError, "step 6"),
        ({"what": "layers", "step": "4"}, ConfigError, "step"),
        ({"what": "deletions", "step": 6}, StoreError, "step 6"),
        ({"what": "deletions", "step": None}, ConfigError, "step"),
        ({"what": "sentence", "run": "../elsewhere"}, RunNotFoundError, "elsewhere"),
    ],
)
def test_another_question_is_refused(
    store: Store, run: RunRecord, request_: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        job({"run": run.id, "text": TEXT, "second": None} | request_, store.folder, silent)


@pytest.mark.parametrize("what", ["sentence", "layers", "deletions"])
def test_progress_counts_and_a_cancelled_job_leaves_nothing(store: Store, run: RunRecord, what: str) -> None:
    def cancel(_done: int, _total: int | None, _message: str) -> None:
        raise Cancelled

    request = {"run": run.id, "what": what, "text": TEXT, "second": None, "step": 4}
    lock = store.run_folder(run.id) / WEIGHTS_LOCK  # empty; the first reader of weights creates it
    files = {lock, *store.run_folder(run.id).rglob("*")}
    with pytest.raises(Cancelled):
        job(request, store.folder, cancel)
    assert set(store.run_folder(run.id).rglob("*")) == files
    reported: list[tuple[int, int | None]] = []
    job(request, store.folder, lambda done, total, message: reported.append((done, total)))
    assert reported == sorted(reported)
    assert reported
    assert all(total is not None and done < total for done, total in reported)


# Similarity


def scored_task(store: Store) -> str:
    texts = ("the film was lovely", "its music felt warm", "a dull story", "the scene was grim")
    seconds = ("a lovely film", "the film was harsh", "a boring story", "one clever scene")
    rows = Rows(texts, ("5", "1.5", "4", "0"), seconds, None, "similarity")
    return TaskLibrary(store.folder).add(rows, name="Alike?", source="made here").id


def test_similarity_is_the_rank_correlation_of_cosines_with_scores(store: Store, run: RunRecord) -> None:
    task = scored_task(store)
    assert asked(store, run, "similarity", task=task)["steps"] == [0, 2, 4, 8]
    found = read_similarity(store.run_folder(run.id), task)
    assert found.pairs == 4
    rows = TaskLibrary(store.folder).rows(task)
    for step in (0, 2, 4, 8):
        sides = (alone(load_at(store, run, step), side) for side in (rows.texts, rows.seconds))
        cosines = torch.cosine_similarity(*sides).numpy()
        ranks = [np.argsort(np.argsort(values)) for values in (cosines, [5, 1.5, 4, 0])]
        apart = float(((ranks[0] - ranks[1]) ** 2).sum())
        assert found.values[step] == pytest.approx(1 - 6 * apart / (4 * 15))


def test_a_task_without_scores_or_none_at_all_is_refused(store: Store, run: RunRecord) -> None:
    classes = TaskLibrary(store.folder).add(Rows(("a", "b"), ("x", "y")), name="Classes", source="made here").id
    with pytest.raises(TaskError, match="'Classes' has no similarity scores"):
        asked(store, run, "similarity", task=classes)
    with pytest.raises(TaskError):
        asked(store, run, "similarity", task="../secret")


# Test texts


def test_test_texts_are_those_of_the_split_as_the_last_weights_see_them(
    store: Store, run: RunRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = asked(store, run, "test")
    found = read(EndTexts, store.run_folder(run.id) / answer["file"])
    test = TaskSource(store.folder).rows_of(run.config.task, run.config.seed).test
    assert (found.texts, found.labels, found.rows) == (test.display_texts, test.labels, len(test))
    np.testing.assert_array_equal(found.logits, store.predictions(run.id).logits)
    np.testing.assert_allclose(found.vectors, alone(load_at(store, run, run.steps), test.inputs), atol=3e-6)
    # Of many texts, some are taken from end to end.
    monkeypatch.setattr(inspect_job, "END_TEXTS_MAX", 3)
    (store.run_folder(run.id) / answer["file"]).unlink()
    found = read(EndTexts, store.run_folder(run.id) / asked(store, run, "test")["file"])
    assert len(found.texts) == len(found.vectors) == len(found.logits) == 3
    assert found.rows == len(test)
    assert (found.texts[0], found.texts[-1]) == (test.display_texts[0], test.display_texts[-1])


def test_training_rows_are_measured_on_the_vectors_of_each_row_alone(
    store: Store, run: RunRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The nearest neighbours and pairs are those of loops over some of the rows, from end to end."""
    monkeypatch.setattr(inspect_job, "TRAINING_ROWS_MAX", 15)
    found = read(TrainingMeasures, store.run_folder(run.id) / asked(store, run, "training")["file"])
    train = TaskSource(store.folder).rows_of(run.config.task, run.config.seed).train
    assert (found.taken, found.rows) == (15, len(train))
    assert len(train) > 15
    places = [round(i * (len(train) - 1) / 14) for i in range(15)]
    vectors = alone(load_at(store, run, run.steps), [train.inputs[i] for i in places]).double().numpy()
    units = [vector / np.linalg.norm(vector) for vector in vectors]
    labels = [train.labels[i] for i in places]
    alike, apart = [], []
    for i in range(15):
        for j in range(i):
            square = float(((units[i] - units[j]) ** 2).sum())
            apart.append(np.exp(-2 * square))
            alike += [square] * (labels[i] == labels[j])
    assert found.values["alignment"] == pytest.approx(np.mean(alike), rel=1e-4)
    assert found.values["uniformity"] == pytest.approx(np.log(np.mean(apart)), rel=1e-4)
    assert {"linear_svm", "knn1", "ari", "nmi"} <= found.values.keys()


# Changed texts


def test_changed_texts_are_compared_with_the_texts_as_the_encoder_reads_each_alone(
    store: Store, run: RunRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspect_job, "TEXTS_MAX", 9)
    asked(store, run, "changes")
    found = read(ChangedTexts, store.run_folder(run.id) / CHANGED_TEXTS)
    test = TaskSource(store.folder).rows_of(run.config.task, run.config.seed).test
    rows = np.linspace(0, len(test) - 1, 9).round().astype(int).tolist()
    assert found.labels.tolist() == [test.labels[row] for row in rows]
    kinds = set()
    for place, change in enumerate(found.changes):
        if not change.is_of_words:
            assert found.changed[place].all()
            continue
        for column, row in enumerate(rows):
            text = test.inputs[row]
            other = change.apply(text, row)
            kinds.add((change.name, other != text))
            assert found.changed[place, column] == (other != text)
            for number, step in enumerate((0, run.steps)):
                model = load_at(store, run, step)
                pooled = alone(model, (text, other))
                said = model[0].logits(pooled).argmax(1).tolist()
                np.testing.assert_allclose(found.cosines[number, place, column], cosine(*pooled), atol=1e-5)
            assert [found.plain[column], found.predicted[place, column]] == said
    assert {("typos", True), ("delete", True)} <= kinds


def test_texts_of_a_task_are_compared_with_their_changes_in_the_encoder_before_training(
    store: Store, run: RunRecord
) -> None:
    pairs = [["a warm film", "the film was warm"], ["one", "a slow and clumsy plot"], ["a film", "a film"]]
    request = {"encoder": run.config.encoder.id, "texts": pairs}
    found = {
        (name, rate): (share, mean)
        for name, rate, share, mean in distances_job(request, store.folder, silent)["changes"]
    }
    texts = [(first, second) for first, second in pairs]
    every = changes([side for pair in pairs for side in pair])
    assert set(found) == {tuple(change) for change in every}
    model = load_encoder(run.config.encoder.id, classes=("0",), max_length=64)
    for change in every:
        share, mean = found[tuple(change)]
        if not change.is_of_words:
            assert (share, mean < 1.0) == (1.0, True)
            continue
        both = [(text, change.apply(text, row)) for row, text in enumerate(texts)]
        cosines = [cosine(*alone(model, pair)) for pair in both if pair[0] != pair[1]]
        assert share == len(cosines) / len(texts)
        assert mean is None if not cosines else mean == pytest.approx(np.mean(cosines), abs=1e-5)


def test_changed_texts_include_paraphrases_if_the_test_texts_have_them(
    store: Store, run: RunRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    films, path = load_task(TaskConfig(id="film_reviews"), 0), store.run_folder(run.id) / CHANGED_TEXTS
    with (TASKS["film_reviews"].folder / "paraphrases.csv").open(encoding="utf-8", newline="") as file:
        of = {row["text"]: row for row in csv.DictReader(file)}
    monkeypatch.setattr(inspect_job, "TEXTS_MAX", 5)
    monkeypatch.setattr(TaskSource, "rows_of", lambda *_: films)
    path.unlink(missing_ok=True)
    asked(store, run, "changes")
    found = read(ChangedTexts, path)
    path.unlink()
    texts = [films.test.texts[row] for row in np.linspace(0, len(films.test) - 1, 5).round().astype(int)]
    for strength in ("weak", "strong"):
        place = found.names.index(f"{strength}_paraphrase")
        assert found.changed[place].all()
        for column, text in enumerate(texts):
            expected = cosine(*alone(load_at(store, run, run.steps), (text, of[text][strength])))
            np.testing.assert_allclose(found.cosines[1, place, column], expected, atol=1e-5)
    assert not {"weak_paraphrase", "strong_paraphrase"} & {change.name for change in changes(["No such text."])}


def test_views_of_the_input_differ_from_the_text_and_leave_the_shared_encoder_as_it_was(
    store: Store, run: RunRecord
) -> None:
    encoder, tokenizer = load_at(store, run, run.steps)
    texts = TaskSource(store.folder).rows_of(run.config.task, run.config.seed).test.inputs[:9]
    state, plain, drawn = torch.get_rng_state(), alone((encoder, tokenizer), texts), {}
    for change in changes([]):
        if not change.is_of_words:
            drawn[change.name], _ = inspect_job._pooled_changed(encoder, tokenizer, texts, change, "float32")
            assert (drawn[change.name] - plain).abs().amax(1).min() > 1e-4, change.name
            again, _ = inspect_job._pooled_changed(encoder, tokenizer, texts, change, "float32")
            assert torch.equal(again, drawn[change.name])
    views = {"dropout", "token_shuffle", "token_cutoff", "feature_cutoff", "embedding_dropout", "adversarial"}
    assert set(drawn) == views
    assert not any(module.training for module in encoder.modules())
    assert torch.equal(torch.get_rng_state(), state)


def test_a_classifier_that_never_learned_predicts_nothing(
    store: Store, run: RunRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspect_job, "classifier_learned", lambda config, step: False)
    asked(store, run, "changes")
    found = read(ChangedTexts, store.run_folder(run.id) / CHANGED_TEXTS)
    assert (found.plain.size, found.predicted.size, found.right.size) == (0, 0, 0)
    assert found.cosines.shape[2] == len(found.labels)


def test_an_adversarial_step_moves_texts_further_than_one_of_random_signs(
    store: Store, run: RunRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load_at(store, run, run.steps)
    texts = TaskSource(store.folder).rows_of(run.config.task, run.config.seed).test.inputs[:9]
    plain, arrange, cosines = alone(model, texts), inspect_job.arrange_gradients, []
    for gradients in (arrange, lambda *given: torch.randn_like(arrange(*given))):
        monkeypatch.setattr(inspect_job, "arrange_gradients", gradients)
        moved, _ = inspect_job._pooled_changed(*model, texts, Change("adversarial", None), "float32")
        cosines.append(float(torch.cosine_similarity(moved, plain).mean()))
    assert cosines[0] < cosines[1] < 1.0


def test_back_translation_is_among_the_changes_once_its_models_are_here(
    store: Store, run: RunRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each side of the pairs is translated alone. The cache belongs to the store."""
    assert Change("back_translation", None) not in changes([])
    here = {f"Helsinki-NLP/opus-mt-{name}": make_marian(tmp_path / name, seed) for seed, name in enumerate(MODELS)}
    monkeypatch.setattr(source, "_PLACED", here)
    change = Change("back_translation", None)
    assert change in changes([])
    pairs = [["a lovely film", "the film was dull"], ["a slow plot", "what a film"], ["", ""]]
    request = {"encoder": run.config.encoder.id, "texts": pairs}
    found = {name: (share, mean) for name, _rate, share, mean in distances_job(request, tmp_path, silent)["changes"]}
    trip = RoundTrip(*here, temperature=0.7, seed=0, cache=MemoryTranslationCache())
    others = list(zip(*(trip.translate(side) for side in zip(*pairs, strict=True)), strict=True))
    model = load_encoder(run.config.encoder.id, classes=("0",), max_length=64)
    first, second = (alone(model, [tuple(pair) for pair in side]) for side in (pairs, others))
    cosines = torch.cosine_similarity(first, second)[[tuple(a) != b for a, b in zip(pairs, others, strict=True)]]
    assert found["back_translation"] == (len(cosines) / 3, pytest.approx(float(cosines.mean()), abs=1e-5))
    assert len(cosines) == 2
    assert (tmp_path / "cache" / "translations.db").exists()


# Weights removed by the disk budget


def test_the_budget_leaves_weights_alone_while_a_job_reads_them(
    store: Store, run: RunRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    encode, left = inspect_job.encode, []

    def encode_under_pressure(*arguments: Any, **more: Any) -> Any:
        with closing(Store(store.folder)) as other:
            keep_within(other, 1e-9)
        left.append(store.run(run.id).weights_dropped_at)
        return encode(*arguments, **more)

    monkeypatch.setattr(inspect_job, "encode", encode_under_pressure)
    answer = asked(store, run, "sentence", text=TEXT, second=None)
    assert answer["steps"] == [0, 2, 4, 8]
    assert left == [None] * 4
    keep_within(store, 1e-9)
    assert store.run(run.id).weights_dropped_at is not None


def test_what_is_known_of_dropped_weights_is_kept_and_more_is_refused_in_a_sentence(
    store: Store, run: RunRecord, pair_run: RunRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked(store, run, "sentence", text=TEXT, second=None)
    asked(store, run, "test")
    keep_within(store, 1e-9)
    run = store.run(run.id)
    monkeypatch.setattr(inspect_job, "encode", no_encoding)
    assert asked(store, run, "sentence", text=TEXT, second=None)["steps"] == [0]
    known = read_inspected(store.run_folder(run.id), TEXT)
    assert known.steps == (0, 2, 4, 8)
    assert asked(store, run, "test")["steps"] == [run.steps]
    for one, what in ((run, "layers"), (run, "deletions"), (store.run(pair_run.id), "test")):
        with pytest.raises(StoreError, match=r"Its weights were dropped on .* raise SCL_DISK_GB and run the same"):
            asked(store, one, what, text=TEXT, second=None, step=8)
