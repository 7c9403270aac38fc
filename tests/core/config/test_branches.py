"""The config of a branch: equal to its parent's up to a step, with other settings after it."""

from __future__ import annotations

from typing import Any

import pytest

from core.config import RATE, RunConfig, parse_config
from core.config.compare import config_differences, config_hash, past_hash, shared_steps
from core.config.describe import objective_label
from core.config.edit import branch, from_settings, settings_text, twin
from core.config.plan import as_ended, as_launched, objective_at
from core.config.run import named_paths, without_folders
from core.errors import ConfigError
from tests.cases import each
from tests.core.config.made import CE, SCL, Turn, turned

PARENT = "a" * 12


def parent(*turns: Turn, **more: Any) -> RunConfig:
    return turned(*turns, phases=[{"steps": 60, "optimiser": {"learning_rate": 1e-4}}], **more)


def test_a_branch_without_a_change_differs_only_in_its_name_and_its_origin() -> None:
    config = parent((50, "temperature", 0.1))
    now = {"temperature": 0.3, "lambda": 0.9, RATE: 1.0}
    made = branch(config, PARENT, 40, turns=now, sampler="auto", objective=None)
    assert str(made.branch) == f"{PARENT}@40"
    assert made.model_copy(update={"branch": None, "name": ""}) == config


def test_runs_that_are_not_branches_keep_their_json_and_their_hash() -> None:
    config = parent()
    assert not {"branch", "changes"} & config.model_dump().keys()
    made = branch(config, PARENT, 40)
    assert parse_config(made.to_json()) == made
    assert config_hash(made.to_json()) != config_hash(config.to_json())


def test_settings_change_right_after_the_shared_steps() -> None:
    made = branch(
        parent(), PARENT, 40, turns={"rdrop.alpha": 2.0, RATE: 0.5}, objective="rdrop-one-stage", sampler="random"
    )
    before, after = objective_at(made, 40), objective_at(made, 41)
    assert (before.objective, before.rate_factor) == (parent().phases[0].objective, 1.0)
    assert (after.objective.keys, after.rate_factor) != (before.objective.keys, 1.0)
    assert (made.sampler_at(40), made.sampler_at(41)) == ("auto", "random")
    assert from_settings(settings_text(made)) == made  # as options of the command line


def test_a_knob_keeps_later_turns_of_others_and_drops_its_own() -> None:
    early, own, other = (20, "temperature", 0.2), (50, "temperature", 0.1), (50, RATE, 0.5)
    config = parent(early, own, other)
    made = branch(config, PARENT, 40, turns={"temperature": 0.5})
    assert [(one.step, one.name, one.value) for one in made.knob_turns] == [early, other, (41, "temperature", 0.5)]
    assert past_hash(made, 40) == past_hash(config, 40)
    assert past_hash(made, 41) != past_hash(config, 41)


def test_a_branch_of_a_branch_keeps_both_changes() -> None:
    first = branch(parent(), PARENT, 20, objective="ce")
    second = branch(first, "b" * 12, 40, objective="ce-scl", sampler="class_balanced")
    assert [change.step for change in second.changes] == [21, 41]
    assert objective_at(second, 30).objective == objective_at(first, 30).objective
    earlier = branch(first, "b" * 12, 10, objective="dscl")
    assert [change.step for change in earlier.changes] == [11], "the later change would undo this one"


@each(
    ("change", "sentence"),
    [
        ({"turns": {"temperature": -1.0}}, "temperature"),
        ({"turns": {"alpha": 0.5}}, "no such knob"),
        ({"objective": "nothing"}, "choose one of"),
        ({"sampler": "balanced"}, "sampler"),
    ],
)
def test_a_change_that_cannot_be_used_is_refused(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        branch(parent(), PARENT, 40, **change)


def test_a_queue_cannot_begin_during_a_phase() -> None:
    terms = [SCL | {"weight": 0.9, "queue": 32}, CE | {"weight": 0.1}]
    with pytest.raises(ConfigError, match="cannot change during a phase"):
        parent(changes=[{"step": 41, "objective": {"terms": terms}}])


def test_differences_and_labels_show_the_change_with_its_step() -> None:
    config = parent()
    made = branch(config, PARENT, 40, objective="ce", sampler="random")
    found = {one.path: one.values for one in config_differences([config, made])}
    assert found["branch"] == ("None", f"{PARENT}@40")
    assert found["phases.0.objective.terms"][1] == "CE + SCL → CE at step 41"
    assert found["task.sampler"][1].endswith("→ Random at step 41")
    assert objective_label(made).endswith("→ CE")


def test_a_draft_from_a_branch_begins_with_its_last_settings_and_is_no_branch() -> None:
    made = branch(parent(), PARENT, 40, objective="ce", sampler="random")
    ended = as_ended(made, 60)
    assert (ended.phases[0].objective, ended.task.sampler) == (objective_at(made, 41).objective, "random")
    assert as_ended(made, 40).phases == parent().phases
    for draft in (ended, as_launched(made), twin(made, "seed", 7)):
        assert draft.branch is None
    assert twin(made, "seed", 7).changes == made.changes


def test_a_parent_and_its_branches_share_their_first_steps() -> None:
    config = parent()
    one, other = branch(config, PARENT, 40), branch(config, PARENT, 20)
    assert shared_steps({PARENT: config, "b" * 12: one}) == 40
    assert shared_steps({"b" * 12: one, "c" * 12: other}) == 20
    assert shared_steps({PARENT: config, "c" * 12: config}) is None


def test_a_change_of_paths_reaches_every_objective() -> None:
    view = {"view": "back_translation", "forward": "/private/model"}
    terms = [{"loss": "simcse", "weight": 0.5, "views": [view]}, {"loss": "cross_entropy", "weight": 0.5}]
    config = parent(changes=[{"step": 41, "objective": {"terms": terms}}])
    assert any("private" in path for _field, path in named_paths(config))
    assert "private" not in without_folders(config).to_json()
