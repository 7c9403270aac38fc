"""Comparison of runs: settings that differ, hashes of a config and its past, shared steps and definitions of losses."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import PureWindowsPath

from core.config import MAX_STEPS, RunConfig
from core.config.describe import ABSENT, Setting, in_phase, phase_settings, settings
from core.config.plan import stages
from core.messages import with_more
from core.parameters import AUTO

SEED = "seed"
# Parameters of losses that older versions did not have, with the values that stand for their absence.
_NO_FACTOR = ("base_temperature", 0.0)
LATER: Mapping[str, Sequence[tuple[str, object]]] = {
    "supcon": (_NO_FACTOR, ("reduction", "mean")),
    "dscl": (_NO_FACTOR, ("normalize", True), ("variant", "paper"), ("queue", 0), ("momentum", AUTO)),
    "simcse": (("normalize", True), ("label_filter", False)),
    "cross_entropy": (("cutmix", 0), ("angle_margin", 1)),
}


@dataclass(frozen=True, slots=True)
class Difference:
    """One setting in which runs differ: its label, its dotted path, and its value in each run as text.

    Label and values are in the reader's language.
    """

    label: str
    path: str
    values: tuple[str, ...]


def config_differences(
    configs: Sequence[RunConfig], settings_of: Sequence[Sequence[Setting]] = ()
) -> tuple[Difference, ...]:
    """Return the settings whose values differ, in the order of `settings`.

    Values are compared exactly. Different values with the same text are numbered. A run without the setting shows "–".
    The following are not listed, nor are settings that `settings` leaves out:

    - the defaults of a term, view or phase that another run lacks, except its weight, τ, steps and learning rate;
    - consequences of a listed difference: other rows under another seed, frames of a longer run;
    - the source of the rows, if their content hashes are the same;
    - the two weights that λ binds, if every run binds them in the same way; otherwise λ.

    Args:
        configs: one per run, drafts or prepared; include the knob turns to compare them too.
        settings_of: the `settings` of each config, if they are already computed.
    """
    found = [{setting.path: setting for setting in one} for one in settings_of or map(settings, configs)]
    unbound, two_phases = _not_bound(configs), any(len(config.phases) > 1 for config in configs)
    rows = []
    for path in _merged_order([list(one) for one in found]):
        given = [one.get(path) for one in found]
        # Runs with the same content hash have the same rows, whatever settings produced them. The sampler only draws
        # batches from them.
        decides = path.startswith("task.") and path != "task.sampler"
        hashes = [config.task.content_hash if decides else None for config in configs]
        if path not in unbound and _differs(given, hashes):
            label = next(setting.label for setting in given if setting is not None)
            names = path.split(".")
            phase = int(names[1]) if two_phases and names[0] == "phases" and len(names) > 1 else None
            rows.append(Difference(in_phase(label, phase), path, _texts(given)))
    return tuple(rows)


def _merged_order(orders: Sequence[Sequence[str]]) -> list[str]:
    """Merge the paths of all runs; an additional path comes just before the path that follows it in its run."""
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
    """Return whether a setting differs, and not merely as a consequence of another setting.

    Args:
        rows: one content hash per run, or None to ignore it. Runs with the same rows do not differ in their source.
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
    """Return redundant paths, phase by phase: λ, or the weights that it binds."""
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


def _texts(given: Sequence[Setting | None]) -> tuple[str, ...]:
    """Return one text per run; different values never have the same text."""
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
    """Return a hash of a prepared config in its JSON form.

    It leaves out everything that affects neither training nor scores: the names of run and task, the frame steps, the
    checkpoint settings and the cluster resources. Two runs with the same hash on one machine have the same curves. The
    function takes JSON rather than a RunConfig, so that a store can hash configs of older versions.
    """
    given = json.loads(text)
    for part in (given, given["task"]):
        part.pop("name", None)
    for part in ("checkpoint", "resources"):
        given.pop(part, None)
    # Defaults that older versions did not write.
    for part, absent in (("processes", 1), ("start", None), ("classifier_start", "random")):
        if given.get(part) == absent:
            given.pop(part, None)
    if given["task"].get("back_translation") is None:
        given["task"].pop("back_translation", None)
        given["task"].pop("translators", None)
    objectives = [one.get("objective") or {} for one in (*given.get("phases", ()), *given.get("changes", ()))]
    for term in (term for objective in objectives for term in objective.get("terms", ())):
        for name, default in LATER.get(term["loss"], ()):
            if term.get(name) == default:
                del term[name]
    given.get("probe", {}).pop("frame_steps", None)
    return hashlib.sha256(json.dumps(given, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:32]


def same_loss(configs: Sequence[RunConfig], name: str) -> bool:
    """Return whether a loss has the same definition in all runs: the whole sum, or one part regardless of its weight.

    The value of a loss depends on the texts and the number of classes, so the task counts. A contrastive loss also
    depends on its temperature, its views and the number of vectors to separate, so its batch size counts.

    Args:
        configs: one per run, with its knob turns.
        name: name of the measure: the total loss or a part of it (`loss.supcon`, `loss.rdrop.kl`).
    """
    return len({_definition(config, name) for config in configs}) <= 1


def _definition(config: RunConfig, name: str) -> Hashable:
    """Return everything that determines the value of a loss, by phase; phases without the part are left out."""
    key = name.split(".")[1] if "." in name else None
    file = config.task.path and PureWindowsPath(config.task.path).name  # replays store only the file's name
    found: list[Hashable] = [config.task.id, file]
    for number, phase in enumerate(config.phases):
        objectives, path = [stage.settings.objective for stage in stages(config, number)], f"phases.{number}."
        pairs = [pair for objective in objectives for pair in zip(objective.keys, objective.terms, strict=True)]
        terms = [term for own, term in pairs if key in (None, own)]
        if not terms:
            continue
        start = f"{path}objective." if key is None else f"{path}objective.terms.{key}."
        of_loss = [setting for setting in phase_settings(config, number) if setting.path.startswith(start)]
        kept = {one.path.removeprefix(path): one.value for one in of_loss if not (key and one.path == f"{start}weight")}
        if any(term.entry.contrastive for term in terms):
            kept["batch_size"] = phase.batch_size
        found.append(frozenset(kept.items()))
    return tuple(found)


def past_hash(config: RunConfig, step: int) -> str:
    """Return a hash of everything that the steps up to `step` depend on."""
    early = {
        name: tuple(sorted((one for one in getattr(config, name) if one.step <= step), key=lambda one: one.step))
        for name in ("knob_turns", "changes")
    }
    return config_hash(config.model_copy(update={**early, "branch": None}).to_json())


def shared_steps(runs: Mapping[str, RunConfig]) -> int | None:
    """Return the last step that all runs share, as a parent and its branches do; None for other runs.

    Args:
        runs: config by run id.
    """
    lines = [
        {run_id: MAX_STEPS} | ({} if config.branch is None else {config.branch.run: config.branch.step})
        for run_id, config in runs.items()
    ]
    common = set.intersection(*map(set, lines))
    return max((min(line[run_id] for line in lines) for run_id in common), default=None)
