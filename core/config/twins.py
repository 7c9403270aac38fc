"""Twin runs: the same config and seed with one setting changed, so that their maps compare frame by frame."""

from __future__ import annotations

import re
from typing import Any

from core.config import RATE, KnobTurn, RunConfig, parse_config
from core.config.describe import numbered, settings
from core.config.diff import SEED, config_differences
from core.config.presets import preset
from core.config.turns import as_launched
from core.errors import ConfigError
from core.messages import ENGLISH, in_language

NAME_LENGTH = 80
CHANGE_LENGTH, VALUE_LENGTH = 60, 20


def twin(config: RunConfig, path: str, value: Any, *, name: str = "") -> RunConfig:
    """The config of a run's twin: one setting changed, everything else kept, frame steps among it.

    Knob turns that were made are made again, but for those of the setting that is changed, which would undo the change.
    What cannot stay with the change goes: the rows' content hash when the
    rows change, the steps of snapshots when more weights learn (their number depends on what they take on disk),
    rows on the map beyond those that are left, turns of an objective that is replaced.

    Args:
        config: of the original; prepared, and with its knob turns, so that the twin's frames fall on the same steps.
        path: dotted names as `settings` has them; a term or view by its key or its number. Two paths mean more than one
            field: `phases.0.objective` takes the name of a preset of one phase, `phases.0.objective.lambda` turns the
            weights that λ binds. With `seed` it is a repetition of the run and no twin of it.
        value: in JSON form.
        name: of the twin; `twin_name` makes one.
    Raises: ConfigError naming the field, its value and what would work.
    """
    given = config.model_dump(mode="json") | {"name": name}
    given["probe"]["train_size"] = config.probe.train_points
    names = path.split(".")
    if names[-1] == "objective":
        value = _preset_objective(value)
        given["knob_turns"] = [t.model_dump() for t in config.knob_turns if t.name == RATE]
    else:
        given["knob_turns"] = [t.model_dump() for t in config.knob_turns if not _turns(t, path, config)]
    if names[-2:] == ["objective", "lambda"]:
        objective = config.phases[_phase(config, path)].objective
        names, value = names[:-1], objective.turned("lambda", value).model_dump(mode="json")
    _put(given, names, value, path)
    _keep_consistent(given, path, value)
    return parse_config(given)


@in_language(ENGLISH)
def twin_name(title: str, config: RunConfig, other: RunConfig) -> str:
    """A name for a twin, such as "Run 7, τ 0.1 instead of 0.3"; a long title is cut so that the change is read.

    It is kept with the run and read by everybody: in English, as the labels are whose form it knows.

    Args:
        title: of the original. It came from outside and is not escaped here.
        config, other: of the original and of its twin.
    """
    # The turns that both make say nothing about the change.
    differences = config_differences([as_launched(config), as_launched(other)])
    if not differences:
        return title[:NAME_LENGTH]
    first = differences[0]
    before, after = map(_in_a_sentence, first.values)
    # An arrow would read like a knob that was turned.
    change = f"{_cut(after, VALUE_LENGTH)} instead of {_cut(before, VALUE_LENGTH)}"
    if not first.path.endswith("objective.terms"):  # losses name themselves
        change = f"{_short_label(first.label, config)} {change}"
    change = _cut(change, CHANGE_LENGTH)
    return f"{_cut(title, NAME_LENGTH - len(change) - 2)}, {change}"


def _turns(turn: KnobTurn, path: str, config: RunConfig) -> bool:
    """Whether a knob turn changes the setting of a path, such as `phases.0.objective.terms.supcon.temperature`."""
    names = path.split(".")
    if names[0] != "phases" or "objective" not in names or names[1] != str(config.phase_at(turn.step)):
        return False
    own, _dot, knob = turn.name.rpartition(".")
    return names[-1] == knob and own in ("", names[-2])


def _phase(config: RunConfig, path: str) -> int:
    """The phase's number in `phases.0.objective.lambda`."""
    number = path.split(".")[1]
    if path.count(".") != 3 or not number.isdecimal() or int(number) >= len(config.phases):
        raise ConfigError(
            "setting", path, "give phases.0 to phases.{last}, and its objective.", last=len(config.phases) - 1
        )
    return int(number)


def _preset_objective(name: Any) -> dict[str, Any]:
    entry = preset(name)
    if len(entry.objectives) > 1:
        raise ConfigError("preset", name, "it has two phases, and one objective is replaced; take one of one phase.")
    return entry.objectives[0]


def _put(given: dict[str, Any], names: list[str], value: Any, path: str) -> None:
    """Set a field of a config in its JSON form. Raises: ConfigError where the way to it does not exist."""
    place: Any = given
    for name in names[:-1]:
        place = place[_key(place, name, path)]
    place[_key(place, names[-1], path)] = value


def _key(place: Any, name: str, path: str) -> str | int:
    """A field's name, or the number of a list's element that has this number or key."""
    if isinstance(place, dict) and name in place:
        return name
    if isinstance(place, list):
        if name.isdecimal() and int(name) < len(place):
            return int(name)
        keys = numbered(str(item.get("loss", item.get("view"))) for item in place if isinstance(item, dict))
        if name in keys:
            return keys.index(name)
    if not isinstance(place, dict):
        raise ConfigError(
            "setting", path, "there is no {name}; in its place the run has nothing of this name.", name=repr(name)
        )
    raise ConfigError(
        "setting", path, "there is no {name}; in its place the run has {names}.", name=repr(name), names=tuple(place)
    )


def _keep_consistent(given: dict[str, Any], path: str, value: Any) -> None:
    """Let go of what was said of the original and cannot be said of its twin."""
    if path == SEED or (path.startswith("task.") and path != "task.sampler"):
        given["task"]["content_hash"] = None
    if path in ("task.id", "task.path"):
        given["task"]["name"] = None
    probe, rows_on_map = given["probe"], {"task.train_size": "train_size", "task.validation_size": "size"}
    on_map = rows_on_map.get(path)
    if on_map is not None and probe[on_map] is not None and isinstance(value, int):
        probe[on_map] = min(probe[on_map], max(value, 0))
    if ".trainable." in path or path == "encoder.id":
        given["checkpoint"]["snapshot_steps"] = None


def _short_label(label: str, config: RunConfig) -> str:
    """The symbol at a label's end, τ for Temperature τ of SCL; with its owner where another setting has the same."""
    phase, colon, rest = label.rpartition(": ")
    own, of, owner = rest.partition(" of ")
    symbol = own.split()[-1]
    if len(symbol) == 1:
        same = sum(bool(re.search(rf" {re.escape(symbol)}( of |$)", setting.label)) for setting in settings(config))
        rest = f"{symbol}{of}{owner}" if same > 1 else symbol
    return f"{_in_a_sentence(phase)}{colon}{_in_a_sentence(rest)}"


def _in_a_sentence(label: str) -> str:
    """Without its capital, but for names such as LoRA."""
    first = label.split(" ", maxsplit=1)[0]
    return label[:1].lower() + label[1:] if first[1:].islower() else label


def _cut(text: str, width: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= width else f"{text[: width - 1].rstrip()}…"
