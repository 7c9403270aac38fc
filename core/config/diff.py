"""What differs between the configs of several runs, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from core.config import RunConfig
from core.config.describe import Setting, settings
from core.config.labels import ABSENT, in_phase
from core.config.turns import stages
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
        if path not in unbound and _differs(given, _row_hashes(path, configs)):
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


def _row_hashes(path: str, configs: Sequence[RunConfig]) -> list[str | None]:
    """The runs' content hashes for a setting that is done with once the rows are there, else nothing to go by."""
    decides = path.startswith(OF_ROWS) and path != BEYOND_ROWS
    return [config.task.content_hash if decides else None for config in configs]


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
