"""The first step at which the classifier learns, and the source of a frame's scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.advice.score_source import (
    classifier_learned,
    classifier_learns_from,
    classifier_note,
    outcome_sentence,
    predictions_note,
    score_note,
    scored_evaluations,
    scorers,
)
from core.config import RunConfig
from core.config.objective import ObjectiveConfig
from core.events import Evaluation
from tests.cases import each
from tests.core.config.made import CE, DROPOUT, SCL, Turn, objective, turned


def one_phase(*terms: dict[str, Any], turns: Sequence[Turn] = ()) -> RunConfig:
    return turned(*turns, phases=[{"objective": {"terms": terms, "combine": "additive"}, "steps": 10}])


def mixed(weight: float, turns: Sequence[Turn] = ()) -> RunConfig:
    mix = ObjectiveConfig().with_knob("lambda", weight).model_dump(mode="json")
    return turned(*turns, phases=[{"objective": mix, "steps": 10}])


TWO = turned(phases=[{"objective": {"terms": [SCL]}, "steps": 4}, {"objective": {"terms": [CE]}, "steps": 6}])


@each(
    ("config", "first"),
    [
        (mixed(0.9), 1),
        (mixed(0.0), 1),
        (mixed(1.0), None),
        (mixed(1.0, ((6, "lambda", 0.5),)), 6),
        (mixed(1.0, ((6, "lambda", 0.5), (6, "lambda", 1.0))), None),
        (mixed(1.0, ((6, "temperature", 0.5), (8, "learning_rate", 2.0))), None),
        (mixed(0.5, ((3, "lambda", 1.0),)), 1),
        (mixed(0.5, ((1, "lambda", 1.0), (4, "lambda", 0.9))), 4),
        (mixed(1.0, ((11, "lambda", 0.5),)), None),
        (one_phase(SCL), None),
        (one_phase(SCL, CE | {"weight": 0.0}), None),
        (one_phase(SCL, CE | {"weight": 0.0}, turns=((7, "cross_entropy.weight", 0.2),)), 7),
        (one_phase({"loss": "rdrop", "views": [{"view": "head_dropout"}]}), 1),
        (TWO, 5),
    ],
)
def test_the_first_step_that_trains_the_classifier(config: RunConfig, first: int | None) -> None:
    assert classifier_learns_from(config) == first
    learned = [classifier_learned(config, step) for step in range(11)]
    assert learned == [first is not None and max(1, step) >= first for step in range(11)]


@each("loss", ["supcon", "simcse"])
def test_contrast_of_logits_moves_the_classifier_and_teaches_it_no_classes(loss: str) -> None:
    found = objective({"loss": loss, "level": "logits", "views": DROPOUT})
    assert (found.classifies, found.trains_classifier) == (True, False)


def score(step: int, accuracy: float = 0.5, split: str = "validation", rows: int | None = None) -> Evaluation:
    values = {"accuracy": accuracy, "accuracy_low": accuracy - 0.05, "accuracy_high": accuracy + 0.05}
    return Evaluation(step, split, values | ({} if rows is None else {"train_rows": float(rows)}))


def frame(step: int, rows: int | None = None) -> Evaluation:
    return score(step, rows=rows)


def test_an_evaluation_says_itself_when_a_probe_was_scored() -> None:
    evaluations = [frame(0, 200), frame(4, 200), frame(5), Evaluation(10, "test", {"accuracy": 0.9})]
    assert scorers(TWO, evaluations) == ["linear probe", "linear probe", "classifier", "classifier"]
    assert scored_evaluations(TWO, evaluations) == evaluations


def test_scores_of_a_random_classifier_mean_nothing() -> None:
    """Older runs have such frames, without a probe."""
    baseline = Evaluation(0, "baseline", {"accuracy": 0.8, "train_rows": 500.0})
    old = [frame(0), baseline, frame(4), frame(5), Evaluation(10, "test", {"accuracy": 0.5})]
    assert scorers(mixed(1.0), old) == [None, "linear probe", None, None, None]
    assert scored_evaluations(mixed(1.0), old) == [baseline]
    assert scored_evaluations(TWO, old) == [baseline, *old[3:]]
    assert scored_evaluations(mixed(0.5), old) == old


def test_the_note_before_launch_names_the_source_of_scores() -> None:
    assert classifier_note(mixed(0.9)) is None
    note = str(classifier_note(mixed(1.0)))
    assert note.startswith("At λ = 1 the classifier is not trained. Scores come from a linear probe")
    assert note.endswith("Set λ below 1 to train the classifier.")
    assert not str(classifier_note(mixed(1.0), over=True)).endswith("train the classifier.")
    assert "With contrastive terms alone" in str(classifier_note(one_phase(SCL)))
    assert "is trained from step 5" in str(classifier_note(TWO))
    assert "is trained from step 6" in str(classifier_note(mixed(1.0, ((6, "lambda", 0.5),))))


def test_whose_predictions_the_frames_hold() -> None:
    assert predictions_note(mixed(0.9), [frame(0), frame(10)]) is None
    assert "linear probe, fitted on 200" in str(predictions_note(mixed(1.0), [frame(0, 200), frame(10, 200)]))
    assert "Before step 5" in str(predictions_note(TWO, [frame(0, 90), frame(4, 90), frame(10)]))
    assert "mean nothing" in str(predictions_note(mixed(1.0), [frame(0), frame(10)]))
    assert "Before step 5" in str(predictions_note(TWO, [frame(0), frame(10)]))


@each(
    ("last", "said"),
    [
        (0.9, "90.0% on validation, above the 80.0% of a linear probe of the encoder before training; 95% interval"),
        (0.82, "82.0% on validation, above the 80.0% of a linear probe"),
        (0.8, "80.0% on validation, level with the 80.0% of a linear probe"),
        (0.6, "60.0% on validation, below the 80.0% of a linear probe"),
    ],
)
def test_a_run_is_compared_with_the_probe_to_beat(last: float, said: str) -> None:
    found = outcome_sentence(mixed(0.9), [score(0, 0.5), score(0, 0.8, "baseline", 400), score(10, last)])
    assert found is not None
    assert found.startswith(said)
    assert ("; 95% interval 85.0% to" in found) == (last == 0.9)
    assert ("The score’s 95% interval, 77.0% to 87.0%, includes the probe’s 80.0%" in found) == (last == 0.82)
    assert found.endswith("More steps or a higher learning rate may help.") == (last == 0.6)


def test_a_probe_is_compared_with_that_of_step_0() -> None:
    given = [score(0, 0.5, rows=80), score(0, 0.8, "baseline", 400), score(10, 0.7, rows=80)]
    assert "above the 50.0% of the linear probe at step 0" in str(outcome_sentence(mixed(1.0), given))


def test_a_rank_correlation_is_compared_with_that_of_step_0() -> None:
    frames = [
        Evaluation(step, "validation", score(step, 0.2, rows=9).values | {"spearman": value})
        for step, value in ((0, 0.5), (8, -0.25))
    ]
    found = outcome_sentence(one_phase({"loss": "cosent"}), frames)
    assert found == "Spearman's ρ on validation: −0.250, and 0.500 before the first step."
    assert score_note(frames[0]) == "Spearman 0.500"


def test_without_a_probe_or_a_frame_nothing_is_compared() -> None:
    assert outcome_sentence(mixed(0.9), [score(10, 0.7)]) is None
    assert outcome_sentence(mixed(0.9), [score(0, 0.8, "baseline", 400)]) is None
    assert outcome_sentence(mixed(1.0), [score(10, 0.7, rows=80)]) is None
