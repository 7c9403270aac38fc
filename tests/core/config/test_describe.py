"""Every field of a config is either named or left out on purpose."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from core.config import RunConfig, TaskConfig, parse_config
from core.config.describe import settings
from core.config.presets import PRESETS
from tests.cases import each

# Changes nothing that is learned, or is named by something else.
LEFT_OUT = {
    "version",
    "name",
    "checkpoint.every_steps",
    "checkpoint.snapshot_steps",
    "resources.cpus",
    "resources.gpus",
    "task.name",
    "task.path",  # with task.id
    "knob_turns",  # with what they changed
}
TERM: dict[str, Any] = {"loss": "supcon", "level": "token", "queue": 0, "views": [{"view": "eda"}]}


def fields(part: type[BaseModel], path: str = "") -> set[str]:
    """Dotted paths of all fields of a config, but for those of phases."""
    found = set()
    for name, field in part.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            found |= fields(inner, f"{path}{name}.")
        else:
            found.add(f"{path}{name}")
    return found


def paths(**phase: Any) -> set[str]:
    config = parse_config({"phases": [phase]})
    return {setting.path for setting in settings(config)}


def test_no_field_of_a_run_is_forgotten() -> None:
    prepared = RunConfig(task=TaskConfig(content_hash="0" * 64))
    named = {setting.path for setting in settings(prepared) if not setting.path.startswith("phases.")}
    assert named | LEFT_OUT == fields(RunConfig) | {"task.id"}
    assert not named & LEFT_OUT


def test_no_field_of_a_phase_is_forgotten() -> None:
    parts = [{"part": part} for part in ("all", "last_blocks", "lora", "classifier")]
    named = set().union(*(paths(trainable=part) for part in parts))
    of_phase = fields(type(RunConfig().phases[0]), "phases.0.")
    missing = {path for path in of_phase if path not in named}
    assert missing == {"phases.0.objective.combine"}  # it follows from the weights


@each("name", PRESETS)
def test_every_setting_has_its_own_path_and_can_be_read(name: str) -> None:
    found = settings(parse_config({"phases": PRESETS[name].phases({"steps": 20})}))
    assert len({setting.path for setting in found}) == len(found)
    assert all(setting.label and setting.text for setting in found)


def test_what_is_switched_off_is_no_setting() -> None:
    term = "phases.0.objective.terms.supcon."
    plain = paths()
    tokens = paths(objective={"terms": [TERM]})
    assert {f"{term}k", f"{term}clusters"} <= tokens
    assert not {f"{term}k", f"{term}clusters", f"{term}momentum"} & plain
    assert f"{term}momentum" in paths(objective={"terms": [{"loss": "supcon", "queue": 64}]})
    assert "phases.0.optimiser.bias_correction" not in paths(optimiser={"name": "adafactor"})
    assert not any("lora" in path or path.endswith(".blocks") for path in plain)


def test_uniform_leaves_the_own_view_no_weight_of_its_own() -> None:
    def of(uniform: bool) -> set[str]:
        return paths(objective={"terms": [{"loss": "dscl", "uniform": uniform, "views": [{"view": "dropout"}]}]})

    alpha = "phases.0.objective.terms.dscl.alpha"
    assert alpha in of(False)
    assert alpha not in of(True)
