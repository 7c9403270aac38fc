"""Preparing a draft for its start: defaults are filled in, and invalid drafts are refused before a run exists."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from core.advice.defaults import DEFAULT_STEPS
from core.advice.prepare import PROBE_ON_CPU, prepare
from core.config import RunConfig
from core.config.plan import default_frame_steps
from core.config.presets import PRESETS
from core.errors import ConfigError, EncoderError, TaskError
from core.tasks import load_task
from tests.cases import each
from tests.conftest import made_rows, write_csv
from tests.core.config.made import CE, DROPOUT, SCL, views
from tests.core.training.made import Draft, nli_csv, scored_csv

CLASSIFIER: dict[str, Any] = {"objective": {"terms": [CE]}}
SUPERVISED: dict[str, Any] = {"objective": {"terms": [{"loss": "simcse_supervised"}]}}
NO_TRIPLETS = (
    "objective = 'simcse_supervised' cannot be used: small.csv has no triplets. It needs pairs (columns text, text_b, "
    "label) with the labels entailment and contradiction for the same premise, and enough training rows of both."
)


def prepared(draft: RunConfig, *, gpu: bool = False) -> RunConfig:
    return prepare(draft, gpu=gpu)[0]


def test_every_default_is_filled_in(draft: Draft) -> None:
    config, data = prepare(draft(steps=None), gpu=False)
    assert config.steps == DEFAULT_STEPS
    assert config.phases[0].epochs is None
    assert config.task.content_hash == data.content_hash
    assert config.task.validation_size == len(data.validation) == 28
    assert config.probe.size == 28
    assert config.probe.frame_steps == default_frame_steps(DEFAULT_STEPS)


def test_what_was_given_stays(draft: Draft) -> None:
    more = {
        "name": "mine",
        "seed": 4,
        "probe": {"size": 10, "frame_steps": [2, 99, 5]},
        "knob_turns": [{"step": 2, "name": "lambda", "value": 0.5}],
    }
    rates = {"learning_rate": 1e-3, "classifier_learning_rate": 2e-3}
    given = draft(task={"validation_size": 20, "train_size": 30}, more=more, steps=8, optimiser=rates)
    config, data = prepare(given, gpu=False)
    assert (config.name, config.seed, config.knob_turns) == (given.name, given.seed, given.knob_turns)
    assert (len(data.train), len(data.validation)) == (30, 20)
    assert config.probe.size == 10
    assert config.probe.frame_steps == (0, 2, 5, 8)
    assert config.phases[0] == given.phases[0]


@each(
    "given",
    [
        {},
        {"task": {"train_size": 20}},
        {"task": {"validation_size": 20}},
        {"task": {"sampler": "class_balanced"}},
        {"steps": None, "epochs": 1.5},
        {"more": {"probe": {"size": 5}}},
        {"more": {"probe": {"frame_steps": [3]}}},
    ],
)
@each("gpu", [False, True])
def test_preparing_twice_changes_nothing(draft: Draft, given: dict[str, Any], gpu: bool) -> None:
    config, data = prepare(draft(**given), gpu=gpu)
    for other in (gpu, not gpu):
        assert prepare(config, gpu=other) == (config, data)


def test_a_rare_class_in_a_large_validation_split_can_be_loaded_again(draft: Draft, tmp_path: Path) -> None:
    rows = [*made_rows(120), *((f"a rare text {i}", "rare") for i in range(3))]
    test = write_csv(tmp_path / "test.csv", [("good", "good")])
    path = write_csv(tmp_path / "rows.csv", rows)
    config, data = prepare(draft(task={"path": str(path), "test_path": str(test), "validation_size": 110}), gpu=False)
    assert load_task(config.task, config.seed) == data
    assert prepared(config) == config


@each(("epochs", "steps"), [(1.0, 11), (0.5, 6), (2.0, 22), (0.001, 1)])
def test_epochs_become_steps(draft: Draft, epochs: float, steps: int) -> None:
    config, data = prepare(draft(steps=None, epochs=epochs, batch_size=6), gpu=False)
    assert len(data.train) // 6 == 11
    assert config.steps == steps


def test_the_probe_set_has_two_texts_of_every_class(draft: Draft, tmp_path: Path) -> None:
    classes, rows = 77, 20
    texts = [(f"text {i} of {label}", f"class {label}") for label in range(classes) for i in range(rows)]
    path = write_csv(tmp_path / "many.csv", texts)
    task = {"id": "file", "path": str(path)}
    config, data = prepare(draft(task=task), gpu=False)
    assert config.probe.size == len(data.validation) == 2 * classes
    assert set(Counter(data.validation.labels).values()) == {2}


def test_the_validation_split_is_no_larger_than_the_probe_set(draft: Draft, tmp_path: Path) -> None:
    path = write_csv(tmp_path / "many.csv", made_rows(1500))
    for device, gpu, expected in (("auto", False, PROBE_ON_CPU), ("auto", True, 240), ("cpu", True, PROBE_ON_CPU)):
        config, data = prepare(draft(task={"path": str(path)}, more={"device": device}), gpu=gpu)
        assert config.probe.size == len(data.validation) == expected


@each("asked", [20, 50, 100])
def test_a_probe_of_a_task_whose_premises_stay_together_may_be_some_rows_smaller(draft: Draft, asked: int) -> None:
    config, data = prepare(draft(task={"id": "nli", "path": None}, more={"probe": {"size": asked}}), gpu=False)
    there = len(data.validation)
    assert asked - 3 < there < asked
    assert config.probe.size == config.task.validation_size == there
    assert f"{there} validation texts instead of {asked}" in str(data.notes[-1])
    again, same = prepare(config, gpu=False)
    assert (again, same) == (config, data)
    with pytest.raises(ConfigError, match=r"probe\.size = 500 cannot be used: the validation split has"):
        prepare(draft(task={"id": "nli", "path": None}, more={"probe": {"size": 500}}), gpu=False)


def test_a_path_that_is_not_full_is_refused(draft: Draft, tiny_encoder: Path, small_csv: Path) -> None:
    with pytest.raises(TaskError, match="is not a full path"):
        prepared(draft(task={"path": os.path.relpath(small_csv)}))
    with pytest.raises(TaskError, match="below a home folder that does not exist"):
        prepared(draft(task={"path": "~no_such_person/rows.csv"}))
    with pytest.raises(EncoderError, match="give its full path"):
        prepared(draft(more={"encoder": {"id": os.path.relpath(tiny_encoder), "max_length": 32}}))


def test_texts_longer_than_the_encoder_reads_are_refused(draft: Draft, tiny_encoder: Path) -> None:
    longest, longer = (draft(more={"encoder": {"id": str(tiny_encoder), "max_length": most}}) for most in (64, 65))
    assert prepared(longest).encoder.max_length == 64
    with pytest.raises(ConfigError, match=r"encoder.max_length = 65 cannot be used: .* reads at most 64 tokens"):
        prepared(longer)


def test_more_vectors_than_are_stored_are_refused(draft: Draft, monkeypatch: pytest.MonkeyPatch) -> None:
    frames = list(range(20))
    monkeypatch.setattr("core.advice.prepare.MAX_VECTORS_STORED", 37 * 21)
    more = {"probe": {"frame_steps": frames}}
    assert len(prepared(draft(steps=30, more=more)).probe.frame_steps or ()) == 21
    with pytest.raises(ConfigError, match="22 frames of 37 points"):
        prepare(draft(steps=30, more={"probe": {"frame_steps": [*frames, 20]}}), gpu=False)


def test_some_training_rows_stand_on_the_map_by_default(draft: Draft) -> None:
    probe = prepared(draft()).probe
    assert (probe.size, probe.train_size) == (28, 9)
    assert prepared(draft(more={"probe": {"train_size": 0}})).probe.train_size == 0


def test_snapshots_fall_on_frames_between_the_first_and_the_last(draft: Draft) -> None:
    config = prepared(draft(steps=40, more={"probe": {"frame_steps": list(range(0, 40, 4))}}))
    assert config.probe.frame_steps == (0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40)
    assert config.checkpoint.snapshot_steps == (8, 16, 24, 32)
    given = {"checkpoint": {"snapshot_steps": [0, 5, 8, 40, 100]}, "probe": {"frame_steps": [4, 8]}}
    assert prepared(draft(steps=40, more=given)).checkpoint.snapshot_steps == (8,)


def test_snapshots_are_as_many_as_fit(draft: Draft, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = {"trainable": {"part": "last_blocks", "blocks": 1}}
    monkeypatch.setattr("core.advice.prepare.SNAPSHOT_BYTES_MAX", 2 * 4 * (4 * 16 * 16 + 2 * 16 * 32))
    assert len(prepared(draft(steps=40, **blocks)).checkpoint.snapshot_steps or ()) == 2
    assert prepared(draft(steps=40)).checkpoint.snapshot_steps == ()


def test_cross_entropy_alone_needs_no_positives(draft: Draft) -> None:
    off = {"objective": {"terms": [CE, SCL | {"weight": 0.0}]}}
    for given in (CLASSIFIER, off):
        assert prepared(draft(batch_size=1, **given)).phases[0].batch_size == 1
    assert prepared(draft(task={"train_size": 2}, batch_size=2, **CLASSIFIER)).task.train_size == 2


def contrast(**fields: Any) -> dict[str, Any]:
    return {"objective": {"terms": [SCL | fields]}}


def two_phases(draft: Draft, *phases: dict[str, Any]) -> RunConfig:
    return draft(more={"phases": [{"steps": 4, "batch_size": 8} | phase for phase in phases]})


class TestPhases:
    def test_each_phase_gets_its_own_steps(self, draft: Draft) -> None:
        made = prepared(two_phases(draft, contrast() | {"steps": None}, CLASSIFIER | {"steps": None, "epochs": 1.0}))
        assert [phase.steps for phase in made.phases] == [DEFAULT_STEPS, 8]
        assert made.probe.frame_steps == default_frame_steps(DEFAULT_STEPS + 8)

    @each("name", PRESETS)
    def test_every_preset_can_start_and_is_prepared_once(self, name: str, draft: Draft, tmp_path: Path) -> None:
        task = {"path": str(nli_csv(tmp_path / "nli.csv"))} if name == "simcse-supervised" else {}
        task = {"id": "film_reviews", "path": None} if name == "cert-paraphrases" else task
        if name in ("cosent", "cosine-mse"):
            task = {"path": str(scored_csv(tmp_path / "scored.csv"))}
        made = prepared(draft(task=task, more={"phases": PRESETS[name].phases({"steps": 6, "batch_size": 8})}))
        assert made.steps == 6
        assert prepared(made) == made

    def test_a_message_names_the_phase(self, draft: Draft) -> None:
        with pytest.raises(ConfigError, match=r"^phases\.1\.batch_size = 69 cannot be used"):
            prepare(two_phases(draft, contrast(), CLASSIFIER | {"batch_size": 69}), gpu=False)
        with pytest.raises(ConfigError, match=r"^phases\.0\.trainable\.part = 'classifier' cannot be used"):
            prepare(two_phases(draft, contrast() | {"trainable": {"part": "classifier"}}, CLASSIFIER), gpu=False)

    @each("last", [contrast(), contrast(level="token")])
    def test_the_last_of_two_phases_trains_the_classifier(self, draft: Draft, last: dict[str, Any]) -> None:
        with pytest.raises(ConfigError, match=r"^phases\.1\.objective = .* give it a cross-entropy term\.$"):
            prepare(two_phases(draft, CLASSIFIER, last), gpu=False)


def test_a_batch_of_triplets_is_no_larger_than_there_are(draft: Draft, tmp_path: Path) -> None:
    task = {"path": str(nli_csv(tmp_path / "nli.csv"))}
    _, data = prepare(draft(task=task, **SUPERVISED), gpu=False)
    count = len(data.triplets)
    assert count < len(data.train)
    assert prepared(draft(task=task, batch_size=count, **SUPERVISED)).phases[0].batch_size == count
    with pytest.raises(ConfigError, match=rf"nli\.csv has {count} triplets; give at most {count}\.$"):
        prepared(draft(task=task, batch_size=count + 1, **SUPERVISED))


@each("batch_size", [2, 3])
def test_a_batch_too_small_for_two_rows_of_two_classes_is_refused(draft: Draft, batch_size: int) -> None:
    with pytest.raises(ConfigError, match=rf"^batch_size = {batch_size} .*at least 4, or choose random"):
        prepared(draft(task={"sampler": "class_balanced"}, batch_size=batch_size, **CLASSIFIER))
    prepared(draft(task={"sampler": "random"}, batch_size=batch_size, **CLASSIFIER))


def test_synonyms_of_texts_that_have_none_are_refused_and_other_operations_are_not(
    draft: Draft, tmp_path: Path
) -> None:
    def changed(operation: str, **more: Any) -> RunConfig:
        return draft(**contrast(views=[{"view": "eda", "operation": operation}]), **more)

    path = write_csv(tmp_path / "korean.csv", [(f"정말 좋은 영화 {i}", str(i % 2)) for i in range(40)])
    korean = {"path": str(path)}
    with pytest.raises(ConfigError, match="no word of the training texts has a known synonym"):
        prepared(changed("replace", task=korean))
    for allowed in (changed("mixed", task=korean), changed("delete", task=korean), changed("replace")):
        prepared(allowed)


VIEW = contrast(views=views("paraphrase"))


@each(
    ("task", "phase", "field"),
    [
        ({"id": "news_topics"}, VIEW, "views"),
        ({"id": "news_topics", "paraphrases": "weak"}, {}, "task.paraphrases"),
        ({"id": "nli", "text_noise": 0.2, "paraphrases": "weak"}, {}, "task.paraphrases"),
        ({"id": "nli", "paraphrases": "weak"}, VIEW, "views"),
        ({"id": "nli", "back_translation": 0.3}, VIEW, "views"),
        ({"id": "nli"}, VIEW, None),
        ({"id": "film_reviews", "label_noise": 0.2, "paraphrases": "strong"}, {}, None),
    ],
)
def test_paraphrases_of_texts_that_have_none_are_refused(
    draft: Draft, task: dict[str, Any], phase: dict[str, Any], field: str | None
) -> None:
    given = draft(task=task | {"path": None}, **phase)
    if field is None:
        prepared(given)
        return
    with pytest.raises(ConfigError, match="original texts of Film reviews, Natural language inference") as caught:
        prepare(given, gpu=False)
    assert caught.value.field == field


@each(
    ("given", "field", "part"),
    [
        ({"batch_size": 69}, "batch_size", "68 training rows; give at most 68"),
        ({"batch_size": 1}, "batch_size", "give at least 2"),
        ({"task": {"train_size": 4}}, "batch_size", "4 training rows"),
        ({"task": {"train_size": 2}, "batch_size": 2}, "train_size", "no anchor has a positive"),
        ({"task": {"train_size": 1000}}, "train_size", "give at most 68"),
        ({"trainable": {"part": "last_blocks", "blocks": 3}}, "trainable.blocks", "has 2 blocks"),
        ({"task": {"validation_size": 20}, "more": {"probe": {"size": 21}}}, "probe.size", "20 rows"),
        ({"more": {"probe": {"size": 100}}}, "probe.size", "28 rows"),
        ({"more": {"probe": {"train_size": 400}}}, "probe.train_size", "can show 68 training rows"),
        (SUPERVISED, "objective", NO_TRIPLETS),
        (contrast(layers=[3]), "supcon.layers", "the encoder has 2 blocks; give 0 to 2"),
        (contrast(layers=[0, 2]), "supcon.layers", "the first token has the same embedding in every text"),
        (
            contrast(layers=[1]) | {"trainable": {"part": "last_blocks", "blocks": 1}},
            "trainable.blocks",
            "the highest contrasted block is block 1, but blocks 1 to 1 are frozen; train more blocks",
        ),
        (contrast() | {"trainable": {"part": "classifier"}}, "trainable.part", "does not reach the classifier"),
        (
            {"trainable": {"part": "last_blocks", "blocks": 1, "reinitialised_blocks": 2}},
            "trainable.reinitialised_blocks",
            "give at most 1",
        ),
        ({"trainable": {"part": "lora", "reinitialised_blocks": 1}}, "trainable.reinitialised_blocks", "0 blocks"),
        (
            contrast(views=views("adversarial")) | {"micro_batch": 4},
            "micro_batch",
            "leave micro_batch empty, or choose another view",
        ),
    ],
)
def test_what_cannot_run_is_refused(draft: Draft, given: dict[str, Any], field: str, part: str) -> None:
    with pytest.raises(ConfigError) as caught:
        prepare(draft(**given), gpu=False)
    assert caught.value.field == field
    assert part in str(caught.value)


@each(
    "given",
    [
        contrast(layers=[1]) | {"trainable": {"part": "lora"}},
        contrast(layers=[1, 2]) | {"trainable": {"part": "last_blocks", "blocks": 1}},
        contrast(level="token") | {"trainable": {"part": "last_blocks", "blocks": 1}},
        contrast(level="logits") | {"trainable": {"part": "classifier"}},
        {"trainable": {"part": "last_blocks", "blocks": 1, "reinitialised_blocks": 1}},
        contrast(views=DROPOUT) | {"micro_batch": 4},
        contrast() | {"micro_batch": 400},
    ],
)
def test_what_can_learn_may_start(draft: Draft, given: dict[str, Any]) -> None:
    assert prepared(draft(**given)).steps == 8


def test_a_second_view_is_a_positive_where_every_class_has_one_row(draft: Draft) -> None:
    few = {"task": {"train_size": 2}, "batch_size": 2}
    assert prepared(draft(**few, **contrast(views=DROPOUT))).task.train_size == 2
    with pytest.raises(ConfigError, match="no class has two rows"):
        prepare(draft(**few, **contrast(layers=[1, 2])), gpu=False)


def test_rows_that_changed_since_are_refused(draft: Draft, tmp_path: Path) -> None:
    path = write_csv(tmp_path / "rows.csv", made_rows(120))
    config = prepared(draft(task={"path": str(path)}))
    write_csv(path, made_rows(120, seed=1))
    with pytest.raises(TaskError, match=r"'rows\.csv' has changed since this run was made"):
        prepare(config, gpu=False)
