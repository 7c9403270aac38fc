"""Runs side by side: where their configs differ, whether they are one run, and which losses are the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import PureWindowsPath

from core.config import RunConfig
from core.config.describe import ABSENT, Setting, in_phase, phase_settings, settings
from core.config.schedule import stages
from core.messages import with_more

SEED = "seed"
# The task's settings decide the rows, but for how batches are drawn from them.
OF_ROWS = "task."
BEYOND_ROWS = "task.sampler"


@dataclass(frozen=True, slots=True)
class Difference:
    """One setting in which runs differ: its name for people, its dotted path, and its value in each run as text.

    Name and values are in the reader's language.
    """

    label: str
    path: str
    values: tuple[str, ...]


def config_differences(configs: Sequence[RunConfig]) -> tuple[Difference, ...]:
    """The settings whose values differ, in the order in which a config is read.

    Values are compared exactly, texts are for people: two values that would read alike are numbered. "–" is shown
    where a run has no such setting. Not listed as differences of their own, beside what `settings` leaves out:

    - the defaults of a term, view or phase that another run lacks, but for its weight, τ, steps and learning rate;
    - what follows from a difference that is listed: other rows from another seed, frames of a longer run;
    - where rows come from, when their content hashes are the same;
    - the two weights that λ binds, where every run has λ in the same way; λ, where not.

    Args:
        configs: one per run, drafts or prepared; with the knob turns that were made, where these are to count.
    """
    return differences_of(configs, [settings(config) for config in configs])


def differences_of(configs: Sequence[RunConfig], settings_of: Sequence[Sequence[Setting]]) -> tuple[Difference, ...]:
    """`config_differences` of configs whose settings are at hand."""
    found = [{setting.path: setting for setting in one} for one in settings_of]
    unbound = _not_bound(configs)
    rows = []
    for path in _merged_order([list(one) for one in found]):
        given = [one.get(path) for one in found]
        # A setting that is done with once the rows are there, or one that they say nothing of.
        decides = path.startswith(OF_ROWS) and path != BEYOND_ROWS
        hashes = [config.task.content_hash if decides else None for config in configs]
        if path not in unbound and _differs(given, hashes):
            rows.append(Difference(_label(configs, given, path), path, _texts(given)))
    return tuple(rows)


def _merged_order(orders: Sequence[Sequence[str]]) -> list[str]:
    """All paths; one that only some runs have comes before what follows it there and is known."""
    merged: list[str] = []
    for order in orders:
        place = len(merged)
        for path in reversed(order):
            if path in merged:
                place = merged.index(path)
            else:
                merged.insert(place, path)
    return merged


def _differs(given: Sequence[Setting | None], rows: Sequence[str | None]) -> bool:
    """Whether a setting differs where that is no mere consequence.

    Args:
        rows: one content hash per run; two runs with the same rows do not differ in where these come from.
    """
    present = [(setting, kept) for setting, kept in zip(given, rows, strict=True) if setting is not None]
    differing = [
        (one, other)
        for (one, of_one), (other, of_other) in combinations(present, 2)
        if one.value != other.value and (of_one is None or of_one != of_other)
    ]
    if len(present) < len(given):
        return bool(differing) or any(setting.listed for setting, _kept in present)
    return any(one.follows == other.follows for one, other in differing)


def _not_bound(configs: Sequence[RunConfig]) -> set[str]:
    """Paths that say the same as others: λ or the weights that it binds, phase by phase."""
    paths = set()
    for number in range(max((len(config.phases) for config in configs), default=0)):
        runs = [config for config in configs if number < len(config.phases)]
        objectives = [stage.settings.objective for config in runs for stage in stages(config, number)]
        path = f"phases.{number}.objective"
        ways = {objective.combine if objective.weight is not None else None for objective in objectives}
        if len(ways) > 1 or None in ways:
            paths.add(f"{path}.lambda")
        else:
            paths |= {f"{path}.terms.{key}.weight" for objective in objectives for key in objective.keys}
    return paths


def _label(configs: Sequence[RunConfig], given: Sequence[Setting | None], path: str) -> str:
    """A setting's name, with its phase where a run has two."""
    label = next(setting.label for setting in given if setting is not None)
    top, _, rest = path.partition(".")
    if top != "phases" or not rest or all(len(config.phases) == 1 for config in configs):
        return label
    return in_phase(label, int(rest.split(".")[0]))


def _texts(given: Sequence[Setting | None]) -> tuple[str, ...]:
    """One text per run; different values never read alike."""
    of_text: dict[str, list[object]] = {}
    for setting in given:
        values = of_text.setdefault(setting.text, []) if setting else []
        if setting and setting.value not in values:
            values.append(setting.value)
    return tuple(
        ABSENT
        if setting is None
        else setting.text
        if len(of_text[setting.text]) == 1
        else with_more(setting.text, str(of_text[setting.text].index(setting.value) + 1))
        for setting in given
    )


def config_hash(text: str) -> str:
    """A hash of a prepared config in its JSON form.

    Left out is what changes no number that a run learns or is scored by: its names, the steps of its frames, when
    its weights are saved, and what it asks a cluster for. Two runs with the same hash on one machine have the same
    curves. It reads JSON and no RunConfig, so that a store can hash what older versions wrote.
    """
    given = json.loads(text)
    for part in (given, given["task"]):
        part.pop("name", None)
    for part in ("checkpoint", "resources"):
        given.pop(part, None)
    # What older versions did not write.
    if given.get("processes") == 1:
        del given["processes"]
    if given.get("start") is None:
        given.pop("start", None)
    if given.get("classifier_start") == "random":
        del given["classifier_start"]
    if given["task"].get("back_translation") is None:
        given["task"].pop("back_translation", None)
        given["task"].pop("translators", None)
    given.get("probe", {}).pop("frame_steps", None)
    return hashlib.sha256(json.dumps(given, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:32]


TOTAL = "loss"


def is_loss(name: str) -> bool:
    """Whether a measure of a step is the total loss, or a part of it (`loss.supcon`, `loss.rdrop.kl`)."""
    return name.partition(".")[0] == TOTAL


def same_loss(configs: Sequence[RunConfig], name: str) -> bool:
    """Whether the total loss is the same sum in all runs, or a part of it has the same settings but for its weight.

    The value of a loss depends on the texts and the number of classes: the task counts. That of a contrastive loss
    depends on its temperature, its views, and on how many vectors it has to separate: the batch size counts for it.

    Args:
        configs: with the knob turns that were made.
        name: see `is_loss`.
    """
    return len({_meaning(config, name) for config in configs}) <= 1


def _meaning(config: RunConfig, name: str) -> Hashable:
    """What decides the value of a loss, phase by phase; a phase without the part says nothing."""
    key = name.split(".")[1] if "." in name else None
    found = [_in_phase(config, number, key) for number in range(len(config.phases))]
    file = config.task.path and PureWindowsPath(config.task.path).name  # as replays keep it
    return (config.task.id, file, *(phase for phase in found if phase))


def _in_phase(config: RunConfig, number: int, key: str | None) -> frozenset[tuple[str, Hashable]]:
    phase, path = config.phases[number], f"phases.{number}."
    objective = phase.objective
    terms = [term for name, term in zip(objective.keys, objective.terms, strict=True) if key in (None, name)]
    if not terms:
        return frozenset()
    start = f"{path}objective." if key is None else f"{path}objective.terms.{key}."
    every = {setting.path: setting.value for setting in phase_settings(config, number)}
    kept = {at: value for at, value in every.items() if at.startswith(start) and not (key and at == f"{start}weight")}
    if any(term.entry.contrastive for term in terms):
        kept[f"{path}batch_size"] = phase.batch_size
    return frozenset((at.removeprefix(path), value) for at, value in kept.items()) | {("present", True)}
