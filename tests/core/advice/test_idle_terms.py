"""Terms without effect: without positives, a term shows 0 and one message explains why. Also queues that lag behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.advice.idle_terms import STEPS_IN_A_ROW, slow_queues, starving_sentences
from core.advice.prepare import prepare
from core.config.objective import ObjectiveConfig
from core.events import Event, Notice
from core.tasks.batches import make_sampler
from core.training.loop import train
from tests.cases import each
from tests.conftest import FILLERS, WORDS, write_csv
from tests.core.training.made import Draft, steps_of

SCL = {"loss": "supcon", "weight": 0.5}
CE = {"loss": "cross_entropy", "weight": 0.5}


@pytest.fixture
def many_classes(tmp_path: Path) -> Path:
    """Write a CSV with 24 classes of six texts."""
    rows = [
        (f"{FILLERS[label % len(FILLERS)]} {word} film number {label}", f"c{label:02}")
        for label in range(24)
        for word in WORDS["good"]
    ]
    return write_csv(tmp_path / "many.csv", rows)


def run_of(draft: Draft, path: Path, sampler: str, *terms: dict[str, Any]) -> list[Event]:
    task = {"path": str(path), "sampler": sampler}
    return list(train(*prepare(draft(task=task, objective={"terms": [*terms]}), gpu=False)))


def notices(events: list[Event]) -> list[str]:
    return [str(event.message) for event in events if isinstance(event, Notice)]


def test_equal_shares_of_more_classes_than_rows_starve_and_class_balanced_batches_do_not(
    draft: Draft, many_classes: Path
) -> None:
    starved = run_of(draft, many_classes, "balanced", SCL, CE)
    for step in steps_of(starved):
        assert step.values["active_anchors.supcon"] == step.values["loss.supcon"] == 0.0
    (message,) = notices(starved)
    assert "SCL is 0" in message
    assert "class-balanced batches, or a batch larger than 8" in message
    fed = run_of(draft, many_classes, "class_balanced", SCL, CE)
    for step in steps_of(fed):
        assert step.values["active_anchors.supcon"] == 1.0
        assert step.values["loss.supcon"] > 0
    assert notices(fed) == []


def test_the_share_is_that_of_the_batch(draft: Draft, many_classes: Path) -> None:
    """In random batches, an anchor is active if another row of its batch has its label."""
    task = {"path": str(many_classes), "sampler": "random"}
    config, data = prepare(draft(task=task, objective={"terms": [SCL, CE]}), gpu=False)
    sampler = make_sampler("random", data.train.labels, 8, config.seed)
    shares = []
    for step in range(1, 9):
        labels = [data.train.labels[row] for row in sampler.rows(step)]
        shares.append(sum(labels.count(label) > 1 for label in labels) / 8)
    assert [s.values["active_anchors.supcon"] for s in steps_of(list(train(config, data)))] == shares
    assert len(set(shares)) > 1


def test_two_views_and_a_queue_feed_every_anchor(draft: Draft, many_classes: Path) -> None:
    views = run_of(draft, many_classes, "balanced", SCL | {"views": [{"view": "dropout"}]}, CE)
    assert [step.values["active_anchors.supcon"] for step in steps_of(views)] == [1.0] * 8
    queue = run_of(draft, many_classes, "balanced", SCL | {"queue": 64}, CE)
    shares = [step.values["active_anchors.supcon"] for step in steps_of(queue)]
    assert shares[:3] == [0.0] * 3, "equal shares come back to a class after 24 / 8 batches"
    assert shares[3:] == [1.0] * 5
    assert notices(views) == notices(queue) == []


def test_two_texts_of_a_class_alone_have_nothing_to_be_told_from(draft: Draft) -> None:
    events = list(train(*prepare(draft(objective={"terms": [SCL, CE]}, batch_size=2), gpu=False)))
    for step in steps_of(events):
        assert step.values["loss.supcon"] == pytest.approx(0.0, abs=1e-6)
        assert step.values["active_anchors.supcon"] == 0.0
    assert len(notices(events)) == 1


def test_a_term_of_weight_0_or_without_labels_starves_nobody(draft: Draft, many_classes: Path) -> None:
    unweighted = run_of(draft, many_classes, "balanced", SCL | {"weight": 0.0}, CE | {"weight": 1.0})
    assert notices(unweighted) == []
    simcse = {"loss": "simcse", "weight": 0.5, "views": [{"view": "dropout"}]}
    unlabelled = steps_of(run_of(draft, many_classes, "random", simcse, CE))
    assert all("active_anchors.simcse" not in step.values for step in unlabelled)


HUNGRY, FED = {"active_anchors.supcon": 0.0}, {"active_anchors.supcon": 0.1}


def test_only_steps_in_a_row_count() -> None:
    def starving(*recent: dict[str, float], weight: float = 0.9) -> list[str]:
        objective = ObjectiveConfig().with_knob("lambda", weight)
        return [str(sentence).split()[0] for sentence in starving_sentences(recent, objective, 12, "random")]

    starved = [HUNGRY] * STEPS_IN_A_ROW
    assert starving(*starved) == starving(FED, *starved) == ["SCL"]
    assert starving(*starved[1:]) == starving(FED, *starved[1:]) == []
    assert starving(*starved, weight=0.0) == []
    assert starving(*[{}] * STEPS_IN_A_ROW) == starving() == []


def test_the_remedy_follows_from_the_batches() -> None:
    recent, mix = [HUNGRY] * STEPS_IN_A_ROW, ObjectiveConfig()
    (random,), (balanced,) = (starving_sentences(recent, mix, 12, name) for name in ("random", "class_balanced"))
    assert str(random).endswith("Start a run with class-balanced batches, or a batch larger than 12.")
    assert str(balanced).endswith("Start a run with more rows of each class, or a batch larger than 12.")


@each(("momentum", "steps", "slow"), [(0.999, 120, True), (0.999, 2302, False), (0.98, 120, False)])
def test_a_queue_that_stays_where_it_began_is_said_so(draft: Draft, momentum: float, steps: int, slow: bool) -> None:
    def found(**more: Any) -> list[str]:
        terms = [CE, SCL | {"queue": 16, "momentum": momentum} | more]
        config, _ = prepare(draft(objective={"terms": terms, "combine": "additive"}, steps=steps), gpu=False)
        return [str(message) for message in slow_queues(config.phases[0])]

    assert [("88.7% of the momentum encoder" in message) for message in found()] == [True] * slow
    assert found(weight=0.0) == found(queue=0) == []


def test_the_run_says_it_too(draft: Draft) -> None:
    for momentum, said in ((0.999, 1), ("auto", 0)):
        terms = [CE, SCL | {"queue": 16, "momentum": momentum}]
        events = list(train(*prepare(draft(objective={"terms": terms}, steps=3), gpu=False)))
        assert sum("The queue of SCL lags behind" in message for message in notices(events)) == said
