"""Numbers of runs, each against the record that it comes from."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
import torch

from core.artifacts.frame_loss import batch_rows
from core.config.fields import build
from core.experiments.design import parse_design
from core.lab.choices import Stage
from core.lab.layouts import start_of
from core.lessons.numbers import Number, experiment_id_of, run_id_of, value_of
from core.losses import supcon_loss
from core.messages import in_language
from core.store import ExperimentTable, Store
from tests.cases import each


def of(store: Store, **fields: object) -> float | str | None:
    return value_of(store, build(Number, fields))


def normalised(store: Store, run: str, step: int, rows: list[int] | None = None) -> tuple[np.ndarray, list[int]]:
    """Return the normalised vectors of a frame and their labels: of some rows, or of the validation texts."""
    run_id = run_id_of(store, run)
    probe = store.run(run_id).probe
    rows = list(range(probe.held_out)) if rows is None else rows
    z = store.embeddings(run_id, step)[rows].astype(np.float64)
    return z / np.linalg.norm(z, axis=1, keepdims=True), [probe.labels[row] for row in rows]


def test_a_step_is_read_where_it_is_asked_for(store: Store) -> None:
    losses = [step.values["loss"] for step in store.steps(run_id_of(store, "ce"))]
    found = [of(store, run="ce", step="loss", at=at) for at in ("first", "last", "highest", "lowest", 7)]
    assert found == [losses[0], losses[-1], max(losses), min(losses), losses[6]]
    assert of(store, run="ce", step="loss.supcon") is None


def test_a_score_is_that_of_its_split(store: Store) -> None:
    scored = store.evaluations(run_id_of(store, "ce"))
    last = [one for one in scored if one.split == "validation"][-1]
    assert of(store, run="ce", score="accuracy") == last.values["accuracy"]
    assert of(store, run="ce", score="accuracy", split="test") == next(
        one.values["accuracy"] for one in scored if one.split == "test"
    )


def test_alignment_is_the_mean_over_pairs_of_one_class(store: Store) -> None:
    z, labels = normalised(store, "ce", 120)
    pairs = [((z[i] - z[j]) ** 2).sum() for i in range(len(z)) for j in range(i) if labels[i] == labels[j]]
    assert of(store, run="ce", vectors="alignment") == pytest.approx(np.mean(pairs))


def first_batch(store: Store, step: int) -> tuple[np.ndarray, list[int]]:
    """Return the normalised vectors and the labels of the batch that Forces draws first."""
    probe = store.run(run_id_of(store, "ce-scl")).probe
    return normalised(store, "ce-scl", step, batch_rows(len(probe.ids), 16))


@pytest.mark.parametrize(("at", "tau"), [("first", 0.3), ("last", 0.3), ("last", 0.05)])
def test_the_loss_of_the_force_view_is_that_of_its_batch(store: Store, at: str, tau: float) -> None:
    """Compute it over the batch that Forces draws first."""
    last_step = store.run(run_id_of(store, "ce-scl")).last_step
    z, labels = first_batch(store, 0 if at == "first" else last_step)
    for name, variant in (("loss", "out"), ("loss_in", "in")):
        found = of(store, run="ce-scl", forces=name, at=at, temperature=tau)
        expected = supcon_loss(torch.tensor(z), torch.tensor(labels), temperature=tau, variant=variant)
        assert found == pytest.approx(expected.item(), rel=1e-4)


def test_at_the_mean_positive_both_variants_are_the_loss_of_that_mean(store: Store) -> None:
    """Give every positive of an anchor the same vector, their mean: the two averages are then of equal numbers."""
    z, labels = first_batch(store, 0)
    losses = []
    for i in range(len(z)):
        positives = [j for j in range(len(z)) if j != i and labels[j] == labels[i]]
        pull = math.exp(float(z[i] @ z[positives].mean(0)) / 0.3)
        push = sum(math.exp(float(z[i] @ z[j]) / 0.3) for j in range(len(z)) if labels[j] != labels[i])
        losses.append(-math.log(pull / (len(positives) * pull + push)))
    for name in ("at_mean", "in_at_mean"):
        assert of(store, run="ce-scl", forces=name, at="first") == pytest.approx(np.mean(losses), rel=1e-6)


def test_the_loss_of_the_lab_is_that_of_its_first_points(store: Store) -> None:
    """Compute L_out, and the gradient norm of the notes' formula as that of L_out of two views."""
    start = start_of(Stage())
    labels = torch.tensor(start.labels)
    one_view = supcon_loss(torch.tensor(start.vectors[:, 0]), labels, temperature=0.1)
    assert of(store, lab={"loss": "out"}) == pytest.approx(one_view.item())
    free = torch.tensor(start.vectors).requires_grad_()
    (gradient,) = torch.autograd.grad(supcon_loss(free, labels, temperature=0.1), free)
    for alpha in (0.1, 0.9):
        found = of(store, lab={"loss": "dscl-formula", "extra": alpha}, quantity="gradient_norm")
        assert found == pytest.approx(float(gradient.norm()))


def test_attention_to_a_word_is_that_of_its_tokens_in_the_last_block(store: Store) -> None:
    run_id = run_id_of(store, "ce-scl")
    probe, tokens = store.run(run_id).probe, store.tokens(run_id)
    place = [probe.ids[row] for row in tokens.rows].index(8)
    begin, text = sum(one.length for one in tokens.texts[:place]), tokens.texts[place]
    for at, step in (("first", 0), ("last", store.frame_steps(run_id)[-1])):
        attention = store.attention(run_id, step)
        of_cls = attention[-1, :, begin : begin + text.length].astype(float).mean(0)
        for word in ("boat", "apart", "movie"):
            spots = [spot for one in text.words if text.surface(one) == word for spot in one.places]
            assert spots
            found = of(store, run="ce-scl", example=8, word=word, at=at)
            assert found == pytest.approx(sum(of_cls[spot] for spot in spots), rel=1e-3)
    assert of(store, run="ce-scl", example=8, word="ship") is None


def test_words_enter_and_leave_what_attention_selects(store: Store) -> None:
    """Count by hand the three words with most attention in each text, at the first and the last frame."""
    run_id = run_id_of(store, "ce-scl")
    texts = store.tokens(run_id).texts
    frames = store.frame_steps(run_id)
    changes = Counter[str]()
    for step, sign in ((frames[0], -1), (frames[-1], 1)):
        attention = store.attention(run_id, step)
        begin = 0
        for text in texts:
            of_cls = attention[-1, :, begin : begin + text.length].astype(float).mean(0)
            begin += text.length
            by_word = {
                place: sum(of_cls[token] for token in word.places)
                for place, word in enumerate(text.words)
                if any(sign.isalnum() for sign in text.surface(word))
            }
            best = sorted(by_word, key=lambda place: -by_word[place])[:3]
            for word in {text.surface(text.words[place]).casefold() for place in best}:
                changes[word] += sign
    assert changes["movie"] < -5
    for word in ("movie", "it", "bad", "t"):
        assert of(store, run="ce-scl", entered=word, k=3) == changes[word]
    assert of(store, run="ce-scl", entered="zebra") == 0


def test_a_cell_is_the_mean_of_its_runs(store: Store) -> None:
    experiment_id = experiment_id_of(store, "few-shot")
    table = ExperimentTable(store.folder)
    design = parse_design(table.experiment(experiment_id).design)

    def scores(objective: str) -> list[float]:
        names = {cell.number: [level.label for level in design.levels_of(cell)] for cell in design.cells}
        of_cell = [run for run in table.runs(experiment_id) if names[run.cell] == ["20", objective]]
        scored = (one for run in of_cell for one in store.evaluations(str(run.run_id)) if one.split == "test")
        return [one.values["accuracy"] for one in scored]

    asked = {"experiment": "few-shot", "split": "test", "cell": {"Training rows": "20", "Objective": "CE + SCL"}}
    assert of(store, **asked) == pytest.approx(np.mean(scores("CE + SCL")))
    difference = np.mean(scores("CE + SCL")) - np.mean(scores("CE"))
    assert of(store, **asked, of="difference") == pytest.approx(difference, abs=0.0026)  # logits are in half precision
    for code in ("en", "zh"):  # checks compare it with the answers in the lesson's file
        with in_language(code):
            assert of(store, **asked, of="verdict") == "no difference shown"


@each(
    ("form", "value", "text"),
    [
        ("percent", 0.8889, "88.9%"),
        ("points", 0.0134, "+1.3"),
        ("points", -0.0134, "−1.3"),
        ("count", 1234.4, "1,234"),
        ("number", -1.005, "−1.01"),
        ("words", "higher", "higher"),
    ],
)
def test_numbers_are_written_for_people(form: str, value: float | str, text: str) -> None:
    assert build(Number, {"run": "ce", "step": "loss", "form": form}).format_value(value) == text
