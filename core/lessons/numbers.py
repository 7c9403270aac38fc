"""Numbers that a lesson quotes from runs and experiments. They are read from the records, never written by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from core.artifacts.frame_loss import batch_rows, shown_contrast
from core.artifacts.replay import open_replay
from core.artifacts.shipped import SHIPPED
from core.artifacts.weights import probe_of
from core.config.fields import Section
from core.experiments.archive import open_archive
from core.experiments.design import parse_design
from core.experiments.results import CellResult, results
from core.experiments.shipped_experiments import path_of
from core.lab.choices import Setting, Stage
from core.messages import ENGLISH, _, in_language
from core.quantities import percent, signed
from core.representation.attention import punctuation, split_attention, top_words, word_attention
from core.representation.metrics import frame_measures
from core.representation.word_statistics import selection_changes
from core.store import ExperimentTable, Store

Form = Literal["number", "percent", "points", "count", "words"]
At = Literal["first", "last", "highest", "lowest"] | Annotated[int, Field(ge=0)]


class Number(Section):
    """One number, or one word, from a run, from the loss lab or from a cell of an experiment.

    The tests read every number of every lesson, so wrong names need no messages here.

    Attributes:
        run: a replay of the project.
        experiment: an experiment of the project.
        step: a measure of a step.
        score: a score of `split`.
        vectors: a measure of the validation texts at a frame.
        forces: a measure of the default batch of Explore's force view, at `temperature` if given; `at_mean` and
            `in_at_mean` are the losses with the mean of an anchor's positives in the place of each of them.
        lab: settings of the loss lab, on its default points before the first step; `quantity` names the number.
        word: the attention to a word of `example` in the last block, as in the default view of Tokens.
        entered: a case-folded word. The number is the change, from the first to the last frame, in the number of texts
            with this word among their top `k` by attention, as Tokens counts it over the classes.
        at: the step: the first or last with a value, the one with the highest or lowest value, or its number.
        cell: levels of the cell, by axis.
        of: value of the cell, see `of_cell`.
        measure, split: score of the cells.
        form, decimals: format of the number.
    """

    run: str | None = None
    step: str | None = None
    score: str | None = None
    split: Literal["validation", "test", "baseline"] = "validation"
    vectors: str | None = None
    forces: Literal["loss", "loss_in", "at_mean", "in_at_mean", "effective_negatives", "top_share"] | None = None
    temperature: Annotated[float, Field(gt=0)] | None = None
    lab: Setting | None = None
    quantity: Literal["loss", "gradient_norm"] = "loss"
    word: str | None = None
    example: Annotated[int, Field(ge=0)] = 0
    entered: str | None = None
    k: Annotated[int, Field(ge=1)] = 3
    at: At = "last"
    experiment: str | None = None
    cell: dict[str, str] = Field(default_factory=dict)
    of: str = "mean"
    measure: str = "accuracy"
    form: Form = "number"
    decimals: Annotated[int, Field(ge=0, le=6)] = 2

    def format_value(self, value: float | str | None) -> str:
        """Format a value in the user's language."""
        if value is None:
            return "–"
        if isinstance(value, str):
            return _(value)
        match self.form:
            case "percent":
                return percent(value)
            case "points":
                return f"{'+' if value > 0 else ''}{signed(100 * value, 1)}"
            case "count":
                return f"{round(value):,}"
        return signed(value, self.decimals)

    @property
    def scale(self) -> float:
        """Factor from a value to the number a visitor types: 100 for percentages and points, otherwise 1."""
        return 100.0 if self.form in ("percent", "points") else 1.0


def run_id_of(store: Store, replay: str) -> str:
    """Open a replay of the project and return its run id. Raises: StoreError."""
    return open_replay(store, SHIPPED[replay].path)


def experiment_id_of(store: Store, name: str) -> str:
    """Open an experiment of the project and return its id. Raises: StoreError."""
    return open_archive(store, path_of(name))


def value_of(store: Store, number: Number) -> float | str | None:
    """Read a number from the records of its run or experiment; None if there is no such value.

    A word is in English, like the answers that a lesson compares it with. Raises: StoreError.
    """
    if number.experiment is not None:
        return _of_experiment(store, number, number.experiment)
    if number.lab is not None:
        return _of_lab(number.lab, number.quantity)
    run_id = run_id_of(store, str(number.run))
    if number.step is not None:
        steps = [(one.step, one.values[number.step]) for one in store.steps(run_id) if number.step in one.values]
        return _at(steps, number.at)
    if number.score is not None:
        scored = [one for one in store.evaluations(run_id) if one.split == number.split and number.score in one.values]
        return _at([(one.step, one.values[number.score]) for one in scored], number.at)
    frames = store.frame_steps(run_id)
    if number.entered is not None:
        return _of_selection(store, run_id, (frames[0], frames[-1]), number)
    step = {"first": frames[0], "last": frames[-1]}.get(str(number.at), number.at)
    if number.word is not None:
        return _of_word(store, run_id, int(step), number)
    if number.vectors is None:
        return _of_forces(store, run_id, int(step), number)
    probe = probe_of(store.run(run_id))
    # Measure the vectors of the validation texts, as Explore does.
    vectors = store.embeddings(run_id, int(step))[: probe.held_out]
    return frame_measures(vectors, probe.labels[: probe.held_out], [number.vectors])[number.vectors]


def _at(values: Sequence[tuple[int, float]], at: At) -> float | None:
    """Select the value at a step from ordered pairs of step and value."""
    if not values:
        return None
    measured = [value for _step, value in values]
    named = {"first": measured[0], "last": measured[-1], "highest": max(measured), "lowest": min(measured)}
    return named[at] if isinstance(at, str) else dict(values).get(at)


def _of_forces(store: Store, run_id: str, step: int, number: Number) -> float | None:
    """Measure the forces in the default batch of the force view; the mean over its anchors."""
    import torch

    from core.losses.forces import losses_at_mean_positive, push_spread

    run = store.run(run_id)
    probe = probe_of(run)
    shown = shown_contrast(run.effective, step, None, None)
    rows = batch_rows(len(probe.ids), shown.batch_size)
    features = torch.from_numpy(np.array(store.embeddings(run_id, step)[rows]))
    labels = torch.tensor([probe.labels[row] for row in rows])
    temperature = number.temperature or shown.law.temperature
    spread = push_spread(features, labels, temperature=temperature, law=shown.law)
    at_mean = losses_at_mean_positive(features, labels, temperature=temperature, law=shown.law)
    value = {
        "loss": spread.losses[0],
        "loss_in": spread.losses[-1],
        "at_mean": at_mean[0],
        "in_at_mean": at_mean[-1],
        "effective_negatives": spread.effective_negatives,
        "top_share": spread.top_share,
    }[str(number.forces)]
    return value if math.isfinite(value) else None


def _of_lab(setting: Setting, quantity: str) -> float:
    from core.lab.dynamics import first_vectors, play

    (moment,) = play(Stage(), setting, first_vectors(Stage(), setting), 0).moments
    return float(getattr(moment, quantity))


def _of_word(store: Store, run_id: str, step: int, number: Number) -> float | None:
    """Return the attention of [CLS] to a word of an example; None if the word does not occur."""
    probe, tokens = probe_of(store.run(run_id)), store.tokens(run_id)
    place = [probe.ids[row] for row in tokens.rows].index(number.example)
    text, weights = tokens.texts[place], _word_weights(store, run_id, step)[place]
    named = [
        float(weight) for word, weight in zip(text.words, weights, strict=True) if text.surface(word) == number.word
    ]
    return sum(named) if named else None


def _of_selection(store: Store, run_id: str, steps: tuple[int, int], number: Number) -> float:
    words = [[text.surface(word) for word in text.words] for text in store.tokens(run_id).texts]
    chosen = []
    for step in steps:
        of_texts = zip(_word_weights(store, run_id, step), words, strict=True)
        chosen.append([top_words(of_text, number.k, punctuation(read)) for of_text, read in of_texts])
    changes = {one.word: one.change for one in selection_changes(words, *chosen, at_least=1)}
    return float(changes.get(str(number.entered), 0))


def _word_weights(store: Store, run_id: str, step: int) -> list[NDArray[np.floating]]:
    """Return the attention of [CLS] to the words of each text in the last block, averaged over heads."""
    texts, attention = store.tokens(run_id).texts, store.attention(run_id, step)
    assert attention is not None
    rows = zip(texts, split_attention(attention, [text.length for text in texts]), strict=True)
    return [word_attention(row, [word.places for word in text.words], layer=len(row)).words for text, row in rows]


@in_language(ENGLISH)
def _of_experiment(store: Store, number: Number, name: str) -> float | str | None:
    experiment = ExperimentTable(store.folder).experiment(experiment_id_of(store, name))
    design = parse_design(experiment.design)
    found = results(store, experiment.id, design, measure=number.measure, split=number.split)
    labels = tuple(number.cell[axis.name] for axis in design.axes if axis.name in number.cell)
    levels = {tuple(level.label for level in design.levels_of(cell.cell)): cell for cell in found.cells}
    return of_cell(levels[labels], number.of)


def of_cell(cell: CellResult, of: str) -> float | str | None:
    """Return the value of a cell or of its comparison that `of` names; None if the cell does not have it."""
    if of in ("mean", "std", "seeds"):
        value: Any = getattr(cell, of)
        return None if value is None else float(value)
    comparison = cell.comparison
    if comparison is None:
        return None
    known: Mapping[str, float | str | None] = {
        "difference": comparison.difference.mean,
        "low": comparison.difference.low,
        "high": comparison.difference.high,
        "p": comparison.corrected_p,
        "least_p": comparison.difference.least_p,
        "verdict": comparison.verdict,
        "seeds_needed": comparison.seeds_needed,
    }
    return known[of]
