"""Changes to a config: fields by their path, a twin of a run with one setting changed, or a branch of a run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from core.config import RATE, BranchConfig, Change, KnobTurn, PhaseConfig, RunConfig, parse_config
from core.config.compare import SEED, config_differences
from core.config.describe import settings
from core.config.fields import build
from core.config.objective import ObjectiveConfig, numbered
from core.config.plan import as_launched, objective_at
from core.config.presets import PRESETS, preset
from core.errors import ConfigError
from core.messages import ENGLISH, N_, Message, in_language
from core.parameters import did_you_mean

JSON = dict[str, Any]
DEFAULT_PRESET = "ce-scl"
# Fields that identify the task and its rows; the others apply to any task.
OF_A_TASK = {"id", "name", "path", "test_path", "reading", "drop", "content_hash"}
# Fields that a link leaves out, because they may name the sender's files.
NOT_LINKED = tuple(f"task.{name}" for name in sorted(OF_A_TASK))
NAMED_PRESET = "preset="
# Of the name of a branch, the characters that come from its parent.
TITLE_CHARS = 60


def settings_text(config: RunConfig) -> list[str]:
    """Return the settings that differ from the defaults: `preset=NAME`, unless it is the default, then `path=value`.

    Fields that identify the task or its file are left out. `from_settings` restores everything else.
    """
    given = _whole(config.model_dump(mode="json"))
    texts = []
    for name, entry in PRESETS.items():
        if len(entry.objectives) == len(config.phases):
            differing = _differences(given, _whole(json.loads(_base(name))))
            kept = [f"{path}={_text(value)}" for path, value in differing if not path.startswith(NOT_LINKED)]
            texts.append(kept if name == DEFAULT_PRESET else [f"{NAMED_PRESET}{name}", *kept])
    # Compare the length of the text: a single setting, the list of terms, can replace a whole preset.
    return min(texts, key=lambda settings: sum(map(len, settings)))


def from_settings(texts: Sequence[str]) -> RunConfig:
    """Build a draft from the output of `settings_text` or from user input.

    Raises: ConfigError naming the first setting that cannot be used.
    """
    names = [text.removeprefix(NAMED_PRESET) for text in texts if text.startswith(NAMED_PRESET)]
    given = json.loads(_base(preset(names[-1] if names else DEFAULT_PRESET).name))
    for text in texts:
        path = text.partition("=")[0].strip()
        if path == "task" or path.startswith(NOT_LINKED):
            raise ConfigError("set", text, "a link cannot set the task or its file; leave it out.")
        if not text.startswith(NAMED_PRESET):
            put(given, *parse_setting(text))
    return parse_config(given)


def _whole(dump: JSON) -> JSON:
    """Return the dump of a draft with the fields that it leaves out at their defaults."""
    absent = {name: RunConfig.model_fields[name].default for name in RunConfig.model_fields.keys() - dump.keys()}
    return dump | absent | {"encoder": {"dropout": None} | dump["encoder"]}


@lru_cache(maxsize=64)
def _base(name: str) -> str:
    """Return the default draft with a preset, as JSON."""
    entry = preset(name)
    phases = [with_full_objective(phase) for phase in entry.phases({})]
    return parse_config({"phases": phases, "encoder": {"dropout": entry.dropout}}).to_json()


def _differences(given: Any, base: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the paths whose values differ, each with the given value; lists of different lengths are yielded whole."""
    if isinstance(given, dict) and isinstance(base, dict) and given.keys() == base.keys():
        for name in given:
            yield from _differences(given[name], base[name], f"{path}.{name}" if path else name)
    elif isinstance(given, list) and isinstance(base, list) and len(given) == len(base):
        for place, (one, other) in enumerate(zip(given, base, strict=True)):
            yield from _differences(one, other, f"{path}.{place}")
    elif given != base:
        yield path, given


def _text(value: Any) -> str:
    """Format a value so that `parse_setting` reads it back."""
    if isinstance(value, str) and _value(value) == value:
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def with_full_objective(phase: dict[str, Any]) -> dict[str, Any]:
    """Return a phase with all fields of its objective, so that a path can name each of them."""
    return phase | {"objective": build(ObjectiveConfig, phase["objective"]).model_dump(mode="json")}


PHASE_FIELDS = tuple(PhaseConfig.model_fields)
HOW = N_("give FIELD=VALUE, such as objective.terms.0.temperature=0.1.")


def parse_setting(setting: str) -> tuple[str, Any]:
    """Split `path=value` into the path and the parsed value. Raises: ConfigError."""
    path, equals, text = setting.partition("=")
    if not equals:
        raise ConfigError("set", setting, HOW)
    return path, _value(text)


def put(config: dict[str, Any], path: str, value: Any, also: Sequence[str] = ()) -> None:
    """Set one field of a config in its JSON form to a JSON value; a phase's fields do not need `phases.0.`.

    Args:
        also: names that the caller accepts besides fields.
    Raises: ConfigError naming the path and a remedy.
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
    if names[-1] in KEPT_BESIDE:  # the settings of the previous loss or view do not apply
        for name in place.keys() - KEPT_BESIDE[names[-1]]:
            del place[name]
    last = names[-1]
    place[_place(place, last, path) if isinstance(place, list) else last] = value


def _phase_with(phases: Any, names: list[str], path: str) -> str:
    """Return the number of the only phase that has a field, for a path that names no phase."""
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
    """Return the value under a name or number; a missing name is added with an empty object."""
    above = path.rpartition(".")[0]
    if isinstance(place, list):
        if not place:
            example = f"{above}=" + ('[{"view": "dropout"}]' if above.endswith("views") else "[1, 2]")
            raise ConfigError(
                "set", path, "{field} is empty; give the whole list, such as {example}.", field=above, example=example
            )
        return place[_place(place, name, path)]
    if not isinstance(place, dict):
        raise ConfigError("set", path, "{field} has no fields; remove what follows it.", field=above)
    return place.setdefault(name, {})


def _place(items: list[Any], name: str, path: str) -> int:
    """Return the index of a list item, given its number or, for losses and views, its key."""
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


def _value(text: str) -> Any:
    """Parse a value: JSON, or numbers separated by commas as a list; anything else remains text."""
    if re.fullmatch(r"-?\d+(\s*,\s*-?\d+)+", text):
        text = f"[{text}]"
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


# Settings that are not fields: an objective by its name, λ, and the τ of every contrastive loss.
PRESET, LAMBDA, TEMPERATURE = "preset", "lambda", "temperature"
# Two ways to give the length of a run: each clears the other. A preset of two phases divides the length.
LENGTHS = ("steps", "epochs")
# Applied in this order, before any field.
ORDER = (*LENGTHS, PRESET, LAMBDA, TEMPERATURE)


def apply_settings(config: RunConfig, settings: Mapping[str, Any]) -> RunConfig:
    """Return a draft with these settings: "preset", "lambda", "temperature", and paths as in `put`.

    A preset keeps the other settings of the first phase, the length of the whole run, and the encoder's dropout unless
    the preset specifies it. "steps" or "epochs" given with
    a preset is the length of the whole run. "lambda" applies to the first phase, `phases.1.objective.lambda` to the
    second.

    Args:
        config: a draft; its content hash is dropped if the settings may change its rows.
        settings: values in JSON form.
    Raises: ConfigError naming the field, the value and a remedy.
    """
    given = config.model_dump(mode="json")
    for name in sorted(settings, key=_order):
        value = settings[name]
        if name == PRESET:
            given["phases"] = _of_preset(value, given["phases"])
            if (rate := preset(value).dropout) is not None:
                given["encoder"]["dropout"] = rate
        elif (phase := _phase_of_lambda(name)) is not None:
            put_lambda(given["phases"], value, phase)
        elif name == TEMPERATURE:
            put_temperature(given["phases"], value)
        else:
            if name in LENGTHS and PRESET in settings:  # the preset divides the length of both phases
                given["phases"] = given["phases"][:1]
            put(given, name, value, (PRESET, LAMBDA, TEMPERATURE))
            length = re.fullmatch(r"(?:phases\.(\d+)\.)?(steps|epochs)", name)
            if length and value is not None:  # steps clear the epochs of their phase, and the reverse
                given["phases"][int(length[1] or 0)] |= {other: None for other in LENGTHS if other != length[2]}
            if name.startswith("task.") or name == SEED:
                given["task"]["content_hash"] = None
    return parse_config(given)


def _order(name: str) -> int:
    """Return the rank of a setting in ORDER; fields come last."""
    name = LAMBDA if _phase_of_lambda(name) is not None else name
    return ORDER.index(name) if name in ORDER else len(ORDER)


def _phase_of_lambda(name: str) -> int | None:
    """Return the number of the phase whose λ a setting is; None for any other setting."""
    if name == LAMBDA:
        return 0
    found = re.fullmatch(r"phases\.([01])\.objective\.lambda", name)
    return int(found[1]) if found else None


def put_lambda(phases: Sequence[dict[str, Any]], value: Any, number: int = 0) -> None:
    """Set λ of a phase. Raises: ConfigError for an invalid value, or if the phase or its λ does not exist."""
    if number >= len(phases):
        raise ConfigError(LAMBDA, value, "there is one phase; give lambda.")
    objective = build(ObjectiveConfig, phases[number]["objective"])
    if objective.weight is None:
        where = f"phases.{number}." if len(phases) > 1 else ""
        example = f"{where}objective.terms.0.weight=1"
        raise ConfigError(LAMBDA, value, "this objective has no λ; set a weight, such as {example}.", example=example)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigError(LAMBDA, value, "give a number.")
    phases[number]["objective"] = objective.with_knob("lambda", value).model_dump(mode="json")


def put_temperature(phases: Sequence[dict[str, Any]], value: Any) -> None:
    """Set τ of every contrastive loss. Raises: ConfigError if there is none."""
    terms = [term for phase in phases for term in phase["objective"]["terms"] if TEMPERATURE in term]
    if not terms:
        raise ConfigError(TEMPERATURE, value, "this objective has no contrastive loss; leave it out.")
    for term in terms:
        term[TEMPERATURE] = value


def _of_preset(name: Any, phases: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the phases of a preset, based on the settings of the first phase and the total length of all phases."""
    phase = {field: value for field, value in phases[0].items() if field != "objective"}
    for length in LENGTHS:
        given = [one[length] for one in phases if one[length] is not None]
        phase[length] = sum(given) if len(given) == len(phases) else None
    return [with_full_objective(made) for made in preset(name).phases(phase)]


def single_objective(name: object) -> JSON:
    """Return the objective of a preset of one phase, in JSON form. Raises: ConfigError for another preset."""
    entry = preset(name)
    if len(entry.objectives) > 1:
        raise ConfigError(
            "preset", name, "this preset has two phases, but one objective is replaced; choose a preset of one phase."
        )
    return entry.objectives[0]


NAME_LENGTH = 80
CHANGE_LENGTH, VALUE_LENGTH = 60, 20


def twin(config: RunConfig, path: str, value: Any, *, name: str = "") -> RunConfig:
    """Return the config of a run's twin: one setting changed, everything else kept, including the frame steps.

    Knob turns are kept, except those of the changed setting, which would undo the change. Everything that contradicts
    the change is dropped: the content hash if the rows change, the snapshot steps if other weights learn (their number
    depends on the size on disk), points of the map beyond the remaining rows, and turns of a replaced objective.

    Args:
        config: config of the original, prepared so that the twin's frames fall on the same steps, with its knob turns.
        path: dotted names as in `settings`; a term or view by its key or its number. Two paths change several fields:
            `phases.0.objective` takes the name of a preset of one phase, `phases.0.objective.lambda` turns the weights
            that λ binds. With `seed`, the result is a repetition of the run rather than a twin.
        value: value in JSON form.
        name: name of the twin; see `twin_name`.
    Raises: ConfigError naming the field, its value and a remedy.
    """
    given = config.model_dump(mode="json") | {"name": name}
    names = path.split(".")
    replaced = names[-1] == "objective"
    kept = [turn for turn in config.knob_turns if turn.name == RATE or not (replaced or _turns(turn, path, config))]
    given["knob_turns"] = [turn.model_dump() for turn in kept]
    given.pop("branch", None)  # its first steps differ from those of the parent
    undone = {"objective": None} if "objective" in names else {"sampler": None} if path == "task.sampler" else {}
    given["changes"] = [change.model_dump() | undone for change in config.changes]
    if replaced:
        value = single_objective(value)
    if (phase := _phase_of_lambda(path)) is not None:
        put_lambda(given["phases"], value, phase)
    else:
        put(given, path, value)
    # Drop values of the original that do not hold for its twin.
    task, probe = given["task"], given["probe"]
    if path == SEED or (path.startswith("task.") and path != "task.sampler"):
        task["content_hash"] = None
    if path in ("task.id", "task.path"):
        task["name"] = None
    on_map = {"task.train_size": "train_size", "task.validation_size": "size"}.get(path)
    if on_map is not None and probe[on_map] is not None and isinstance(value, int):
        probe[on_map] = min(probe[on_map], max(value, 0))
    if ".trainable." in path or path == "encoder.id":
        given["checkpoint"]["snapshot_steps"] = None
    return parse_config(given)


@in_language(ENGLISH)
def twin_name(title: str, config: RunConfig, other: RunConfig) -> str:
    """Name a twin, such as "Run 7, τ 0.1 instead of 0.3"; a long title is cut so that the change stays readable.

    The name is stored with the run and shown to every visitor, so it is in English. The function also relies on the
    form of the English labels.

    Args:
        title: title of the original. It is user input and is not escaped here.
        config, other: configs of the original and of its twin.
    """
    # Knob turns that both runs share are not part of the change.
    differences = config_differences([as_launched(config), as_launched(other)])
    if not differences:
        return title[:NAME_LENGTH]
    first = differences[0]
    before, after = map(_in_a_sentence, first.values)
    # An arrow would suggest a turned knob.
    change = f"{_cut(after, VALUE_LENGTH)} instead of {_cut(before, VALUE_LENGTH)}"
    if not first.path.endswith("objective.terms"):  # losses need no label
        change = f"{_short_label(first.label, config)} {change}"
    change = _cut(change, CHANGE_LENGTH)
    return f"{_cut(title, NAME_LENGTH - len(change) - 2)}, {change}"


def _turns(turn: KnobTurn, path: str, config: RunConfig) -> bool:
    """Return whether a knob turn changes the setting at a path, such as `phases.0.objective.terms.supcon.weight`."""
    names = path.split(".")
    if names[0] != "phases" or "objective" not in names or names[1] != str(config.phase_at(turn.step)):
        return False
    own, _dot, knob = turn.name.rpartition(".")
    return names[-1] == knob and own in ("", names[-2])


def _short_label(label: str, config: RunConfig) -> str:
    """Shorten a label to its symbol, such as τ; its loss stays if another setting has the same symbol."""
    phase, colon, rest = label.rpartition(": ")
    own, of, owner = rest.partition(" of ")
    symbol = own.split()[-1]
    if len(symbol) == 1:
        same = sum(bool(re.search(rf" {re.escape(symbol)}( of |$)", setting.label)) for setting in settings(config))
        rest = f"{symbol}{of}{owner}" if same > 1 else symbol
    return f"{_in_a_sentence(phase)}{colon}{_in_a_sentence(rest)}"


def _in_a_sentence(label: str) -> str:
    """Lower-case the first letter, except in names such as LoRA."""
    first = label.split(" ", maxsplit=1)[0]
    return label[:1].lower() + label[1:] if first[1:].islower() else label


def _cut(text: str, width: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= width else f"{text[: width - 1].rstrip()}…"


def branch(
    config: RunConfig,
    run_id: str,
    step: int,
    *,
    turns: Mapping[str, float] = MappingProxyType({}),
    objective: str | None = None,
    sampler: str | None = None,
    title: str = "",
) -> RunConfig:
    """Return the config of a branch: that of its parent, with other settings after `step`.

    Later turns and changes of the parent are kept, except those that would undo a change of the branch. Without a
    change, the branch repeats its parent.

    Args:
        config: config of the parent, prepared, with its knob turns.
        run_id: id of the parent.
        turns: new values of knobs, by name.
        objective: name of a preset of one phase, None for the parent's objective.
        sampler: None for the parent's sampler.
        title: title of the parent, from which the branch is named.
    Raises: ConfigError naming the knob, its value and a remedy.
    """
    first, phase = step + 1, config.phase_at(step + 1)
    used = objective_at(config, first)
    replacement = None if objective is None else build(ObjectiveConfig, single_objective(objective))
    replacement = None if replacement == used.objective else replacement
    sampler = None if sampler == config.sampler_at(first) else sampler
    used = used._replace(objective=replacement or used.objective)
    now = {name: used.rate_factor if name == RATE else used.objective.value_of(name) for name in turns}
    turned = {name: value for name, value in turns.items() if value != now[name]}

    def is_undone(turn: KnobTurn) -> bool:
        same = _kind(turn.name) in map(_kind, turned) or (replacement is not None and turn.name != RATE)
        return same and turn.step > step and config.phase_at(turn.step) == phase

    replaced = {"objective": replacement, "sampler": sampler}
    undone = dict.fromkeys(name for name, value in replaced.items() if value is not None)
    changes = [change.model_copy(update=undone) if change.step > step else change for change in config.changes]
    changes.append(build(Change, {"step": first, **replaced}))
    made = [build(KnobTurn, {"step": first, "name": name, "value": value}) for name, value in turned.items()]
    given = {
        "branch": BranchConfig(run=run_id, step=step),
        "name": f"{title[:TITLE_CHARS]} from step {step}",  # in English, as names are stored
        "knob_turns": (*(turn for turn in config.knob_turns if not is_undone(turn)), *made),
        "changes": tuple(one for one in changes if one.objective is not None or one.sampler is not None),
    }
    return parse_config(config.model_copy(update=given).to_json())


def _kind(name: str) -> str:
    """Return the setting that a knob turns, whichever name it has."""
    setting = name.rpartition(".")[2]
    return "lambda" if setting == "weight" else setting
