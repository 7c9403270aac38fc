"""What can be varied: everything that is offered can be set."""

from __future__ import annotations

from core.config import RunConfig
from core.config.edit import PRESET, changed
from core.config.presets import PRESETS
from core.config.vary import OBJECTIVE_PATH, sweepable, twin_settings
from tests.cases import each


@each("name", PRESETS)
def test_every_suggestion_can_be_set(name: str) -> None:
    base = changed(RunConfig(), {"preset": name, "steps": 20})
    for path, setting in sweepable(base).items():
        for suggestion in setting.suggestions:
            assert changed(base, {path: suggestion.value}) != base, path


@each("name", ["ce-scl", "simcse", "token-scl", "dscl"])
def test_every_path_leads_to_a_field(name: str) -> None:
    base = changed(RunConfig(), {"preset": name, "steps": 20})
    given = base.model_dump(mode="json")
    for path in sweepable(base):
        if path == PRESET or path.endswith(".lambda"):
            continue
        place = given
        for part in path.split("."):
            if isinstance(place, list):
                keys = [str(term.get("loss")) for term in place]
                place = place[int(part) if part.isdecimal() else keys.index(part)]
            else:
                place = place[part]


def test_it_has_all_that_a_twin_is_offered_and_every_label_once() -> None:
    base = RunConfig()
    found = sweepable(base)
    assert {setting.path for setting in twin_settings(base)} - {OBJECTIVE_PATH} <= set(found)
    labels = [setting.label for setting in found.values()]
    assert len(labels) == len(set(labels))


def test_a_run_of_two_phases_names_them() -> None:
    found = sweepable(changed(RunConfig(), {"preset": "simcse", "steps": 20}))
    assert found["phases.1.batch_size"].label == "Phase 2: Batch size"
