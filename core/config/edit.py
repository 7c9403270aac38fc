"""Changes of a draft: one field by its path, several at once, a twin of a run with one setting changed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from core.config import RATE, KnobTurn, PhaseConfig, RunConfig, parse_config
from core.config.compare import SEED, config_differences
from core.config.describe import settings
from core.config.fields import build
from core.config.objective import ObjectiveConfig, numbered
from core.config.presets import PRESETS, preset
from core.config.schedule import as_launched
from core.errors import ConfigError
from core.messages import ENGLISH, N_, Message, in_language
from core.parameters import did_you_mean

JSON = dict[str, Any]
DEFAULT_PRESET = "ce-scl"
# Fields that say which task it is and where its rows are; the others hold for any task.
OF_A_TASK = {"id", "name", "path", "test_path", "reading", "drop", "content_hash"}
# A link leaves them out: they may name a file of the sender.
NOT_LINKED = tuple(f"task.{name}" for name in sorted(OF_A_TASK))
NAMED_PRESET = "preset="


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
    texts = {name: [*([] if name == DEFAULT_PRESET else [f"{NAMED_PRESET}{name}"]), *texts[name]] for name in texts}
    # By length, not by number: one list of terms can turn a preset into any other.
    return min(texts.values(), key=lambda settings: sum(map(len, settings)))


def from_settings(texts: Sequence[str]) -> RunConfig:
    """A draft from what `settings_text` or a person wrote. Raises: ConfigError naming the first that cannot be used."""
    names = [text.removeprefix(NAMED_PRESET) for text in texts if text.startswith(NAMED_PRESET)]
    given = json.loads(_base(preset(names[-1] if names else DEFAULT_PRESET).name))
    for text in texts:
        path = text.partition("=")[0].strip()
        if path == "task" or path.startswith(NOT_LINKED):
            raise ConfigError("set", text, "a link does not name the task or its file here; leave it out.")
        if not text.startswith(NAMED_PRESET):
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


# Settings that are no fields: an objective by its name, λ, and the τ of every contrastive loss.
PRESET, LAMBDA, TEMPERATURE = "preset", "lambda", "temperature"
# How long a run is; one takes the place of the other, and a preset of two phases divides it.
LENGTHS = ("steps", "epochs")
# They come in this order, and before fields.
ORDER = (*LENGTHS, PRESET, LAMBDA, TEMPERATURE)


def changed(config: RunConfig, settings: Mapping[str, Any]) -> RunConfig:
    """A draft with these settings: "preset", "lambda", "temperature", and paths as `put` takes them.

    A preset keeps what the first phase says beside its objective, and the steps or epochs of the whole run, which
    "steps" or "epochs" beside it are. "lambda" is that of the first phase, `phases.1.objective.lambda` of the second.

    Args:
        config: a draft; what `prepare` has found out about its rows is dropped where they may change.
        settings: values in JSON form.
    Raises: ConfigError naming the field, the value and what would work.
    """
    given = config.model_dump(mode="json")
    for name in sorted(settings, key=_order):
        value = settings[name]
        if name == PRESET:
            given["phases"] = _of_preset(value, given["phases"])
        elif (phase := _phase_of_lambda(name)) is not None:
            put_lambda(given["phases"], value, phase)
        elif name == TEMPERATURE:
            put_temperature(given["phases"], value)
        else:
            if name in LENGTHS and PRESET in settings:  # the preset divides the length of both phases
                given["phases"] = given["phases"][:1]
            put(given, name, value, (PRESET, LAMBDA, TEMPERATURE))
            _keep_one_length(given["phases"], name, value)
            if name.startswith("task.") or name == "seed":
                given["task"]["content_hash"] = None
    return parse_config(given)


def _keep_one_length(phases: Sequence[dict[str, Any]], name: str, value: Any) -> None:
    """A phase whose steps or epochs were given has the other no more."""
    found = re.fullmatch(r"(?:phases\.(\d+)\.)?(steps|epochs)", name)
    if found and value is not None:
        phases[int(found[1] or 0)] |= {other: None for other in LENGTHS if other != found[2]}


def _order(name: str) -> int:
    """Where a setting comes: each works on what those before it have made."""
    name = LAMBDA if _phase_of_lambda(name) is not None else name
    return ORDER.index(name) if name in ORDER else len(ORDER)


def _phase_of_lambda(name: str) -> int | None:
    """The number of the phase whose λ a setting is; None for one that is no λ."""
    if name == LAMBDA:
        return 0
    found = re.fullmatch(r"phases\.([01])\.objective\.lambda", name)
    return int(found[1]) if found else None


def put_lambda(phases: Sequence[dict[str, Any]], value: Any, number: int = 0) -> None:
    """Weigh the contrastive loss of a phase. Raises: ConfigError where its objective has no λ."""
    if number >= len(phases):
        raise ConfigError(LAMBDA, value, "there is one phase; give lambda.")
    objective = build(ObjectiveConfig, phases[number]["objective"])
    if objective.weight is None:
        where = f"phases.{number}." if len(phases) > 1 else ""
        example = f"{where}objective.terms.0.weight=1"
        raise ConfigError(LAMBDA, value, "this objective has no λ; set a weight, such as {example}.", example=example)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigError(LAMBDA, value, "give a number.")
    phases[number]["objective"] = objective.turned("lambda", value).model_dump(mode="json")


def put_temperature(phases: Sequence[dict[str, Any]], value: Any) -> None:
    """Give every contrastive loss this τ. Raises: ConfigError where there is none."""
    terms = [term for phase in phases for term in phase["objective"]["terms"] if TEMPERATURE in term]
    if not terms:
        raise ConfigError(TEMPERATURE, value, "this objective has no contrastive loss; leave it out.")
    for term in terms:
        term[TEMPERATURE] = value


def _of_preset(name: Any, phases: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The phases of a preset, made from what the first phase says and from how long they all are."""
    phase = {field: value for field, value in phases[0].items() if field != "objective"}
    for length in LENGTHS:
        given = [one[length] for one in phases if one[length] is not None]
        phase[length] = sum(given) if len(given) == len(phases) else None
    return [with_full_objective(made) for made in preset(name).phases(phase)]


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
    put(given, ".".join(names), value)
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
