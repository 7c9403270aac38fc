"""Single settings of a config as text, `path=value`: how the command line and an address name them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from core.config import PhaseConfig, RunConfig, parse_config
from core.config.describe import numbered
from core.config.objective import ObjectiveConfig
from core.config.presets import PRESETS, preset
from core.config.validation import build
from core.errors import ConfigError
from core.messages import N_, Message
from core.parameters import did_you_mean

JSON = dict[str, Any]
DEFAULT_PRESET = "ce-scl"
# Fields that say which task it is and where its rows are; the others hold for any task.
OF_A_TASK = {"id", "name", "path", "test_path", "reading", "drop", "content_hash"}
# A link leaves them out: they may name a file of the sender.
NOT_LINKED = tuple(f"task.{name}" for name in sorted(OF_A_TASK))
PRESET = "preset="


def settings_text(config: RunConfig) -> list[str]:
    """What a draft says that the defaults do not: `preset=NAME` where that is not the default, then `path=value`.

    Of a task from a file only the rows' settings are named. `from_settings` makes the same draft of it.
    """
    given = config.model_dump(mode="json")
    texts = {
        name: [
            f"{path}={_text(value)}"
            for path, value in _differences(given, json.loads(_base(name)))
            if not path.startswith(NOT_LINKED)
        ]
        for name, entry in PRESETS.items()
        if len(entry.objectives) == len(config.phases)
    }
    texts = {name: [*([] if name == DEFAULT_PRESET else [f"{PRESET}{name}"]), *texts[name]] for name in texts}
    # By length, not by number: one list of terms can turn a preset into any other.
    return min(texts.values(), key=lambda settings: sum(map(len, settings)))


def from_settings(texts: Sequence[str]) -> RunConfig:
    """A draft from what `settings_text` or a person wrote. Raises: ConfigError naming the first that cannot be used."""
    names = [text.removeprefix(PRESET) for text in texts if text.startswith(PRESET)]
    given = json.loads(_base(preset(names[-1] if names else DEFAULT_PRESET).name))
    for text in texts:
        path = text.partition("=")[0].strip()
        if path == "task" or path.startswith(NOT_LINKED):
            raise ConfigError("set", text, "a link does not name the task or its file here; leave it out.")
        if not text.startswith(PRESET):
            assign(given, text)
    return parse_config(given)


@lru_cache(maxsize=64)
def _base(name: str) -> str:
    """The default draft with a preset."""
    phases = [with_full_objective(phase) for phase in PRESETS[name].phases({})]
    return parse_config({"phases": phases}).to_json()


def _differences(given: Any, base: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Paths whose values differ, each with the given value; lists of another length are given whole."""
    if isinstance(given, dict) and isinstance(base, dict) and given.keys() == base.keys():
        for name in given:
            yield from _differences(given[name], base[name], f"{path}.{name}" if path else name)
    elif isinstance(given, list) and isinstance(base, list) and len(given) == len(base):
        for place, (one, other) in enumerate(zip(given, base, strict=True)):
            yield from _differences(one, other, f"{path}.{place}")
    elif given != base:
        yield path, given


def _text(value: Any) -> str:
    """As `assign` reads it back."""
    if isinstance(value, str) and _value(value) == value:
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def with_full_objective(phase: dict[str, Any]) -> dict[str, Any]:
    """A phase whose objective has all its fields, so that each can be named."""
    return phase | {"objective": build(ObjectiveConfig, phase["objective"]).model_dump(mode="json")}


PHASE_FIELDS = tuple(PhaseConfig.model_fields)
HOW = N_("give FIELD=VALUE, such as objective.terms.0.temperature=0.1.")


def assign(config: dict[str, Any], setting: str) -> None:
    """Set one field of a config in its JSON form, given as `path=value`; a phase's own fields need no `phases.0.`.

    Raises: ConfigError naming the path and what would work.
    """
    put(config, *parse_setting(setting))


def parse_setting(setting: str) -> tuple[str, Any]:
    """The path and the value of `path=value`. Raises: ConfigError."""
    path, equals, text = setting.partition("=")
    if not equals:
        raise ConfigError("set", setting, HOW)
    return path, _value(text)


def put(config: dict[str, Any], path: str, value: Any, also: Sequence[str] = ()) -> None:
    """Set one field of a config in its JSON form to a value in that form; paths are as `assign` takes them.

    Args:
        also: names that the caller takes beside fields.
    Raises: ConfigError naming the path and what would work.
    """
    names = path.strip().split(".")
    if not all(names):
        raise ConfigError("set", path, HOW)
    known = (*also, *PHASE_FIELDS, *RunConfig.model_fields)
    if names[0] not in known and (meant := did_you_mean(names[0], known)):
        raise ConfigError(path, value, meant)
    if names[0] in PHASE_FIELDS:
        names = ["phases", _phase_with(config["phases"], names, path), *names]
    place: Any = config
    for depth, name in enumerate(names[:-1]):
        place = _inside(place, name, ".".join(names[: depth + 1]))
    _inside(place, names[-1], ".".join(names))
    if names[-1] in KEPT_BESIDE:  # another loss or view has settings of its own
        for name in place.keys() - KEPT_BESIDE[names[-1]]:
            del place[name]
    last = names[-1]
    place[_place(place, last, path) if isinstance(place, list) else last] = value


def _phase_with(phases: Any, names: list[str], path: str) -> str:
    """The number of the one phase that has a field, for a path that names none."""
    if not isinstance(phases, list) or len(phases) < 2:
        return "0"
    having = [str(number) for number, phase in enumerate(phases) if _has(phase, names)]
    if len(having) != 1:
        raise ConfigError("set", path, "there are two phases; give phases.0.{path} or phases.1.{path}.", path=path)
    return having[0]


def _has(place: Any, names: list[str]) -> bool:
    for name in names:
        if isinstance(place, list) and name.isdecimal() and int(name) < len(place):
            place = place[int(name)]
        elif isinstance(place, dict) and name in place:
            place = place[name]
        else:
            return False
    return True


KEPT_BESIDE = {"loss": {"weight", "views"}, "view": set[str]()}


def _inside(place: Any, name: str, path: str) -> Any:
    """The value under a name or number; an object where there is nothing yet."""
    above = path.rpartition(".")[0]
    if isinstance(place, list):
        if not place:
            example = f"{above}={_example(above)}"
            raise ConfigError(
                "set", path, "{field} is empty; give the whole list, such as {example}.", field=above, example=example
            )
        return place[_place(place, name, path)]
    if not isinstance(place, dict):
        raise ConfigError("set", path, "{field} has no fields; leave out what follows it.", field=above)
    return place.setdefault(name, {})


def _place(items: list[Any], name: str, path: str) -> int:
    """Where in a list the item is that has this number or, of losses and views, this key."""
    if name.isdecimal() and int(name) < len(items):
        return int(name)
    keys = numbered(str(item.get("loss", item.get("view"))) for item in items if isinstance(item, dict))
    if name in keys:
        return keys.index(name)
    above, last = path.rpartition(".")[0], len(items) - 1
    remedy = Message("{field} has 1; give 0, or the whole list as JSON.", field=above)
    if last:
        remedy = Message(
            "{field} has {count}; give a number from 0 to {last}, or the whole list as JSON.",
            field=above,
            count=len(items),
            last=last,
        )
    raise ConfigError("set", path, remedy)


def _example(field: str) -> str:
    return '[{"view": "dropout"}]' if field.endswith("views") else "[1, 2]"


def _value(text: str) -> Any:
    """A number, list, true, false or null as JSON has them, numbers with commas between them, else the text itself."""
    if re.fullmatch(r"-?\d+(\s*,\s*-?\d+)+", text):
        text = f"[{text}]"
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
